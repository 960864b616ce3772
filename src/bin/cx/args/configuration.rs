//! Arguments of the commands that set cx up: `setup`, `doctor`, `config`, `trust`, `auth`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

/// The arguments of `cx setup` about the changes that it makes.
const CHANGES_OF_SETUP: [&str; 7] =
    ["dry_run", "clients", "servers", "projects", "take_out", "existing", "no_connect"];

#[derive(Args, Debug)]
pub(crate) struct SetupArguments {
    /// Do not ask: put all servers behind cx, except those of one directory only, for all clients.
    /// Servers stay in the clients unless --take-out is given
    #[arg(long, visible_alias = "non-interactive")]
    pub(crate) yes: bool,

    /// Print the changes and make none
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Only this client, such as `claude-code` or `cursor`; can be repeated
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// Put only this server behind cx; can be repeated
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,

    /// Include servers that a client has for one directory only; behind cx they are available in
    /// all directories
    #[arg(long)]
    pub(crate) projects: bool,

    /// Take servers that are behind cx out of the clients that start it
    #[arg(long)]
    pub(crate) take_out: bool,

    /// What to do with the servers that cx already has
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) existing: Option<ExistingServers>,

    /// Do not connect to the servers afterwards
    #[arg(long)]
    pub(crate) no_connect: bool,

    /// Print JSON; needs --yes or --dry-run, because it asks nothing
    #[arg(long)]
    pub(crate) json: bool,

    /// Undo the last setup
    #[arg(long, conflicts_with_all = CHANGES_OF_SETUP)]
    pub(crate) undo: bool,

    /// Undo also in files that were changed since
    #[arg(long, requires = "undo", conflicts_with_all = CHANGES_OF_SETUP)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ExistingServers {
    /// Add to them; existing entries stay
    Merge,
    /// Replace them; rules and limits stay
    Reset,
    /// Leave cx's configuration alone
    Keep,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Read servers from this `mcpServers` file instead of the discovered ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Start no server
    #[arg(long)]
    pub(crate) offline: bool,

    /// Send a short question to the configured language model
    #[arg(long)]
    pub(crate) ask_model: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the servers and settings in effect, with secrets masked
    Show(ShowArguments),
    /// Print the JSON Schema of cx's own configuration file
    Schema,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// Show the configuration as `cx run` reads it with this `mcpServers` file
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).args(["file", "list", "revoke"]))]
pub(crate) struct TrustArguments {
    /// The file to trust
    pub(crate) file: Option<PathBuf>,

    /// Do not ask for confirmation
    #[arg(long, requires = "file", conflicts_with_all = ["list", "revoke"])]
    pub(crate) yes: bool,

    /// List the trusted files
    #[arg(long)]
    pub(crate) list: bool,

    /// Revoke the trust in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) revoke: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct AuthArguments {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Sign in through a browser; tokens are stored in the system's keyring
    Login {
        #[command(flatten)]
        server: AuthServer,

        /// Ask for this scope too, with those that were granted before
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,

        /// Only print the URL to open
        #[arg(long)]
        no_browser: bool,
    },
    /// Delete the tokens
    Logout {
        #[command(flatten)]
        server: AuthServer,
    },
    /// Show whether there are tokens
    Status {
        /// The server's name in the configuration [default: all servers that are reached over HTTP]
        #[arg(value_name = "SERVER")]
        name: Option<String>,

        /// The URL of a server that is not in the configuration
        #[arg(long, value_name = "URL", conflicts_with = "mcp_config", requires = "name")]
        url: Option<String>,

        /// Read servers from this `mcpServers` file instead of the discovered ones
        #[arg(long, value_name = "FILE")]
        mcp_config: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AuthServer {
    /// The server's name in the configuration
    #[arg(value_name = "SERVER")]
    pub(crate) name: String,

    /// The URL of a server that is not in the configuration
    #[arg(long, value_name = "URL", conflicts_with = "mcp_config")]
    pub(crate) url: Option<String>,

    /// Read servers from this `mcpServers` file instead of the discovered ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
}
