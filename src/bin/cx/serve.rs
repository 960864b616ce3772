//! `cx serve`.

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::server::{Format, HttpOptions, Server, ServerOptions, ShutdownReason};
use cx::{
    CancellationToken, Config, ConfigFiles, Executor, ExecutorBuilder, HistoryLimits, Isolation,
    OpenTelemetry, RateLimit, ToolMode,
};
use tokio::fs::File;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::SignalKind;
use tokio::task::JoinSet;

use crate::args::{
    AnswerFormat, HttpAddress, HttpArguments, MetricsAddress, ServeApprover, ServeArguments, ServeMode,
};
use crate::diagnostic::invalid;
use crate::exit::{ExitStatus, exit};
use crate::known::KnownServer;
use crate::metrics::MetricsListener;
use crate::reload::{Adjust, Reload};
use crate::running::Transport;
use crate::tokens_file::Tenants;
use crate::trace::TraceDirectory;
use crate::ui::inbox::Inbox;
use crate::{
    audit_watch, diagnostic, http, logging, metrics, notify, output, run, setup, signals, telemetry, terminal,
};

/// How long closing the servers may delay the exit. Servers that are still running then end with
/// the process.
const MAX_CLOSE: Duration = Duration::from_secs(3);

/// Threads of the server in addition to the executor's: two for requests, one that reads stdin, one that writes stdout.
const THREADS: usize = 4;

/// File descriptors of the server in addition to the executor's.
const DESCRIPTORS: usize = 16;

/// Serves the client at stdin and stdout until it disconnects, or any number of clients over HTTP
/// until a signal is received.
///
/// # Errors
///
/// Mistakes in the arguments or the configuration.
pub(crate) fn run(arguments: ServeArguments) -> anyhow::Result<ExitStatus> {
    // Before anything is printed.
    logging::start_of_service(arguments.log_format);
    // Called while the process has one thread, because it changes the environment.
    let passed = passed_listener(arguments.http)?;
    let mut files = ConfigFiles::new(setup::load_options(arguments.scripts.mcp_config.clone())?);
    let config = files.load()?;
    diagnostic::print_warnings(&config.warnings);
    let warnings = config.warnings.clone();
    let mut tenants = tenants(&arguments, &config)?;
    let has_several_tokens = tenants.list.len() > 1;
    let adjust = adjustment(&arguments, has_several_tokens)?;
    let is_configured =
        config.isolation.is_some() || arguments.nats.nats.is_some() || arguments.scripts.isolation.is_some();
    let is_isolated_by_tokens = has_several_tokens && !is_configured;
    tenants.may_be_several = has_several_tokens || is_configured;
    let config = adjust(config);
    let client_rate = config.client_rate;
    let isolation = config.isolation.as_ref().map_or(Isolation::InProcess.as_str(), Isolation::as_str);
    let open_telemetry = config.open_telemetry.clone();
    let audit_directory = audit_directory(&arguments, &config)?;
    let mut builder = builder(&arguments, config)?;
    let runtime = runtime()?;
    check_arguments(&arguments)?;
    let telemetry = telemetry::start(open_telemetry.as_ref())?;
    builder = telemetry::attach(builder, telemetry.as_ref());
    let traces = arguments.traces.as_deref().map(TraceDirectory::open).transpose()?;
    if let Some(traces) = &traces {
        builder = builder.on_trace(traces.listener());
    }
    let inbox = (arguments.approver == ServeApprover::Page).then(Arc::<Inbox>::default);
    if let Some(inbox) = inbox.clone() {
        builder = builder.approver(move |request| inbox.ask(request));
    }
    let executor = build(builder, &arguments, is_isolated_by_tokens)?;
    let server = Server::new(executor.clone(), server_options(&arguments, inbox.is_none()));
    // Read before any server is contacted, so that it is reported once. `health` reports it too.
    run::print_damaged_pins(&executor);
    let serving = Serving {
        address: arguments.http,
        metrics: arguments.metrics,
        passed,
        over_http: arguments.over_http,
        tenants,
        client_rate,
        isolation,
        audit: audit_directory,
        traces: arguments.traces,
        inbox,
        reload: Reload::new(executor.clone(), adjust, &warnings),
        files,
    };
    let ended = runtime.block_on(serve(serving, &server, &executor, telemetry.as_ref()))?;
    telemetry::finish(telemetry.as_ref());
    if let Some(traces) = traces {
        traces.finish();
    }
    // Does not return through `main`: a thread may be blocked on a pipe that is not read.
    exit(exit_status(ended))
}

/// The socket that a service manager has passed, if the server listens there.
fn passed_listener(address: Option<HttpAddress>) -> anyhow::Result<Option<std::net::TcpListener>> {
    match address {
        Some(HttpAddress::Passed) => http::passed_listener().map(Some),
        _ => Ok(None),
    }
}

/// The tenants of a server over HTTP. Clients over stdio need no token.
fn tenants(arguments: &ServeArguments, config: &Config) -> anyhow::Result<Tenants> {
    if arguments.http.is_none() {
        return Ok(Tenants::default());
    }
    http::tenants(arguments.over_http.tokens_file.as_deref(), config.tokens_file.as_deref())
}

/// The runtime of the server's own threads.
fn runtime() -> anyhow::Result<Runtime> {
    let failed = "failed to start the server's threads";
    cx::check_machine(THREADS, DESCRIPTORS, 0).context(failed)?;
    tokio::runtime::Builder::new_multi_thread()
        // One thread for I/O, one for results that take long to serialize.
        .worker_threads(2)
        .thread_name("cx-serve")
        .enable_all()
        .build()
        .context(failed)
}

/// Checks that metrics have an address, and that scripts have time: the executor would name `--timeout`.
fn check_arguments(arguments: &ServeArguments) -> anyhow::Result<()> {
    if arguments.default_timeout.is_some_and(|time| time.as_millis() == 0) {
        return Err(invalid(anyhow::anyhow!("--default-timeout must be at least one millisecond")));
    }
    if matches!(arguments.metrics, Some(MetricsAddress::OfHttp)) && arguments.http.is_none() {
        return Err(invalid(anyhow::anyhow!(
            "--metrics without --http needs an address, such as --metrics 127.0.0.1:9464"
        )));
    }
    Ok(())
}

/// The exit status for the reason of the shutdown. Warns of answers that could not be written.
fn exit_status(reason: ShutdownReason) -> ExitStatus {
    match reason {
        ShutdownReason::WorkersHung => ExitStatus::Limit,
        ShutdownReason::CannotWrite => {
            diagnostic::print_warning("stdout could not be written: the client has not got all answers");
            ExitStatus::Output
        }
        _ => ExitStatus::Success,
    }
}

/// How clients reach the server, and what the other commands are told about it.
struct Serving {
    /// Where it listens; `None` for stdin and stdout.
    address: Option<HttpAddress>,
    metrics: Option<MetricsAddress>,
    /// The listening socket, if a service manager has passed one.
    passed: Option<std::net::TcpListener>,
    over_http: HttpArguments,
    tenants: Tenants,
    client_rate: Option<RateLimit>,
    /// Where scripts are executed.
    isolation: &'static str,
    /// The directory of the audit trail.
    audit: Option<PathBuf>,
    /// The directory of traces.
    traces: Option<PathBuf>,
    /// Approvals that the page answers.
    inbox: Option<Arc<Inbox>>,
    reload: Reload,
    files: ConfigFiles,
}

/// Serves the clients until they are gone, or a signal is received.
async fn serve(
    serving: Serving,
    server: &Server,
    executor: &Executor,
    telemetry: Option<&OpenTelemetry>,
) -> anyhow::Result<ShutdownReason> {
    let Serving { address, metrics, passed, over_http, tenants, client_rate, inbox, reload, files, .. } =
        serving;
    let stop = CancellationToken::new();
    // A client over stdio ends the server by closing stdin.
    let drain = if address.is_some() { over_http.drain } else { Duration::ZERO };
    let end_drain = CancellationToken::new();
    // In the background of a terminal each read of stdin stops the process, so that no handler would run.
    if address.is_some() || !terminal::is_in_background() {
        signals::end_after(&stop, drain, end_drain.clone())?;
    }
    let hangups = signals::listen(SignalKind::hangup())?;
    // Its tasks end when this function returns.
    let mut tasks = JoinSet::new();
    let print = metrics::install(metrics.is_some() || address.is_some(), telemetry)?;
    if telemetry.is_some() {
        tasks.spawn(metrics::sample(server.clone()));
    }
    tasks.spawn(audit_watch::watch(executor.clone()));
    let metrics_at = listen_for_metrics(metrics, over_http.token_file.as_deref()).await?;
    let options = |address| http::options(address, over_http, tenants, client_rate);
    let over_http = match address {
        Some(address) => Some(listen(address, passed, options, serving.isolation).await?),
        None => None,
    };
    let transport = if over_http.is_some() { Transport::Http } else { Transport::Stdio };
    let address = match &over_http {
        Some((_, listener)) => listener.local_addr().ok(),
        None => metrics_at.as_ref().map(|at| at.address),
    };
    if inbox.is_some() && address.is_none() {
        bail!("--approver page: there is no address for the page: give --metrics one that is free");
    }
    let known = KnownServer { transport, address, audit: serving.audit, traces: serving.traces };
    // The server stays registered until this function returns.
    let (page, _registration) = known.make_known(server, print.as_ref(), inbox)?;
    if let (Some(at), Some(print)) = (metrics_at, &print) {
        // Served also while runs are drained after a signal, until this function returns.
        let never = CancellationToken::new();
        metrics::serve(server, at, Arc::clone(print), page.clone(), &never, &mut tasks);
    }
    let ended = if let Some((mut options, listener)) = over_http {
        options.metrics = print.filter(|_| metrics.is_some());
        options.page = page;
        options.end_drain = end_drain;
        server.warm();
        tasks.spawn(reload.follow(files, hangups));
        notify::ready();
        server.serve_http(listener, options, &stop).await?
    } else {
        let (input, output) = streams()?;
        server.warm();
        tasks.spawn(reload.follow(files, hangups));
        server.serve(input, output, &stop).await
    };
    let _late = tokio::time::timeout(MAX_CLOSE, executor.close()).await;
    Ok(ended)
}

/// The directory of the audit trail; `None` without a trail.
fn audit_directory(arguments: &ServeArguments, config: &Config) -> anyhow::Result<Option<PathBuf>> {
    Ok(match (&config.audit, &arguments.scripts.audit) {
        (None, None) => None,
        (settings, directory) => Some(setup::audit_options(settings.as_ref(), directory.clone())?.directory),
    })
}

/// Builds the executor. If scripts run in worker processes only because there are several tokens, the error of a
/// machine without them says so.
fn build(
    builder: ExecutorBuilder,
    arguments: &ServeArguments,
    is_isolated_by_tokens: bool,
) -> anyhow::Result<Executor> {
    match builder.build() {
        Err(error @ cx::Error::InvalidOptions { option: cx::OptionName::Isolation, .. })
            if is_isolated_by_tokens =>
        {
            Err(anyhow::Error::new(error).context(
                "several tokens need worker processes, unless `--isolation in-process` says otherwise",
            ))
        }
        built => setup::built(built, arguments.nats.nats.as_ref().map(|_| "--nats")),
    }
}

/// A builder from the arguments and the configuration, to which the arguments have been applied already.
fn builder(arguments: &ServeArguments, config: Config) -> anyhow::Result<ExecutorBuilder> {
    let scripts = &arguments.scripts;
    let grants = setup::grants(scripts)?;
    let audit = config.audit.clone();
    let builder = setup::with_audit(setup::builder_for_runs(config), audit.as_ref(), scripts.audit.clone())?;
    let builder = builder
        .deny(scripts.deny.clone())
        .ask(scripts.ask.clone())
        .grants(grants)
        .keep_runs(HistoryLimits::default())
        .max_queued_runs(arguments.max_queued)
        .queue_timeout(arguments.queue_timeout);
    Ok(if scripts.allow.is_empty() { builder } else { builder.allow(scripts.allow.clone()) })
}

fn server_options(arguments: &ServeArguments, clients_approve: bool) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.format = match arguments.format {
        AnswerFormat::Text => Format::Text,
        AnswerFormat::Json => Format::Json,
        AnswerFormat::Toon => Format::Toon,
    };
    options.max_value = arguments.max_value;
    options.index = !arguments.no_index;
    options.yield_after = arguments.yield_after;
    options.clients_approve = clients_approve;
    options
}

/// Stdin and stdout, for the client there. Says so if a person is there instead.
fn streams() -> anyhow::Result<(File, File)> {
    if io::stdin().is_terminal() {
        diagnostic::print_note(
            "waiting for a client on stdin: an MCP client starts this command itself; Ctrl-C ends it",
        );
    }
    output::pipes().context("failed to open stdin and stdout")
}

/// Listens for readers of metrics, if they have an address of their own.
async fn listen_for_metrics(
    metrics: Option<MetricsAddress>,
    token_file: Option<&Path>,
) -> anyhow::Result<Option<MetricsListener>> {
    match metrics {
        Some(MetricsAddress::Own(address)) => metrics::listen(address, token_file).await,
        _ => Ok(None),
    }
}

/// Listens for clients over HTTP, at an address or at the socket that was passed, and says where, and where scripts
/// are executed if there are tenants. `options` are those of an address.
async fn listen(
    address: HttpAddress,
    passed: Option<std::net::TcpListener>,
    options: impl FnOnce(SocketAddr) -> anyhow::Result<HttpOptions>,
    isolation: &str,
) -> anyhow::Result<(HttpOptions, TcpListener)> {
    let (options, listener) = match address {
        HttpAddress::Own(address) => (options(address)?, http::listen(address).await?),
        HttpAddress::Passed => {
            let listener = http::adopt(passed)?;
            let address = listener.local_addr().context("failed to find out where the server listens")?;
            let options = options(address)?;
            http::announce(&listener)?;
            (options, listener)
        }
    };
    if !options.tenants.is_empty() {
        http::announce_tenants(&options.tenants, isolation);
    }
    Ok((options, listener))
}

/// Applies the arguments to each configuration: they have precedence. With several tokens scripts are executed in
/// worker processes, unless configured otherwise.
fn adjustment(arguments: &ServeArguments, has_several_tokens: bool) -> anyhow::Result<Adjust> {
    let (scripts, default_timeout) = (arguments.scripts.clone(), arguments.default_timeout);
    let direct = arguments.direct.clone();
    let nats = setup::nats(&arguments.nats)?;
    let mode = arguments.mode.map(|mode| match mode {
        ServeMode::Script => ToolMode::Script,
        ServeMode::Auto => ToolMode::Auto,
        ServeMode::Direct => ToolMode::Direct,
    });
    let (max_runs, has_client_rate) = (arguments.max_runs, arguments.over_http.client_rate.is_some());
    let total_memory = arguments.total_memory;
    Ok(Box::new(move |mut config| {
        config.limits = scripts.limits(config.limits, config.max_limits.cpu_time);
        config.max_limits = scripts.limits(config.max_limits, config.max_limits.cpu_time);
        if let Some(time) = default_timeout {
            let time = time.min(config.max_limits.wall_time);
            config.limits = config.limits.with_wall_time(time, config.max_limits.cpu_time);
        }
        config.time_zone = scripts.time_zone.clone().or(config.time_zone);
        config.isolation = nats
            .clone()
            .or_else(|| setup::isolation(scripts.isolation.as_ref(), config.isolation.take()))
            .or_else(|| has_several_tokens.then(Isolation::process));
        config.direct.tools.extend(direct.iter().cloned());
        config.direct.mode = mode.unwrap_or(config.direct.mode);
        if scripts.llm {
            config.enable_llm();
        }
        config.max_runs = max_runs.or(config.max_runs);
        config.total_memory_bytes = total_memory.or(config.total_memory_bytes);
        config.client_rate = config.client_rate.filter(|_| !has_client_rate);
        config
    }))
}
