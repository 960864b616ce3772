//! The call of a tool that runs a script: from the client's arguments to its answer, or to a task.

use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, CallToolResult, CreateTaskResult, ErrorData, JsonObject};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskOptions};
use tokio_util::sync::CancellationToken;

use super::answer::{self, Answer, Draft};
use super::arguments::RunArguments;
use super::consent;
use super::notes::{Notes, Wanted};
use super::serve::{CallGuard, Shared, with_sources};
use super::session::Handler;
use crate::error::Error;
use crate::execution::{ErrorCode, ExecuteResult, Language, Script};
use crate::limits::Limits;

/// A script that runs for longer becomes a task, if the client knows tasks.
const TASK_AFTER: Duration = Duration::from_secs(2);

/// How long a task can be asked for, beyond the longest that its script may take.
const TASK_KEPT: Duration = Duration::from_secs(5 * 60);

/// How often a client should ask for a task.
const TASK_POLL: Duration = Duration::from_secs(1);

/// Tasks of one client that can be asked for at once. What would be one more is answered when it has ended.
const MOST_TASKS: usize = 64;

/// A run that the client need not wait for any more.
struct Detached {
    run: BoxFuture<'static, Result<ExecuteResult, Error>>,
    cancel: CancellationToken,
    language: Language,
    limits: Limits,
    guard: CallGuard,
}

impl Handler {
    /// Runs a script for a client. What is wrong with the arguments or the script is an answer, so that the model can
    /// read it.
    ///
    /// # Errors
    ///
    /// When the client has cancelled the call, and then nobody reads it.
    pub(super) async fn run_script(
        &self,
        language: Language,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let format = self.shared.options.format;
        let arguments = match RunArguments::read(arguments) {
            Ok(arguments) => arguments,
            Err(problem) => {
                return Ok(respond(answer::refusal(format, INVALID_ARGUMENTS, &problem, None)).into());
            }
        };
        let guard = self.calls.begin();
        self.shared.look_for_lost_threads();
        if self.shared.is_ending() {
            let problem = "the server is about to end: too many threads run scripts that cannot be stopped";
            let code = ErrorCode::EngineUnavailable.as_str();
            return Ok(respond(answer::refusal(format, code, problem, Some(TRY_AGAIN))).into());
        }
        let limits = limits(&arguments, self.shared.executor.limits());
        let cancel = self.runs.child_token();
        let stop_on_drop = cancel.clone().drop_guard();
        let mut script =
            script(language, arguments).limits(limits).owner(&*self.owner).cancel_with(cancel.clone());
        if let Some(approver) = consent::approver(context) {
            script = script.approver(approver);
        }
        let wanted = Wanted { progress: context.meta.get_progress_token(), log: self.wanted_lines(context) };
        let (script, mut notes) = Notes::attach(wanted, context.peer.clone(), script);
        let executor = self.shared.executor.clone();
        let mut run = async move { executor.run(script).await }.boxed();
        let may_become_task = self.may_make_task(context);
        let task_due = tokio::time::sleep(TASK_AFTER);
        tokio::pin!(task_due);
        let result = loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => {
                    cancel.cancel();
                    // Its place is free again when this is over.
                    let _nobody_reads = run.await;
                    return Err(ErrorData::internal_error("the call was cancelled", None));
                }
                result = &mut run => break result,
                note = notes.next() => notes.send(note).await,
                () = &mut task_due, if may_become_task => {
                    stop_on_drop.disarm();
                    let detached = Detached { run, cancel, language, limits, guard };
                    return Ok(self.make_task(detached).into());
                }
            }
        };
        notes.finish().await;
        self.shared.note_start(language, result.as_ref().err());
        // The guard goes with the answer, or a server that ends for lost threads would end before it.
        Ok(respond(self.shared.answer(&self.owner, result)).into())
    }

    fn may_make_task(&self, context: &RequestContext<RoleServer>) -> bool {
        let knows_tasks =
            context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if !knows_tasks {
            return false;
        }
        let mut ends = self.task_ends.lock();
        ends.retain(|&end| end > Instant::now());
        ends.len() < MOST_TASKS
    }

    /// Makes a task of a run, which goes on. It ends with the session, like every run.
    fn make_task(&self, detached: Detached) -> CreateTaskResult {
        let kept = detached.limits.wall_time + TASK_KEPT;
        // rmcp keeps the outcome for as long again.
        self.task_ends.lock().push(Instant::now() + 2 * kept);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new()
            .with_ttl_ms(milliseconds(kept))
            .with_poll_interval_ms(milliseconds(TASK_POLL))
            .with_status_message("the script runs");
        let (shared, owner) = (std::sync::Arc::clone(&self.shared), self.owner.clone());
        let task = self.tasks.spawn(options, move |task| {
            let Detached { mut run, cancel, language, guard, limits: _ } = detached;
            async move {
                let _stop_on_drop = cancel.clone().drop_guard();
                let result = tokio::select! {
                    biased;
                    () = task.cancelled() => {
                        cancel.cancel();
                        let _nobody_reads = run.await;
                        return Err(TaskExit::Cancelled);
                    }
                    result = &mut run => result,
                };
                drop(guard);
                shared.note_start(language, result.as_ref().err());
                Ok(respond(shared.answer(&owner, result)))
            }
            .boxed()
        });
        CreateTaskResult::new(task)
    }
}

/// The code of answers to calls with arguments that cannot be, as of tools' own.
pub(super) const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

const TRY_AGAIN: &str = "call again in a few seconds";

impl Shared {
    /// The answer to a call. What it leaves out is kept for `owner`.
    fn answer(&self, owner: &str, result: Result<ExecuteResult, Error>) -> Answer {
        self.look_for_lost_threads();
        let format = self.options.format;
        let result = match result {
            Ok(result) => result,
            Err(Error::InvalidOptions { option: "allow", problem }) => {
                let problem = format!("`allowedTools`: {problem}");
                return answer::refusal(format, INVALID_ARGUMENTS, &problem, None);
            }
            Err(Error::Closed) => {
                let code = ErrorCode::Cancelled.as_str();
                return answer::refusal(format, code, "the server is being stopped", None);
            }
            Err(error) => {
                let code = ErrorCode::EngineUnavailable.as_str();
                return answer::refusal(format, code, &with_sources(&error), Some(TRY_AGAIN));
            }
        };
        let draft = Draft::new(&result);
        let history = self.executor.history().filter(|_| draft.leaves_out());
        let kept = history.and_then(|history| history.keep(owner, &result));
        draft.answer(format, kept.as_deref())
    }
}

fn limits(arguments: &RunArguments, default: Limits) -> Limits {
    Limits {
        wall_time: arguments.timeout.unwrap_or(default.wall_time),
        tool_calls: arguments.max_tool_calls.unwrap_or(default.tool_calls),
        ..default
    }
}

fn script(language: Language, arguments: RunArguments) -> Script {
    let mut script = match language {
        Language::TypeScript => Script::typescript(arguments.code),
        Language::Python => Script::python(arguments.code),
    };
    if let Some(input) = arguments.input {
        script = script.input(input);
    }
    if let Some(patterns) = arguments.allowed_tools {
        script = script.allow(patterns);
    }
    if let Some(handle) = arguments.session {
        script = script.session(handle);
    }
    if arguments.is_dry_run {
        script = script.dry_run();
    }
    script
}

/// An answer in the protocol's form.
pub(super) fn respond(answer: Answer) -> CallToolResult {
    let mut result = CallToolResult::success(answer.content);
    result.structured_content = Some(answer.structured);
    result.is_error = Some(answer.is_error);
    result
}
