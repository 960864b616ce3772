//! The library's options by the names that users of the command can write.

use cx::{Error, ErrorCode};

/// Each option of the library that arguments set, and the argument.
const ARGUMENTS: &[(&str, &str)] = &[
    ("wall_time", "--timeout"),
    ("cpu_time", "--cpu-time"),
    ("fuel", "--fuel"),
    ("memory_bytes", "--memory"),
    ("tool_calls", "--max-tool-calls"),
    ("session", "--session"),
    ("time_zone", "--time-zone"),
    ("isolation", "--isolation"),
    ("max_concurrent_runs", "--max-runs"),
    ("token", "--token-file"),
    ("tenants", "--tokens-file"),
    ("allow_origins", "--allow-origin"),
    ("allow", "--allow"),
    ("allow_read", "--allow-read"),
    ("allow_write", "--allow-write"),
    ("allow_net", "--allow-net"),
    ("deny", "--deny"),
    ("ask", "--ask"),
    ("direct", "--direct"),
    // Keys of the configuration that have no argument.
    ("read_only", "readOnly"),
    ("clock_resolution", "clockResolutionUs"),
];

/// The argument of the limit that ended a run with this code.
pub(crate) const fn of_limit(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::Timeout => Some("--timeout"),
        ErrorCode::CpuLimit => Some("--cpu-time"),
        ErrorCode::FuelLimit => Some("--fuel"),
        ErrorCode::MemoryLimit => Some("--memory"),
        ErrorCode::MaxToolCallsExceeded => Some("--max-tool-calls"),
        _ => None,
    }
}

/// Whether the error is about an option.
pub(crate) fn is_invalid(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidOptions { .. } | Error::TotalMemoryTooSmall { .. } | Error::InvalidPattern { .. }
    )
}

/// The error's message, with the names that users know.
pub(crate) fn message(error: &Error) -> String {
    let (option, problem) = match error {
        Error::InvalidOptions { option, problem } => (*option, problem),
        Error::InvalidPattern { list, problem } => (list.as_str(), problem),
        Error::TotalMemoryTooSmall { all_runs, .. } => {
            return format!(
                "invalid `--total-memory` or `--memory`: all scripts together have {all_runs} bytes, and one needs \
                 more"
            );
        }
        _ => return error.to_string(),
    };
    format!("invalid `{}`: {problem}", argument(option))
}

fn argument(option: &str) -> &str {
    ARGUMENTS.iter().find(|(name, _)| *name == option).map_or(option, |(_, argument)| argument)
}
