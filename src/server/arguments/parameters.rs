//! The parameters of the tools that run scripts: their names, and the values that each takes.

use std::borrow::Cow;
use std::time::Duration;

use crate::llm::LlmOptions;
use crate::run::limits::Limits;

/// Maximum timeout of a run.
pub(crate) const MAX_TIMEOUT: Duration = Limits::CEILING.wall_time;

/// A parameter of the tools that run scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunParameter {
    Code,
    /// The name of a saved script in place of `code`.
    Script,
    Input,
    AllowedTools,
    TimeoutMs,
    MaxToolCalls,
    Session,
    DryRun,
    TimeZone,
    Permissions,
    YieldAfterMs,
    EnableSampling,
    MaxSamplingRounds,
    MaxSamplingTokens,
    SamplingSystemPrompt,
    AllowedSamplingModels,
}

impl RunParameter {
    pub(crate) const ALL: [Self; 16] = [
        Self::Code,
        Self::Script,
        Self::Input,
        Self::AllowedTools,
        Self::TimeoutMs,
        Self::MaxToolCalls,
        Self::Session,
        Self::DryRun,
        Self::TimeZone,
        Self::Permissions,
        Self::YieldAfterMs,
        Self::EnableSampling,
        Self::MaxSamplingRounds,
        Self::MaxSamplingTokens,
        Self::SamplingSystemPrompt,
        Self::AllowedSamplingModels,
    ];

    /// Whether the parameter is about language models. Listed only if scripts can ask one.
    pub(crate) const fn is_of_sampling(self) -> bool {
        matches!(
            self,
            Self::EnableSampling
                | Self::MaxSamplingRounds
                | Self::MaxSamplingTokens
                | Self::SamplingSystemPrompt
                | Self::AllowedSamplingModels
        )
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Script => "script",
            Self::Input => "input",
            Self::AllowedTools => "allowedTools",
            Self::TimeoutMs => "timeoutMs",
            Self::MaxToolCalls => "maxToolCalls",
            Self::Session => "session",
            Self::DryRun => "dryRun",
            Self::TimeZone => "timeZone",
            Self::Permissions => "permissions",
            Self::YieldAfterMs => "yieldAfterMs",
            Self::EnableSampling => "enableSampling",
            Self::MaxSamplingRounds => "maxSamplingRounds",
            Self::MaxSamplingTokens => "maxSamplingTokens",
            Self::SamplingSystemPrompt => "samplingSystemPrompt",
            Self::AllowedSamplingModels => "allowedSamplingModels",
        }
    }

    /// The parameter of this name, or `None`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|parameter| parameter.name() == name)
    }

    /// The values that the parameter takes, as error messages describe them.
    pub(super) fn expected(self) -> Cow<'static, str> {
        match self {
            Self::Script => "the name of a saved script, a string".into(),
            Self::Code | Self::Session | Self::SamplingSystemPrompt => "a string".into(),
            Self::TimeZone => "a string such as `Europe/Berlin`".into(),
            Self::Permissions => {
                "an object with any of `read` and `write`, arrays of directories, and `net`, an array of hosts".into()
            }
            Self::Input => "any JSON".into(),
            Self::AllowedTools => "an array of strings such as `server.tool` or `server.*`".into(),
            Self::TimeoutMs => {
                format!("a whole number of milliseconds from 1 to {}", MAX_TIMEOUT.as_millis()).into()
            }
            Self::YieldAfterMs => {
                format!("a whole number of milliseconds from 0 (never) to {}", MAX_TIMEOUT.as_millis()).into()
            }
            Self::MaxToolCalls => {
                format!("a whole number from 0 (as many as allowed) to {}", u32::MAX).into()
            }
            Self::DryRun | Self::EnableSampling => "true or false".into(),
            Self::MaxSamplingRounds => format!("a whole number from 1 to {}", LlmOptions::MAX_ROUNDS).into(),
            Self::MaxSamplingTokens => format!("a whole number from 1 to {}", LlmOptions::MAX_TOKENS).into(),
            Self::AllowedSamplingModels => "an array of names of models".into(),
        }
    }
}
