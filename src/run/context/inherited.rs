//! What a run that a script has called gets from its caller. Any other run has its own.

use std::sync::Arc;

use super::{ExecutionContext, RunEnvironment};
use crate::run::limits::call_slots::CallSlots;
use crate::run::listening::Listening;
use crate::run::models::RunModels;
use crate::run::nested::NestedSlots;
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
    pub(super) nested_slots: Arc<NestedSlots>,
    pub(super) suggestions: Arc<SuggestionBudget>,
}

impl Shared {
    /// For a run that no script has called.
    pub(super) fn new(script: &mut Script, environment: &RunEnvironment) -> Self {
        let (sampling, client_model) = (std::mem::take(&mut script.sampling), script.client_model.take());
        Self {
            listening: Arc::new(Listening::new(environment.cancel.clone())),
            slots: Arc::new(CallSlots::new(environment.limits.clone())),
            models: Arc::new(RunModels::new(Arc::clone(&environment.llm), sampling, client_model)),
            nested_slots: Arc::default(),
            suggestions: Arc::new(SuggestionBudget::of_run()),
        }
    }

    pub(super) fn of_caller(caller: &ExecutionContext) -> Self {
        Self {
            listening: Arc::clone(&caller.listening),
            slots: Arc::clone(&caller.slots),
            models: Arc::clone(&caller.models),
            nested_slots: Arc::clone(&caller.nested_slots),
            suggestions: Arc::clone(&caller.suggestions),
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
    /// For a run that no script has called: the script's own, or else the executor's.
    pub(super) fn new(script: &mut Script, environment: &RunEnvironment) -> Self {
        let (approver, approver_kind) = match (script.approver.take(), &environment.approver) {
            (Some(own), _) => (Some(own), ApproverKind::Client),
            (None, Some(executors)) => (Some(Arc::clone(executors)), ApproverKind::Executor),
            (None, None) => (None, ApproverKind::None),
        };
        let elicitor = script.elicitor.take().or_else(|| environment.elicitor.clone());
        Self { approver, approver_kind, elicitor }
    }

    pub(super) fn of_caller(caller: &ExecutionContext) -> Self {
        Self {
            approver: caller.approver.clone(),
            approver_kind: caller.approver_kind,
            elicitor: caller.elicitor.clone(),
        }
    }
}
