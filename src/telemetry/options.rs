//! The options of the export.

use std::time::Duration;

/// Maximum time of one export by default, as in OpenTelemetry's specification.
const EXPORT_TIME: Duration = Duration::from_secs(10);

/// Options of `OpenTelemetry`. OpenTelemetry's SDK reads what they leave open from the standard variables:
/// `OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`,
/// `OTEL_METRIC_EXPORT_INTERVAL`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTelemetryOptions {
    /// The collector's address without the paths of the signals, such as `http://127.0.0.1:4318`. With `None`, the
    /// address in the variables, or else that one.
    pub endpoint: Option<String>,
    /// Whether spans have the arguments and results of tool calls, at most 16 KB of each. They may
    /// contain secrets. False by default.
    pub content: bool,
    /// Whether traces are exported. True by default.
    pub traces: bool,
    /// Whether metrics are exported. True by default.
    pub metrics: bool,
    /// Maximum time of one export. 10 s by default.
    pub timeout: Duration,
    /// Maximum number of spans that wait to be exported; further ones are dropped. With `None`, the number in
    /// `OTEL_BSP_MAX_QUEUE_SIZE`, for which the SDK allocates memory whatever it is, or else 2,048.
    pub max_queued_spans: Option<usize>,
    /// How often spans are exported. With `None`, as `OTEL_BSP_SCHEDULE_DELAY` says, which the SDK does not bound, or
    /// else every 5 s.
    pub span_interval: Option<Duration>,
    /// How often metrics are exported. With `None`, as `OTEL_METRIC_EXPORT_INTERVAL` says, which the SDK does not bound,
    /// or else every 60 s.
    pub metric_interval: Option<Duration>,
}

impl Default for OpenTelemetryOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            content: false,
            traces: true,
            metrics: true,
            timeout: EXPORT_TIME,
            max_queued_spans: None,
            span_interval: None,
            metric_interval: None,
        }
    }
}
