//! What a run that a script has called gets from its caller. Any other run has its own, which is made here.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::llm::setup::LlmSetup;
use crate::run::limits::call_slots::CallSlots;
use crate::run::limits::in_force::RunLimits;
use crate::run::listening::Listening;
use crate::run::models::RunModels;
use crate::run::observer::ApproverKind;
use crate::run::script::Script;
use crate::tools::Elicitor;
use crate::tools::approval::Approver;
use crate::tools::names::SuggestionBudget;

/// What a run shares with the runs that it calls.
pub(super) struct Shared {
    pub(super) listening: Arc<Listening>,
    pub(super) slots: Arc<CallSlots>,
    pub(super) models: Arc<RunModels>,
    pub(super) suggestions: Arc<SuggestionBudget>,
}

impl Shared {
    /// For a run that no script has called.
    pub(super) fn new(
        script: &mut Script,
        cancel: &CancellationToken,
        limits: &RunLimits,
        llm: &Arc<LlmSetup>,
    ) -> Self {
        let (sampling, client_model) = (std::mem::take(&mut script.sampling), script.client_model.take());
        Self {
            listening: Arc::new(Listening::new(cancel.clone())),
            slots: Arc::new(CallSlots::new(limits.clone())),
            models: Arc::new(RunModels::new(Arc::clone(llm), sampling, client_model)),
            suggestions: Arc::new(SuggestionBudget::of_run()),
        }
    }
}

/// Who answers for the user of a run.
pub(super) struct Answering {
    /// Shows approval prompts.
    pub(super) approver: Option<Approver>,
    pub(super) approver_kind: ApproverKind,
    /// Shows the questions of servers.
    pub(super) elicitor: Option<Elicitor>,
}

impl Answering {
    /// For a run that no script has called: the script's own, or else those of the executor.
    pub(super) fn new(script: &mut Script, approver: Option<&Approver>, elicitor: Option<&Elicitor>) -> Self {
        let (approver, approver_kind) = match (script.approver.take(), approver) {
            (Some(own), _) => (Some(own), ApproverKind::Client),
            (None, Some(executors)) => (Some(Arc::clone(executors)), ApproverKind::Executor),
            (None, None) => (None, ApproverKind::None),
        };
        let elicitor = script.elicitor.take().or_else(|| elicitor.cloned());
        Self { approver, approver_kind, elicitor }
    }
}
