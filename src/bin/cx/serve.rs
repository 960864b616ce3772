//! `cx serve`.

use std::time::Duration;

use anyhow::Context as _;
use cx::server::{Format, Server, ServerOptions, ShutdownReason};
use cx::{CancellationToken, HistoryLimits};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{AnswerFormat, ServeArguments};
use crate::exit::{ExitStatus, exit};
use crate::{diagnostic, http, logging, output, setup};

/// How long closing the servers may delay the exit. Servers that are still running then end with
/// the process.
const MAX_CLOSE: Duration = Duration::from_secs(3);

/// How long after a signal the process ends, even if something hangs.
const MAX_END: Duration = Duration::from_millis(4_800);

/// Serves the client at stdin and stdout until it disconnects, or any number of clients over HTTP
/// until a signal is received.
///
/// # Errors
///
/// What is wrong with the arguments or the configuration.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<ExitStatus> {
    logging::start();
    let scripts = arguments.scripts;
    let mut config = setup::load(scripts.mcp_config.clone())?;
    diagnostic::print_warnings(&config.warnings);
    config.limits = scripts.limits(config.limits, config.max_limits.cpu_time);
    config.max_limits = scripts.limits(config.max_limits, config.max_limits.cpu_time);
    if let Some(time) = arguments.default_timeout {
        let time = time.min(config.max_limits.wall_time);
        config.limits = config.limits.with_wall_time(time, config.max_limits.cpu_time);
    }
    let client_rate = config.client_rate;
    let mut builder = setup::builder(config)
        .deny(scripts.deny)
        .ask(scripts.ask)
        .keep_runs(HistoryLimits::default())
        .max_queued_runs(arguments.max_queued)
        .queue_timeout(arguments.queue_timeout);
    if let Some(runs) = arguments.max_runs {
        builder = builder.max_concurrent_runs(runs);
    }
    if !scripts.allow.is_empty() {
        builder = builder.allow(scripts.allow);
    }
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
    let server = Server::new(executor.clone(), options);
    // Read before any server is asked, so that it is said once. The report of `health` says it too.
    match executor.tool_changes() {
        Ok(_) => diagnostic::print_damaged_pins(&executor.damaged_pins()),
        Err(error) => diagnostic::print_warning(&error.to_string()),
    }
    let ended = runtime.block_on(async {
        let stop = CancellationToken::new();
        watch_signals(stop.clone())?;
        let ended = if let Some(address) = arguments.http {
            let options = http::options(address, arguments.over_http, client_rate)?;
            let listener = http::listen(address).await?;
            server.warm();
            server.serve_http(listener, options, &stop).await?
        } else {
            let (input, output) = output::pipes().context("failed to open stdin and stdout")?;
            server.warm();
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

/// Cancels `stop` at the first signal that asks the process to end. A second one is not needed: the
/// process exits after [`MAX_END`] even if something hangs.
fn watch_signals(stop: CancellationToken) -> anyhow::Result<()> {
    let listen = |kind| signal(kind).context("failed to watch for signals");
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    for kind in signals {
        let mut signal: Signal = listen(kind)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            if signal.recv().await.is_some() {
                stop.cancel();
                tokio::time::sleep(MAX_END).await;
                exit(ExitStatus::Success);
            }
        });
    }
    Ok(())
}
