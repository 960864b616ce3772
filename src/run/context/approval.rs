//! A person's word on a call: who has to be asked, when, and what becomes of the answer.
//!
//! The question is put from a task on the executor's runtime and not from the script's thread: a script that computes,
//! or that waits for nothing, can neither delay nor outlive it, and the run's clock stands still for exactly as long as it
//! is open. The script sees an ordinary call that takes its time.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{ExecutionContext, RecordPlace, over};
use crate::run::result::{Refusal, ToolCallStatus};
use crate::tools::approval::{Approval, ApprovalRequest, AskReason, Effects};
use crate::tools::catalog::ResolvedTool;
use crate::tools::{ToolError, ToolErrorCode};

/// Bytes of arguments, as a person is shown them, about which can be asked: some 800 lines. What nobody can read
/// nobody can approve.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// A call that waits for its approval.
pub(super) struct Question<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    /// The tool, if it is one; requests for resources and prompts have none.
    pub(super) resolved: Option<&'a ResolvedTool>,
    pub(super) arguments: &'a Map<String, Value>,
    /// Bytes of the arguments as the script wrote them.
    pub(super) argument_bytes: usize,
    pub(super) reason: AskReason,
}

/// Why there is no approval, and what the person said about that.
struct NotApproved {
    refusal: Refusal,
    said: Option<String>,
}

impl From<Refusal> for NotApproved {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, said: None }
    }
}

impl ExecutionContext {
    /// What a call of the tool may do, for asking and for dry runs. May read a file.
    pub(super) fn effects(&self, resolved: &ResolvedTool) -> Effects {
        self.settled(&resolved.server, &resolved.tool, resolved.effects())
    }

    /// The same with what the configuration says of the tool.
    fn settled(&self, server: &str, tool: &str, effects: Effects) -> Effects {
        self.policies.iter().fold(effects, |effects, policy| policy.effects(server, tool, effects))
    }

    /// Why a person has to be asked about a call, if they have.
    pub(super) fn asks(&self, server: &str, tool: &str, effects: Effects) -> Option<AskReason> {
        self.policies.iter().find_map(|policy| policy.asks(server, tool, effects))
    }

    /// The tool by its server's present word, if a call would go ahead on the strength of an annotation that is only
    /// remembered: since then the tool may have become another one.
    pub(super) async fn present(&self, resolved: ResolvedTool) -> Result<ResolvedTool, ToolError> {
        if !self.is_dry_run && !self.may_ask {
            return Ok(resolved);
        }
        let (server, tool) = (&resolved.server, &resolved.tool);
        let becomes = |effects: Effects| {
            (self.is_dry_run && effects.writes, self.asks(server, tool, effects).is_some())
        };
        if becomes(self.effects(&resolved)) == becomes(self.settled(server, tool, Effects::UNKNOWN)) {
            return Ok(resolved);
        }
        let again = self.catalog.resolve_again(&resolved, self.latest_deadline()).await?;
        Ok(again.unwrap_or(resolved))
    }

    /// Asks a person about one call and returns where it is recorded. The call has to be made, if at all, with the very
    /// arguments of the question.
    ///
    /// # Errors
    ///
    /// `ToolDenied` unless they have approved it.
    pub(super) async fn approved(&self, question: Question<'_>) -> Result<RecordPlace, ToolError> {
        let Question { server, tool, argument_bytes, .. } = question;
        let record = self.begin_record(server, tool, argument_bytes, ToolCallStatus::AwaitingApproval);
        let denied = |refused: NotApproved| {
            self.end_record(record, ToolCallStatus::NotApproved(refused.refusal), 0);
            tracing::debug!(server, tool, refusal = ?refused.refusal, "a call was not approved");
            let message = self.message(&question, &refused);
            ToolError::new(ToolErrorCode::ToolDenied, message).for_tool(server, tool)
        };
        self.answer(&question).await?.map_err(denied)?;
        if let Some(resolved) = question.resolved
            && !self.is_unchanged(resolved).await.inspect_err(|error| {
                self.end_record(record, ToolCallStatus::Failed(error.code), 0);
            })?
        {
            return Err(denied(Refusal::Changed.into()));
        }
        tracing::debug!(server, tool, "a call was approved");
        Ok(record)
    }

    /// Puts the question and waits for the answer. The outer error is the run's end.
    async fn answer(&self, question: &Question<'_>) -> Result<Result<(), NotApproved>, ToolError> {
        let Some(approver) = self.approver.clone() else { return Ok(Err(Refusal::NobodyToAsk.into())) };
        if question.argument_bytes > MAX_SHOWN_BYTES {
            return Ok(Err(Refusal::TooLong.into()));
        }
        let definition = question.resolved.map(ResolvedTool::definition);
        let request = ApprovalRequest {
            server: question.server.to_owned(),
            tool: question.tool.to_owned(),
            description: definition.and_then(|definition| definition.description.clone()),
            annotations: definition.and_then(|definition| definition.annotations.clone()),
            arguments: question.arguments.clone(),
            reason: question.reason.clone(),
            script: self.name.clone(),
            time: self.limits.answer_time,
        };
        if request.arguments_text().len() > MAX_SHOWN_BYTES {
            return Ok(Err(Refusal::TooLong.into()));
        }
        if !self.reserve_question() {
            return Ok(Err(Refusal::TooManyQuestions.into()));
        }
        // One at a time, in the order in which calls are ready for it. Never closed: an error would only mean that the
        // run is over.
        let turn = Arc::clone(&self.question_turn).acquire_owned().await.map_err(|_closed| over())?;
        let (clock, cancel, time) = (Arc::clone(&self.clock), self.cancel.clone(), self.limits.answer_time);
        let mut asking = JoinSet::new();
        // Ends by the timeout, with the run, or when this future is dropped.
        asking.spawn_on(
            async move {
                let _turn = turn;
                let _pause = clock.pause();
                // Not before the first poll: of a run that is over nobody is asked at all.
                let answer = async { approver(request).await };
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => None,
                    answer = timeout(time, answer) => Some(answer),
                }
            },
            &self.runtime,
        );
        let answer = match asking.join_next().await {
            Some(Ok(Some(answer))) => answer,
            Some(Ok(None)) => return Err(over()),
            // The runtime is shutting down, or the approver has panicked.
            Some(Err(_)) | None => Ok(Approval::Unavailable),
        };
        Ok(match answer {
            Ok(Approval::Approve) => Ok(()),
            Ok(Approval::Deny { reason }) => Err(NotApproved { refusal: Refusal::Denied, said: reason }),
            Ok(Approval::Unavailable) => Err(Refusal::NobodyToAsk.into()),
            Err(_elapsed) => Err(Refusal::NoAnswer.into()),
        })
    }

    fn reserve_question(&self) -> bool {
        let mut ledger = self.ledger.lock();
        let is_free = ledger.questions < self.limits.questions;
        ledger.questions += u32::from(is_free);
        is_free
    }

    /// Whether the tool is still the one about which a person was asked, by its server's present word. What is called
    /// is what was asked about in any case: nothing of this goes into the call.
    async fn is_unchanged(&self, resolved: &ResolvedTool) -> Result<bool, ToolError> {
        let deadline = self.latest_deadline();
        let now = match self.catalog.resolve_again(resolved, deadline).await {
            Ok(Some(now)) => Ok(now),
            Ok(None) => self.catalog.resolve(&resolved.server, &resolved.tool, deadline).await,
            Err(error) => Err(error),
        };
        match now {
            Ok(now) => Ok(now.tool == resolved.tool && now.definition() == resolved.definition()),
            Err(error) => match error.code {
                ToolErrorCode::ToolNotFound | ToolErrorCode::ToolDenied => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// What happened, and what to do about it.
    fn message(&self, question: &Question<'_>, refused: &NotApproved) -> String {
        let Question { server, tool, reason, .. } = question;
        match refused.refusal {
            Refusal::Denied => match refused.said.as_deref().map(shortened) {
                Some(said) if !said.is_empty() => {
                    format!("a person was asked and refused the call of `{server}.{tool}`: {said}")
                }
                _ => format!("a person was asked and refused the call of `{server}.{tool}`"),
            },
            Refusal::NoAnswer => format!(
                "nobody answered within {} s whether `{server}.{tool}` may be called",
                self.limits.answer_time.as_secs_f64()
            ),
            Refusal::NobodyToAsk => {
                let change = match reason {
                    AskReason::Pattern(pattern) => format!("takes `{pattern}` out of `ask`"),
                    AskReason::Annotation(_) => {
                        format!("names `{server}.{tool}` in `readOnly` if it only reads, or changes `ask`")
                    }
                };
                format!(
                    "`{server}.{tool}` needs a person's approval ({reason}), and nobody can be asked here; use a \
                     client that can ask, or a person {change} in the configuration"
                )
            }
            Refusal::TooManyQuestions => format!(
                "`{server}.{tool}` needs a person's approval, and this run has asked {} questions already; do less in \
                 one run, or raise `maxQuestions`",
                self.limits.questions
            ),
            Refusal::TooLong => format!(
                "`{server}.{tool}` needs a person's approval, and its arguments are longer than the {MAX_SHOWN_BYTES} \
                 bytes that a person can be shown; send less in one call"
            ),
            Refusal::Changed => format!(
                "the definition of `{server}.{tool}` changed while a person was asked about it; call it again to ask \
                 about the new one"
            ),
        }
    }
}

fn shortened(said: &str) -> &str {
    let said = said.trim();
    &said[..said.floor_char_boundary(Approval::MAX_REASON)]
}
