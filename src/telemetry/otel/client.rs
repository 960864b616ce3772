//! The HTTP client of the exporters. Failures are counted, the first one of a series is logged, and none affects a run.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

use crate::mcp::web;
use crate::net::response::{cause, read_up_to};
use crate::net::tls::check_clock;
use crate::telemetry::priority::yield_to_runs;

/// Maximum bytes that are read of a collector's answer.
const MAX_ANSWER: usize = 64 * 1024;

/// Sends requests on a runtime of its own: the exporters call it from threads that have none.
#[derive(Clone)]
pub(crate) struct ExportClient {
    client: web::Client,
    runtime: Handle,
    timeout: Duration,
    failures: Arc<Failures>,
}

/// The failures of exports.
#[derive(Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    /// Whether the last export failed. That was logged then.
    is_failing: AtomicBool,
}

impl ExportClient {
    pub(crate) fn new(client: web::Client, runtime: Handle, timeout: Duration) -> Self {
        Self { client, runtime, timeout, failures: Arc::default() }
    }

    /// Number of exports that have failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.count.load(Ordering::Relaxed)
    }
}

impl Failures {
    fn record(&self, failure: Option<&str>) {
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        let Some(failure) = failure else { return };
        self.count.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("cx_telemetry_export_failures_total").increment(1);
        if !was_failing {
            tracing::warn!(failure, "traces or metrics cannot be exported; they are dropped until they can");
        }
    }
}

impl fmt::Debug for ExportClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ExportClient")
    }
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for ExportClient {
    // As `async_trait` writes it.
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sent<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        // The SDK makes the thread that gathers a batch, encodes it and sends it from here.
        yield_to_runs();
        let this = self.clone();
        let sending = self.runtime.spawn(async move {
            let sent = tokio::time::timeout(this.timeout, this.send(request)).await;
            let sent = sent.unwrap_or_else(|_elapsed| Err("the collector did not answer in time".to_owned()));
            let problem = match &sent {
                Err(problem) => Some(problem.clone()),
                Ok(response) if !response.status().is_success() => {
                    Some(format!("the collector answered with status {}", response.status().as_u16()))
                }
                Ok(_) => None,
            };
            this.failures.record(problem.as_deref());
            sent
        });
        Box::pin(async move { Ok(sending.await??) })
    }
}

impl ExportClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        // The cause without the address, which may contain a secret.
        let failed = |error: web::RequestError| format!("no answer of the collector: {}", cause(&error));
        let request: web::Request = request.try_into().map_err(failed)?;
        check_clock(request.url(), SystemTime::now()).map_err(str::to_owned)?;
        let mut answer = self.client.execute(request).await.map_err(failed)?;
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        // A longer answer contains nothing that an exporter needs.
        let body = read_up_to(&mut answer, MAX_ANSWER).await.map_err(failed)?;
        *response.body_mut() = body.unwrap_or_default().into();
        Ok(response)
    }
}
