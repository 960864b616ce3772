//! `cx worker`.

use anyhow::{Context as _, anyhow};
use cx::server::{Server, ServerOptions};
use cx::{CancellationToken, Isolation, QueueEvent, QueueOptions};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::args::WorkerArguments;
use crate::diagnostic::invalid;
use crate::exit::{ExitStatus, exit};
use crate::signals::Endings;
use crate::{diagnostic, logging, metrics, setup};

/// Threads and file descriptors in addition to those of the scripts.
const THREADS: usize = 6;
const DESCRIPTORS: usize = 16;

/// Executes scripts of the queue until a signal is received.
///
/// # Errors
///
/// Mistakes in the arguments or the configuration, or a machine without worker processes.
pub(crate) fn run(arguments: &WorkerArguments) -> anyhow::Result<ExitStatus> {
    logging::start_of_service(arguments.log_format);
    let mut config = setup::load(Vec::new())?;
    diagnostic::print_warnings(&config.warnings);
    let queue = queue(arguments, config.isolation.take())?;
    // No script of this machine runs, so no server is needed.
    config.servers.clear();
    let max = &mut config.max_limits;
    max.wall_time = arguments.timeout.unwrap_or(max.wall_time);
    max.cpu_time = arguments.cpu_time.unwrap_or(max.cpu_time);
    max.memory_bytes = arguments.memory.unwrap_or(max.memory_bytes);
    // The maximum may be below the default.
    let default = &mut config.limits;
    default.wall_time = default.wall_time.min(max.wall_time);
    default.cpu_time = default.cpu_time.min(max.cpu_time);
    default.memory_bytes = default.memory_bytes.min(max.memory_bytes);
    cx::check_machine(THREADS, DESCRIPTORS + 3 * queue.concurrency, 0)
        .context("failed to start the worker's threads")?;
    // Scripts are executed in worker processes: this executor provides their limits.
    let executor = setup::builder(config).languages([]).build()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("cx-worker")
        .enable_all()
        .build()
        .context("failed to start the worker's threads")?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        end_with(&stop)?;
        // They end with this block.
        let mut tasks = JoinSet::new();
        if let Some(address) = arguments.metrics {
            let print = metrics::install(true, None)?;
            let at = metrics::listen(address, arguments.token_file.as_deref()).await?;
            let server = Server::new(executor.clone(), ServerOptions::default());
            if let (Some(at), Some(print)) = (at, print) {
                metrics::serve(&server, at, print, None, &CancellationToken::new(), &mut tasks);
            }
        }
        executor
            .work_for_queue(&queue, queue_reporter(&queue), &stop)
            .await
            .map_err(|error| invalid(error.into()))
    })?;
    // Does not return through `main`: see `exit`.
    exit(ExitStatus::Success)
}

/// Prints when scripts are taken from the queue, and why none are: the same problem once, because joining is retried
/// continuously.
fn queue_reporter(queue: &QueueOptions) -> impl Fn(QueueEvent) + Send + Sync + use<> {
    let reported = Mutex::new(String::new());
    let (url, concurrency) = (queue.nats.url.clone(), queue.concurrency);
    move |event: QueueEvent| match event {
        QueueEvent::NotJoined(problem) => {
            let mut reported = reported.lock();
            if *reported != problem {
                diagnostic::print_warning(&format!("no scripts are taken: {problem}"));
                *reported = problem;
            }
        }
        _ => {
            reported.lock().clear();
            diagnostic::print_note(&format!("taking scripts from {url}, at most {concurrency} at a time"));
        }
    }
}

/// The queue of the arguments, or of the configuration.
fn queue(arguments: &WorkerArguments, configured: Option<Isolation>) -> anyhow::Result<QueueOptions> {
    let given = arguments.access.queue_at(arguments.nats.as_deref());
    let ((Some(nats), _) | (None, Some(Isolation::Nats(nats)))) = (given, configured) else {
        return Err(invalid(anyhow!(
            "there is no queue: give --nats and --nats-key-file, or configure `isolation` with the mode `nats`"
        )));
    };
    let mut options = QueueOptions::new(nats);
    options.concurrency = arguments.concurrency.map_or(options.concurrency, usize::from);
    options.max_queued = arguments.max_queued;
    Ok(options)
}

/// Cancels `stop` at the first signal that ends the process. A second SIGINT or SIGTERM ends it.
///
/// # Errors
///
/// If the system refuses to report signals.
fn end_with(stop: &CancellationToken) -> anyhow::Result<()> {
    let mut endings = Endings::new()?;
    let stop = stop.clone();
    // Ends with the runtime.
    tokio::spawn(async move {
        let _first = endings.received().await;
        diagnostic::print_note("taking no more scripts; a second SIGINT or SIGTERM ends those that run");
        stop.cancel();
        endings.received_again().await;
        exit(ExitStatus::Success);
    });
    Ok(())
}
