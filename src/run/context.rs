//! The context of one run: its script, limits, tools, output and time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::json::Json;
use crate::run::clock::RunClock;
use crate::run::compute::Turn;
use crate::run::elicitation;
use crate::run::history::History;
use crate::run::hooks::Hooks;
use crate::run::ledger::{Ledger, Logged};
use crate::run::limits::Limits;
use crate::run::prompts::Prompts;
use crate::run::result::{ExecuteResult, LogLevel, Outcome, Output, Usage};
use crate::run::script::Script;
use crate::run::state::StateAccess;
use crate::storage::state::StateCall;
use crate::tools::approval::Approver;
use crate::tools::catalog::{ResolvedTool, describe_failures};
use crate::tools::in_force::{RunTools, ToolsInForce};
use crate::tools::{ElicitationHandler, Elicitor, ServerDetails, ToolError, ToolErrorCode};

/// The host's state of one run. Shared by the script's thread, the watchdog and the waiting caller.
/// Every decision about a call is made here, so no engine can omit one.
pub(crate) struct ExecutionContext {
    pub(crate) script: Script,
    pub(crate) limits: Limits,
    /// Cancels everything that the run waits for. It is cancelled when the run ends for any reason.
    pub(crate) cancel: CancellationToken,
    /// The run's use of the compute slots.
    pub(crate) turn: Turn,
    pub(super) environment: RunEnvironment,
    /// Shows approval prompts: the script's own, or else the executor's.
    pub(super) approver: Option<Approver>,
    /// Starts when the run gets its thread, with the time for which it waited for its engine.
    pub(super) clock: Arc<RunClock>,
    /// Approval prompts, and the questions of servers.
    pub(super) prompts: Arc<Prompts>,
    /// Answers what servers ask the user; `None` if nobody can be asked.
    pub(super) on_elicitation: Option<ElicitationHandler>,
    /// Bounds the calls in flight.
    pub(super) slots: Arc<Semaphore>,
    pub(super) ledger: Mutex<Ledger>,
}

/// What an engine measured during a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) cpu_time: Duration,
    pub(crate) fuel: Option<u64>,
    pub(crate) memory_bytes: usize,
}

/// What is done with a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is run.
    Run,
    /// It is compiled, and nothing of it is run.
    Check,
}

/// What an executor gives to a run.
pub(crate) struct RunEnvironment {
    pub(crate) purpose: Purpose,
    /// The script's limits, or else the executor's.
    pub(crate) limits: Limits,
    /// The servers, and the policies of the executor and of the run. All must permit a call.
    pub(crate) tools: RunTools,
    /// Shows approval prompts, unless the script has an approver of its own. Without any, every
    /// call that needs an approval is refused.
    pub(crate) approver: Option<Approver>,
    /// Shows the questions of servers, unless the script has an elicitor of its own. Without any, all
    /// are refused.
    pub(crate) elicitor: Option<Elicitor>,
    pub(crate) hooks: Hooks,
    pub(crate) state: StateAccess,
    pub(crate) history: Option<Arc<History>>,
    pub(crate) cancel: CancellationToken,
    /// Runtime of the tools' timers, sockets and tasks.
    pub(crate) runtime: tokio::runtime::Handle,
    /// Resolution of the clocks that the script can read.
    pub(crate) clock_resolution: Duration,
    /// When the run was requested.
    pub(crate) queued: Instant,
    /// How long it then waited until its engine was started. Counts as time of the run.
    pub(crate) engine_start_time: Duration,
}

impl ExecutionContext {
    /// Starts the run's clock.
    pub(crate) fn new(mut script: Script, environment: RunEnvironment) -> Self {
        let limits = environment.limits;
        let clock = RunClock::start(&limits, environment.engine_start_time);
        let prompts = Prompts::new(&limits, &clock, &environment.cancel, &environment.runtime);
        let elicitor = script.elicitor.take().or_else(|| environment.elicitor.clone());
        let on_elicitation = elicitor
            .map(|elicitor| elicitation::handler(elicitor, Arc::clone(&prompts), script.name.clone()));
        Self {
            limits,
            cancel: environment.cancel.clone(),
            turn: Turn::default(),
            approver: script.approver.take().or_else(|| environment.approver.clone()),
            clock,
            prompts,
            on_elicitation,
            slots: Arc::new(Semaphore::new(limits.calls_in_flight as usize)),
            ledger: Mutex::default(),
            script,
            environment,
        }
    }

    pub(crate) fn purpose(&self) -> Purpose {
        self.environment.purpose
    }

    /// Resolution of the clocks that the script can read; zero for the system's own.
    pub(crate) fn clock_resolution(&self) -> Duration {
        self.environment.clock_resolution
    }

    /// The run's current deadline. It moves during approval prompts.
    pub(crate) fn deadline(&self) -> Instant {
        self.clock.deadline()
    }

    /// The run's latest possible deadline, for operations that need a fixed one. Calls in flight
    /// during another call's approval prompt keep their own time this way; at the run's real end
    /// they are cancelled.
    pub(super) fn latest_deadline(&self) -> Instant {
        let may_ask = || self.approver.is_some() && self.in_force().may_ask();
        let may_pause = self.on_elicitation.is_some() || may_ask();
        if may_pause { self.clock.latest_deadline() } else { self.clock.deadline() }
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
        let tools = self.in_force();
        let names = tools.catalog.server_names();
        names.filter(|name| tools.may_permit_server(name)).cloned().collect()
    }

    /// Polls `future` with the tools' runtime entered. Script threads have a small runtime of their
    /// own that stops between runs; tasks that a tool spawns must not live there.
    pub(crate) fn in_runtime<T>(
        self: Arc<Self>,
        future: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send {
        // Without tokio's cooperative budget: a script makes thousands of calls in one poll, and a
        // blocking call would wait forever for a budget that only the next poll renews.
        let mut future = Box::pin(tokio::task::unconstrained(future));
        futures::future::poll_fn(move |task| {
            let _entered = self.environment.runtime.enter();
            future.poll_unpin(task)
        })
    }

    /// Performs an operation on the script's state and returns JSON text.
    ///
    /// It is not a tool call and does not count against [`Limits::tool_calls`], but it needs one of
    /// the slots for calls in flight and waits for it together with other calls. Dropping the
    /// future stops the wait; an operation that has started is completed.
    pub(crate) async fn state(self: &Arc<Self>, call: StateCall) -> Result<String, ToolError> {
        let _held = self.hold_state_call(call.bytes())?;
        let state = match &self.environment.state {
            StateAccess::Open(state) => state,
            StateAccess::None(problem) => return Err((*problem).into()),
        };
        // The semaphore is never closed; an error would only mean that the run is over.
        let _slot = self.slots.acquire().await.map_err(|_closed| over())?;
        let answer = state.call(call, self.latest_deadline(), &self.environment.runtime).await?;
        self.check_result_bytes("the answer", answer.len())?;
        Ok(answer)
    }

    /// Returns the record of an earlier run of the same client as JSON text. Records of other
    /// clients are not found.
    pub(crate) fn earlier_run(&self, id: &str) -> Result<String, ToolError> {
        let history = self.environment.history.as_ref().zip(self.script.client.as_ref());
        let Some(run) = history.and_then(|(history, client)| history.get(client, id)) else {
            let shown: String = id.chars().take(40).collect();
            let problem = format!(
                "no run `{shown}` is kept: `runId` names one in the answer that left something out, for an hour"
            );
            return Err(ToolError::new(ToolErrorCode::RunNotFound, problem));
        };
        let text = run.to_json_text();
        self.check_result_bytes("what the run left behind", text.len()).map_err(|mut error| {
            error.message += "; its parts are the resources `output`, `value` and `calls` of the run";
            error
        })?;
        Ok(text)
    }

    /// Returns at most `limit` permitted tools that match `query`, best match first; for an empty
    /// query all of them, in order. `server` restricts the search to one server. A server that
    /// cannot list its tools is left out. One line of the script's output names all of those.
    pub(crate) async fn search(
        &self,
        query: &str,
        server: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ResolvedTool>, ToolError> {
        let in_force = self.in_force();
        let catalog = &in_force.catalog;
        let server = server.map(|name| catalog.server_name(name)).transpose()?;
        let wanted =
            |name: &str| server.is_none_or(|server| &**server == name) && in_force.may_permit_server(name);
        let permitted = |server: &str, tool: &str| in_force.permits(server, tool);
        let (tools, failures) = catalog.search(query, limit, wanted, permitted, self.latest_deadline()).await;
        if let Some(warning) = describe_failures(&failures) {
            self.log(LogLevel::Warn, warning);
        }
        Ok(tools)
    }

    /// The canonical name of a server that the run may see, and what is known of it without asking
    /// it.
    pub(crate) fn server_details(&self, server: &str) -> Result<(Arc<str>, ServerDetails), ToolError> {
        let tools = self.in_force();
        let (name, dispatcher) = tools.catalog.dispatcher(server)?;
        if !tools.may_permit_server(name) {
            return Err(denied(name, "*"));
        }
        Ok((Arc::clone(name), dispatcher.details(name)))
    }

    /// The name of a server in Python scripts.
    pub(crate) fn python_alias(&self, server: &str) -> String {
        self.in_force().catalog.python_alias(server)
    }

    /// The permitted tools of one server, in its order.
    pub(crate) async fn tools(&self, server: &str) -> Result<Vec<ResolvedTool>, ToolError> {
        let in_force = self.in_force();
        let name = in_force.catalog.server_name(server)?;
        if !in_force.may_permit_server(name) {
            return Err(denied(name, "*"));
        }
        let mut tools = in_force.catalog.tools(server, self.latest_deadline()).await?;
        tools.retain(|tool| in_force.permits(&tool.server, &tool.tool));
        Ok(tools)
    }

    /// Whether the script has printed or emitted anything.
    pub(crate) fn has_output(&self) -> bool {
        self.ledger.lock().has_output()
    }

    /// Stores as much of a printed line as the output limit allows. Passes all of it to the
    /// listener of what is printed, and the stored part to that of what is kept.
    pub(crate) fn log(&self, level: LogLevel, text: String) {
        // The ledger is not locked while a listener runs.
        let logged = self.ledger.lock().log(level, &text, &self.limits);
        if logged == Logged::Over {
            return;
        }
        let mut entry = Output::Log { level, text };
        if let Some(listener) = &self.script.on_output {
            listener(&entry, &self.cancel);
        }
        if let (Some(listener), Logged::Kept(bytes), Output::Log { text, .. }) =
            (&self.script.on_kept_output, logged, &mut entry)
        {
            text.truncate(bytes);
            listener(&entry);
        }
    }

    /// Stores a content block and passes it to the listeners.
    ///
    /// # Errors
    ///
    /// `ResultTooLarge` if all blocks together are larger than one result may be.
    pub(crate) fn emit(&self, block: Json) -> Result<(), ToolError> {
        {
            let mut ledger = self.ledger.lock();
            if ledger.is_over() {
                return Err(over());
            }
            ledger.emit(block.clone(), &self.limits)?;
        }
        let entry = Output::Emit(block);
        if let Some(listener) = &self.script.on_output {
            listener(&entry, &self.cancel);
        }
        if let Some(listener) = &self.script.on_kept_output {
            listener(&entry);
        }
        Ok(())
    }

    /// Checks that the script may receive `what`, JSON text of `bytes` bytes.
    pub(super) fn check_result_bytes(&self, what: &str, bytes: usize) -> Result<(), ToolError> {
        let max = self.limits.result_bytes;
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
            fuel: measured.fuel,
            memory_bytes: measured.memory_bytes,
            ..Usage::default()
        };
        let result = self.ledger.lock().finish(outcome, usage, self.script.is_dry_run);
        self.cancel.cancel();
        result
    }
}

pub(super) fn denied(server: &str, tool: &str) -> ToolError {
    ToolError::new(ToolErrorCode::ToolDenied, format!("this run may not call `{server}.{tool}`"))
        .for_tool(server, tool)
}

pub(super) fn over() -> ToolError {
    ToolError::new(ToolErrorCode::Cancelled, "the run is over")
}

#[cfg(test)]
impl RunEnvironment {
    /// An environment without tools and state, for tests of engines.
    pub(crate) fn empty(limits: Limits, runtime: tokio::runtime::Handle) -> Self {
        Self {
            purpose: Purpose::Run,
            limits,
            tools: RunTools::empty(),
            approver: None,
            elicitor: None,
            hooks: Arc::new([]),
            state: StateAccess::None(crate::run::state::NoState::NotConfigured),
            history: None,
            cancel: CancellationToken::new(),
            runtime,
            clock_resolution: Duration::ZERO,
            queued: Instant::now(),
            engine_start_time: Duration::ZERO,
        }
    }
}
