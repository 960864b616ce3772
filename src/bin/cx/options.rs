//! The names under which users of the command know the library's options.

use cx::{Error, ErrorCode, OptionName, RuleList};

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
    let (argument, problem) = match error {
        Error::InvalidOptions { option, problem } => (argument(*option), problem),
        Error::InvalidPattern { list, problem } => (argument_of_list(*list), problem),
        Error::TotalMemoryTooSmall { all_runs, .. } => {
            return format!(
                "invalid `--total-memory` or `--memory`: all scripts together have {all_runs} bytes, and one needs \
                 more"
            );
        }
        _ => return error.to_string(),
    };
    format!("invalid `{argument}`: {problem}")
}

/// The argument that sets an option, or its key in the configuration if no argument does.
fn argument(option: OptionName) -> &'static str {
    match option {
        OptionName::WallTime => "--timeout",
        OptionName::CpuTime => "--cpu-time",
        OptionName::Fuel => "--fuel",
        OptionName::MemoryBytes => "--memory",
        OptionName::ToolCalls => "--max-tool-calls",
        OptionName::Session => "--session",
        OptionName::TimeZone => "--time-zone",
        OptionName::Isolation => "--isolation",
        OptionName::MaxConcurrentRuns => "--max-runs",
        OptionName::Token => "--token-file",
        OptionName::Tenants => "--tokens-file",
        OptionName::AllowOrigins => "--allow-origin",
        OptionName::AllowRead => "--allow-read",
        OptionName::AllowWrite => "--allow-write",
        OptionName::AllowNet => "--allow-net",
        OptionName::ClockResolution => "clockResolutionUs",
        OptionName::ReadOnly => "readOnly",
        other => other.as_str(),
    }
}

/// As [`argument`], for a list of rules.
fn argument_of_list(list: RuleList) -> &'static str {
    match list {
        RuleList::Allow => "--allow",
        RuleList::Deny => "--deny",
        RuleList::Ask => "--ask",
        RuleList::Direct => "--direct",
        RuleList::ReadOnly => "readOnly",
        other => other.as_str(),
    }
}
