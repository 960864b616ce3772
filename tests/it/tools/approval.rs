//! Approval of calls, and dry runs, in both languages. Threats 144, 145, 154, 159, 166 and 181.

/// Tools and annotations that change, and rules of single servers.
mod changes;
/// Approval in the command and in a server.
mod command;
/// Dry runs.
mod dry_runs;
/// What goes on while a person is asked.
mod waiting;

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cx::{
    Approval, ApprovalRequest, AskAnnotation, AskReason, CancellationToken, ErrorCode, ExecuteResult,
    Executor, ExecutorBuilder, Language, Limits, PlannedCall, Refusal, Schema, Script, ToolCallStatus,
    ToolDefinition, ToolRules,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::serve::WATCHDOG;
use crate::support::stopwatch::{LATE, Stopwatch};
use crate::support::{chaos, python_cache, wait_until};

/// The server `notes`, by the calls that it received.
#[derive(Clone, Default)]
struct Notes {
    /// Tool and arguments as text, in the order of their arrival.
    calls: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl Notes {
    fn tool(
        &self,
        builder: ExecutorBuilder,
        name: &'static str,
        annotations: Value,
        output: Option<Value>,
    ) -> ExecutorBuilder {
        let mut definition = ToolDefinition::new(format!("notes.{name}"));
        let input = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
        definition.input_schema = Schema::from(input);
        definition.output_schema = output.map(Schema::from);
        definition.annotations = Some(annotations);
        let calls = Arc::clone(&self.calls);
        builder.tool_with_definition(definition, move |arguments: Value| {
            let calls = Arc::clone(&calls);
            async move {
                calls.lock().push((name, arguments.to_string()));
                if let Some(milliseconds) = arguments["ms"].as_u64() {
                    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                }
                Ok::<_, String>(json!({ "deleted": arguments, "left": 3 }))
            }
        })
    }

    fn builder(&self) -> ExecutorBuilder {
        let builder = Executor::builder().cache_directory(python_cache()).warm_instances(1);
        let builder = self.tool(builder, "delete", json!({}), None);
        let builder =
            self.tool(builder, "list", json!({ "readOnlyHint": true, "openWorldHint": false }), None);
        let schema = json!({
            "type": "object",
            "properties": {
                "deleted": { "type": "object", "properties": { "id": { "type": "integer", "minimum": 5 } } },
                "left": { "type": "integer" },
                "when": { "type": "string", "format": "date" },
            },
        });
        self.tool(builder, "add", json!({ "destructiveHint": false }), Some(schema))
    }

    fn count(&self) -> usize {
        self.calls.lock().len()
    }
}

/// An approver that gives the configured answers and records its prompts.
#[derive(Clone, Default)]
struct Person {
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
}

/// An open prompt, until it is withdrawn.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Person {
    fn ask(&self, request: &ApprovalRequest) -> Open {
        self.asked.lock().push(request.clone());
        let open = 1 + self.open.fetch_add(1, Ordering::SeqCst);
        self.most_open.fetch_max(open, Ordering::SeqCst);
        Open(Arc::clone(&self.open))
    }

    /// Gives this answer after some time.
    fn saying(
        &self,
        approval: &Approval,
        after: Duration,
    ) -> impl Fn(ApprovalRequest) -> Answer + Send + Sync + use<> {
        let (person, approval) = (self.clone(), approval.clone());
        move |request| {
            let (open, approval) = (person.ask(&request), approval.clone());
            Box::pin(async move {
                let _open = open;
                tokio::time::sleep(after).await;
                approval
            })
        }
    }

    /// Never answers.
    fn silent(&self) -> impl Fn(ApprovalRequest) -> Answer + Send + Sync + use<> {
        let person = self.clone();
        move |request| {
            let open = person.ask(&request);
            Box::pin(async move {
                let _open = open;
                std::future::pending().await
            })
        }
    }

    fn count(&self) -> usize {
        self.asked.lock().len()
    }
}

type Answer = std::pin::Pin<Box<dyn Future<Output = Approval> + Send>>;

const NOW: Duration = Duration::ZERO;

fn no(reason: &str) -> Approval {
    Approval::Deny { reason: Some(reason.to_owned()) }
}

/// The same script in both languages.
fn both(typescript: &str, python: &str) -> [Script; 2] {
    [Script::typescript(typescript), Script::python(format!("import asyncio\n{python}"))]
}

/// Calls `notes.delete` and returns the error's code and message.
fn attempt() -> [Script; 2] {
    both(
        "try { return await tools.notes.delete({ id: 7 }) } catch (error) { return [error.code, error.message] }",
        "try:
    return await tools.notes.delete(id=7)
except McpToolError as error:
    return [error.code, str(error)]",
    )
}

async fn run(executor: &Executor, script: Script) -> ExecuteResult {
    executor.warm(Language::Python).await.unwrap();
    executor.run(script).await.unwrap()
}

fn wall(milliseconds: u64) -> Limits {
    Limits { wall_time: Duration::from_millis(milliseconds), ..Limits::default() }
}

fn value(result: &ExecuteResult) -> &Value {
    result.value().unwrap_or_else(|| panic!("{}", result.to_json()))
}

fn code(result: &ExecuteResult) -> Option<ErrorCode> {
    result.error().map(|error| error.code)
}

fn statuses(result: &ExecuteResult) -> Vec<ToolCallStatus> {
    result.tool_calls.iter().map(|call| call.status).collect()
}

fn planned(result: &ExecuteResult) -> &[PlannedCall] {
    result.planned_calls.as_deref().expect("a dry run")
}

/// Asserts that a call was refused with all of these words, and never made.
fn refused(result: &ExecuteResult, notes: &Notes, refusal: Refusal, words: &[&str]) {
    let said = value(result);
    assert_eq!(said[0], "TOOL_DENIED", "{said}");
    let message = said[1].as_str().unwrap();
    assert!(words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    assert_eq!(statuses(result), [ToolCallStatus::NotApproved(refusal)]);
    assert!(!result.tool_calls[0].approved);
    assert_eq!(result.to_json()["toolCallSummary"][0]["notApproved"], 1);
    assert_eq!(notes.count(), 0);
}

#[tokio::test]
async fn what_was_shown_is_what_is_sent() {
    let scripts = both(
        // The object changes after the call was made and before the prompt is answered.
        "const args = { id: 7, b: [1e2, 'x'], a: { 'ü\\u202e': null } };
         const call = notes.delete(args); args.id = 8; args.b.push('more'); delete args.a; return await call",
        "args = {'id': 7, 'b': [1e2, 'x'], 'a': {'ü\\u202e': None}}
call = asyncio.ensure_future(notes.delete(args))
await asyncio.sleep(0)
args['id'] = 8
args['b'].append('more')
del args['a']
return await call",
    );
    for (script, hundred) in scripts.into_iter().zip(["100", "100.0"]) {
        let (notes, person) = (Notes::default(), Person::default());
        let builder = notes.builder().ask(["notes.delete"]).allow(["*"]);
        let executor = builder.approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
        let result = run(&executor, script.named("x")).await;
        let asked = person.asked.lock().clone();
        let shown = Value::Object(asked[0].arguments.clone()).to_string();
        assert_eq!(shown, format!(r#"{{"id":7,"b":[{hundred},"x"],"a":{{"ü{}":null}}}}"#, '\u{202e}'));
        assert_eq!(*notes.calls.lock(), [("delete", shown)]);
        assert_eq!(value(&result)["left"], 3);
        assert_eq!((&*asked[0].server, &*asked[0].tool, &*asked[0].script), ("notes", "delete", "x"));
        assert_eq!(asked[0].reason, AskReason::Pattern("notes.delete".to_owned()));
        assert_eq!(asked[0].annotations, Some(json!({})));
        assert!(result.tool_calls[0].approved && statuses(&result) == [ToolCallStatus::Ok]);
        assert_eq!(result.to_json()["toolCallSummary"][0]["approved"], 1);
        assert!(result.usage.approval_time > Duration::ZERO);
    }
}

#[tokio::test]
async fn a_no_is_an_error_that_says_why() {
    for script in attempt() {
        let (notes, person) = (Notes::default(), Person::default());
        let executor =
            notes.builder().ask(["*"]).approver(person.saying(&no("not on Fridays"), NOW)).build().unwrap();
        let result = run(&executor, script).await;
        refused(&result, &notes, Refusal::Denied, &["refused", "notes.delete", "not on Fridays"]);
        // The next run is asked again.
        run(&executor, Script::typescript("return call_tool('notes', 'delete', {}).ok")).await;
        assert_eq!((person.count(), notes.count()), (2, 0));
    }
    // Of a long reason its beginning.
    let (notes, person) = (Notes::default(), Person::default());
    let long = no(&"y".repeat(Approval::MAX_REASON + 500));
    let executor = notes.builder().ask(["*"]).approver(person.saying(&long, NOW)).build().unwrap();
    let script = Script::typescript("return call_tool('notes', 'delete', {}).error.message");
    let result = run(&executor, script).await;
    assert_eq!(value(&result).as_str().unwrap().matches('y').count(), Approval::MAX_REASON);
}

#[tokio::test]
async fn an_approval_covers_one_call() {
    let scripts = both(
        "await notes.delete({ id: 1 }); await notes.delete({ id: 1 });
         return call_tool('notes', 'delete', { id: 2 }).ok",
        "await notes.delete(id=1)\nawait notes.delete(id=1)\nreturn call_tool('notes', 'delete', {'id': 2})['ok']",
    );
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes
            .builder()
            .ask(["notes.*"])
            .approver(person.saying(&Approval::Approve, NOW))
            .build()
            .unwrap();
        assert_eq!(value(&run(&executor, script).await), &json!(true));
        assert_eq!((person.count(), notes.count()), (3, 3));
    }
}

/// Threats 144 and 145: every way to make the call, and every list that requires approval.
#[tokio::test]
async fn ask_is_between_deny_and_allow() {
    let (notes, person) = (Notes::default(), Person::default());
    let builder = notes.builder().allow(["notes.*"]).deny(["notes.add"]).ask(["*.delete", "notes.add"]);
    let executor = builder.approver(person.saying(&no(""), NOW)).build().unwrap();
    let script = "const codes = [];
        for (const call of [() => tools.notes.delete({}), () => callMCPTool('mcp__notes__delete'), () => notes.add({})])
            codes.push(await call().catch((error) => error.code));
        codes.push(call_tool('notes', 'delete', {}).error.code, await notes.list({}).then(() => 'fine'));
        return codes";
    let denied = "TOOL_DENIED";
    // A tool that a run allows by name still needs approval.
    let result = run(&executor, Script::typescript(script).allow(["notes.delete", "notes.*", "*"])).await;
    assert_eq!(value(&result), &json!([denied, denied, denied, denied, "fine"]));
    assert_eq!(person.count(), 3, "no user is asked about a denied call");
    // A run can require more approvals, and can have its own approver.
    let other = Person::default();
    let script =
        Script::python("return [await notes.list() is not None, call_tool('notes', 'delete')['ok']]");
    let result =
        run(&executor, script.ask(["notes.list"]).approver(other.saying(&Approval::Approve, NOW))).await;
    assert_eq!(value(&result), &json!([true, true]));
    assert_eq!((other.count(), person.count()), (2, 3));
    let error = executor.run(Script::typescript("1").ask(["delete"])).await.unwrap_err().to_string();
    assert!(error.contains("`ask`") && error.contains("`destructive`"), "{error}");
}

#[tokio::test]
async fn ask_by_annotation() {
    let words = |tool: &'static str, ask: &'static str| async move {
        let (notes, person) = (Notes::default(), Person::default());
        let builder = notes.builder().ask([ask]).read_only(["notes.delete"]);
        let builder = if tool == "delete" { notes.builder().ask([ask]) } else { builder };
        let executor = builder.approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
        let result = run(&executor, Script::typescript(format!("await notes.{tool}({{}})"))).await;
        assert!(code(&result).is_none(), "{}", result.to_json());
        person.asked.lock().first().map(|request| request.reason.clone())
    };
    let word = |word| Some(AskReason::Annotation(word));
    assert_eq!(words("delete", "destructive").await, word(AskAnnotation::Destructive));
    assert_eq!(words("delete", "write").await, word(AskAnnotation::Write));
    assert_eq!(words("add", "destructive").await, None);
    assert_eq!(words("add", "write").await, word(AskAnnotation::Write));
    assert_eq!(words("add", "open-world").await, word(AskAnnotation::OpenWorld));
    for ask in ["destructive", "write", "open-world"] {
        assert_eq!(words("list", ask).await, None, "{ask}");
    }
    // If a person names a tool as read-only, these words require no approval.
    let (notes, person) = (Notes::default(), Person::default());
    let builder = notes.builder().ask(["destructive", "write"]).read_only(["notes.d*"]);
    let executor = builder.approver(person.silent()).build().unwrap();
    assert_eq!(code(&run(&executor, Script::typescript("await notes.delete({})")).await), None);
}

#[tokio::test]
async fn without_anybody_to_ask_a_call_is_refused_with_what_to_do() {
    for script in attempt() {
        let notes = Notes::default();
        let executor = notes.builder().ask(["notes.del*"]).build().unwrap();
        let result = run(&executor, script.clone()).await;
        let words = ["no user can be asked", "a client that can ask", "takes `notes.del*` out of `ask`"];
        refused(&result, &notes, Refusal::NoApprover, &words);
        let executor = notes.builder().ask(["destructive"]).build().unwrap();
        let words = ["it may destroy something", "names `notes.delete` in `readOnly`"];
        refused(&run(&executor, script.clone()).await, &notes, Refusal::NoApprover, &words);
        // A client that has gone away, and an approver that panics.
        let asking = || notes.builder().ask(["notes.del*"]);
        let executor = asking().approver(|_| async { Approval::Unavailable }).build().unwrap();
        refused(&run(&executor, script.clone()).await, &notes, Refusal::NoApprover, &[]);
        let broken = |request: ApprovalRequest| async move {
            assert_eq!(request.tool, "");
            Approval::Approve
        };
        let executor = asking().approver(broken).build().unwrap();
        refused(&run(&executor, script).await, &notes, Refusal::NoApprover, &[]);
    }
}

#[tokio::test]
async fn an_answer_has_its_time() {
    for script in attempt() {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes.builder().ask(["*"]).approver(person.silent()).build().unwrap();
        let limits = Limits { answer_time: Duration::from_millis(60), ..Limits::default() };
        let result = run(&executor, script.limits(limits)).await;
        refused(&result, &notes, Refusal::NoAnswer, &["no answer within 0.06 s"]);
        assert_eq!(person.asked.lock()[0].time, Duration::from_millis(60));
        wait_until(|| person.open.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn questions_come_one_at_a_time_in_order_and_have_a_bound() {
    let scripts = both(
        "await notes.list({});
         const calls = [1, 2, 3, 4, 5].map((id) => notes.delete({ id }));
         return (await Promise.allSettled(calls)).map((call) => call.status)",
        "await notes.list()
calls = await asyncio.gather(*(notes.delete(id=id) for id in range(1, 6)), return_exceptions=True)
return ['rejected' if isinstance(call, McpToolError) else 'fulfilled' for call in calls]",
    );
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let approver = person.saying(&Approval::Approve, Duration::from_millis(10));
        let executor = notes.builder().ask(["write"]).approver(approver).build().unwrap();
        let result = run(&executor, script.limits(Limits { questions: 3, ..Limits::default() })).await;
        let (yes, no) = ("fulfilled", "rejected");
        assert_eq!(value(&result), &json!([yes, yes, yes, no, no]));
        let ids: Vec<Value> =
            person.asked.lock().iter().map(|request| request.arguments["id"].clone()).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(person.most_open.load(Ordering::SeqCst), 1);
        let (ok, too_many) = (ToolCallStatus::Ok, ToolCallStatus::NotApproved(Refusal::TooManyQuestions));
        assert_eq!(statuses(&result), [ok, ok, ok, ok, too_many, too_many]);
    }
}

#[tokio::test]
async fn a_question_ends_with_its_run() {
    let scripts = both("await notes.delete({ id: 1 })", "await notes.delete(id=1)");
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes.builder().ask(["*"]).approver(person.silent()).build().unwrap();
        executor.warm(Language::Python).await.unwrap();
        let stop = CancellationToken::new();
        let cancelled = async {
            wait_until(|| person.open.load(Ordering::SeqCst) == 1).await;
            stop.cancel();
        };
        let script = script.cancel_with(stop.clone());
        let (result, ()) = futures::future::join(executor.run(script), cancelled).await;
        let result = result.unwrap();
        assert_eq!(code(&result), Some(ErrorCode::Cancelled));
        // The call was certainly not made, unlike a cancelled call in flight.
        assert_eq!(statuses(&result), [ToolCallStatus::AwaitingApproval]);
        wait_until(|| person.open.load(Ordering::SeqCst) == 0).await;
        assert_eq!(notes.count(), 0);
    }
    // A call that its script does not await is not made later.
    let scripts = both(
        "notes.delete({ id: 1 }); return 1",
        "asyncio.ensure_future(notes.delete(id=1))\nawait asyncio.sleep(0)\nreturn 1",
    );
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes.builder().ask(["*"]).approver(person.silent()).build().unwrap();
        assert_eq!(value(&run(&executor, script).await), &json!(1));
        wait_until(|| person.open.load(Ordering::SeqCst) == 0).await;
        assert_eq!(notes.count(), 0);
    }
}

#[tokio::test]
async fn what_is_too_long_to_read_is_not_asked() {
    let (notes, person) = (Notes::default(), Person::default());
    let executor =
        notes.builder().ask(["*"]).approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
    // Short in the script, long when it is shown.
    for argument in [
        "{ text: 'x'.repeat(70_000) }",
        "{ text: '\\u200b'.repeat(15_000) }",
        "{ list: Array(10_000).fill(1) }",
    ] {
        let source = format!(
            "return await notes.delete({argument}).then(() => [], (error) => [error.code, error.message])"
        );
        let result = run(&executor, Script::typescript(source)).await;
        refused(&result, &notes, Refusal::TooLong, &["send less in one call"]);
    }
    assert_eq!(person.count(), 0);
}
