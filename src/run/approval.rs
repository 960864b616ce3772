//! Approval of calls: which calls need one, how the approver is asked, and how its answer is
//! applied.
//!
//! The approver is called from a task on the executor's runtime and not from the script's thread.
//! So a script that computes, or that awaits nothing, can neither delay the prompt nor outlive it,
//! and the run's clock is paused for exactly as long as the prompt is open. To the script it is an
//! ordinary call that takes time.

use std::time::Instant;

use serde_json::{Map, Value};

use crate::run::calls::held::HeldCall;
use crate::run::context::ExecutionContext;
use crate::run::errors::over;
use crate::run::ledger::{Call, RecordId};
use crate::run::observer::{ApprovalAnswered, ApproverKind, Arguments, RunEvent};
use crate::run::prompts::NoAnswer;
use crate::run::result::{Refusal, ToolCallStatus};
use crate::text::start_bytes;
use crate::tools::approval::{Approval, ApprovalRequest, Approver, AskReason, Effects};
use crate::tools::catalog::ResolvedTool;
use crate::tools::in_force::ToolsInForce;
use crate::tools::{ToolError, ToolErrorCode, ToolKind};

/// Maximum bytes of the arguments as shown in an approval prompt, about 800 lines. A user cannot
/// reasonably approve more than they can read.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// Both directions from one table, in which no refusal can be missing.
macro_rules! refusals {
    ($($refusal:ident => $name:literal,)+) => {
        impl Refusal {
            /// The reason as the audit trail and recordings name it.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$refusal => $name,)+
                }
            }

            /// The reason with this name.
            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$refusal),)+
                    _ => None,
                }
            }
        }
    };
}

refusals! {
    Denied => "denied",
    NoAnswer => "no answer",
    NoApprover => "no approver",
    TooManyQuestions => "too many questions",
    TooLong => "too long",
    Changed => "changed",
}

/// A call that needs an approval.
pub(crate) struct Question<'a> {
    /// Number of the call in its run.
    pub(crate) number: u64,
    pub(crate) call: Call<'a>,
    /// The tool; `None` for requests for resources and prompts.
    pub(crate) tool: Option<&'a ResolvedTool>,
    pub(crate) arguments: &'a Map<String, Value>,
    /// The arguments as records have them.
    pub(crate) recorded: &'a Map<String, Value>,
    /// The original digits of the numbers that lost precision in the tree.
    pub(crate) exact: &'a [Box<str>],
    pub(crate) reason: AskReason,
}

/// Why a call was not approved, and the user's comment on it.
struct NotApproved {
    refusal: Refusal,
    said: Option<String>,
}

impl From<Refusal> for NotApproved {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, said: None }
    }
}

/// The answer to an approval prompt.
enum Answer {
    Approved,
    Refused(NotApproved),
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.into())
    }
}

/// The effects of a call of a tool, corrected by what the configuration says about it.
pub(crate) fn effects_of(in_force: &ToolsInForce, tool: &ResolvedTool) -> Effects {
    match tool.kind() {
        ToolKind::Script => Effects::NONE,
        ToolKind::ScriptChange => Effects::UNKNOWN,
        ToolKind::Ordinary => in_force.effects(&tool.server, &tool.tool, tool.effects()),
    }
}

/// Why a call of a tool with these effects needs an approval, or `None` if it needs none.
pub(crate) fn asks_about(
    in_force: &ToolsInForce,
    tool: &ResolvedTool,
    effects: Effects,
) -> Option<AskReason> {
    match tool.kind() {
        ToolKind::ScriptChange => Some(AskReason::ScriptChange),
        ToolKind::Ordinary | ToolKind::Script => in_force.asks(&tool.server, &tool.tool, effects),
    }
}

impl ExecutionContext {
    /// Resolves the tool again at its server if a call would proceed only because of a cached
    /// annotation: the tool may have changed since.
    pub(crate) async fn present(&self, resolved: ResolvedTool) -> Result<ResolvedTool, ToolError> {
        let (in_force, is_dry_run) = (self.in_force(), self.script.is_dry_run);
        if (!is_dry_run && !in_force.may_ask()) || resolved.kind() != ToolKind::Ordinary {
            return Ok(resolved);
        }
        let (server, tool) = (&resolved.server, &resolved.tool);
        let becomes = |effects: Effects| {
            let effects = in_force.effects(server, tool, effects);
            (is_dry_run && effects.writes, in_force.asks(server, tool, effects).is_some())
        };
        if becomes(resolved.effects()) == becomes(Effects::UNKNOWN) {
            return Ok(resolved);
        }
        let deadline = self.latest_deadline();
        let again = in_force.catalog.resolve_again(&resolved, deadline, &self.suggestions).await?;
        Ok(again.unwrap_or(resolved))
    }

    /// Requests approval for one call and returns its record. If the call is made, it
    /// must use exactly the arguments of the request.
    ///
    /// # Errors
    ///
    /// `ToolDenied` unless the call is approved.
    pub(crate) async fn approved(
        &self,
        held: &HeldCall,
        question: Question<'_>,
    ) -> Result<RecordId, ToolError> {
        let Call { server, tool, .. } = question.call;
        let record = self.begin_record(question.call, ToolCallStatus::AwaitingApproval);
        held.note_record(record);
        let asked = Instant::now();
        let (observation, number) = (self.observation(), question.number);
        observation.emit(|| RunEvent::ApprovalAsked {
            call: number,
            server,
            tool,
            arguments: Arguments::new(question.recorded),
            reason: &question.reason,
        });
        let answered = |refusal: Option<Refusal>| {
            let (approver, duration) = (self.approver_kind, asked.elapsed());
            observation.emit(|| {
                let answer = ApprovalAnswered { call: number, server, tool, approver, refusal, duration };
                RunEvent::ApprovalAnswered(answer)
            });
        };
        let denied = |refused: NotApproved| {
            answered(Some(refused.refusal));
            self.end_record(record, ToolCallStatus::NotApproved(refused.refusal), 0);
            tracing::debug!(server, tool, refusal = ?refused.refusal, "a call was not approved");
            let message = self.message(&question, &refused);
            ToolError::new(ToolErrorCode::ToolDenied, message).for_tool(server, tool)
        };
        if let Answer::Refused(refused) = self.answer(&question).await? {
            return Err(denied(refused));
        }
        if let Some(resolved) = question.tool
            && !self.is_unchanged(resolved).await.inspect_err(|error| {
                self.end_record(record, ToolCallStatus::Failed(error.code), 0);
            })?
        {
            return Err(denied(Refusal::Changed.into()));
        }
        answered(None);
        tracing::debug!(server, tool, "a call was approved");
        Ok(record)
    }

    /// The approver of a call; `None` if there is none. The user of a tenant's client cannot approve a change of saved
    /// scripts, which run for the other tenants too.
    fn approver_of(&self, reason: &AskReason) -> Option<Approver> {
        let is_of_all = matches!(reason, AskReason::ScriptChange) && self.script.tenant.is_some();
        let is_own = matches!(self.approver_kind, ApproverKind::Client);
        self.approver.clone().filter(|_| !(is_of_all && is_own))
    }

    /// Shows the prompt and waits for the answer.
    ///
    /// # Errors
    ///
    /// If the run has ended meanwhile.
    async fn answer(&self, question: &Question<'_>) -> Result<Answer, ToolError> {
        let Some(approver) = self.approver_of(&question.reason) else {
            return Ok(Refusal::NoApprover.into());
        };
        if question.call.argument_bytes > MAX_SHOWN_BYTES {
            return Ok(Refusal::TooLong.into());
        }
        let definition = question.tool.map(ResolvedTool::definition);
        let request = ApprovalRequest {
            server: question.call.server.to_owned(),
            tool: question.call.tool.to_owned(),
            description: definition.and_then(|definition| definition.description.clone()),
            annotations: definition.and_then(|definition| definition.annotations.clone()),
            arguments: question.arguments.clone(),
            exact_numbers: question.exact.to_vec(),
            reason: question.reason.clone(),
            script: self.script.name.clone(),
            tenant: self.script.tenant.as_deref().map(str::to_owned),
            time: self.limits().answer_time,
        };
        if request.arguments_text().len() > MAX_SHOWN_BYTES {
            return Ok(Refusal::TooLong.into());
        }
        if !self.prompts.reserve() {
            return Ok(Refusal::TooManyQuestions.into());
        }
        // Called in the first poll and not before, so that no prompt is shown for a run that is over.
        let answer = self.prompts.show(async move { approver(request).await }).await;
        Ok(match answer {
            Ok(Approval::Approve) => Answer::Approved,
            Ok(Approval::Deny { reason }) => {
                Answer::Refused(NotApproved { refusal: Refusal::Denied, said: reason })
            }
            Ok(Approval::Unavailable) | Err(NoAnswer::Failed) => Refusal::NoApprover.into(),
            Err(NoAnswer::Elapsed) => Refusal::NoAnswer.into(),
            Err(NoAnswer::RunOver) => return Err(over()),
        })
    }

    /// Whether the server's current definition of the tool is still the one that was shown for
    /// approval. The call is made with the approved definition in any case; this result does not
    /// change it.
    async fn is_unchanged(&self, resolved: &ResolvedTool) -> Result<bool, ToolError> {
        let (in_force, deadline) = (self.in_force(), self.latest_deadline());
        let catalog = &in_force.catalog;
        let now = match catalog.resolve_again(resolved, deadline, &self.suggestions).await {
            Ok(Some(now)) => Ok(now),
            Ok(None) => catalog.resolve(&resolved.server, &resolved.tool, deadline, &self.suggestions).await,
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

    /// The error message: what happened, and what to do about it.
    fn message(&self, question: &Question<'_>, refused: &NotApproved) -> String {
        let (Call { server, tool, .. }, reason) = (question.call, &question.reason);
        match refused.refusal {
            Refusal::Denied => match refused.said.as_deref().map(shortened) {
                Some(said) if !said.is_empty() => {
                    format!("a person was asked and refused the call of `{server}.{tool}`: {said}")
                }
                _ => format!("a person was asked and refused the call of `{server}.{tool}`"),
            },
            Refusal::NoAnswer => format!(
                "no answer within {} s whether `{server}.{tool}` may be called",
                self.limits().answer_time.as_secs_f64()
            ),
            Refusal::NoApprover if *reason == AskReason::ScriptChange => format!(
                "`{server}.{tool}` needs a person's approval ({reason}), and no user can be asked here; a person can \
                 save the script with `cx scripts save FILE`"
            ),
            Refusal::NoApprover => {
                let change = match reason {
                    AskReason::Pattern(pattern) => format!("takes `{pattern}` out of `ask`"),
                    AskReason::Annotation(_) | AskReason::ScriptChange => {
                        format!("names `{server}.{tool}` in `readOnly` if it only reads, or changes `ask`")
                    }
                    AskReason::PrivateAddress(_) => {
                        "sets `privateAddresses` to `allow` if tools may reach such addresses".to_owned()
                    }
                };
                format!(
                    "`{server}.{tool}` needs a person's approval ({reason}), and no user can be asked here; use a \
                     client that can ask, or a person {change} in the configuration"
                )
            }
            Refusal::TooManyQuestions => format!(
                "`{server}.{tool}` needs a person's approval, and this run has asked {} questions already; do less in \
                 one run, or raise `maxQuestions`",
                self.limits().questions
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
    start_bytes(said.trim(), Approval::MAX_REASON)
}
