//! OpenTelemetry: traces and metrics over OTLP, off unless it is configured.

mod client;
mod recorder;
mod spans;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metrics::Recorder;
use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{BatchConfig, BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};

use client::ExportClient;
use recorder::OtelRecorder;
pub(crate) use spans::SpanMaker;

use crate::conventions::SCOPE;
use crate::error::{Error, OptionName};
use crate::mcp::web;
use crate::telemetry::options::OpenTelemetryOptions;
use crate::telemetry::priority::yield_to_runs;

/// Maximum time to connect to a collector.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Exports traces and metrics of executors and servers over OTLP. Cheap to clone.
///
/// Errors of the collector never fail a run: they are counted ([`export_failures`](Self::export_failures)), and the
/// first one of a series is logged. Spans that do not fit into the queue of 2,048 are dropped.
#[derive(Clone)]
pub struct OpenTelemetry {
    inner: Arc<Inner>,
}

struct Inner {
    tracers: Option<SdkTracerProvider>,
    meters: Option<SdkMeterProvider>,
    spans: Option<Arc<SpanMaker>>,
    client: ExportClient,
    /// The runtime of the requests to the collector. Dropped in the background.
    runtime: Option<tokio::runtime::Runtime>,
}

impl OpenTelemetry {
    /// Starts the threads that export.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the endpoint, also one of the variables, is not a URL;
    /// [`Error::Start`] if the system refuses a thread.
    pub fn start(options: &OpenTelemetryOptions) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("cx-otel")
            .on_thread_start(yield_to_runs)
            .enable_all()
            .build()
            .map_err(|source| Error::Start { what: "OpenTelemetry", source })?;
        let client = web::client(CONNECT_TIME).map_err(|error| invalid(&error.message))?;
        let client = ExportClient::new(client, runtime.handle().clone(), options.timeout);
        let tracers = options.traces.then(|| tracer_provider(options, &client)).transpose()?;
        let meters = options.metrics.then(|| meter_provider(options, &client)).transpose()?;
        let spans = tracers
            .as_ref()
            .map(|provider| Arc::new(SpanMaker::new(provider.tracer_with_scope(scope()), options.content)));
        let runtime = Some(runtime);
        Ok(Self { inner: Arc::new(Inner { tracers, meters, spans, client, runtime }) })
    }

    /// A recorder for the process's [`metrics`] facade that exports all metrics and also passes them on to `next`, such
    /// as a Prometheus recorder.
    pub fn recorder(&self, next: Option<Box<dyn Recorder + Send + Sync>>) -> Box<dyn Recorder + Send + Sync> {
        match (&self.inner.meters, next) {
            (Some(meters), next) => Box::new(OtelRecorder::new(meters.meter_with_scope(scope()), next)),
            (None, Some(next)) => next,
            (None, None) => Box::new(metrics::NoopRecorder),
        }
    }

    /// Number of exports that have failed.
    pub fn export_failures(&self) -> u64 {
        self.inner.client.failures()
    }

    /// Exports the remaining data and ends. Blocks for at most `timeout` in total; data that is not exported by then is
    /// lost.
    pub fn shutdown(&self, timeout: Duration) {
        let (sender, ended) = std::sync::mpsc::channel();
        let inner = Arc::clone(&self.inner);
        // A separate thread, because the SDK does not bound the time of exporting metrics.
        let ending = std::thread::Builder::new().name("cx-otel-end".to_owned()).spawn(move || {
            let traces = inner.tracers.as_ref().map(|tracers| tracers.shutdown_with_timeout(timeout));
            let meters = inner.meters.as_ref().map(SdkMeterProvider::shutdown);
            for problem in [traces, meters].into_iter().flatten().filter_map(Result::err) {
                tracing::debug!(%problem, "not everything was exported");
            }
            let _timed_out = sender.send(());
        });
        match ending {
            Ok(_thread) if ended.recv_timeout(timeout).is_ok() => {}
            Ok(_thread) => tracing::warn!("the collector did not take the last traces and metrics in time"),
            Err(error) => {
                tracing::warn!(%error, "the last traces and metrics are not exported: the system refused a thread");
            }
        }
    }

    pub(crate) fn spans(&self) -> Option<&Arc<SpanMaker>> {
        self.inner.spans.as_ref()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A runtime must not be dropped where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for OpenTelemetry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenTelemetry")
            .field("traces", &self.inner.tracers.is_some())
            .field("metrics", &self.inner.meters.is_some())
            .finish_non_exhaustive()
    }
}

/// Configures how an exporter sends its data, which is at `path` of the collector.
fn over_http<B: WithExportConfig + WithHttpConfig>(
    exporter: B,
    options: &OpenTelemetryOptions,
    client: &ExportClient,
    path: &str,
) -> B {
    let exporter = exporter
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(client.clone())
        .with_timeout(options.timeout);
    match endpoint(options, path) {
        Some(endpoint) => exporter.with_endpoint(endpoint),
        None => exporter,
    }
}

/// Makes spans, and exports them from a thread of its own.
fn tracer_provider(
    options: &OpenTelemetryOptions,
    client: &ExportClient,
) -> Result<SdkTracerProvider, Error> {
    let exporter = over_http(SpanExporter::builder().with_http(), options, client, "v1/traces");
    let exporter = exporter.build().map_err(|error| invalid(&error.to_string()))?;
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches(options)).build();
    Ok(SdkTracerProvider::builder().with_resource(resource()).with_span_processor(processor).build())
}

/// Makes instruments, and exports what they have counted from a thread of its own.
fn meter_provider(options: &OpenTelemetryOptions, client: &ExportClient) -> Result<SdkMeterProvider, Error> {
    let exporter = over_http(MetricExporter::builder().with_http(), options, client, "v1/metrics");
    let exporter = exporter.build().map_err(|error| invalid(&error.to_string()))?;
    let mut reader = PeriodicReader::builder(exporter);
    if let Some(interval) = options.metric_interval {
        reader = reader.with_interval(interval);
    }
    Ok(SdkMeterProvider::builder().with_resource(resource()).with_reader(reader.build()).build())
}

/// The URL of a signal. With `None`, the SDK takes that of the variables.
fn endpoint(options: &OpenTelemetryOptions, path: &str) -> Option<String> {
    let base = options.endpoint.as_deref()?;
    Some(format!("{}/{path}", base.trim_end_matches('/')))
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(SCOPE).with_version(env!("CARGO_PKG_VERSION")).build()
}

/// What spans and metrics say of this process. The service's name is `cx`, unless the variables have one.
fn resource() -> Resource {
    let found = Resource::builder().build();
    let is_named = found
        .get(&opentelemetry::Key::from_static_str("service.name"))
        .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    let mut builder = Resource::builder();
    if !is_named {
        builder = builder.with_service_name("cx");
    }
    builder.with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build()
}

/// When spans are exported. The SDK reads from the variables what the options leave open.
fn batches(options: &OpenTelemetryOptions) -> BatchConfig {
    let mut batches = BatchConfigBuilder::default();
    if let Some(spans) = options.max_queued_spans {
        batches = batches.with_max_queue_size(spans);
    }
    if let Some(interval) = options.span_interval {
        batches = batches.with_scheduled_delay(interval);
    }
    batches.build()
}

fn invalid(problem: &str) -> Error {
    Error::InvalidOptions { option: OptionName::OpenTelemetry, problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Otherwise the SDK would read the variables again, without the bounds of `config/open_telemetry.rs`.
    #[test]
    fn batches_have_the_bounds_of_the_options() {
        let options = OpenTelemetryOptions {
            max_queued_spans: Some(7),
            span_interval: Some(Duration::from_millis(11)),
            ..OpenTelemetryOptions::default()
        };
        let used = format!("{:?}", batches(&options));
        assert!(used.contains("max_queue_size: 7,") && used.contains("scheduled_delay: 11ms,"), "{used}");
    }
}
