//! A script's calls of `llm`.

use std::sync::Arc;

use serde_json::Value;

use crate::json::Json;
use crate::llm::call::{LlmCall, Prepared, Question};
use crate::llm::{ModelRequest, extraction};
use crate::run::context::ExecutionContext;
use crate::run::errors::over;
use crate::run::ledger::MAX_WAITING_ARGUMENTS;
use crate::run::models::streams::{Entry, Next, OpenStream, UnsentQuestion};
use crate::run::models::{BegunCall, CallFailure, Candidate, Delivery};
use crate::run::result::PlannedCall;
use crate::tools::arguments::ArgumentCheck;
use crate::tools::{Schema, ToolError, ToolErrorCode, sample};

/// An answer whose next piece is being read. If the future is dropped, as a backend may do, the answer is closed.
struct Unfinished<'a> {
    context: &'a ExecutionContext,
    number: Option<u64>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let ended = self.context.streams.lock().close(number);
            drop(ended);
        }
    }
}

impl ExecutionContext {
    /// Performs a call of `llm` and returns JSON text.
    ///
    /// It is not a tool call and does not count against
    /// [`Limits::tool_calls`](crate::Limits::tool_calls): it has a budget of its own. Dropping the
    /// future cancels it.
    pub(crate) async fn llm(self: &Arc<Self>, call: LlmCall) -> Result<String, ToolError> {
        let held = match call {
            // These two are allowed however many calls wait: `Close` frees a slot, and there is at most one `Next` for
            // each answer.
            LlmCall::Close(_) | LlmCall::Next(_) => None,
            _ => Some(self.hold_uncounted(call.bytes())?),
        };
        let name = call.name();
        let read = |text: &str| Question::read(text).map_err(ToolError::invalid_arguments);
        let answer = match call {
            LlmCall::Next(stream) => return self.next_piece(stream).await,
            LlmCall::Close(stream) => {
                let ended = self.streams.lock().close(stream);
                // Dropped without the lock: this ends a request and informs the observers.
                drop(ended);
                return Ok("null".to_owned());
            }
            LlmCall::Open(text) => {
                let prepared = read(&text)?.prepare().map_err(ToolError::invalid_arguments)?;
                if prepared.schema.is_some() {
                    return Err(ToolError::invalid_arguments(
                        "a stream cannot have a schema: its value is complete at the end only",
                    ));
                }
                return self.open_stream(prepared, &text);
            }
            LlmCall::Ask(text) => {
                let prepared = read(&text)?.prepare().map_err(ToolError::invalid_arguments)?;
                self.ask(prepared, name, &text).await?
            }
            LlmCall::Extract(text) => {
                let mut question = read(&text)?;
                let (value, schema) = question.take_extraction().map_err(ToolError::invalid_arguments)?;
                match fitting(value, &compile(&schema)?) {
                    Some(value) => value,
                    None => {
                        self.ask(question.prepare().map_err(ToolError::invalid_arguments)?, name, &text)
                            .await?
                    }
                }
            }
        };
        drop(held);
        let answer = answer.to_string();
        self.check_result_bytes("the answer", answer.len())?;
        Ok(answer)
    }

    /// Asks a question, and repeats it once if the answer does not match the schema.
    async fn ask(&self, prepared: Prepared, name: &'static str, text: &str) -> Result<Value, ToolError> {
        let Prepared { mut request, schema, may_shrink } = prepared;
        let candidates = self.models.candidates()?;
        self.models.permit(&mut request)?;
        let check = schema.as_ref().map(compile).transpose()?;
        if self.script.is_dry_run {
            self.plan_llm(name, text);
            return Ok(
                schema.map_or_else(|| sample::MARK.into(), |schema| sample::from_schema(Some(&schema)))
            );
        }
        let (Some(schema), Some(check)) = (schema, check) else {
            return Ok(self.call_model(&candidates, &request, may_shrink).await?.into());
        };
        extraction::ask_for_json(&mut request, &schema);
        let mut is_first = true;
        loop {
            let answer = self.call_model(&candidates, &request, may_shrink).await?;
            let problem = match extraction::find_json(&answer) {
                None => "it is not JSON".to_owned(),
                Some(value) => match check.problem(&value) {
                    None => return Ok(value),
                    Some(problem) => problem,
                },
            };
            if !is_first {
                let message = format!("the model's answer does not fit the schema, asked twice: {problem}");
                return Err(ToolError::new(ToolErrorCode::ModelAnswerInvalid, message));
            }
            is_first = false;
            extraction::ask_again(&mut request, &answer, &problem);
        }
    }

    /// Calls a model: the first of the providers, or the next one if that cannot be reached.
    async fn call_model(
        &self,
        candidates: &[Candidate],
        request: &ModelRequest,
        may_shrink: bool,
    ) -> Result<String, ToolError> {
        let mut failure = over();
        for candidate in candidates {
            let mut begun = self.begin_model_call(candidate, request, may_shrink, Delivery::Whole).await?;
            let sent = begun.request(request);
            let answer = begun.within(async { candidate.model.model.complete(sent).await }).await;
            match answer {
                Ok(answer) => {
                    let max = self.limits().result_bytes;
                    if answer.text.len() > max {
                        return Err(begun.fail(&CallFailure::TooLarge(max)));
                    }
                    return begun.end_with(answer);
                }
                Err(CallFailure::Unreached(error)) => failure = begun.fail(&CallFailure::Unreached(error)),
                Err(error) => return Err(begun.fail(&error)),
            }
        }
        Err(failure)
    }

    /// Begins a call of a model: reserves its tokens, takes a slot, and records it. All calls begin here; the returned
    /// value ends the call.
    async fn begin_model_call(
        &self,
        candidate: &Candidate,
        request: &ModelRequest,
        may_shrink: bool,
        delivery: Delivery,
    ) -> Result<BegunCall, ToolError> {
        let reservation =
            self.models.reserve(request, may_shrink, || self.ledger.lock().waits_for_tool()).await?;
        let slot = self.slots.acquire().await.map_err(|_closed| over())?;
        // A client shows its user the question.
        let client = candidate.is_client.then(|| (self.clock.pause(), self.limits().answer_time));
        let call = self.models.begin(candidate, request, reservation, slot, client, self.observation());
        call.announced(request, delivery).await
    }

    /// Checks the question of a streamed answer, and returns the answer's number as JSON text.
    fn open_stream(&self, prepared: Prepared, text: &str) -> Result<String, ToolError> {
        let Prepared { mut request, may_shrink, .. } = prepared;
        let candidates = self.models.candidates()?;
        self.models.permit(&mut request)?;
        let entry = if self.script.is_dry_run {
            self.plan_llm("ask", text);
            Entry::Last(sample::MARK.to_owned())
        } else {
            Entry::Unsent(Box::new(UnsentQuestion { candidates, request, may_shrink, bytes: text.len() }))
        };
        let max_unsent = MAX_WAITING_ARGUMENTS * self.limits().argument_bytes;
        Ok(self.streams.lock().add(entry, max_unsent)?.to_string())
    }

    /// Requests a streamed answer: of the first of the providers, or of the next one if that cannot be reached.
    async fn begin_stream(self: &Arc<Self>, question: UnsentQuestion) -> Result<Box<OpenStream>, ToolError> {
        let UnsentQuestion { candidates, request, may_shrink, bytes } = question;
        let _held = self.hold_uncounted(bytes)?;
        let mut failure = over();
        for candidate in &candidates {
            let mut call = self.begin_model_call(candidate, &request, may_shrink, Delivery::Pieces).await?;
            let sent = call.request(&request);
            match call.within(async { candidate.model.model.stream(sent).await }).await {
                Ok(pieces) => return Ok(Box::new(OpenStream::new(call, pieces))),
                Err(CallFailure::Unreached(error)) => failure = call.fail(&CallFailure::Unreached(error)),
                Err(error) => return Err(call.fail(&error)),
            }
        }
        Err(failure)
    }

    /// Returns the next piece of an answer as JSON text, or null at its end. Fails with `Cancelled` if the script
    /// closes the answer meanwhile.
    async fn next_piece(self: &Arc<Self>, number: u64) -> Result<String, ToolError> {
        let taken = self.streams.lock().take(number);
        let (entry, closed) = taken.ok_or_else(|| ToolError::invalid_arguments("there is no such answer"))?;
        let mut unfinished =
            Unfinished { context: self, number: (!matches!(entry, Entry::Busy(_))).then_some(number) };
        let reading = self.read_piece(number, entry);
        let piece = tokio::select! {
            biased;
            // Dropping the reader ends the request at the model.
            () = closed.cancelled() => {
                Err(ToolError::new(ToolErrorCode::Cancelled, "the answer was closed before its next piece came"))
            }
            piece = reading => piece,
        };
        unfinished.number = None;
        piece
    }

    /// Reads the next piece of an answer that was taken out, and puts the answer back.
    async fn read_piece(self: &Arc<Self>, number: u64, entry: Entry) -> Result<String, ToolError> {
        let keep = |entry: Entry| {
            let replaced = self.streams.lock().put(number, entry);
            drop(replaced);
        };
        let close = || {
            let ended = self.streams.lock().close(number);
            drop(ended);
        };
        let mut stream = match entry {
            Entry::Unsent(question) => self.begin_stream(*question).await.inspect_err(|_error| close())?,
            Entry::Open(stream) => stream,
            Entry::Busy(_) => {
                return Err(ToolError::invalid_arguments("the piece before this one is still on its way"));
            }
            Entry::Last(text) => {
                keep(Entry::Ended);
                return Ok(Value::from(text).to_string());
            }
            Entry::Ended => {
                close();
                return Ok("null".to_owned());
            }
        };
        match stream.next(self.limits().result_bytes).await {
            Ok(Next::Piece(text)) => {
                keep(Entry::Open(stream));
                Ok(Value::from(text).to_string())
            }
            Ok(Next::End(rest)) if rest.is_empty() => {
                stream.end(None);
                close();
                Ok("null".to_owned())
            }
            Ok(Next::End(rest)) => {
                stream.end(None);
                keep(Entry::Ended);
                Ok(Value::from(rest).to_string())
            }
            Err(failure) => {
                close();
                Err(stream.end(Some(failure)).unwrap_or_else(over))
            }
        }
    }

    /// Records a call that a dry run does not make.
    fn plan_llm(&self, name: &'static str, text: &str) {
        let Ok(arguments) = Json::parse(text) else { return };
        self.ledger.lock().plan(PlannedCall { server: "llm".to_owned(), tool: name.to_owned(), arguments });
    }
}

/// The value, or the JSON value that its text contains, if one of them matches the schema.
fn fitting(value: Value, check: &ArgumentCheck) -> Option<Value> {
    if check.problem(&value).is_none() {
        return Some(value);
    }
    let parsed = extraction::find_json(value.as_str()?)?;
    check.problem(&parsed).is_none().then_some(parsed)
}

fn compile(schema: &Value) -> Result<ArgumentCheck, ToolError> {
    ArgumentCheck::compile(&Schema::from(schema.clone()))
        .map_err(|problem| ToolError::invalid_arguments(format!("the schema cannot be used: {problem}")))
}
