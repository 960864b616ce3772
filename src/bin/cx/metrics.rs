//! `cx serve --metrics`: the recorder of metrics, and their page at a separate address.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::server::{
    HttpOptions, HttpToken, MetricsOptions, MetricsPrinter, Page, Server, TokenReader, describe_metrics,
};
use cx::{
    CancellationToken, MCP_DURATION_BUCKETS, MODEL_DURATION_BUCKETS, MODEL_TOKEN_BUCKETS, OpenTelemetry,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::{diagnostic, http};

/// Upper bounds of the histogram buckets in seconds: from a trivial script to the longest possible
/// one.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];

/// How often the gauges are recorded for an exporter.
const SAMPLING: Duration = Duration::from_secs(5);

/// How often the exporter compacts its measurements, which keeps its memory bounded.
const UPKEEP: Duration = Duration::from_secs(5);

/// Installs the process's recorder, if a page or an exporter uses it. Returns the printer of the page, if there is one.
/// Must be called once, in a tokio runtime.
///
/// # Errors
///
/// If there is a recorder already.
pub(crate) fn install(
    has_page: bool,
    telemetry: Option<&OpenTelemetry>,
) -> anyhow::Result<Option<MetricsPrinter>> {
    let mut page: Option<Box<dyn metrics::Recorder + Send + Sync>> = None;
    let mut print: Option<MetricsPrinter> = None;
    if has_page {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
            .and_then(|builder| {
                builder.set_buckets_for_metric(Matcher::Prefix("mcp_".to_owned()), MCP_DURATION_BUCKETS)
            })
            .and_then(|builder| {
                let durations = Matcher::Prefix("gen_ai_client_operation_".to_owned());
                builder.set_buckets_for_metric(durations, MODEL_DURATION_BUCKETS)
            })
            .and_then(|builder| {
                let tokens = Matcher::Prefix("gen_ai_client_token_".to_owned());
                builder.set_buckets_for_metric(tokens, MODEL_TOKEN_BUCKETS)
            })
            .context("failed to set up metrics")?
            .build_recorder();
        let prometheus = recorder.handle();
        let upkeep = prometheus.clone();
        // Ends with the runtime.
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(UPKEEP);
            loop {
                interval.tick().await;
                upkeep.run_upkeep();
            }
        });
        print = Some(Arc::new(move || prometheus.render()));
        page = Some(Box::new(recorder));
    }
    let recorder = match telemetry {
        Some(telemetry) => Some(telemetry.recorder(page)),
        None => page,
    };
    if let Some(recorder) = recorder {
        metrics::set_global_recorder(recorder).ok().context("failed to set up metrics")?;
        describe_metrics();
    }
    Ok(print)
}

/// Records the gauges at regular intervals, for an exporter that pushes them.
pub(crate) async fn sample(server: Server) {
    let mut interval = tokio::time::interval(SAMPLING);
    loop {
        interval.tick().await;
        server.sample_metrics();
    }
}

/// The listener of metrics at a separate address.
pub(crate) struct MetricsListener {
    listener: TcpListener,
    token: Option<HttpToken>,
    token_reader: Option<TokenReader>,
    pub(crate) address: SocketAddr,
}

/// Opens the address. If it is in use, prints that and returns `None`: a client that starts a second server with the
/// same arguments needs the server more than its page.
///
/// # Errors
///
/// If the token cannot be read, or if there is none and other machines can reach the address.
pub(crate) async fn listen(
    address: SocketAddr,
    token_file: Option<&Path>,
) -> anyhow::Result<Option<MetricsListener>> {
    let own = http::token(token_file)?;
    let token = own.token.clone();
    if !address.ip().to_canonical().is_loopback() && token.is_none() {
        bail!(
            "--metrics {address}: other machines can reach this address: use 127.0.0.1, or set a token of at \
             least 32 characters (--token-file, CX_HTTP_TOKEN)"
        );
    }
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => {
            diagnostic::print_warning(&format!(
                "there is no metrics page: failed to listen at {address}: {error}; if another `cx serve` has \
                 this address, give each its own port, or port 0 for a free one"
            ));
            return Ok(None);
        }
    };
    let address = listener.local_addr().context("failed to find out where the metrics are")?;
    diagnostic::print_note(&format!("metrics at http://{address}/metrics"));
    // This page has the same authentication as a server over HTTP.
    let mut options = HttpOptions::default();
    options.token.clone_from(&token);
    let token_reader = own.reader(&http::Rules::new(&options, address.ip()));
    Ok(Some(MetricsListener { listener, token, token_reader, address }))
}

/// Serves the metrics and the page at a separate address, in a task.
pub(crate) fn serve(
    server: &Server,
    at: MetricsListener,
    print: MetricsPrinter,
    page: Option<Page>,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) {
    let MetricsListener { listener, token, token_reader, .. } = at;
    let mut options = MetricsOptions::new(print);
    (options.token, options.token_reader, options.page) = (token, token_reader, page);
    let (server, stop) = (server.clone(), stop.clone());
    tasks.spawn(async move {
        if let Err(error) = server.serve_metrics(listener, options, &stop).await {
            diagnostic::print_warning(&format!("the metrics page has ended: {error}"));
        }
    });
}
