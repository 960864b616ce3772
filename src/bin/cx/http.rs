//! `cx serve --http`: the listener, the token and the metrics exporter.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::RateLimit;
use cx::server::{HttpOptions, HttpToken, MetricsPrinter, describe_metrics};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::net::TcpListener;

use crate::args::HttpArguments;
use crate::diagnostic;

/// The variable with the token if no file is named.
const TOKEN_VARIABLE: &str = "CX_HTTP_TOKEN";

/// Maximum bytes read of a token file. Tokens are shorter.
const MAX_TOKEN: u64 = 4_096;

/// Upper bounds of the histogram buckets in seconds: from a trivial script to the longest possible
/// one.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];

/// How often the exporter compacts its measurements, which keeps its memory bounded.
const UPKEEP: Duration = Duration::from_secs(5);

/// The options of a server at `address`, from the arguments, the configuration and the environment.
/// Must be called in a tokio runtime.
///
/// # Errors
///
/// If a token is configured but cannot be read, or if there is none and other machines can reach
/// the address.
pub(crate) fn options(
    address: SocketAddr,
    arguments: HttpArguments,
    configured_rate: Option<RateLimit>,
) -> anyhow::Result<HttpOptions> {
    let mut options = HttpOptions::default();
    options.token = token(arguments.token_file.as_deref())?;
    options.allow_origins = arguments.allow_origin;
    options.client_rate = match arguments.client_rate {
        Some(runs) => NonZeroU32::new(runs).map(RateLimit::per_minute),
        None => configured_rate.or(options.client_rate),
    };
    options.run_rate = NonZeroU32::new(arguments.run_rate).map(RateLimit::per_minute);
    if arguments.metrics {
        options.metrics = Some(metrics_printer()?);
    }
    options.validate(address.ip())?;
    Ok(options)
}

/// Opens the address and prints it.
///
/// # Errors
///
/// If the system refuses it.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("failed to listen at {address}: is another program there?"))?;
    let address = listener.local_addr().context("failed to find out where the server listens")?;
    diagnostic::print_note(&format!("listening on http://{address}/mcp"));
    Ok(listener)
}

/// The token is never an argument, because other users can see those in the list of processes.
#[expect(
    clippy::disallowed_methods,
    reason = "a secret of the command's own, which is no part of the configuration"
)]
fn token(file: Option<&Path>) -> anyhow::Result<Option<HttpToken>> {
    if let Some(path) = file {
        let shown = path.display();
        let text = read_secret(path).with_context(|| format!("failed to read the token file `{shown}`"))?;
        let token = HttpToken::new(text.trim()).with_context(|| format!("the token in `{shown}`"))?;
        return Ok(Some(token));
    }
    match env::var(TOKEN_VARIABLE) {
        Ok(text) => {
            Ok(Some(HttpToken::new(&text).with_context(|| format!("the token in {TOKEN_VARIABLE}"))?))
        }
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => bail!("{TOKEN_VARIABLE} is not UTF-8"),
    }
}

fn read_secret(path: &Path) -> anyhow::Result<String> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // A pipe belongs to the process that opened it, so its mode is not checked.
    if metadata.is_file() && metadata.mode() & 0o077 != 0 {
        bail!("others may read or change it: `chmod 600` it");
    }
    let mut text = String::new();
    file.take(MAX_TOKEN).read_to_string(&mut text)?;
    Ok(text)
}

fn metrics_printer() -> anyhow::Result<MetricsPrinter> {
    let prometheus = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .context("failed to set up metrics")?
        .install_recorder()
        .context("failed to set up metrics")?;
    describe_metrics();
    let upkeep = prometheus.clone();
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(UPKEEP);
        loop {
            interval.tick().await;
            upkeep.run_upkeep();
        }
    });
    Ok(Arc::new(move || prometheus.render()))
}
