//! The options of a run's calls of language models, and the record of these calls.

use std::sync::Arc;
use std::time::Duration;

use crate::llm::Violations;
use crate::llm::budget::{Quota, Reservation};
use crate::tools::ToolErrorCode;

/// Options of one run's calls of language models, within what the executor permits ([`LlmOptions`](crate::LlmOptions)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SamplingOptions {
    /// Whether the script may ask a model. `None` means the executor's setting.
    pub enabled: Option<bool>,
    /// Maximum number of calls, at most as many as the executor permits; `None` means its default.
    pub max_rounds: Option<u32>,
    /// Maximum tokens of all calls together, prompts and answers, at most as many as the executor permits; `None` means
    /// its default.
    pub max_tokens: Option<u64>,
    /// The system prompt of calls that name none.
    pub system_prompt: Option<String>,
    /// The models that the script may name; the first one is asked if it names none.
    pub allowed_models: Option<Vec<String>>,
}

/// A call of a language model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelCall {
    /// The number of the call in its run, from 1.
    pub round: u32,
    /// The way to the model: the name of a provider, or `client`.
    pub provider: String,
    /// The model that answered, or the one that was asked for, if known.
    pub model: Option<String>,
    /// How it ended.
    pub status: ModelCallStatus,
    /// Tokens that the call counts against the budget: prompt and answer.
    pub tokens: u64,
    /// Whether the tokens are estimated, because the provider did not report them.
    pub is_estimated: bool,
    /// How long it took.
    pub duration: Duration,
    /// Why the answer ended, in the provider's word.
    pub stop_reason: Option<String>,
    /// What the content filter found in the answer.
    pub violations: Vec<ContentViolation>,
}

/// How a call of a language model ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelCallStatus {
    /// It had not ended when the run ended, or the script no longer waited for it.
    InFlight,
    /// It was answered.
    Ok,
    /// It failed with this code.
    Failed(ToolErrorCode),
}

/// Something that the content filter found in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentViolation {
    /// The name of the pattern, such as `openai_key` or `email`.
    pub pattern: &'static str,
    /// How often it was found.
    pub count: u32,
}

impl ContentViolation {
    pub(super) fn list(violations: &Violations) -> Vec<Self> {
        violations.found.iter().map(|&(pattern, count)| Self { pattern, count }).collect()
    }
}

/// A summary of a run's calls of language models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingReport {
    /// The calls, in order.
    pub calls: Vec<ModelCall>,
    /// Their sums.
    pub metrics: SamplingMetrics,
}

/// The sums of a run's calls of language models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingMetrics {
    /// Number of calls.
    pub total_rounds: u32,
    /// Tokens of all calls, prompts and answers.
    pub total_tokens: u64,
    /// Sum of the durations of all calls, including parallel ones.
    pub total_duration: Duration,
    /// Calls that the run could still have made.
    pub rounds_left: u32,
    /// Tokens that these calls could have used.
    pub tokens_left: u64,
}

/// A call in the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallNumber(usize);

/// The calls of one run. The budget bounds their number.
#[derive(Debug, Default)]
pub(super) struct ModelCalls {
    calls: Vec<ModelCall>,
}

impl ModelCall {
    /// The record of a call that begins.
    pub(super) fn begin(provider: &Arc<str>, model: Option<&str>, reservation: &Reservation) -> Self {
        Self {
            round: reservation.round,
            provider: provider.to_string(),
            model: model.map(str::to_owned),
            status: ModelCallStatus::InFlight,
            tokens: reservation.tokens(),
            is_estimated: true,
            duration: Duration::ZERO,
            stop_reason: None,
            violations: Vec::new(),
        }
    }
}

impl ModelCalls {
    pub(super) fn begin(&mut self, call: ModelCall) -> CallNumber {
        self.calls.push(call);
        CallNumber(self.calls.len() - 1)
    }

    pub(super) fn end(&mut self, number: CallNumber, end: impl FnOnce(&mut ModelCall)) {
        if let Some(call) = self.calls.get_mut(number.0) {
            end(call);
        }
    }

    /// The report of the calls; `None` if there was none.
    pub(super) fn report(&self, quota: Quota) -> Option<SamplingReport> {
        if self.calls.is_empty() {
            return None;
        }
        let metrics = SamplingMetrics {
            total_rounds: u32::try_from(self.calls.len()).unwrap_or(u32::MAX),
            // Models report what they want.
            total_tokens: self.calls.iter().map(|call| call.tokens).fold(0, u64::saturating_add),
            total_duration: self.calls.iter().map(|call| call.duration).sum(),
            rounds_left: quota.rounds,
            tokens_left: quota.tokens,
        };
        Some(SamplingReport { calls: self.calls.clone(), metrics })
    }
}
