//! The user's browser.

use std::env;
use std::ffi::OsStr;
use std::io;

/// Opens a file or an address with the program in `BROWSER`, else with the system's opener. Returns before the program
/// has opened it.
///
/// # Errors
///
/// If no program could be started.
#[expect(clippy::disallowed_methods, reason = "a variable of the desktop's, which is no configuration of cx")]
pub(crate) fn open(target: impl AsRef<OsStr>) -> io::Result<()> {
    match env::var("BROWSER").ok().as_deref().and_then(program) {
        Some(program) => open::with_detached(target, program),
        None => open::that_detached(target),
    }
}

/// The first program of a list such as `firefox:lynx`. A command with arguments is left to the system's opener, which
/// knows how to split it.
fn program(list: &str) -> Option<&str> {
    let first = list.split(':').next()?.trim();
    let first = first.strip_suffix("%s").map_or(first, str::trim_end);
    (!first.is_empty() && !first.contains([' ', '%', '"', '\''])).then_some(first)
}
