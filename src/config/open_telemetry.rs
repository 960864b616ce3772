//! Whether traces and metrics are exported over OTLP: the standard variables, and `openTelemetry` of a
//! trusted file.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::environment::Environment;
use crate::telemetry::options::OpenTelemetryOptions;

/// Maximum time of one export that `OTEL_EXPORTER_OTLP_TIMEOUT` can set.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Bounds of the times between exports that variables can set: the SDK would export without a pause, on a whole core.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(60 * 60);

/// Bounds of the number of spans that wait. The SDK allocates some 370 bytes for each of them at the start, and a process
/// without that memory is aborted.
const QUEUED_SPANS: RangeInclusive<usize> = 1..=65_536;

/// The settings of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileOptions {
    pub(super) endpoint: Option<String>,
    pub(super) content: Option<bool>,
}

/// The export options; `None` if nothing is exported. The variables have precedence over the file. Nothing is exported
/// unless one of them names a collector.
pub(super) fn resolve(file: &FileOptions, environment: &Environment) -> Option<OpenTelemetryOptions> {
    let get = |name: &str| environment.get(name).map(str::trim).filter(|value| !value.is_empty());
    let is_true = |name: &str| get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_true("OTEL_SDK_DISABLED") {
        return None;
    }
    let is_named = |variable: &str| get(variable).is_some();
    let common = is_named("OTEL_EXPORTER_OTLP_ENDPOINT");
    let signal = |name: &str| {
        let exporter = get(&format!("OTEL_{name}_EXPORTER"));
        let is_on = common
            || file.endpoint.is_some()
            || is_named(&format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT"))
            || exporter == Some("otlp");
        is_on && exporter.is_none_or(|exporter| exporter == "otlp")
    };
    let mut options = OpenTelemetryOptions::default();
    (options.traces, options.metrics) = (signal("TRACES"), signal("METRICS"));
    if !options.traces && !options.metrics {
        return None;
    }
    let is_in_variables = common
        || is_named("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        || is_named("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    // The SDK reads what the options leave open from the variables.
    options.endpoint = file.endpoint.clone().filter(|_| !is_in_variables);
    options.content = match get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") {
        Some(value) => value.eq_ignore_ascii_case("true"),
        None => file.content.unwrap_or(false),
    };
    let timeout = get("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|value| value.parse().ok());
    if let Some(timeout) = timeout.filter(|&timeout| timeout > 0) {
        options.timeout = Duration::from_millis(timeout).min(MAX_TIME);
    }
    let interval = |name: &str| {
        let time = Duration::from_millis(get(name)?.parse().ok()?);
        Some(time.clamp(*INTERVALS.start(), *INTERVALS.end()))
    };
    options.span_interval = interval("OTEL_BSP_SCHEDULE_DELAY");
    options.metric_interval = interval("OTEL_METRIC_EXPORT_INTERVAL");
    let spans = get("OTEL_BSP_MAX_QUEUE_SIZE").and_then(|value| value.parse::<usize>().ok());
    options.max_queued_spans = spans.map(|spans| spans.clamp(*QUEUED_SPANS.start(), *QUEUED_SPANS.end()));
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(endpoint: Option<&str>, variables: &[(&str, &str)]) -> Option<OpenTelemetryOptions> {
        let file = FileOptions { endpoint: endpoint.map(str::to_owned), content: None };
        let owned: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        resolve(&file, &Environment::from_pairs(&owned))
    }

    const FILE: Option<&str> = Some("http://file:4318");

    #[test]
    fn nothing_is_exported_unless_a_collector_is_named() {
        assert_eq!(of(None, &[]), None);
        assert_eq!(of(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
        assert_eq!(of(None, &[("OTEL_SERVICE_NAME", "x")]), None);
        let named = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")];
        let options = of(None, &named).unwrap();
        assert!(options.traces && options.metrics && !options.content && options.endpoint.is_none());
        let disabled = [named[0], ("OTEL_SDK_DISABLED", "TRUE")];
        assert_eq!(of(Some("http://file:4318"), &disabled), None);
        let none = [named[0], ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
        assert_eq!(of(None, &none), None);
        assert!(of(None, &[("OTEL_TRACES_EXPORTER", "otlp")]).is_some_and(|on| on.traces && !on.metrics));
        let traces = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector/traces")];
        assert!(of(None, &traces).is_some_and(|on| on.traces && !on.metrics));
    }

    #[test]
    fn variables_have_precedence_over_the_file() {
        let file = Some("http://file:4318");
        assert_eq!(of(file, &[]).unwrap().endpoint.as_deref(), file);
        let named = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")];
        assert_eq!(of(file, &named).unwrap().endpoint, None);
        let content = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")];
        assert!(of(file, &content).unwrap().content);
        for (value, expected) in [("0", 10_000), ("x", 10_000), ("250", 250), ("9999999", 60_000)] {
            let timeout = of(file, &[("OTEL_EXPORTER_OTLP_TIMEOUT", value)]).unwrap().timeout;
            assert_eq!(timeout, Duration::from_millis(expected));
        }
    }

    /// THREATS 672: a mistake in a variable neither ends the process nor occupies a core.
    #[test]
    fn v_672_numbers_in_variables_are_bounded() {
        let spans = |value: &str| of(FILE, &[("OTEL_BSP_MAX_QUEUE_SIZE", value)]).unwrap().max_queued_spans;
        for (value, expected) in
            [("0", Some(1)), ("4096", Some(4_096)), ("100000000000", Some(65_536)), ("x", None)]
        {
            assert_eq!(spans(value), expected, "{value}");
        }
        let hour = Duration::from_secs(3_600);
        for (value, expected) in [
            ("0", Some(Duration::from_millis(10))),
            ("50", Some(Duration::from_millis(50))),
            ("18446744073709551615", Some(hour)),
            ("-1", None),
        ] {
            let of_spans = of(FILE, &[("OTEL_BSP_SCHEDULE_DELAY", value)]).unwrap();
            let of_metrics = of(FILE, &[("OTEL_METRIC_EXPORT_INTERVAL", value)]).unwrap();
            assert_eq!((of_spans.span_interval, of_spans.metric_interval), (expected, None), "{value}");
            assert_eq!((of_metrics.span_interval, of_metrics.metric_interval), (None, expected), "{value}");
        }
    }
}
