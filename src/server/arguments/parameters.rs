//! The parameters of the tools that run scripts: their names, and the values that each takes.

use std::borrow::Cow;
use std::time::Duration;

use crate::run::limits::Limits;

/// Maximum timeout of a run.
pub(crate) const MAX_TIMEOUT: Duration = Limits::CEILING.wall_time;

/// A parameter of the tools that run scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunParameter {
    Code,
    Input,
    AllowedTools,
    TimeoutMs,
    MaxToolCalls,
    Session,
    DryRun,
}

impl RunParameter {
    pub(crate) const ALL: [Self; 7] = [
        Self::Code,
        Self::Input,
        Self::AllowedTools,
        Self::TimeoutMs,
        Self::MaxToolCalls,
        Self::Session,
        Self::DryRun,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Input => "input",
            Self::AllowedTools => "allowedTools",
            Self::TimeoutMs => "timeoutMs",
            Self::MaxToolCalls => "maxToolCalls",
            Self::Session => "session",
            Self::DryRun => "dryRun",
        }
    }

    /// The parameter of this name, or `None`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.name() == name)
    }

    /// The values that the parameter takes, as error messages say it.
    pub(super) fn expected(self) -> Cow<'static, str> {
        match self {
            Self::Code | Self::Session => "a string".into(),
            Self::Input => "any JSON".into(),
            Self::AllowedTools => "an array of strings such as `server.tool` or `server.*`".into(),
            Self::TimeoutMs => {
                format!("a whole number of milliseconds from 1 to {}", MAX_TIMEOUT.as_millis()).into()
            }
            Self::MaxToolCalls => {
                format!("a whole number from 0 (as many as allowed) to {}", u32::MAX).into()
            }
            Self::DryRun => "true or false".into(),
        }
    }
}
