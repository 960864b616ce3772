//! Command-line arguments, as close to the typed form as possible. No files are read here.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use bytesize::ByteSize;
use clap::{ArgGroup, Args, Parser, Subcommand};
use cx::server::ServerOptions;
use cx::{HostPattern, Isolation, Limits, Versions};

/// Runs scripts that call the tools of MCP servers
#[derive(Debug, Parser)]
#[command(name = "cx", version, long_version = VERSIONS.as_str(), max_term_width = 100, after_help = EXIT_STATUSES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `--version` prints after the name: cx's own version first, and then those of what it is made of.
static VERSIONS: LazyLock<String> = LazyLock::new(|| {
    let Versions { cx, v8, python, wasmtime, mcp, .. } = Versions::of_this_build();
    let parts = [("V8", v8), ("CPython", python), ("wasmtime", wasmtime)];
    let parts = parts.iter().filter_map(|(name, version)| Some(format!("{name} {}", (*version)?)));
    let parts: Vec<String> = parts.chain([format!("MCP {}", mcp.join(" "))]).collect();
    format!("{cx} ({})", parts.join(", "))
});

/// The exit statuses of all commands, as `cx help` shows them.
const EXIT_STATUSES: &str = "\
Exit status:
  0    success
  1    the script failed, a confirmation was refused, a server is signed out, or something does not work
  2    usage or configuration error, or another failure of the command
  3    a limit was exceeded, or stdout was not read in time
  4    stdout could not be written
  130  interrupted
  141  the reader of stdout has closed it";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Put the MCP servers of your clients behind cx
    ///
    /// Finds MCP clients and their servers, asks which to put behind cx and which clients will start
    /// it, shows the changes, and makes them. Keeps a copy of every file. Then connects to the servers and
    /// counts the tokens of their tools, before and after.
    ///
    /// Exit status: 0 success, 1 a confirmation was refused, 2 a file cannot be read or changed.
    Setup(SetupArguments),

    /// Run a TypeScript, JavaScript or Python file, or a saved script by its name
    ///
    /// The script's output is printed to stdout as it is produced, warnings and errors to stderr.
    /// The returned value is printed last on stdout, as JSON.
    ///
    /// Exit status: 0 success, 1 the script failed, 2 usage or configuration error, 3 a limit was
    /// exceeded or stdout was not read in time, 4 stdout could not be written, 130 interrupted, 141
    /// the reader of stdout has closed it.
    Run(RunArguments),

    /// Check a script without running it
    ///
    /// Finds everything that is wrong with it at once: syntax, servers and tools that do not exist or may
    /// not be called, arguments that do not match their schemas, calls that are not awaited. Servers that the
    /// script names and whose tools are not known are asked for them. `cx run` makes the same check, and runs
    /// nothing of a script that cannot succeed.
    ///
    /// Exit status: 0 no errors (there may be warnings), 1 the script has errors, 2 usage or configuration
    /// error, 3 a limit was exceeded.
    Check(CheckArguments),

    /// Run a script, and again whenever its file or that of its input changes
    ///
    /// Takes the arguments of `cx run`. A run that is not over when a file changes is stopped. Says on stderr
    /// what has changed and how each run ended. Ctrl-C ends it.
    ///
    /// Exit status: that of the last run if it was over, else 130.
    Watch(RunArguments),

    /// Run a recorded script again, without servers, and compare
    ///
    /// The file is one that `cx run --record` has written. The script gets the recorded answers, times and
    /// random numbers: no server is started, no configuration is read, and nothing is asked. It may come
    /// from another person. The script's output and value are printed as by `cx run`, the first difference from
    /// the recorded run to stderr.
    ///
    /// Exit status: 0 the outcome is the recorded one, 1 the script went another way, 2 the file cannot be
    /// used, 130 interrupted.
    Replay(ReplayArguments),
    /// Type scripts at a prompt and see their values
    ///
    /// Each input is a script of its own with the state of the workspace or of --session, and the value
    /// of the one before as its `input` (`inputs` in Python). Tab completes servers, tools and
    /// parameters. Lists of objects are shown as tables.
    ///
    /// Where stdin or stdout is no terminal, or the terminal is a `dumb` one, inputs are plain lines: a pipe's
    /// inputs are run without a prompt.
    ///
    /// Exit status: 0, or without a prompt 1 if an input has failed; 2 usage or configuration error.
    Repl(ReplArguments),

    /// Serve MCP clients over stdin and stdout, or over HTTP
    ///
    /// The server's tools run scripts that call the tools of the configured servers. Logs go to
    /// stderr.
    ///
    /// With --http, any number of clients can connect to http://ADDR/mcp, each with its own runs,
    /// and `/healthz` reports the server's health. Stdin and stdout are not used then. If
    /// CX_HTTP_TOKEN or --token-file sets a token, clients must send it as `Authorization: Bearer`.
    /// --tokens-file sets several, each of a tenant. An address that is not a loopback address requires tokens of at
    /// least 32 characters.
    ///
    /// Exit status: 0 the client disconnected or a signal was received, 2 usage or configuration
    /// error, 3 too many scripts could not be stopped and the process should be restarted.
    Serve(ServeArguments),

    /// Execute scripts of other machines that come over a queue on a NATS server
    ///
    /// Scripts of `cx serve --nats` and `cx run --nats` with the same server and key are executed here, in worker
    /// processes without files and network. Their tools are called where they come from. The first SIGTERM or SIGINT
    /// lets the scripts that run end and takes no more; a second one ends them.
    ///
    /// Exit status: 0 ended by a signal, 2 usage or configuration error, or this machine has no worker processes.
    Worker(WorkerArguments),

    /// List, search and show the tools of the configured servers
    ///
    /// Uses cached tool lists: a server is only asked with --refresh, or when a script needs it.
    #[command(subcommand)]
    Tools(ToolsCommand),

    /// Write TypeScript declarations or Python stubs of the tools that scripts can call
    ///
    /// Servers whose tools are not known yet are started and asked. Exit status: 0 success, 1 a server
    /// could not be asked, or `--check` found a difference, 2 usage, configuration or files.
    Types(TypesArguments),

    /// Read clients' files again, ask all servers for their tools, and write types that have changed
    ///
    /// What came of it is kept in last-sync.json in the state directory. With --install the system does
    /// it every day, at a minute between four and six in the morning.
    ///
    /// Exit status: 0 success (for --status: installed and active), 1 something failed, or another sync
    /// is running, 2 usage.
    Sync(SyncArguments),

    /// Look for what is wrong, and say how to mend it
    ///
    /// Starts both engines and all servers, and looks at the configuration, the machine and its limits,
    /// caches, sign-ins, the state of scripts, the audit trail and the MCP clients. Changes nothing, and
    /// asks no language model unless --ask-model is given.
    ///
    /// Exit status: 0 no problems, 1 problems, 2 usage.
    Doctor(DoctorArguments),

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

    /// Show, verify, sign and export the audit trail
    ///
    /// Exit status: 0 success (for `verify`: nothing is wrong), 1 something is wrong, 2 failure.
    Audit(AuditArguments),

    /// List and show runs, from the audit trail
    Runs(RunsArguments),

    /// Open a page with runs, servers and approvals in the browser
    ///
    /// Serves a page at a loopback address until interrupted. Shows the runs of audit trails, and the metrics
    /// of running servers that listen (`cx serve --http`, `cx serve --metrics`). Approvals of servers that
    /// were started with `--approver page` are answered there. The address that is printed works once.
    Ui(UiArguments),

    /// Show runs, calls, queues and circuit breakers of running servers in the terminal
    ///
    /// Reads the metrics of running servers that listen (`cx serve --http`, `cx serve --metrics`), once a
    /// second. `q` ends it.
    Top(TopArguments),

    /// List, show, save and remove saved scripts
    ///
    /// Saved scripts are in ~/.config/cx/scripts, and in .cx/scripts of a workspace once `cx trust` has
    /// approved each. `cx run NAME` runs one, scripts call them, and agents find and run them.
    #[command(subcommand)]
    Scripts(ScriptsCommand),

    /// Trust a workspace's configuration file or script
    ///
    /// Files in a workspace, such as `.cx.json` and `.mcp.json`, can only restrict what is allowed
    /// until you trust them, and its scripts in `.cx/scripts` cannot be called. Shows what the file would
    /// start, or the script's code, and asks for confirmation. Any change to the file revokes the trust.
    /// Trust covers the file, not the programs that it names.
    Trust(TrustArguments),

    /// Print the completion script of a shell
    Completions(CompletionsArguments),

    /// Print the manual page, or write those of all subcommands
    Man(ManArguments),
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// Write a page for each subcommand into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct SetupArguments {
    /// Do not ask: every server that is not of one directory only, every client, and the servers stay in
    /// the clients unless --take-out is given
    #[arg(long, visible_alias = "non-interactive")]
    pub(crate) yes: bool,

    /// Print the changes and make none
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Only this client, such as `claude-code` or `cursor`
    #[arg(long = "client", value_name = "NAME")]
    pub(crate) clients: Vec<String>,

    /// Put only this server behind cx
    #[arg(long = "server", value_name = "NAME")]
    pub(crate) servers: Vec<String>,

    /// Also servers that a client has for one directory only; behind cx they are there in all directories
    #[arg(long)]
    pub(crate) projects: bool,

    /// Take servers that are behind cx out of the clients that start it
    #[arg(long)]
    pub(crate) take_out: bool,

    /// What to do with the servers that cx has already
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) existing: Option<ExistingServers>,

    /// Do not connect to the servers afterwards
    #[arg(long)]
    pub(crate) no_connect: bool,

    /// Print JSON; asks nothing
    #[arg(long)]
    pub(crate) json: bool,

    /// Undo the last setup
    #[arg(long, conflicts_with_all = ["dry_run", "clients", "servers", "projects", "take_out", "existing", "no_connect"])]
    pub(crate) undo: bool,

    /// Undo also in files that were changed since
    #[arg(long, requires = "undo")]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ExistingServers {
    /// Add to them; a name that is there stays as it is
    Merge,
    /// Replace them; rules and limits stay
    Reset,
    /// Leave cx's configuration alone
    Keep,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ServeApprover {
    /// The client's user, if the client can ask; else such calls are refused
    #[default]
    Client,
    /// The user of the page: `cx ui`, or `/ui` of --http
    Page,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ServeMode {
    /// Those of --direct and of the configuration
    Script,
    /// All tools, while showing them costs fewer tokens than searching them
    Auto,
    /// All tools
    Direct,
}

/// Arguments of `cx repl`.
#[derive(Args, Debug)]
pub(crate) struct ReplArguments {
    /// The language of the inputs
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = ScriptLanguage::Ts)]
    pub(crate) lang: ScriptLanguage,

    /// Use the state of this session instead of the workspace's
    #[arg(long, value_name = "HANDLE")]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) script: ScriptArguments,
}

/// The queue of runs on a NATS server.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NatsArguments {
    /// Run scripts in worker processes of the machines that have joined the queue of this NATS server (`cx worker`);
    /// their tools, approvals and state stay here. Several addresses of a cluster have commas between them
    #[arg(long, value_name = "URL", requires = "nats_key_file")]
    pub(crate) nats: Option<String>,

    /// Read the key that all machines of the queue share from this file, at least 32 characters
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_key_file: Option<PathBuf>,

    /// Read the credentials for the NATS server from this file
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_credentials: Option<PathBuf>,

    /// Trust the certificates of authorities in this file, in PEM, for the NATS server too
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_ca: Option<PathBuf>,

    /// Share `state` and records of runs with the other front ends of this tenant, over the NATS server, encrypted
    #[arg(long, value_name = "NAME", requires_all = ["nats", "nats_tenant_key_file"])]
    pub(crate) nats_tenant: Option<String>,

    /// Read the key that all front ends of the tenant share, and no worker has, from this file, at least 32 characters
    #[arg(long, value_name = "FILE", requires = "nats_tenant")]
    pub(crate) nats_tenant_key_file: Option<PathBuf>,
}

/// Arguments of `cx worker`.
#[derive(Args, Debug)]
pub(crate) struct WorkerArguments {
    /// Address of the NATS server, such as tls://nats.example.com:4222; several addresses of a cluster have commas
    /// between them [default: that of `isolation` in the configuration]
    #[arg(long, value_name = "URL", requires = "nats_key_file")]
    pub(crate) nats: Option<String>,

    /// Read the key that all machines of the queue share from this file, at least 32 characters
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_key_file: Option<PathBuf>,

    /// Read the credentials for the NATS server from this file
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_credentials: Option<PathBuf>,

    /// Trust the certificates of authorities in this file, in PEM, for the NATS server too
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_ca: Option<PathBuf>,

    /// Maximum number of scripts that run at the same time [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrency: Option<u16>,

    /// Maximum number of scripts that wait in the queue, if it is not there yet
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_queued: u32,

    /// Maximum wall-clock time of a script, whatever its own machine permits [default: as configured, else 10m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Maximum CPU time of a script, whatever its own machine permits [default: as configured, else 10m]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) cpu_time: Option<Duration>,

    /// Maximum memory of a script, whatever its own machine permits [default: as configured, else 1 GiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,

    /// Serve metrics in the Prometheus format at `/metrics` of this address, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(crate) metrics: Option<SocketAddr>,

    /// Read the token that readers of the metrics must send from this file, which only you may read, and again when it
    /// changes; without it, from CX_HTTP_TOKEN
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub(crate) token_file: Option<PathBuf>,
}

/// What scripts may call and use: the arguments shared by `run`, `repl` and `serve`.
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

    /// Time zone that scripts see as the local one, such as Europe/Berlin, unless a client names
    /// another [default: as configured, else UTC]
    #[arg(long, value_name = "NAME")]
    pub(crate) time_zone: Option<String>,

    /// Let scripts read and list the files of this directory, besides what your configuration grants
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_read: Vec<PathBuf>,

    /// Let scripts create, change and delete files in this directory; to read there too, give it to
    /// --allow-read as well
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_write: Vec<PathBuf>,

    /// Let scripts send requests to this host, such as api.example.com or *.example.com:443; an address
    /// of your own network only by its name
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_net: Vec<HostPattern>,
    /// Where scripts are executed: in this process, or in worker processes that have no files and no
    /// network (Linux) [default: as configured, else in-process]
    #[arg(long, value_name = "MODE", value_parser = isolation_mode)]
    pub(crate) isolation: Option<Isolation>,

    /// Write an audit trail of all scripts to this directory [default: as configured, else none]
    #[arg(long, value_name = "DIR")]
    pub(crate) audit: Option<PathBuf>,

    /// Let scripts ask the configured language model (`llm.ask`), within its budget
    #[arg(long)]
    pub(crate) llm: bool,
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
#[command(group = ArgGroup::new("address").multiple(true))]
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

    /// Keep a page with the trace of each script in DIR: the last 200, at most 256 MB
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,

    /// Answer a call after this time although its script goes on, for clients without tasks: the tool
    /// `wait` has the rest. 0s: only where a call has `yieldAfterMs`
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) yield_after: Option<Duration>,

    /// Show tools that match to the client itself too, beside those that run scripts, as
    /// `server.tool` or `server.*`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) direct: Vec<String>,

    /// Which tools the client sees itself: those of --direct, all while they are few, or all
    /// [default: as configured, else script]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ServeMode>,

    /// Who is asked for approvals. `page` needs --http or --metrics
    #[arg(long, value_enum, default_value_t, value_name = "WHO", requires_if("page", "address"))]
    pub(crate) approver: ServeApprover,

    /// Serve over HTTP at this address, such as 127.0.0.1:8000 or localhost:8000; port 0 selects a
    /// free port; `systemd` takes the socket of a socket unit. The address is printed on stderr
    #[arg(long, value_name = "ADDR", value_parser = parse_http_address, group = "address")]
    pub(crate) http: Option<HttpAddress>,

    /// Serve metrics in the Prometheus format: at `/metrics` of this address, such as
    /// 127.0.0.1:9464, or without one at `/metrics` of --http
    #[arg(
        long,
        value_name = "ADDR",
        value_parser = parse_metrics_address,
        num_args = 0..=1,
        default_missing_value = "",
        group = "address"
    )]
    pub(crate) metrics: Option<MetricsAddress>,

    #[command(flatten)]
    pub(crate) over_http: HttpArguments,

    #[command(flatten)]
    pub(crate) nats: NatsArguments,
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

/// Where `--http` listens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HttpAddress {
    /// At this address.
    Own(SocketAddr),
    /// At the socket that systemd, or who speaks its protocol, has opened.
    Passed,
}

/// Reads where to listen: an address, or the word for the socket that was passed.
fn parse_http_address(text: &str) -> Result<HttpAddress, String> {
    if text == "systemd" { Ok(HttpAddress::Passed) } else { parse_address(text).map(HttpAddress::Own) }
}

/// Where `--metrics` serves them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetricsAddress {
    /// At `/metrics` of `--http`.
    OfHttp,
    /// At `/metrics` of this address.
    Own(SocketAddr),
}

/// Reads the address of the metrics page; none is that of `--http`.
fn parse_metrics_address(text: &str) -> Result<MetricsAddress, String> {
    if text.is_empty() { Ok(MetricsAddress::OfHttp) } else { parse_address(text).map(MetricsAddress::Own) }
}

/// Arguments that only apply with `--http`.
#[derive(Args, Debug)]
pub(crate) struct HttpArguments {
    /// Allow cross-origin requests from ORIGIN, such as https://app.example.com; loopback origins
    /// are always allowed
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,

    /// Read the token that clients must send from this file, which only you may read, and again when it changes;
    /// without it, from CX_HTTP_TOKEN
    #[arg(long, value_name = "FILE", requires = "address")]
    pub(crate) token_file: Option<PathBuf>,

    /// Read tenants and the tokens of their clients from this file, which only you may read, and again when it changes:
    /// a name, space and a token in each line. Without it, from CX_HTTP_TOKENS or the file `tokensFile` of the
    /// configuration. With more than one token scripts run in worker processes unless --isolation says otherwise, and
    /// --token-file is the operator's
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) tokens_file: Option<PathBuf>,

    /// Lend N worker processes at the same time to `cx run --remote` of other machines, whose scripts then run
    /// here without files and network. Needs a token if others can reach the address
    #[arg(long, value_name = "N", requires = "http", default_value_t = 0)]
    pub(crate) compute: usize,

    /// Maximum number of scripts that one client may run in a minute; 0 for no limit [default: 30,
    /// or `clientRate` of the configuration]
    #[arg(long, value_name = "N", requires = "http")]
    pub(crate) client_rate: Option<u32>,

    /// Maximum number of scripts that all clients together, or those of each tenant, may run in a minute; 0 for no
    /// limit
    #[arg(long, value_name = "N", requires = "http", default_value_t = 0)]
    pub(crate) run_rate: u32,
}

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
pub(crate) struct CheckArguments {
    /// The script's file, `-` for stdin, or the name of a saved script (`./NAME` is always a file)
    pub(crate) file: PathBuf,

    /// The script's language [default: Python for `.py` files, else TypeScript]
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Option<ScriptLanguage>,

    /// Check all types too, with `tsc` or `pyright` on the path and the declarations of `cx types`
    #[arg(long)]
    pub(crate) types: bool,

    /// Start no server: calls of servers whose tools are not known yet are not checked
    #[arg(long)]
    pub(crate) offline: bool,

    /// Print the findings as one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) script: ScriptArguments,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TypesArguments {
    #[command(flatten)]
    pub(crate) source: ToolsSource,

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

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("action").args(["install", "uninstall", "status"]))]
pub(crate) struct SyncArguments {
    /// Write declarations for editors into this directory, as `cx types` does, if they have changed
    #[arg(long, value_name = "DIR")]
    pub(crate) types: Option<PathBuf>,

    /// The languages of the declarations
    #[arg(long, value_enum, default_value = "ts", value_delimiter = ',', requires = "types")]
    pub(crate) lang: Vec<ScriptLanguage>,

    /// Read servers from this `mcpServers` file instead of the discovered ones
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Let the system synchronize every day, with the arguments that are given here
    #[arg(long)]
    pub(crate) install: bool,

    /// Remove what --install has made
    #[arg(long)]
    pub(crate) uninstall: bool,

    /// Show whether it is installed and active, and what came of the last time
    #[arg(long)]
    pub(crate) status: bool,

    /// Print the files that --install would write
    #[arg(long, requires = "install")]
    pub(crate) dry_run: bool,

    /// What runs it every day [default: that of this system]
    #[arg(long, value_enum, value_name = "NAME", requires = "action")]
    pub(crate) scheduler: Option<Scheduler>,

    /// Print one JSON object
    #[arg(long, conflicts_with_all = ["install", "uninstall"])]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Scheduler {
    /// A timer of the user, of systemd
    Systemd,
    /// An agent of the user, of launchd of macOS
    Launchd,
    /// A task of the user, of the Task Scheduler of Windows
    Windows,
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

/// Where the audit trail is.
#[derive(Args, Debug)]
pub(crate) struct TrailArguments {
    /// The directory of the trail [default: as configured, else below the state directory]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) audit: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct AuditArguments {
    #[command(flatten)]
    pub(crate) trail: TrailArguments,

    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

/// Which lines of a trail are meant.
#[derive(Args, Debug)]
pub(crate) struct LineFilter {
    /// Only the lines of this run
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,

    /// Only the lines of the last TIME, such as 1h or 2days
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) since: Option<Duration>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum AuditFormat {
    /// Log records of OpenTelemetry, as lines of JSON
    OtlpLogs,
    /// A table with a line for each event
    Csv,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check the chain of hashes and the checkpoints
    Verify {
        /// Compare with a checkpoint that was kept elsewhere; can be repeated
        #[arg(long, value_name = "FILE")]
        checkpoint: Vec<PathBuf>,

        /// Use the public key in this file instead of the one beside the trail
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,

        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print events
    Show {
        #[command(flatten)]
        filter: LineFilter,

        /// Print what is appended, until interrupted
        #[arg(long)]
        follow: bool,

        /// Print the lines as they are in the files
        #[arg(long)]
        json: bool,
    },
    /// Sign the end of the trail, to keep the signature elsewhere
    Checkpoint {
        /// Write the checkpoint to this file
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print events in a format of other programs
    Export {
        /// The format
        #[arg(long, value_enum, value_name = "FORMAT")]
        format: AuditFormat,

        #[command(flatten)]
        filter: LineFilter,
    },
}

#[derive(Args, Debug)]
pub(crate) struct RunsArguments {
    #[command(flatten)]
    pub(crate) trail: TrailArguments,

    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, the latest last
    List {
        /// Maximum number of runs
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,

        /// Only the runs of the last TIME, such as 1h or 2days
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        since: Option<Duration>,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a run did
    Show {
        /// The run's id, as `cx runs list` prints it
        id: String,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Open the waterfall of a run in the browser
    ///
    /// The trace that `cx serve --traces` has kept, with source and output, else what the audit trail knows.
    /// Prints the name of the page's file.
    Open {
        /// The run's id, as `cx runs list` prints it
        id: String,

        /// Look for the trace in this directory too [default: those of running servers]
        #[arg(long, value_name = "DIR")]
        traces: Option<PathBuf>,

        /// Only print the name of the file
        #[arg(long)]
        no_browser: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct UiArguments {
    #[command(flatten)]
    pub(crate) trail: TrailArguments,

    /// Only print the address
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// Serve the page at this port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
}

#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    /// Print one frame as text and end, for scripts
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Delete the cached tool lists and inferred output schemas
    Clear,
}

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

        /// The session is one of the clients of this tenant of `cx serve --http`
        #[arg(long, value_name = "NAME", requires = "session")]
        tenant: Option<String>,

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
    /// The script's file, `-` for stdin, or the name of a saved script (`./NAME` is always a file)
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

    /// Run the script in a worker process of this server (`cx serve --http --compute`); its tools, approvals and
    /// state stay here
    #[arg(long, value_name = "URL", conflicts_with = "nats")]
    pub(crate) remote: Option<String>,

    /// Read the token for --remote from this file
    #[arg(long, value_name = "FILE", requires = "remote")]
    pub(crate) remote_token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) nats: NatsArguments,

    /// Call only read-only tools; list the other calls instead
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the result, or why the script could not be run, as one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Print resource usage and dropped output to stderr
    #[arg(long)]
    pub(crate) stats: bool,

    /// Write a trace of the run to FILE: a page if it ends with .html, for Perfetto if it ends with
    /// .json
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Record the run to FILE, for `cx replay`: the script, its input, every answer and the outcome, with
    /// secrets masked
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArguments {
    /// A file that `cx run --record` has written
    pub(crate) file: PathBuf,

    /// Run this script instead of the recorded one, with the recorded answers
    #[arg(long, value_name = "SCRIPT")]
    pub(crate) edit: Option<PathBuf>,

    /// Run nothing; print what the recording has
    #[arg(long, conflicts_with = "edit")]
    pub(crate) explain: bool,

    /// Maximum wall-clock time and CPU time of the script [default: as recorded, at most 30s and 10s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Print the result and the first difference as one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// The value of `--isolation`.
fn isolation_mode(name: &str) -> Result<Isolation, String> {
    Isolation::from_name(name).ok_or_else(|| format!("expected {}", Isolation::MODES.join(" or ")))
}
