//! Run errors whose messages are the same for every engine.

use crate::engine::host::RunHost;
use crate::engine::stop::StopReason;
use crate::run::result::{ErrorCode, ScriptError};
use crate::run::script::Language;

/// Maximum length in bytes of a source line that an error quotes.
const SHOWN_LINE: usize = 400;

/// What helps a run that has less time than it can be given.
const MORE_TIME: &str = "ask for a longer timeout";

/// The error of a run that was stopped.
pub(crate) fn stopped(reason: Option<StopReason>, host: &dyn RunHost) -> ScriptError {
    let (limits, max) = (host.limits(), host.max_limits());
    match reason {
        Some(StopReason::Timeout) => {
            let message = format!("the script ran longer than {:?}", limits.wall_time);
            let together = match host.language() {
                Language::TypeScript => "run calls at the same time with Promise.all",
                Language::Python => "run calls at the same time with asyncio.gather",
            };
            let mut advice = vec!["do less per run", together];
            advice.extend((limits.wall_time < max.wall_time).then_some(MORE_TIME));
            ScriptError::new(ErrorCode::Timeout, message).with_hint(one_of(&advice))
        }
        Some(StopReason::Cpu) => {
            let message = format!("the script used more than {:?} of CPU time", limits.cpu_time);
            let mut advice = vec!["look for a loop that does not end"];
            advice.extend((limits.cpu_time < max.cpu_time).then_some(MORE_TIME));
            let hint = format!("waiting for tools is free; {}", one_of(&advice));
            ScriptError::new(ErrorCode::CpuLimit, message).with_hint(hint)
        }
        Some(StopReason::Memory) => ScriptError::new(
            ErrorCode::MemoryLimit,
            format!("the script used more than {} of memory", amount(limits.memory_bytes)),
        )
        .with_hint("keep only what is needed of each result"),
        Some(StopReason::Cancelled) | None => ScriptError::new(ErrorCode::Cancelled, "the run was cancelled"),
    }
}

/// Alternatives as one sentence: `a`, `a, or b`, `a, b, or c`.
fn one_of(advice: &[&str]) -> String {
    match advice {
        [first @ .., last] if !first.is_empty() => format!("{}, or {last}", first.join(", ")),
        other => other.concat(),
    }
}

/// Bytes as people name them: `128 MiB`, where it is a whole number.
fn amount(bytes: usize) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

/// The error of a run that used up its fuel.
pub(crate) fn out_of_fuel(host: &dyn RunHost) -> ScriptError {
    let fuel = host.limits().fuel.unwrap_or_default();
    let units = if fuel == 1 { "unit" } else { "units" };
    ScriptError::new(ErrorCode::FuelLimit, format!("the script used more than {fuel} {units} of fuel"))
        .with_hint("do less per run: a unit is one instruction of the interpreter")
}

/// Sets the error's source location (line and column, both from 1) and the text of that line.
pub(crate) fn set_location(error: &mut ScriptError, source: &str, line: u32, column: u32) {
    error.line = Some(line);
    error.column = Some(column);
    let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    error.source_line = source
        .lines()
        .nth(index)
        .filter(|line| line.len() <= SHOWN_LINE)
        .map(|line| line.trim_start_matches('\u{feff}').to_owned());
}

/// The error for a returned value of `bytes` bytes, which is above the limit.
pub(crate) fn too_large(bytes: usize, host: &dyn RunHost) -> ScriptError {
    let most = host.limits().result_bytes;
    let message =
        format!("the script's value is {bytes} bytes of JSON or more, at most {most} can be returned");
    ScriptError::new(ErrorCode::ResultTooLarge, message)
        .with_hint("filter in the script and return only what matters")
}

/// The error for a returned value that is not valid JSON. Guests serialize valid JSON except for too
/// many levels of nesting.
pub(crate) fn not_json(error: &serde_json::Error) -> ScriptError {
    let message = format!("the script's value is not valid JSON: {error}");
    ScriptError::new(ErrorCode::RuntimeError, message).with_hint("return less nested data")
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;
    use tokio::sync::watch;

    use super::*;
    use crate::run::context::{ExecutionContext, RunEnvironment};
    use crate::run::limits::Limits;
    use crate::run::limits::in_force::RunLimits;
    use crate::run::script::Script;

    #[test]
    fn amounts_are_whole_numbers() {
        assert_eq!(amount(128 << 20), "128 MiB");
        assert_eq!(amount(16_000_000), "16000000 bytes");
    }

    #[tokio::test]
    async fn more_time_is_advised_only_where_there_is_some() {
        let hint = |reason, limits| {
            let environment = RunEnvironment::empty(limits, Handle::current());
            let context = ExecutionContext::new(Script::typescript("source"), environment);
            stopped(Some(reason), &context).hint.unwrap()
        };
        assert_eq!(
            hint(StopReason::Timeout, Limits::default()),
            "do less per run, run calls at the same time with Promise.all, or ask for a longer timeout"
        );
        assert_eq!(
            hint(StopReason::Timeout, Limits::CEILING),
            "do less per run, or run calls at the same time with Promise.all"
        );
        assert_eq!(
            hint(StopReason::Cpu, Limits::default()),
            "waiting for tools is free; look for a loop that does not end, or ask for a longer timeout"
        );
        assert_eq!(
            hint(StopReason::Cpu, Limits::CEILING),
            "waiting for tools is free; look for a loop that does not end"
        );
        // The maximum is the operator's, which may be lower than any other.
        let (max, empty) = (Limits::default(), RunEnvironment::empty(Limits::default(), Handle::current()));
        let limits = RunLimits::new(max, max, watch::Sender::new(max).subscribe());
        let environment = RunEnvironment { limits, ..empty };
        let context = ExecutionContext::new(Script::typescript("source"), environment);
        for reason in [StopReason::Timeout, StopReason::Cpu] {
            let hint = stopped(Some(reason), &context).hint.unwrap();
            assert!(!hint.contains(MORE_TIME), "{hint}");
        }
    }
}
