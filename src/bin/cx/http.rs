//! `cx serve --http`: where to listen, the token, and what prints metrics.

use std::env;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::server::{HttpOptions, HttpToken, MetricsPrinter, describe_metrics};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::net::TcpListener;

use crate::args::HttpArguments;
use crate::diagnostic;

/// Where the token is if no file is named.
const TOKEN_VARIABLE: &str = "CX_HTTP_TOKEN";

/// More than a token is.
const MAX_TOKEN: u64 = 4_096;

/// Upper bounds of what is counted together: from a trivial script to the longest there may be.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];

/// How often the exporter puts what was measured in order, which it needs to stay small.
const UPKEEP: Duration = Duration::from_secs(5);

/// What the arguments and the environment say about a server at `address`. Must be called in a tokio runtime.
///
/// # Errors
///
/// When there is no token to be read where one is said to be, or none and others can reach the address.
pub(crate) fn options(address: SocketAddr, arguments: HttpArguments) -> anyhow::Result<HttpOptions> {
    let mut options = HttpOptions::default();
    options.token = token(arguments.token_file.as_deref())?;
    options.allow_origins = arguments.allow_origin;
    if arguments.metrics {
        options.metrics = Some(metrics_printer()?);
    }
    options.validate(address.ip())?;
    Ok(options)
}

/// Opens the address and says which it is.
///
/// # Errors
///
/// When the system refuses it.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("failed to listen at {address}: is another program there?"))?;
    let address = listener.local_addr().context("failed to find out where the server listens")?;
    diagnostic::print_note(&format!("listening on http://{address}/mcp"));
    Ok(listener)
}

/// Never an argument: whoever lists the processes sees those.
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
    // A pipe belongs to whoever opened it.
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
