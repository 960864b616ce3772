//! Command-line arguments, as close to the typed form as possible. No files are read here.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{ArgGroup, Args, Parser, Subcommand};
use cx::Limits;
use cx::server::ServerOptions;

/// Runs scripts that call the tools of MCP servers
#[derive(Debug, Parser)]
#[command(name = "cx", version, max_term_width = 100, after_help = EXIT_STATUSES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The exit statuses of all commands, as `cx help` shows them.
const EXIT_STATUSES: &str = "\
Exit status:
  0    success
  1    the script failed, a confirmation was refused, or a server is signed out
  2    usage or configuration error, or another failure of the command
  3    a limit was exceeded, or stdout was not read in time
  4    stdout could not be written
  130  interrupted
  141  the reader of stdout has closed it";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a TypeScript, JavaScript or Python file
    ///
    /// The script's output is printed to stdout as it is produced, warnings and errors to stderr.
    /// The returned value is printed last on stdout, as JSON.
    ///
    /// Exit status: 0 success, 1 the script failed, 2 usage or configuration error, 3 a limit was
    /// exceeded or stdout was not read in time, 4 stdout could not be written, 130 interrupted, 141
    /// the reader of stdout has closed it.
    Run(RunArguments),

    /// Serve MCP clients over stdin and stdout, or over HTTP
    ///
    /// The server's tools run scripts that call the tools of the configured servers. Logs go to
    /// stderr.
    ///
    /// With --http, any number of clients can connect to http://ADDR/mcp, each with its own runs,
    /// and `/healthz` reports the server's health. Stdin and stdout are not used then. If
    /// CX_HTTP_TOKEN or --token-file sets a token, clients must send it as `Authorization: Bearer`.
    /// An address that is not a loopback address requires a token of at least 32 characters.
    ///
    /// Exit status: 0 the client disconnected or a signal was received, 2 usage or configuration
    /// error, 3 too many scripts could not be stopped and the process should be restarted.
    Serve(ServeArguments),

    /// List, search and show the tools of the configured servers
    ///
    /// Uses cached tool lists: a server is only asked with --refresh, or when a script needs it.
    #[command(subcommand)]
    Tools(ToolsCommand),

    /// Print TypeScript declarations of the tools that scripts can call
    Types(TypesArguments),

    /// Manage the cache of tool lists and inferred output schemas
    #[command(subcommand)]
    Cache(CacheCommand),

    /// Manage the state that scripts keep between runs
    #[command(subcommand)]
    State(StateCommand),

    /// Sign in to and out of HTTP servers
    ///
    /// Exit status: 0 success (for `status`: signed in), 1 signed out, 2 failure.
    Auth(AuthArguments),

    /// Show the configuration and where it comes from
    #[command(subcommand)]
    Config(ConfigCommand),

    /// Trust a workspace configuration file
    ///
    /// Files in a workspace, such as `.cx.json` and `.mcp.json`, can only restrict what is allowed
    /// until you trust them. Shows what the file would start and asks for confirmation. Any change
    /// to the file revokes the trust. Trust covers the file, not the programs that it names.
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

/// What scripts may call and use: the arguments shared by `run` and `serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScriptArguments {
    /// Read servers from this `mcpServers` file instead of the discovered ones; its commands are
    /// trusted. Your own file still restricts what is allowed
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Allow only tools that match, as `server.tool` or `server.*`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,

    /// Deny tools that match; has precedence over --allow
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,

    /// Require approval, at the terminal or through the client, for each call of a tool that
    /// matches PATTERN or is `destructive`, `write` or `open-world`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,

    /// Maximum wall-clock time of a script, whatever a client requests [default: as configured, else
    /// 30s, or up to 10m if a client requests it]. For `cx run` it bounds the wait for the reader of
    /// stdout too
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Maximum CPU time of a script, whatever a client requests [default: as configured, else 10s, or
    /// as much as the wall-clock time that is requested]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) cpu_time: Option<Duration>,

    /// Maximum number of WebAssembly instructions of a Python script, counted by code that is slower
    /// and is compiled the first time [default: as configured, else no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Limits::MAX_FUEL))]
    pub(crate) fuel: Option<u64>,

    /// Memory limit of a script [default: as configured, else 128MiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Maximum number of tool calls of a script, whatever a client requests; 0 for no limit
    /// [default: as configured, else 1000, or any number if a client requests it]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u32>,
}

impl ScriptArguments {
    /// The limits set by the arguments; `default` for the others. The CPU time follows `--timeout`
    /// up to `max_cpu_time`, the configured maximum.
    pub(crate) fn limits(&self, default: Limits, max_cpu_time: Duration) -> Limits {
        let default = match self.timeout {
            Some(time) => default.with_wall_time(time, max_cpu_time),
            None => default,
        };
        Limits {
            cpu_time: self.cpu_time.unwrap_or(default.cpu_time),
            fuel: self.fuel.or(default.fuel),
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

    /// Maximum wall-clock time of a script whose client requests none; at most --timeout [default:
    /// --timeout, else as configured, else 30s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) default_timeout: Option<Duration>,

    /// Maximum number of scripts that run at the same time [default: as configured, else 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_runs: Option<usize>,

    /// Maximum memory of all scripts that run at the same time; others wait [default: as configured,
    /// else half of what this process may use]
    #[arg(long, value_name = "SIZE")]
    pub(crate) total_memory: Option<ByteSize>,

    /// Maximum number of scripts that wait to run
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_queued: usize,

    /// Maximum time for which a script waits to run
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "30s")]
    pub(crate) queue_timeout: Duration,

    /// Format of the text in results
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: AnswerFormat,

    /// Maximum characters of a value in an answer, and of its output. The rest can be read by the
    /// next script. A program that drives cx can have more than the default, which is for models
    #[arg(long, value_name = "N", default_value_t = ServerOptions::default().max_value)]
    pub(crate) max_value: usize,

    /// Leave the names of the known tools out of the instructions, where they are while they are few
    #[arg(long)]
    pub(crate) no_index: bool,

    /// Serve over HTTP at this address, such as 127.0.0.1:8000 or localhost:8000; port 0 selects a
    /// free port. The address is printed on stderr
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) http: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) over_http: HttpArguments,
}

/// Reads an address with a port. `localhost` is the loopback address (RFC 6761); other names are not
/// looked up, because what they mean can change.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| host.eq_ignore_ascii_case("localhost"));
    if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    text.parse().map_err(|_invalid| "expected an IP address or `localhost`, and a port".to_owned())
}

/// Arguments that only apply with `--http`.
#[derive(Args, Debug)]
pub(crate) struct HttpArguments {
    /// Allow cross-origin requests from ORIGIN, such as https://app.example.com; loopback origins
    /// are always allowed
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,

    /// Read the token that clients must send from this file, which only you may read; without it,
    /// from CX_HTTP_TOKEN
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,

    /// Maximum number of scripts that one client may run in a minute; 0 for no limit [default: 30,
    /// or `clientRate` of the configuration]
    #[arg(long, value_name = "N", requires = "http")]
    pub(crate) client_rate: Option<u32>,

    /// Maximum number of scripts that all clients together may run in a minute; 0 for no limit
    #[arg(long, value_name = "N", requires = "http", default_value_t = 0)]
    pub(crate) run_rate: u32,

    /// Serve metrics at `/metrics`, in the Prometheus format
    #[arg(long, requires = "http")]
    pub(crate) metrics: bool,
}

/// Where tools come from, and how to print them.
#[derive(Args, Debug)]
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
        #[arg(long, default_value_t = 10)]
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

#[derive(Args, Debug)]
pub(crate) struct TypesArguments {
    #[command(flatten)]
    pub(crate) source: ToolsSource,

    /// Write the declarations to this file, such as `cx.d.ts`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Delete the cached tool lists and inferred output schemas
    Clear,
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

        /// Delete the state of all workspaces and sessions; asks for confirmation
        #[arg(long)]
        all: bool,

        /// Do not ask for confirmation; needed for --all if stdin is not a terminal
        #[arg(long)]
        yes: bool,
    },
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
        #[command(flatten)]
        server: AuthServer,
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

    /// Do not ask for confirmation
    #[arg(long, requires = "file")]
    pub(crate) yes: bool,

    /// List the trusted files
    #[arg(long)]
    pub(crate) list: bool,

    /// Revoke the trust in this file
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

    /// The script's language [default: Python for `.py` files, else TypeScript]
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Option<ScriptLanguage>,

    /// The script's `input`; `inputs` in Python. `@-` reads it from stdin
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) input: Option<String>,

    #[command(flatten)]
    pub(crate) script: ScriptArguments,

    /// Use the state of this session instead of the workspace's
    #[arg(long, value_name = "HANDLE")]
    pub(crate) session: Option<String>,

    /// Call only read-only tools; list the other calls instead
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the result, or why the script could not be run, as one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Print resource usage and dropped output to stderr
    #[arg(long)]
    pub(crate) stats: bool,
}
