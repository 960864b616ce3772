//! Arguments of the commands about tools and their types: `tools`, `types`, `sync`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Subcommand};

use super::script::ScriptLanguage;

/// Where tools come from, and how to print them.
#[derive(Args, Clone, Debug)]
pub(crate) struct ToolsSource {
    /// Read servers from this `mcpServers` file instead of the discovered ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Start the servers and fetch their tool lists first
    #[arg(long)]
    pub(crate) refresh: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools
    List {
        #[command(flatten)]
        source: ToolsSource,

        /// List only the tools of this server
        #[arg(long)]
        server: Option<String>,
    },
    /// Search tools by words, best match first
    Search {
        #[command(flatten)]
        source: ToolsSource,

        #[arg(required = true)]
        words: Vec<String>,

        /// Maximum number of results
        #[arg(long, default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
        limit: usize,
    },
    /// Show a tool's description, arguments and result
    Show {
        #[command(flatten)]
        source: ToolsSource,

        /// `server.tool` or `mcp__server__tool`
        name: String,
    },
    /// Show tools whose definition differs from the pinned one
    Changed {
        #[command(flatten)]
        source: ToolsSource,
    },
    /// Pin the current definitions of tools
    #[command(group = ArgGroup::new("which").required(true).args(["names", "all"]))]
    Accept {
        #[command(flatten)]
        source: ToolsSource,

        /// `server.tool`, or `server` for all of its tools
        names: Vec<String>,

        /// All tools that differ
        #[arg(long)]
        all: bool,
    },
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TypesArguments {
    /// Read servers from this `mcpServers` file instead of the discovered ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Start the servers and fetch their tool lists first
    #[arg(long)]
    pub(crate) refresh: bool,

    /// The language of the scripts
    #[arg(long, value_enum, default_value = "ts")]
    pub(crate) lang: ScriptLanguage,

    /// Write to this directory: `cx.d.ts`, or stubs for Python. A name that ends in `.ts` is a file
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,

    /// Write nothing; print what differs, and exit with status 1 if something does
    #[arg(long, requires = "out", conflicts_with = "watch")]
    pub(crate) check: bool,

    /// Write again whenever the configuration or a list of tools changes, until interrupted
    #[arg(long, requires = "out")]
    pub(crate) watch: bool,

    /// Start no server: those whose tools are not known yet have no types
    #[arg(long, conflicts_with = "refresh")]
    pub(crate) offline: bool,
}

/// The actions of `cx sync` that neither synchronize nor install that.
const NOT_SYNCHRONIZING: [&str; 2] = ["uninstall", "status"];

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("action").args(["install", "uninstall", "status"]))]
pub(crate) struct SyncArguments {
    /// Write declarations for editors into this directory, as `cx types` does, if they have changed
    #[arg(long, value_name = "DIR", conflicts_with_all = NOT_SYNCHRONIZING)]
    pub(crate) types: Option<PathBuf>,

    /// The languages of the declarations
    #[arg(
        long,
        value_enum,
        default_value = "ts",
        value_delimiter = ',',
        requires = "types",
        conflicts_with_all = NOT_SYNCHRONIZING
    )]
    pub(crate) lang: Vec<ScriptLanguage>,

    /// Read servers from this `mcpServers` file instead of the discovered ones
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_SYNCHRONIZING)]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Let the system synchronize every day, with the arguments that are given here
    #[arg(long)]
    pub(crate) install: bool,

    /// Remove what --install has made
    #[arg(long)]
    pub(crate) uninstall: bool,

    /// Show whether it is installed and active, and the outcome of the last time
    #[arg(long)]
    pub(crate) status: bool,

    /// Print the files that --install would write
    #[arg(long, requires = "install", conflicts_with_all = NOT_SYNCHRONIZING)]
    pub(crate) dry_run: bool,

    /// The scheduler that runs it every day [default: that of this system]
    #[arg(long, value_enum, value_name = "NAME", requires = "action")]
    pub(crate) scheduler: Option<Scheduler>,

    /// Print one JSON object
    #[arg(long, conflicts_with_all = ["install", "uninstall"])]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Scheduler {
    /// A systemd timer of the user
    Systemd,
    /// A launchd agent of the user (macOS)
    Launchd,
    /// A task of the user in the Windows Task Scheduler
    Windows,
}
