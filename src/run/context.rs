//! The context of one run: its script, limits, tools and time.

mod inherited;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::inherited::{Answering, Shared};
use crate::files::{Clock, FileOptions, RunFiles};
use crate::llm::setup::LlmSetup;
use crate::run::call_terms::EndableCalls;
use crate::run::clock::RunClock;
use crate::run::compute::Turn;
use crate::run::elicitation;
use crate::run::entered::entered;
use crate::run::fetches::Fetches;
use crate::run::finding::Checked;
use crate::run::grants::RunGrants;
use crate::run::history::History;
use crate::run::hooks::Hooks;
use crate::run::ledger::Ledger;
use crate::run::limits::Limits;
use crate::run::limits::call_slots::CallSlots;
use crate::run::limits::in_force::RunLimits;
use crate::run::listening::Listening;
use crate::run::models::RunModels;
use crate::run::models::streams::Streams;
use crate::run::nested::{NestedRunner, NestedSlots};
use crate::run::observer::{ApproverKind, Observation};
use crate::run::prompts::Prompts;
use crate::run::result::{ExecuteResult, Outcome, ToolCallStatus, Usage};
use crate::run::script::{Language, Script};
use crate::run::state::StateAccess;
use crate::run::tape::{Facts, Performed, Tape};
use crate::run::time_zone::TimeZone;
use crate::tools::approval::Approver;
use crate::tools::in_force::{RunTools, ToolsInForce};
use crate::tools::names::SuggestionBudget;
use crate::tools::{ElicitationHandler, Elicitor, ToolError, ToolErrorCode};

/// The host's state of one run. Shared by the script's thread, the watchdog and the waiting caller.
/// Every decision about a call is made here, so no engine can omit one.
pub(crate) struct ExecutionContext {
    pub(crate) script: Script,
    /// Cancels everything that the run waits for. It is cancelled when the run ends for any reason.
    pub(crate) cancel: CancellationToken,
    /// The run's use of the compute slots.
    pub(crate) turn: Turn,
    pub(super) environment: RunEnvironment,
    /// Shows approval prompts: the script's own, or else the executor's.
    pub(super) approver: Option<Approver>,
    /// The kind of `approver`.
    pub(super) approver_kind: ApproverKind,
    /// Starts when the run gets its thread. The time for which the run waited for its engine is added.
    pub(super) clock: Arc<RunClock>,
    /// Shows approval prompts and the questions of servers, one at a time.
    pub(super) prompts: Arc<Prompts>,
    /// Answers what servers ask the user; `None` if no user can be asked.
    pub(super) on_elicitation: Option<ElicitationHandler>,
    elicitor: Option<Elicitor>,
    /// Calls the listeners of this run and of those that it has called.
    pub(super) listening: Arc<Listening>,
    /// Bounds the calls in flight, of this run and of those that it has called.
    pub(super) slots: Arc<CallSlots>,
    pub(super) ledger: Mutex<Ledger>,
    /// The calls that the script can end.
    pub(super) endable_calls: EndableCalls,
    /// The language models that the script may ask. A run that was called has its caller's.
    pub(super) models: Arc<RunModels>,
    /// The answers of models that the script reads piece by piece.
    pub(super) streams: Mutex<Streams>,
    /// The script's requests to hosts that a person has granted.
    pub(super) fetches: Fetches,
    /// The number of callers above this run: 0 for a run that no script has called.
    pub(super) depth: usize,
    pub(super) nested_slots: Arc<NestedSlots>,
    /// The scratch directory, and the directories that are granted.
    files: Arc<RunFiles>,
    /// The work that is left for suggesting similar names, shared with the runs that this one calls.
    pub(super) suggestions: Arc<SuggestionBudget>,
}

/// What an engine measured during a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) cpu_time: Duration,
    pub(crate) check_time: Duration,
    pub(crate) fuel: Option<u64>,
    pub(crate) memory_bytes: usize,
}

/// Whether a script is run or only checked.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// The script is run.
    Run,
    /// The script is compiled and not run. The findings about its calls are stored here.
    Check {
        /// Whether servers whose tools are not known are asked.
        asks_servers: bool,
        found: Arc<Mutex<Checked>>,
    },
}

/// What an executor gives to a run.
pub(crate) struct RunEnvironment {
    pub(crate) purpose: Purpose,
    /// The script's limits, or else the executor's.
    pub(crate) limits: RunLimits,
    /// What the script may reach of the machine.
    pub(crate) grants: Arc<RunGrants>,
    /// The servers, and the policies of the executor and of the run. All must permit a call.
    pub(crate) tools: RunTools,
    /// Shows approval prompts, unless the script has an approver of its own. Without any, every
    /// call that needs an approval is refused.
    pub(crate) approver: Option<Approver>,
    /// Shows the questions of servers, unless the script has an elicitor of its own. Without any, all
    /// are refused.
    pub(crate) elicitor: Option<Elicitor>,
    pub(crate) hooks: Hooks,
    /// Receives the events of the run.
    pub(crate) observation: Observation,
    /// Records the run, or plays one back.
    pub(crate) tape: Option<Arc<Tape>>,
    pub(crate) state: StateAccess,
    /// Language models, as the operator permits them.
    pub(crate) llm: Arc<LlmSetup>,
    pub(crate) history: Option<Arc<History>>,
    /// The run whose script has called this one.
    pub(crate) caller: Option<Arc<ExecutionContext>>,
    /// Runs the stored scripts that this one calls; `None` if it can call none.
    pub(crate) nested: Option<NestedRunner>,
    pub(crate) cancel: CancellationToken,
    /// Runtime of the tools' timers, sockets and tasks.
    pub(crate) runtime: tokio::runtime::Handle,
    /// Resolution of the clocks that the script can read.
    pub(crate) clock_resolution: Duration,
    /// The time zone that the script sees as the local one.
    pub(crate) time_zone: TimeZone,
    /// When the run was requested.
    pub(crate) queued: Instant,
    /// How long it then waited until its engine was started. Counts as time of the run.
    pub(crate) engine_start_time: Duration,
}

impl RunEnvironment {
    /// What a tape records of the run in addition to its script.
    fn facts(&self, limits: Limits) -> Facts {
        Facts {
            limits,
            time_zone: self.time_zone.name(),
            clock_resolution: self.clock_resolution,
            servers: visible_servers(&self.tools.now()),
            has_network: !self.grants.net.is_empty(),
            cancel: self.cancel.clone(),
        }
    }

    fn file_options(&self, memory_bytes: usize, is_dry_run: bool) -> FileOptions<'_> {
        let limits = self.limits.clone();
        FileOptions {
            directories: self.grants.directories.clone(),
            memory_bytes,
            quota: Box::new(move || limits.now().file_quota()),
            caller: self.caller.as_deref().map(|caller| &*caller.files),
            clock: match &self.tape {
                Some(_) => Clock::counting(),
                None => Clock::Real(self.clock_resolution),
            },
            runtime: self.runtime.clone(),
            is_dry_run,
        }
    }
}

impl ExecutionContext {
    /// Starts the run's clock.
    pub(crate) fn new(mut script: Script, environment: RunEnvironment) -> Self {
        let limits = environment.limits.now();
        if let Some(tape) = &environment.tape {
            tape.begin(&script, environment.facts(limits));
        }
        let caller = environment.caller.as_deref();
        let shared = match caller {
            Some(caller) => caller.shared(),
            None => Shared::new(&mut script, &environment.cancel, &environment.limits, &environment.llm),
        };
        let answering = match caller {
            Some(caller) => caller.answering(),
            None => {
                let (approver, elicitor) = (environment.approver.as_ref(), environment.elicitor.as_ref());
                Answering::new(&mut script, approver, elicitor)
            }
        };
        let above = caller.map(|caller| Arc::clone(&caller.clock));
        let clock = RunClock::start(environment.limits.clone(), environment.engine_start_time, above);
        let prompts = match caller {
            Some(caller) => caller.prompts.of_nested(&clock, &environment.cancel),
            None => Prompts::new(&environment.limits, &clock, &environment.cancel, &environment.runtime),
        };
        let on_elicitation = answering
            .elicitor
            .clone()
            .map(|elicitor| elicitation::handler(elicitor, Arc::clone(&prompts), script.name.clone()));
        let files = RunFiles::new(environment.file_options(limits.memory_bytes, script.is_dry_run));
        Self {
            files: Arc::new(files),
            cancel: environment.cancel.clone(),
            turn: Turn::default(),
            approver: answering.approver,
            approver_kind: answering.approver_kind,
            clock,
            prompts,
            on_elicitation,
            elicitor: answering.elicitor,
            listening: shared.listening,
            slots: shared.slots,
            ledger: Mutex::default(),
            endable_calls: EndableCalls::default(),
            models: shared.models,
            streams: Mutex::default(),
            fetches: Fetches::new(&environment.grants, &limits),
            depth: caller.map_or(0, |caller| caller.depth + 1),
            nested_slots: caller.map_or_else(Arc::default, |caller| Arc::clone(&caller.nested_slots)),
            suggestions: shared.suggestions,
            script,
            environment,
        }
    }

    /// What a run that this run calls shares with it.
    fn shared(&self) -> Shared {
        Shared {
            listening: Arc::clone(&self.listening),
            slots: Arc::clone(&self.slots),
            models: Arc::clone(&self.models),
            suggestions: Arc::clone(&self.suggestions),
        }
    }

    /// Who answers for the user of a run that this run calls.
    fn answering(&self) -> Answering {
        Answering {
            approver: self.approver.clone(),
            approver_kind: self.approver_kind,
            elicitor: self.elicitor.clone(),
        }
    }

    /// What calls the run's listeners.
    pub(crate) fn listening(&self) -> &Listening {
        &self.listening
    }

    /// The limits in force: those at the start of the run, lowered where the operator has lowered the maximum since.
    pub(crate) fn limits(&self) -> Limits {
        self.environment.limits.now()
    }

    /// The operator's maximum.
    pub(crate) fn max_limits(&self) -> Limits {
        self.environment.limits.max()
    }

    /// The number of callers above this run.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The environment of a run that this run calls: this run's environment, with its observation and its cancellation.
    pub(crate) fn nested_environment(self: &Arc<Self>, purpose: Purpose, limits: Limits) -> RunEnvironment {
        let own = &self.environment;
        RunEnvironment {
            purpose,
            limits: own.limits.of_nested(limits),
            grants: Arc::clone(&own.grants),
            tools: own.tools.for_nested(),
            approver: own.approver.clone(),
            elicitor: own.elicitor.clone(),
            hooks: Arc::clone(&own.hooks),
            observation: own.observation.clone(),
            state: own.state.clone(),
            llm: Arc::clone(&own.llm),
            history: own.history.clone(),
            // The tape records the answer of the nested run as the answer of one call.
            tape: None,
            caller: Some(Arc::clone(self)),
            nested: own.nested.clone(),
            cancel: own.cancel.clone(),
            runtime: own.runtime.clone(),
            clock_resolution: own.clock_resolution,
            time_zone: own.time_zone,
            queued: own.queued,
            engine_start_time: own.engine_start_time,
        }
    }

    /// What the script may reach of the machine.
    pub(crate) fn grants(&self) -> &Arc<RunGrants> {
        &self.environment.grants
    }

    /// The script's files.
    pub(crate) fn files(&self) -> &Arc<RunFiles> {
        &self.files
    }

    pub(crate) fn purpose(&self) -> &Purpose {
        &self.environment.purpose
    }

    /// Resolution of the clocks that the script can read; zero for the system's own.
    pub(crate) fn clock_resolution(&self) -> Duration {
        let replayed = self.tape().and_then(|tape| tape.clock_resolution());
        replayed.unwrap_or(self.environment.clock_resolution)
    }

    /// The time zone that the script sees as the local one.
    pub(crate) fn time_zone(&self) -> TimeZone {
        self.environment.time_zone
    }

    /// The run's current deadline. It moves during approval prompts.
    pub(crate) fn deadline(&self) -> Instant {
        self.clock.deadline()
    }

    /// The run's latest possible deadline, for operations that need a fixed one. Calls in flight
    /// during another call's approval prompt keep their own time this way; at the run's real end
    /// they are cancelled.
    pub(super) fn latest_deadline(&self) -> Instant {
        // A stored script is saved only with an approval.
        let has_scripts = self.environment.nested.is_some();
        let may_ask = || self.approver.is_some() && (has_scripts || self.in_force().may_ask());
        let may_pause = self.on_elicitation.is_some() || self.models.may_pause() || may_ask();
        if may_pause { self.clock.latest_deadline() } else { self.clock.deadline() }
    }

    /// The observation of this run.
    pub(crate) fn observation(&self) -> &Observation {
        &self.environment.observation
    }

    /// Whether nothing can change the calls of the run.
    pub(super) fn has_no_hooks(&self) -> bool {
        self.environment.hooks.is_empty()
    }

    /// The servers and rules that are in force for the run at this moment.
    pub(super) fn in_force(&self) -> Arc<ToolsInForce> {
        self.environment.tools.now()
    }

    pub(super) fn permits(&self, server: &str, tool: &str) -> bool {
        self.in_force().permits(server, tool)
    }

    /// The servers that the run may see, in order.
    pub(crate) fn server_names(&self) -> Vec<Arc<str>> {
        let replayed = self.tape().and_then(|tape| tape.servers());
        replayed.unwrap_or_else(|| visible_servers(&self.in_force()))
    }

    /// As [`server_names`](Self::server_names), without the built-in server of saved scripts.
    pub(crate) fn configured_server_names(&self) -> Vec<Arc<str>> {
        let in_force = self.in_force();
        let mut names = self.server_names();
        names.retain(|name| !in_force.catalog.has_saved_scripts(name));
        names
    }

    /// Starts a timer of the tape.
    pub(crate) fn timer(&self, tape: &Arc<Tape>, milliseconds: f64) -> Performed {
        let _entered = self.environment.runtime.enter();
        tape.timer(milliseconds)
    }

    /// The tape that records the run or plays one back; `None` without one.
    pub(crate) fn tape(&self) -> Option<&Arc<Tape>> {
        self.environment.tape.as_ref()
    }

    /// Polls `future` with the tools' runtime entered. Script threads have a small runtime of their
    /// own that stops between runs; tasks that a tool spawns must not live there.
    ///
    /// The future is boxed once. Passed by value, each `async` function in between would hold a copy of its size, and
    /// ten thousand calls may wait at once.
    pub(crate) fn in_runtime<'a, T: 'a>(
        self: Arc<Self>,
        future: impl Future<Output = T> + Send + 'a,
    ) -> impl Future<Output = T> + Send + 'a {
        let future = Box::pin(future);
        // Without tokio's cooperative budget: a script makes thousands of calls in one poll, and a
        // blocking call would wait forever for a budget that only the next poll renews.
        async move { entered(&self.environment.runtime, tokio::task::unconstrained(future)).await }
    }

    /// Whether the script may ask language models, if there are any.
    pub(crate) fn may_ask_models(&self) -> bool {
        self.models.is_enabled()
    }

    /// Checks that the script may receive `what`, JSON text of `bytes` bytes.
    pub(super) fn check_result_bytes(&self, what: &str, bytes: usize) -> Result<(), ToolError> {
        let max = self.limits().result_bytes;
        if bytes > max {
            let message = format!("{what} is {bytes} bytes of JSON, at most {max} can be received");
            return Err(ToolError::new(ToolErrorCode::ResultTooLarge, message));
        }
        Ok(())
    }

    /// Ends the run: its unfinished calls are cancelled, and calls that its thread still makes are
    /// neither recorded nor performed. Must be called once.
    pub(crate) fn finish(&self, outcome: Outcome, measured: Measured) -> ExecuteResult {
        let usage = Usage {
            wall_time: self.clock.started().elapsed(),
            approval_time: self.clock.paused(),
            queue_time: self.clock.started().duration_since(self.environment.queued),
            cpu_time: measured.cpu_time,
            check_time: measured.check_time,
            fuel: measured.fuel,
            memory_bytes: measured.memory_bytes,
            ..Usage::default()
        };
        let mut result = self.ledger.lock().finish(outcome, usage, self.script.is_dry_run);
        if !self.script.is_dry_run {
            let answered = result.tool_calls.iter().filter(|call| call.status == ToolCallStatus::Ok);
            self.in_force().catalog.record_run(answered.map(|call| (&*call.server, &*call.tool)));
        }
        // Ends the requests of answers that were not read to their end.
        let unread = std::mem::take(&mut *self.streams.lock());
        drop(unread);
        if self.environment.caller.is_none() {
            result.sampling = self.models.report();
        }
        if let Some(tape) = self.tape()
            && self.script.language == Language::Python
            && self.files.has_used_granted()
        {
            tape.note_unrecorded_files();
        }
        self.fetches.finish();
        self.cancel.cancel();
        result
    }
}

/// The servers that a run may see, in order.
fn visible_servers(tools: &ToolsInForce) -> Vec<Arc<str>> {
    let names = tools.catalog.server_names();
    names.filter(|name| tools.may_permit_server(name)).cloned().collect()
}

#[cfg(test)]
impl RunEnvironment {
    /// An environment without tools and state, for tests of engines.
    pub(crate) fn empty(limits: Limits, runtime: tokio::runtime::Handle) -> Self {
        Self {
            purpose: Purpose::Run,
            limits: RunLimits::fixed(limits),
            grants: Arc::default(),
            tools: RunTools::empty(),
            approver: None,
            elicitor: None,
            hooks: Arc::new([]),
            observation: Observation::none(),
            tape: None,
            state: StateAccess::None(crate::run::state::NoState::NotConfigured),
            llm: LlmSetup::new(crate::llm::LlmOptions::default(), None),
            history: None,
            caller: None,
            nested: None,
            cancel: CancellationToken::new(),
            runtime,
            clock_resolution: Duration::ZERO,
            time_zone: TimeZone::UTC,
            queued: Instant::now(),
            engine_start_time: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests;
