//! OpenTelemetry in the command: off unless the configuration or the environment names a collector.

use std::time::Duration;

use cx::{ExecutorBuilder, OpenTelemetry, OpenTelemetryOptions};

/// How long the last export may delay the exit.
const MAX_FLUSH: Duration = Duration::from_secs(3);

/// Starts the export, if it is configured.
///
/// # Errors
///
/// If the endpoint cannot be used.
pub(crate) fn start(options: Option<&OpenTelemetryOptions>) -> anyhow::Result<Option<OpenTelemetry>> {
    Ok(options.map(OpenTelemetry::start).transpose()?)
}

/// Starts the export of traces only.
///
/// # Errors
///
/// As [`start`].
pub(crate) fn start_traces(options: Option<&OpenTelemetryOptions>) -> anyhow::Result<Option<OpenTelemetry>> {
    let Some(mut options) = options.filter(|options| options.traces).cloned() else { return Ok(None) };
    options.metrics = false;
    start(Some(&options))
}

/// Makes the executor export its traces.
pub(crate) fn attach(builder: ExecutorBuilder, telemetry: Option<&OpenTelemetry>) -> ExecutorBuilder {
    match telemetry {
        Some(telemetry) => builder.open_telemetry(telemetry),
        None => builder,
    }
}

/// Exports the remaining data.
pub(crate) fn finish(telemetry: Option<&OpenTelemetry>) {
    if let Some(telemetry) = telemetry {
        telemetry.shutdown(MAX_FLUSH);
    }
}
