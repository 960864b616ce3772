//! `cx serve`.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anyhow::Context as _;
use cx::server::{Format, Server, ServerOptions, ShutdownReason};
use cx::{CancellationToken, ConfigFiles, HistoryLimits};
use tokio::task::JoinSet;

use crate::args::{AnswerFormat, ServeArguments};
use crate::exit::{ExitStatus, exit};
use crate::reload::{Adjust, Reload};
use crate::{diagnostic, http, logging, output, setup, signals};

/// How long closing the servers may delay the exit. Servers that are still running then end with
/// the process.
const MAX_CLOSE: Duration = Duration::from_secs(3);

/// Threads of the server beside the executor's: two for requests, one that reads stdin, one that
/// writes stdout.
const THREADS: usize = 4;

/// File descriptors that the server opens beside the executor.
const DESCRIPTORS: usize = 16;

/// Serves the client at stdin and stdout until it disconnects, or any number of clients over HTTP
/// until a signal is received.
///
/// # Errors
///
/// What is wrong with the arguments or the configuration.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<ExitStatus> {
    logging::start();
    let mut files = ConfigFiles::new(setup::load_options(arguments.scripts.mcp_config.clone())?);
    let config = files.load()?;
    diagnostic::print_warnings(&config.warnings);
    let warnings = config.warnings.clone();
    let adjust = adjustment(&arguments);
    let config = adjust(config);
    let client_rate = config.client_rate;
    let scripts = arguments.scripts;
    let mut builder = setup::builder(config)
        .deny(scripts.deny)
        .ask(scripts.ask)
        .keep_runs(HistoryLimits::default())
        .max_queued_runs(arguments.max_queued)
        .queue_timeout(arguments.queue_timeout);
    if !scripts.allow.is_empty() {
        builder = builder.allow(scripts.allow);
    }
    cx::check_machine(THREADS, DESCRIPTORS, 0).context("failed to start the server's threads")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One thread for I/O, one for results that take long to serialize.
        .worker_threads(2)
        .thread_name("cx-serve")
        .enable_all()
        .build()
        .context("failed to start the server's threads")?;
    let executor = builder.build()?;
    let mut options = ServerOptions::default();
    options.format = match arguments.format {
        AnswerFormat::Text => Format::Text,
        AnswerFormat::Json => Format::Json,
        AnswerFormat::Toon => Format::Toon,
    };
    options.max_value = arguments.max_value;
    options.index = !arguments.no_index;
    let server = Server::new(executor.clone(), options);
    // Read before any server is asked, so that it is said once. The report of `health` says it too.
    match executor.tool_changes() {
        Ok(_) => diagnostic::print_damaged_pins(&executor.damaged_pins()),
        Err(error) => diagnostic::print_warning(&error.to_string()),
    }
    let ended = runtime.block_on(async {
        let stop = CancellationToken::new();
        signals::end_with(&stop)?;
        let hangups = signals::hangups()?;
        let reload = Reload::new(executor.clone(), adjust, &warnings);
        // Ends with this block.
        let mut following = JoinSet::new();
        let ended = if let Some(address) = arguments.http {
            let options = http::options(address, arguments.over_http, client_rate)?;
            let listener = http::listen(address).await?;
            server.warm();
            following.spawn(reload.follow(files, hangups));
            server.serve_http(listener, options, &stop).await?
        } else {
            if io::stdin().is_terminal() {
                diagnostic::print_note(
                    "waiting for a client on stdin: an MCP client starts this command itself; Ctrl-C ends it",
                );
            }
            let (input, output) = output::pipes().context("failed to open stdin and stdout")?;
            server.warm();
            following.spawn(reload.follow(files, hangups));
            server.serve(input, output, &stop).await
        };
        let _late = tokio::time::timeout(MAX_CLOSE, executor.close()).await;
        Ok::<_, anyhow::Error>(ended)
    })?;
    // Does not return through `main`: a thread may be blocked on a pipe that is not read.
    exit(match ended {
        ShutdownReason::WorkersHung => ExitStatus::Limit,
        _ => ExitStatus::Success,
    })
}

/// What the arguments make of each configuration: they have precedence.
fn adjustment(arguments: &ServeArguments) -> Adjust {
    let (scripts, default_timeout) = (arguments.scripts.clone(), arguments.default_timeout);
    let (max_runs, has_client_rate) = (arguments.max_runs, arguments.over_http.client_rate.is_some());
    let total_memory =
        arguments.total_memory.map(|size| usize::try_from(size.as_u64()).unwrap_or(usize::MAX));
    Box::new(move |mut config| {
        config.limits = scripts.limits(config.limits, config.max_limits.cpu_time);
        config.max_limits = scripts.limits(config.max_limits, config.max_limits.cpu_time);
        if let Some(time) = default_timeout {
            let time = time.min(config.max_limits.wall_time);
            config.limits = config.limits.with_wall_time(time, config.max_limits.cpu_time);
        }
        config.max_runs = max_runs.or(config.max_runs);
        config.total_memory_bytes = total_memory.or(config.total_memory_bytes);
        config.client_rate = config.client_rate.filter(|_| !has_client_rate);
        config
    })
}
