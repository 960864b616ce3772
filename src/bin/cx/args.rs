//! Arguments, as close to what was typed as possible. No files are read here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{ArgGroup, Args, Parser, Subcommand};
use cx::Limits;

/// Runs scripts that call the tools of MCP servers
#[derive(Debug, Parser)]
#[command(name = "cx", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a TypeScript, JavaScript or Python file
    ///
    /// What the script prints goes to stdout as it is printed, warnings and errors to stderr. The
    /// value comes last on stdout, as JSON.
    ///
    /// Exit status: 0 success, 1 the script failed, 2 usage or configuration, 3 a limit was hit,
    /// 130 interrupted.
    Run(RunArguments),

    /// Serve agents: an MCP server over stdin and stdout, or over HTTP
    ///
    /// Its tools run scripts that call the tools of the configured servers. Logs go to stderr.
    ///
    /// With --http any number of clients are served at http://ADDR/mcp, each with runs of its own, and `/healthz` says
    /// how the server is. Stdin and stdout are not used then. Clients must send the token of CX_HTTP_TOKEN or
    /// --token-file as `Authorization: Bearer`, if there is one; an address that others can reach needs one of at
    /// least 32 characters.
    ///
    /// Exit status: 0 the client has gone or a signal came, 2 usage or configuration, 3 too many scripts could not be
    /// stopped and the process should be started again.
    Serve(ServeArguments),

    /// List, search and show the tools of the configured servers
    ///
    /// From what is known: a server is asked only with --refresh, or when a script needs it.
    #[command(subcommand)]
    Tools(ToolsCommand),

    /// Print TypeScript declarations of what scripts see
    Types(TypesArguments),

    /// What is kept of servers between runs
    #[command(subcommand)]
    Cache(CacheCommand),

    /// What scripts keep between runs
    #[command(subcommand)]
    State(StateCommand),

    /// Sign in to servers behind an address, and out of them
    ///
    /// Exit status: 0 success (for `status`: signed in), 1 signed out, 2 it failed.
    Auth(AuthArguments),

    /// Show what is configured, and where it comes from
    #[command(subcommand)]
    Config(ConfigCommand),

    /// Let a workspace's file start what it says
    ///
    /// Files in a workspace, such as `.cx.json` and `.mcp.json`, may only narrow what is allowed
    /// until a person has read and trusted them. Shows what the file would start and asks. Trust
    /// ends with the next change to the file. What is trusted is the file, not the programs that it
    /// names.
    Trust(TrustArguments),
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum AnswerFormat {
    /// Text for models
    #[default]
    Text,
    /// Compact JSON
    Json,
    /// TOON, Token-Oriented Object Notation
    Toon,
}

/// What scripts may call and use: the same for one script and for all of a server's.
#[derive(Args, Debug)]
pub(crate) struct ScriptArguments {
    /// A file with `mcpServers` instead of the configuration that is found; its commands are trusted
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Allow only the tools that match, as `server.tool` or `server.*`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,

    /// Deny the tools that match; wins over --allow
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,

    /// Ask a person, at the terminal or at the client, before each call of the tools that match, or are `destructive`,
    /// `write` or `open-world`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,

    /// Maximum wall-clock time of a script [default: 30s; 10m if a client asks for it]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Memory limit of a script [default: 128MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Maximum number of tool calls of a script, 0 for no limit [default: 1000, or what a client asks for]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u32>,
}

impl ScriptArguments {
    /// The limits where these say something, `default` where they do not.
    pub(crate) fn limits(&self, default: Limits) -> Limits {
        Limits {
            wall_time: self.timeout.unwrap_or(default.wall_time),
            memory_bytes: self
                .memory
                .map_or(default.memory_bytes, |size| usize::try_from(size.as_u64()).unwrap_or(usize::MAX)),
            tool_calls: self.max_tool_calls.unwrap_or(default.tool_calls),
            ..default
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,

    /// Wall-clock time of a script whose client asks for none, at most --timeout [default: --timeout, or 30s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) default_timeout: Option<Duration>,

    /// Scripts that may run at the same time
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) max_runs: usize,

    /// Scripts that may wait for their turn, 30 s at most
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_queued: usize,

    /// How the text of answers is written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: AnswerFormat,

    /// Serve over HTTP at this address, such as 127.0.0.1:8000; port 0 takes a free one. The address is printed on
    /// stderr
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) over_http: HttpArguments,
}

/// What matters with `--http` only.
#[derive(Args, Debug)]
pub(crate) struct HttpArguments {
    /// Let the pages of this origin ask, such as https://app.example.com; those of this machine may
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,

    /// A file with the token that clients must send, which only you may read; else CX_HTTP_TOKEN has it
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,

    /// Show metrics at `/metrics`, as Prometheus reads them
    #[arg(long, requires = "http")]
    pub(crate) metrics: bool,
}

/// Where tools come from, and how to print them.
#[derive(Args, Debug)]
pub(crate) struct ToolsSource {
    /// A file with `mcpServers` instead of the configuration that is found
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Start the servers and ask them first
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

        /// Only this server's
        #[arg(long)]
        server: Option<String>,
    },
    /// Find tools by words, best first
    Search {
        #[command(flatten)]
        source: ToolsSource,

        #[arg(required = true)]
        words: Vec<String>,

        /// At most so many
        #[arg(long, default_value_t = 10)]
        limit: usize,
    },
    /// Show a tool: what it does, takes and returns
    Show {
        #[command(flatten)]
        source: ToolsSource,

        /// `server.tool` or `mcp__server__tool`
        name: String,
    },
    /// Show which tools are not as they were accepted
    Changed {
        #[command(flatten)]
        source: ToolsSource,
    },
    /// Accept tools as they are now
    #[command(group = ArgGroup::new("which").required(true).args(["names", "all"]))]
    Accept {
        #[command(flatten)]
        source: ToolsSource,

        /// `server.tool`, or `server` for all of its tools
        names: Vec<String>,

        /// Everything that differs
        #[arg(long)]
        all: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TypesArguments {
    #[command(flatten)]
    pub(crate) source: ToolsSource,

    /// Write them to this file, such as `cx.d.ts`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Forget the lists of tools and the shapes of results
    Clear,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// List the workspaces and sessions that have something
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget what is kept for this workspace
    Clear {
        /// For this session instead
        #[arg(long, value_name = "HANDLE", conflicts_with = "all")]
        session: Option<String>,

        /// For all workspaces and sessions
        #[arg(long)]
        all: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AuthArguments {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Sign in through a browser; the tokens go to the system's keyring
    Login {
        #[command(flatten)]
        server: AuthServer,

        /// Only print the address to open
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the tokens
    Logout {
        #[command(flatten)]
        server: AuthServer,
    },
    /// Say whether there are tokens
    Status {
        #[command(flatten)]
        server: AuthServer,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AuthServer {
    /// The server's name, as in the configuration
    #[arg(value_name = "SERVER")]
    pub(crate) name: String,

    /// The address of a server that is not in the configuration
    #[arg(long, value_name = "URL", conflicts_with = "mcp_config")]
    pub(crate) url: Option<String>,

    /// A file with `mcpServers` instead of the configuration that is found
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
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
    /// Show these files of servers as `cx run` would read them
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

    /// Do not ask
    #[arg(long, requires = "file")]
    pub(crate) yes: bool,

    /// List the trusted files
    #[arg(long)]
    pub(crate) list: bool,

    /// Trust this file no longer
    #[arg(long, value_name = "FILE")]
    pub(crate) revoke: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ScriptLanguage {
    /// TypeScript or JavaScript
    #[value(alias = "typescript", alias = "js", alias = "javascript")]
    Ts,
    /// Python
    #[value(alias = "python")]
    Py,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("source").required(true).args(["file", "eval"]))]
pub(crate) struct RunArguments {
    /// The script's file, or `-` for stdin
    pub(crate) file: Option<PathBuf>,

    /// Run this code instead of a file
    #[arg(short = 'e', long, value_name = "CODE")]
    pub(crate) eval: Option<String>,

    /// The script's language [default: by the file's ending, `.py` is Python; else TypeScript]
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Option<ScriptLanguage>,

    /// What the script sees as `input`, in Python as `inputs`
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) input: Option<String>,

    #[command(flatten)]
    pub(crate) script: ScriptArguments,

    /// Give the script the state of this session instead of the workspace's
    #[arg(long, value_name = "HANDLE")]
    pub(crate) session: Option<String>,

    /// Make no call of a tool that is not read-only; list the calls instead
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the whole outcome as one JSON object, and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Say on stderr what the run used and what stayed out of the output
    #[arg(long)]
    pub(crate) stats: bool,
}
