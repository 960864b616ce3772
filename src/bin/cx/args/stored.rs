//! Arguments of the commands about what cx stores: `scripts`, `state`, `cache`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptsCommand {
    /// List the saved scripts, and the files that cannot be used as one
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a script: what it says about itself, and its code
    Show {
        /// The script's name
        name: String,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Save a script in your own folder
    Save {
        /// The script's file; its extension says its language
        file: PathBuf,

        /// The script's name [default: the file's without its extension]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,

        /// What the script does, if its front matter does not say it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,

        /// Replace a saved script of this name
        #[arg(long)]
        replace: bool,
    },
    /// Remove a script from your own folder
    Remove {
        /// The script's name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// List the workspaces and sessions that have state
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete the state of this workspace
    Clear {
        /// Delete the state of this session instead
        #[arg(long, value_name = "HANDLE", conflicts_with = "all")]
        session: Option<String>,

        /// The session belongs to this tenant of `cx serve --http`
        // clap does not check `requires` beside an option that conflicts with the required one, hence both.
        #[arg(long, value_name = "NAME", requires = "session", conflicts_with = "all", value_parser = parse_tenant)]
        tenant: Option<String>,

        /// Delete the state of all workspaces and sessions; asks for confirmation
        #[arg(long)]
        all: bool,

        /// Do not ask for confirmation; needed for --all if stdin is not a terminal
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Delete tool lists, inferred output schemas, counts of used tools, and Python's machine code
    Clear,
}

/// Parses the name of a tenant, which its sessions begin with.
fn parse_tenant(text: &str) -> Result<String, String> {
    if text.contains('/') {
        return Err("expected a tenant's name, without slashes".to_owned());
    }
    Ok(text.to_owned())
}
