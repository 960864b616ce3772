//! A call of a tool that runs a script: from the client's arguments to an answer or a task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, ErrorData, InputResponses};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answer::{self, Answer, Draft, INVALID_ARGUMENTS, respond};
use super::approval::{Person, Question};
use super::arguments::RunArguments;
use super::incoming::DetachedInput;
use super::notifications::{RunNotifications, Wanted};
use super::pending::{self, Fingerprint, NotResumed};
use super::serve::{CallGuard, Shared, with_sources};
use super::session::Handler;
use crate::error::Error;
use crate::executor::Executor;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, Language, Script};

/// A run that takes longer than this becomes a task, if the client supports tasks.
const TASK_AFTER: Duration = Duration::from_secs(2);

/// How long a task is kept beyond the maximum duration of its run.
const TASK_KEPT: Duration = Duration::from_secs(5 * 60);

/// Poll interval that is suggested to clients.
const TASK_POLL: Duration = Duration::from_secs(1);

/// Maximum number of tasks of one client. A run beyond this number does not become a task; its call
/// is answered when it ends.
const MAX_TASKS: usize = 64;

/// A run in flight, with its notifications and approval prompts.
pub(crate) struct Underway {
    run: BoxFuture<'static, Result<ExecuteResult, Error>>,
    cancel: CancellationToken,
    _stop_on_drop: DropGuard,
    language: Language,
    pub(crate) limits: Limits,
    notifications: RunNotifications,
    /// Approval prompts that are sent in a result; closed if the client is not asked that way.
    questions: mpsc::Receiver<Question>,
    /// Fingerprint of the call, if the client may have to repeat it with an answer.
    call: Option<Fingerprint>,
    guard: Option<CallGuard>,
}

impl Underway {
    /// Stops counting the run as a call in flight, because no request waits for it until the client
    /// comes back.
    pub(crate) fn rest(&mut self) {
        self.guard = None;
    }
}

impl Handler {
    /// Runs a script for a client. Invalid arguments and failures of the script are answers, so
    /// that the model can read them.
    ///
    /// # Errors
    ///
    /// If the client has cancelled the call. It ignores the answer then.
    pub(crate) async fn run_script(
        &self,
        language: Language,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let format = self.shared.options.format;
        let arguments = request.arguments.unwrap_or_default();
        let input = DetachedInput::of(&context.extensions);
        self.shared.look_for_hung_workers();
        if self.shared.is_ending() {
            let problem = "the server is about to end: too many threads run scripts that cannot be stopped";
            let code = ErrorCode::EngineUnavailable.as_str();
            return Ok(respond(answer::refusal(format, code, problem, Some(TRY_AGAIN))).into());
        }
        if let Some(name) = &request.request_state {
            let call = Fingerprint::new(&request.name, &arguments, input.as_ref());
            return match self.shared.pending.take(&self.owner, call, name) {
                Ok((underway, question)) => {
                    let responses = request.input_responses.unwrap_or_default();
                    self.resume(underway, question, responses, context).await
                }
                Err(why) => {
                    let problem = match why {
                        NotResumed::Unknown => "no run waits for this answer any more; run the script again",
                        NotResumed::OtherCall => {
                            "this answer belongs to a call with other arguments; send that call again, with it"
                        }
                    };
                    Ok(respond(answer::refusal(format, INVALID_ARGUMENTS, problem, None)).into())
                }
            };
        }
        let person = Person::behind(context);
        let call = matches!(person, Some(Person::ByResult(..)))
            .then(|| Fingerprint::new(&request.name, &arguments, input.as_ref()));
        let arguments = match RunArguments::read(arguments, input) {
            Ok(arguments) => arguments,
            Err(problem) => {
                return Ok(respond(answer::refusal(format, INVALID_ARGUMENTS, &problem, None)).into());
            }
        };
        let limits = limits(&arguments, &self.shared.executor);
        let cancel = self.runs.child_token();
        let mut script = script(language, arguments)
            .limits(limits)
            .owner(&*self.owner)
            .default_scope(self.default_scope.clone())
            .cancel_with(cancel.clone());
        let mut questions = mpsc::channel(1).1;
        match person {
            Some(Person::AtOnce(approver)) => script = script.approver(approver),
            Some(Person::ByResult(approver, theirs)) => {
                script = script.approver(approver);
                questions = theirs;
            }
            None => {}
        }
        let (script, notifications) = RunNotifications::attach(self.wanted(context), context, script);
        let executor = self.shared.executor.clone();
        let underway = Underway {
            run: async move { executor.run(script).await }.boxed(),
            _stop_on_drop: cancel.clone().drop_guard(),
            cancel,
            language,
            limits,
            notifications,
            questions,
            call,
            guard: Some(self.calls.begin()),
        };
        self.attend(underway, context).await
    }

    /// Resumes a run whose client was sent an approval prompt.
    async fn resume(
        &self,
        mut underway: Underway,
        question: Question,
        mut responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        underway.guard = Some(self.calls.begin());
        underway.notifications.tell(self.wanted(context), context);
        match responses.remove(pending::KEY) {
            Some(response) => question.answer(response),
            // The client has repeated the call without an answer, so it is asked again.
            None => match self.suspend(underway, question) {
                Ok(response) => return Ok(response),
                Err(again) => underway = *again,
            },
        }
        self.attend(underway, context).await
    }

    /// Waits until the run ends, needs an approval, or becomes a task.
    async fn attend(
        &self,
        mut underway: Underway,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let may_become_task = self.may_make_task(context);
        let task_due = tokio::time::sleep(TASK_AFTER);
        tokio::pin!(task_due);
        let result = loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => {
                    underway.cancel.cancel();
                    // The run's slot is released when it has ended.
                    let _nobody_reads = underway.run.await;
                    return Err(ErrorData::internal_error("the call was cancelled", None));
                }
                result = &mut underway.run => break result,
                Some(question) = underway.questions.recv() => match self.suspend(underway, question) {
                    Ok(response) => return Ok(response),
                    Err(again) => underway = *again,
                },
                notification = underway.notifications.next() => underway.notifications.send(notification).await,
                () = &mut task_due, if may_become_task => return Ok(self.make_task(underway).into()),
            }
        };
        underway.notifications.finish().await;
        self.shared.note_start(underway.language, result.as_ref().err());
        // The guard is dropped after the answer is made. Otherwise a server that ends because of
        // hung workers could end before this answer.
        Ok(respond(self.shared.answer(&self.owner, result)).into())
    }

    /// Returns the approval prompt to the client and suspends the run until the client repeats the
    /// call.
    fn suspend(&self, underway: Underway, question: Question) -> Result<CallToolResponse, Box<Underway>> {
        let Some(call) = underway.call else { return Err(Box::new(underway)) };
        self.shared.pending.add(&self.owner, call, underway, question).map(Into::into)
    }

    fn wanted(&self, context: &RequestContext<RoleServer>) -> Wanted {
        Wanted { progress: context.meta.get_progress_token(), log: self.wanted_lines(context) }
    }

    fn may_make_task(&self, context: &RequestContext<RoleServer>) -> bool {
        let knows_tasks =
            context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if !knows_tasks {
            return false;
        }
        let mut ends = self.task_ends.lock();
        ends.retain(|&end| end > Instant::now());
        ends.len() < MAX_TASKS
    }

    /// Turns a run into a task; the run continues. It ends with the session, like every run.
    fn make_task(&self, underway: Underway) -> CreateTaskResult {
        let kept = underway.limits.wall_time + TASK_KEPT;
        // rmcp keeps the outcome for the same time again.
        self.task_ends.lock().push(Instant::now() + 2 * kept);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new()
            .with_ttl_ms(milliseconds(kept))
            .with_poll_interval_ms(milliseconds(TASK_POLL))
            .with_status_message("the script runs");
        let (shared, owner, tasks) = (Arc::clone(&self.shared), self.owner.clone(), self.tasks.clone());
        let task = self.tasks.spawn(options, move |task| {
            async move {
                // Moves the whole struct into the task. Otherwise only the fields named below would
                // be moved; dropping the others would end the run.
                let mut underway = underway;
                let mut asked = 0;
                let result = loop {
                    tokio::select! {
                        biased;
                        () = task.cancelled() => {
                            underway.cancel.cancel();
                            let _nobody_reads = underway.run.await;
                            return Err(TaskExit::Cancelled);
                        }
                        result = &mut underway.run => break result,
                        Some(question) = underway.questions.recv() => {
                            asked += 1;
                            ask(&tasks, &task, &format!("{}-{asked}", pending::KEY), question).await?;
                        }
                    }
                };
                drop(underway.guard);
                shared.note_start(underway.language, result.as_ref().err());
                Ok(respond(shared.answer(&owner, result)))
            }
            .boxed()
        });
        CreateTaskResult::new(task)
    }
}

/// Shows an approval prompt as input that a task requires, until it is answered or closed.
async fn ask(
    tasks: &TaskManager,
    task: &TaskContext,
    key: &str,
    mut question: Question,
) -> Result<(), TaskExit> {
    let Some(request) = question.request() else { return Ok(()) };
    tokio::select! {
        biased;
        response = task.request_input(key, request) => question.answer(response?),
        () = question.over() => {
            // Removes the prompt from the task's input requests.
            let _ended = tasks.update_task(task.task_id(), [(key.to_owned(), Value::Null)]);
        }
    }
    Ok(())
}

const TRY_AGAIN: &str = "call again in a few seconds";

impl Shared {
    /// Makes the answer to a call. If it leaves something out, the run is recorded for `owner`.
    fn answer(self: &Arc<Self>, owner: &str, result: Result<ExecuteResult, Error>) -> Answer {
        self.look_for_hung_workers();
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

/// The limits that the client requested, or the defaults, capped by the operator's maximum.
fn limits(arguments: &RunArguments, executor: &Executor) -> Limits {
    let (default, max) = (executor.limits(), executor.max_limits());
    let tool_calls = arguments.max_tool_calls.unwrap_or(default.tool_calls);
    Limits {
        wall_time: arguments.timeout.unwrap_or(default.wall_time).min(max.wall_time),
        // 0 means no limit, in both the request and the maximum.
        tool_calls: match (tool_calls, max.tool_calls) {
            (asked, 0) => asked,
            (0, max) => max,
            (asked, max) => asked.min(max),
        },
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
