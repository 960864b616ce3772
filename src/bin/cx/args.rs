//! Command-line arguments, as close to the typed form as possible. No files are read here.
//!
//! This file has the names of all commands; the arguments of each are in the module of its family.

mod address;
mod configuration;
mod log_format;
mod nats;
mod run;
mod script;
mod serve;
mod shell;
mod size;
mod stored;
mod time;
mod tools;
mod trail;

use std::sync::LazyLock;

use clap::{Parser, Subcommand};
use cx::Versions;

pub(crate) use self::address::{HttpAddress, MetricsAddress};
pub(crate) use self::configuration::{
    AuthArguments, AuthCommand, AuthServer, ConfigCommand, DoctorArguments, ExistingServers, SetupArguments,
    ShowArguments, TrustArguments,
};
pub(crate) use self::log_format::LogFormat;
pub(crate) use self::nats::{NatsArguments, WorkerArguments};
pub(crate) use self::run::{CheckArguments, ReplArguments, ReplayArguments, RunArguments};
pub(crate) use self::script::{ScriptArguments, ScriptLanguage};
pub(crate) use self::serve::{AnswerFormat, HttpArguments, ServeApprover, ServeArguments, ServeMode};
pub(crate) use self::shell::{CompletionsArguments, ManArguments};
pub(crate) use self::stored::{CacheCommand, ScriptsCommand, StateCommand};
pub(crate) use self::tools::{Scheduler, SyncArguments, ToolsCommand, ToolsSource, TypesArguments};
pub(crate) use self::trail::{
    AuditArguments, AuditCommand, AuditFormat, LISTED_RUNS, LineFilter, MAX_LISTED_RUNS, RunsArguments,
    RunsCommand, TopArguments, TrailArguments, UiArguments,
};

/// Runs scripts that call the tools of MCP servers
#[derive(Debug, Parser)]
#[command(name = "cx", version, long_version = VERSIONS.as_str(), max_term_width = 100, after_help = EXIT_STATUSES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The text that `--version` prints after the name: cx's own version, and then those of its main components.
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
  1    the script failed, a confirmation was refused, a server is signed out,
       or something does not work
  2    usage or configuration error, or another failure of the command
  3    a limit was exceeded, no engine or worker is available, or stdout was not
       read in time
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
    /// Exit status: 0 success, 1 a confirmation was refused, 2 usage, or a file cannot be read or
    /// changed, 130 interrupted.
    Setup(SetupArguments),

    /// Run a TypeScript, JavaScript or Python file, or a saved script by its name
    ///
    /// The script's output is printed to stdout as it is produced, warnings and errors to stderr.
    /// The returned value is printed last on stdout, as JSON. With --timeout, cx also waits no longer
    /// than that for the reader of stdout.
    ///
    /// Exit status: 0 success, 1 the script failed, 2 usage or configuration error, 3 a limit was
    /// exceeded, no engine or worker is available, or stdout was not read in time, 4 stdout could not be
    /// written, 130 interrupted, 141 the reader of stdout has closed it.
    Run(RunArguments),

    /// Check a script without running it
    ///
    /// Finds everything that is wrong with it at once: syntax, servers and tools that do not exist or may
    /// not be called, arguments that do not match their schemas, calls that are not awaited. Servers that the
    /// script names and whose tools are not known are asked for them. `cx run` makes the same check, and runs
    /// nothing of a script that cannot succeed. Grants, `--isolation`, `--audit` and `--llm` are accepted as
    /// by `cx run`, and change nothing here.
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
    /// random numbers: no server is started, no configuration is read, and nothing is asked. The file may come
    /// from another person. The script's output and value are printed as by `cx run`, the first difference from
    /// the recorded run to stderr.
    ///
    /// Exit status: 0 the outcome is the recorded one, 1 the script went another way, 2 the file cannot be
    /// used, 3 stdout was not read within --timeout, 4 stdout could not be written, 130 interrupted, 141 the
    /// reader of stdout has closed it.
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
    /// error, 3 too many scripts could not be stopped and the process should be restarted, 4 stdout
    /// could not be written.
    Serve(ServeArguments),

    /// Execute scripts of other machines that come over a queue on a NATS server
    ///
    /// Scripts of `cx serve --nats` and `cx run --nats` with the same server and key are executed here, in worker
    /// processes without files and network. Their tools are called where they come from. The first SIGTERM, SIGINT or
    /// SIGHUP lets the scripts that run end and takes no more; a second SIGTERM or SIGINT ends them.
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
    /// The outcome is kept in last-sync.json in the state directory. With --install the system does
    /// it every day, at a minute between four and six in the morning.
    ///
    /// Exit status: 0 success (for --status: installed and active), 1 something failed, or another sync
    /// is running, 2 usage.
    Sync(SyncArguments),

    /// Look for problems, and name their remedies
    ///
    /// Starts both engines and all servers, and looks at the configuration, the machine and its limits,
    /// caches, sign-ins, the state of scripts, the audit trail and the MCP clients. Makes missing
    /// directories and stores Python's machine code, and changes nothing else. Asks no language model
    /// unless --ask-model is given.
    ///
    /// Exit status: 0 no problems, 1 problems, 2 usage.
    Doctor(DoctorArguments),

    /// Manage the cache: tool lists, inferred output schemas, Python's machine code
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
    /// Until you trust them, files in a workspace such as `.cx.json` and `.mcp.json` can only
    /// restrict what is allowed, and scripts in `.cx/scripts` cannot be called. Shows what the file
    /// would start, or the script's code, and asks for confirmation. Any change to the file revokes
    /// the trust. Trust covers the file, not the programs that it names.
    Trust(TrustArguments),

    /// Print the completion script of a shell
    Completions(CompletionsArguments),

    /// Print the manual page, or write those of all subcommands
    Man(ManArguments),
}
