//! Which calls are made and approved, and how scripts and models find tools.

/// Approval of calls, and dry runs.
mod approval;
/// One call of a tool without a script.
mod call;
/// What ends a call: signals of scripts, and the time that they give it.
mod call_options;
/// The check of scripts before they run.
mod check;
/// The guide that agents read.
mod guide;
/// What a failed run says of its tools.
mod hints;
/// Imports of modules that scripts cannot use.
mod imports;
/// Private addresses in the arguments of tools.
mod private_addresses;
/// Another configuration while scripts run.
mod reconfigure;
/// Saved scripts: called and found by scripts.
mod saved_scripts;
/// Scripts that scripts save.
mod saving;
/// Judged queries over the tools of real servers: see `tests/search`.
mod search;
