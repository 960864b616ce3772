//! Arguments of `cx serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use cx::server::ServerOptions;

use super::address::{HttpAddress, MetricsAddress, parse_http_address, parse_metrics_address};
use super::log_format::LogFormat;
use super::nats::NatsArguments;
use super::script::ScriptArguments;
use super::size::parse_total_memory;
use super::time::parse_time;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("address").multiple(true))]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) scripts: ScriptArguments,

    /// Maximum wall-clock time of a script whose client requests none; at most --timeout [default:
    /// --timeout, else as configured, else 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) default_timeout: Option<Duration>,

    /// Maximum number of scripts that run at the same time [default: as configured, else 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_runs: Option<usize>,

    /// Maximum memory of all scripts that run at the same time; others wait [default: as configured,
    /// else half of what this process may use]
    #[arg(long, value_name = "SIZE", value_parser = parse_total_memory)]
    pub(crate) total_memory: Option<usize>,

    /// Maximum number of scripts that wait to run
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) max_queued: usize,

    /// Maximum time for which a script waits to run
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s")]
    pub(crate) queue_timeout: Duration,

    /// Format of the text in results
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format: AnswerFormat,

    /// Maximum characters of a value in an answer, and of its output. The rest can be read by the
    /// next script. A program that drives cx can have more than the default, which is for models
    #[arg(long, value_name = "N", default_value_t = ServerOptions::default().max_value)]
    pub(crate) max_value: usize,

    /// Leave the names of the known tools out of the instructions, which have them while they are
    /// few
    #[arg(long)]
    pub(crate) no_index: bool,

    /// Keep a page with the trace of each script in DIR: the last 200, at most 256 MB
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,

    /// Answer a call after this time although its script goes on, for clients without tasks: the
    /// tool `wait` returns the rest. 0s: only calls with `yieldAfterMs` [default: no call is answered before its
    /// script ends]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
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

    /// Format of what is written to stderr: notes of the server, and the logs that CX_LOG enables
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

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

/// Arguments that only apply with `--http`.
#[derive(Args, Debug)]
pub(crate) struct HttpArguments {
    /// Allow cross-origin requests from ORIGIN, such as https://app.example.com; loopback origins
    /// are always allowed
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,

    /// Read the token that clients must send from this file, which only you may read; changes take
    /// effect without a restart [default: CX_HTTP_TOKEN]
    #[arg(long, value_name = "FILE", requires = "address")]
    pub(crate) token_file: Option<PathBuf>,

    /// Read the tokens of tenants from this file, which only you may read: a name, space and a
    /// token in each line; changes take effect without a restart [default: CX_HTTP_TOKENS, else
    /// `tokensFile` of the configuration]. With more than one token scripts run in worker processes
    /// unless --isolation says otherwise, and --token-file has the operator's token
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) tokens_file: Option<PathBuf>,

    /// Lend worker processes to N runs at the same time of `cx run --remote` on other machines, whose scripts then
    /// run here without files and network. Needs a token if others can reach the address
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

    /// Let running scripts continue for this time after SIGTERM or SIGINT; meanwhile no script is started, and
    /// `/healthz` is 503. A second signal cancels them
    #[arg(long, value_name = "TIME", requires = "http", value_parser = parse_time, default_value = "0s")]
    pub(crate) drain: Duration,
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
