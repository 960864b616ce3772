//! The steps of a call to a server: the limiter, a connection, the timeout, and what the result says
//! about the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::answers::RequestTrace;
use super::connection::{CallFailure, Connection};
use super::counted::{CountedCall, OUTCOME_OK};
use super::errors;
use super::limiter::is_answer;
use super::patience::Patience;
use super::questions::Caller;
use super::server::UpstreamServer;
use crate::json::Json;
use crate::tools::{RequestContext, ServerRequest, ToolError, ToolErrorCode, ToolRequest, ToolResult};

/// An unanswered call counts as a failure of its server only if it waited for at least this long,
/// or for the server's call timeout if that is shorter. Otherwise runs with short deadlines would
/// open the circuit of a slow server for all runs.
const FAIR_WAIT: Duration = Duration::from_secs(10);

impl UpstreamServer {
    /// Calls a tool. The call is sent at most once, unless it certainly has not left this process;
    /// then it is sent again over a new connection.
    pub(crate) async fn call(self: Arc<Self>, request: ToolRequest) -> Result<ToolResult, ToolError> {
        let text = request.arguments_json();
        let ToolRequest {
            tool, arguments, deadline, cancel, on_progress, on_elicitation, trace, sent, ..
        } = request;
        tracing::debug!(server = &*self.name, tool = &*tool, "call");
        // The tree is about twelve times as large as the text.
        drop(arguments);
        let arguments = text;
        let trace = RequestTrace { context: trace, sent };
        let (caller, _over) = Caller::new(&self.name, &tool, on_elicitation, trace);
        let patience = Arc::clone(&caller.patience);
        let server = Arc::clone(&self);
        let work = move |connection: Arc<Connection>| {
            let (tool, arguments, on_progress) = (Arc::clone(&tool), arguments.clone(), on_progress.clone());
            let (server, caller) = (Arc::clone(&server), Arc::clone(&caller));
            async move {
                if connection.task_tools.have_to_be_listed() {
                    server.list_for_call(&connection).await;
                }
                if connection.task_tools.contains(&tool) {
                    let keep = deadline.saturating_duration_since(Instant::now());
                    return connection.call_as_task(&tool, arguments, &caller, keep, on_progress).await;
                }
                let called = connection.call(&tool, arguments.clone(), &caller, on_progress.clone()).await;
                match called {
                    // It was not called. A server that could do without tasks is not told that it may make one.
                    Err(failure) if connection.needs_tasks(&failure.error) => {
                        connection.call_with_tasks(&tool, arguments, &caller, on_progress).await
                    }
                    called => called,
                }
            }
            .boxed()
        };
        self.exchange(deadline, cancel, &patience, work, |result: &ToolResult| result.is_error).await
    }

    /// Lists the tools if there is no current list over this connection. Some servers add tools as soon as they are
    /// connected, so it may take two lists. Without one a call is made as any other, and the server says why it cannot
    /// be.
    async fn list_for_call(self: &Arc<Self>, connection: &Arc<Connection>) {
        let mut was_listed = false;
        for _ in 0..2 {
            if self.known_tools().is_some() || self.listing(connection).await.is_err() {
                break;
            }
            was_listed = true;
        }
        // After both lists: calls that begin meanwhile wait for them.
        if was_listed {
            connection.task_tools.note_listed_for_call();
        }
    }

    /// Sends a request for something other than a tool, under the same rules.
    pub(crate) async fn request(
        self: Arc<Self>,
        request: ServerRequest,
        context: RequestContext,
    ) -> Result<Json, ToolError> {
        let RequestContext { deadline, cancel, on_elicitation, trace, sent } = context;
        let trace = RequestTrace { context: trace, sent };
        let method: Arc<str> = Arc::from(request.method());
        let (caller, _over) = Caller::new(&self.name, &method, on_elicitation, trace);
        let patience = Arc::clone(&caller.patience);
        let server = Arc::clone(&self);
        let work = move |connection: Arc<Connection>| {
            let (server, request, caller) = (Arc::clone(&server), request.clone(), Arc::clone(&caller));
            async move {
                let (method, trace) = (request.method(), &caller.trace);
                let listed = match &request {
                    ServerRequest::ListResources => connection.list_resources(trace).await?,
                    ServerRequest::ListPrompts => connection.list_all(method, "prompts", trace).await?,
                    ServerRequest::ReadResource { uri } => {
                        let answer = connection.request_for(method, request.parameters(), &caller).await?;
                        let problem = connection.skill_problem(uri, &answer, trace).await;
                        return Ok((answer, problem));
                    }
                    ServerRequest::Subscribe { uri, updates } => {
                        let (updates, time) = (updates.clone(), server.settings.call_timeout);
                        return Ok((connection.follow(uri, updates, trace, time).await?, None));
                    }
                    ServerRequest::GetPrompt { .. } => {
                        let answer = connection.request_for(method, request.parameters(), &caller).await?;
                        return Ok((answer, None));
                    }
                };
                server.note_list_problem(&connection);
                Ok((listed, None))
            }
            .boxed()
        };
        // A skill that differs from the listed one is not a failure of the server, which has answered: calls of other
        // clients continue.
        match self.exchange(deadline, cancel, &patience, work, |_| false).await? {
            (answer, None) => Ok(answer),
            (_, Some(problem)) => Err(errors::other_skill(&self.name, &problem)),
        }
    }

    /// Passes the limiter, gets a connection, and does `work` over it within the server's call
    /// timeout. `is_tool_error` is whether an answer says of itself that it is an error.
    async fn exchange<T>(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: CancellationToken,
        patience: &Patience,
        work: impl Work<T>,
        is_tool_error: fn(&T) -> bool,
    ) -> Result<T, ToolError> {
        let mut counted = CountedCall::new(&self.call_keys);
        let admitted = self.limiter.enter(deadline, &cancel).await;
        let admitted = admitted.map_err(|error| {
            counted.outcome = error.code.as_str();
            self.with_last_error(error)
        })?;
        let began = Instant::now();
        counted.began = Some(began);
        self.note_call(began);
        let attempt = self.attempt(deadline, &cancel, patience, work).await;
        let error = attempt.error();
        self.times.record(began.elapsed(), error);
        counted.outcome = match (&attempt, error) {
            (_, Some(error)) => error.code.as_str(),
            (Attempt::Counted(Ok(answer)), None) if is_tool_error(answer) => {
                ToolErrorCode::ToolError.as_str()
            }
            _ => OUTCOME_OK,
        };
        match attempt {
            Attempt::Counted(result) => {
                // All clients can read `health`, and an answer may contain what one of them has asked for.
                if let Err(error) = &result
                    && !is_answer(error.code)
                {
                    self.note_failure(error);
                }
                admitted.record(&result);
                result
            }
            Attempt::Uncounted(error) => Err(error),
        }
    }

    /// Makes one attempt at a call, and a second one if the first was certainly not sent. A lost
    /// connection or a failed start is one failure, however many calls fail with it.
    async fn attempt<T>(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: &CancellationToken,
        patience: &Patience,
        work: impl Work<T>,
    ) -> Attempt<T> {
        let cancelled = || ToolError::new(ToolErrorCode::Cancelled, "the run is over");
        let mut may_retry = true;
        loop {
            let start = match self.connection() {
                Ok(start) => start,
                Err(error) => return Attempt::Uncounted(error),
            };
            let started = tokio::select! {
                biased;
                started = timeout_at(deadline.into(), start) => started,
                () = cancel.cancelled() => return Attempt::Uncounted(cancelled()),
            };
            let connection = match started {
                Ok(Ok(connection)) => connection,
                // The start itself has counted its failure.
                Ok(Err(error)) => return Attempt::Uncounted(error),
                Err(_elapsed) => {
                    let message = format!("server `{}` did not start before the run's end", self.name);
                    return Attempt::Uncounted(ToolError::new(ToolErrorCode::ToolTimeout, message));
                }
            };
            // A call's own timeout starts here, not when the call was queued or the server was
            // started. It stands still while the server waits for the user; the run's end does not.
            let sent = Instant::now();
            let limit = deadline.min(sent + self.settings.call_timeout);
            // Leaving the `select!` without an answer drops the call, which tells the server that
            // it is cancelled.
            let failure = tokio::select! {
                biased;
                result = work(Arc::clone(&connection)) => match result {
                    Ok(result) => return Attempt::Counted(Ok(result)),
                    Err(failure) => failure,
                },
                () = cancel.cancelled() => return Attempt::Uncounted(cancelled()),
                () = patience.elapsed(self.settings.call_timeout, Some(deadline)) => {
                    let waited = limit - sent;
                    let counts = waited >= self.settings.call_timeout.min(FAIR_WAIT);
                    return Attempt::failed(unanswered(waited), counts);
                }
            };
            let CallFailure { error, is_unsent, is_limited } = failure;
            if is_unsent && may_retry && !connection.is_alive() {
                may_retry = false;
                continue;
            }
            let counts = !is_limited && (connection.is_alive() || connection.count_end());
            return Attempt::failed(error, counts);
        }
    }
}

/// How an attempt at a call ended.
enum Attempt<T> {
    /// The result says something about the server, so the circuit breaker counts it.
    Counted(Result<T, ToolError>),
    /// It failed for another reason, or another call has counted the same failure.
    Uncounted(ToolError),
}

impl<T> Attempt<T> {
    fn failed(error: ToolError, is_counted: bool) -> Self {
        if is_counted { Self::Counted(Err(error)) } else { Self::Uncounted(error) }
    }

    fn error(&self) -> Option<&ToolError> {
        match self {
            Self::Counted(Ok(_)) => None,
            Self::Counted(Err(error)) | Self::Uncounted(error) => Some(error),
        }
    }
}

/// Work that is done over a connection, and again over another one if it certainly was not sent.
trait Work<T>: Fn(Arc<Connection>) -> BoxFuture<'static, Result<T, CallFailure>> + Send {}

impl<T, F> Work<T> for F where F: Fn(Arc<Connection>) -> BoxFuture<'static, Result<T, CallFailure>> + Send {}

fn unanswered(time: Duration) -> ToolError {
    ToolError::new(
        ToolErrorCode::ToolTimeout,
        format!("no answer within {} ms; whether the call took effect is unknown", time.as_millis()),
    )
}
