//! Approval of calls, and dry runs, in both languages. Threats 144, 145, 154, 159, 166 and 181.

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

/// Threat 159: the deadline counts the run's own time only.
#[tokio::test]
async fn the_clock_stands_still_while_a_person_thinks() {
    let scripts =
        both("return (await notes.delete({ id: 1 })).left", "return (await notes.delete(id=1))['left']");
    let long = Duration::from_millis(1_500);
    for script in &scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor =
            notes.builder().ask(["*"]).approver(person.saying(&Approval::Approve, long)).build().unwrap();
        let result = run(&executor, script.clone().limits(wall(700))).await;
        assert_eq!(value(&result), &json!(3));
        assert!(result.usage.approval_time >= long && result.usage.wall_time >= long, "{:?}", result.usage);
        assert!(result.to_json()["approvalTimeMs"].as_f64().unwrap() >= 1_500.0);
        // The clock goes on where it stopped.
        let script = Script::typescript("await notes.delete({ id: 1 }); for (;;);");
        let result = run(&executor, script.limits(wall(700))).await;
        assert_eq!(code(&result), Some(ErrorCode::Timeout));
        assert!(result.usage.wall_time >= long + Duration::from_millis(700), "{:?}", result.usage);
    }
    // Up to a bound.
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes.builder().ask(["*"]).approver(person.silent()).build().unwrap();
        executor.warm(Language::Python).await.unwrap();
        let limits = Limits { paused_time: Duration::from_millis(300), ..wall(400) };
        let result = executor.run(script.limits(limits)).await.unwrap();
        assert_eq!(code(&result), Some(ErrorCode::Timeout), "{}", result.to_json());
        assert!(result.usage.wall_time >= Duration::from_millis(700), "{:?}", result.usage);
        assert_eq!(statuses(&result), [ToolCallStatus::AwaitingApproval]);
    }
}

/// An open prompt does not stop the CPU clock.
#[tokio::test]
async fn a_script_that_computes_meanwhile_pays_for_it() {
    let scripts = both(
        "await notes.list({}); notes.delete({ id: 1 }); await new Promise((done) => setTimeout(done, 50)); for (;;);",
        "await notes.list()
call = asyncio.ensure_future(notes.delete(id=1))
await asyncio.sleep(0.05)
while True:
    pass",
    );
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes.builder().ask(["*.delete"]).approver(person.silent()).build().unwrap();
        let limits = Limits { cpu_time: Duration::from_millis(300), ..wall(500) };
        let result = run(&executor, script.limits(limits)).await;
        assert_eq!(code(&result), Some(ErrorCode::CpuLimit), "{}", result.to_json());
        wait_until(|| person.open.load(Ordering::SeqCst) == 0).await;
    }
    // Nor does an approval that the script has not received keep the clock stopped.
    let (notes, person) = (Notes::default(), Person::default());
    let executor =
        notes.builder().ask(["*"]).approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
    let stopwatch = Stopwatch::start();
    let result = run(
        &executor,
        Script::typescript(
            "notes.delete({ id: 1 }); await new Promise((done) => setTimeout(done, 50)); for (;;);",
        )
        .limits(wall(400)),
    )
    .await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout), "{}", result.to_json());
    stopwatch.promise_of(
        result.usage.wall_time,
        Duration::from_millis(400) + LATE,
        "the limit of the wall clock",
    );
}

/// A call in flight keeps its own time limit: its server does not know of the prompt.
#[tokio::test]
async fn calls_in_flight_go_on_meanwhile() {
    let scripts = both(
        "const calls = [tools.chaos.slow({ ms: 1500 }), notes.delete({ id: 1 }), notes.list({ ms: 1500 })];
         return (await Promise.all(calls)).length",
        "return len(await asyncio.gather(tools.chaos.slow(ms=1500), notes.delete(id=1), notes.list(ms=1500)))",
    );
    for script in scripts {
        let directory = tempfile::tempdir().unwrap();
        let (notes, person) = (Notes::default(), Person::default());
        let builder = notes.builder().ask(["notes.delete"]);
        let executor = builder
            .mcp_server(chaos::stdio("chaos", &["well"], &directory.path().join("notes")))
            .approver(person.saying(&Approval::Approve, Duration::from_millis(2_500)))
            .build()
            .unwrap();
        for (_, connected) in executor.connect_servers().await {
            connected.unwrap();
        }
        let result = run(&executor, script.limits(wall(1_000))).await;
        assert_eq!(value(&result), &json!(3), "{}", result.to_json());
        executor.close().await;
    }
}

/// Its own slot stays taken, and no other one.
#[tokio::test]
async fn a_run_that_waits_for_a_person_holds_up_no_other() {
    let (notes, person) = (Notes::default(), Person::default());
    let builder =
        notes.builder().ask(["notes.delete"]).max_concurrent_runs(2).queue_timeout(Duration::from_millis(50));
    let executor = builder.approver(person.silent()).build().unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for (place, others) in [(1, Ok(json!(1))), (2, Err(ErrorCode::QueueFull))] {
        let executor_of_run = executor.clone();
        asking.spawn(async move { executor_of_run.run_ts("await notes.delete({})").await });
        wait_until(|| person.open.load(Ordering::SeqCst) == place).await;
        let other = executor.run_ts("return 1").await.unwrap();
        assert_eq!(other.value().cloned().ok_or_else(|| code(&other).unwrap()), others);
    }
    asking.shutdown().await;
    wait_until(|| person.open.load(Ordering::SeqCst) == 0).await;
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

/// Makes the server `chaos` list its tools again, and waits until the list is known.
async fn changed(executor: &Executor) {
    let definition = async || executor.run_ts("return await getToolSchema('chaos.pulled')").await.unwrap();
    let before = value(&definition().await).clone();
    assert_eq!(
        executor.run_ts("return await tools.chaos.add_tool({})").await.unwrap().value(),
        Some(&json!("added"))
    );
    let started = Instant::now();
    while *value(&definition().await) == before {
        assert!(started.elapsed() < WATCHDOG, "it never changed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Threat 166: the answer was about the tool as it was when the prompt was shown.
#[tokio::test]
async fn di_166_a_tool_that_changes_under_the_question_is_not_called() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let executor: Arc<Mutex<Option<Executor>>> = Arc::default();
    let approver = {
        let (person, executor) = (person.clone(), Arc::clone(&executor));
        move |request: ApprovalRequest| {
            let open = person.ask(&request);
            let (executor, is_first) = (executor.lock().clone().unwrap(), person.count() == 1);
            async move {
                // The server lists another definition while the person reads.
                let _open = open;
                if is_first {
                    changed(&executor).await;
                }
                Approval::Approve
            }
        }
    };
    let server = chaos::stdio("chaos", &["rug-pull"], &directory.path().join("notes"));
    let built = chaos::builder().mcp_server(server).ask(["chaos.pulled"]).approver(approver).build().unwrap();
    *executor.lock() = Some(built.clone());
    let source =
        "return await tools.chaos.pulled({ a: 1 }).then(() => [], (error) => [error.code, error.message])";
    let result = built.run_ts(source).await.unwrap();
    refused(&result, &Notes::default(), Refusal::Changed, &["changed while a person was asked"]);
    let noted = std::fs::read_to_string(directory.path().join("notes")).unwrap();
    assert!(!noted.contains("executed pulled"), "{noted}");
    // The second prompt is about the new definition, which no longer changes.
    let result = built.run_ts(source).await.unwrap();
    assert_eq!(statuses(&result), [ToolCallStatus::Ok], "{}", result.to_json());
    let descriptions: Vec<_> =
        person.asked.lock().iter().map(|request| request.description.clone().unwrap()).collect();
    assert_eq!(descriptions, ["Adds numbers", "Deletes everything"]);
    *executor.lock() = None;
    built.close().await;
}

/// Threats 154 and 166: a tool whose server adds `readOnlyHint` later still needs approval, and is not
/// called in a dry run.
#[tokio::test]
async fn tl_154_an_annotation_that_came_later_is_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let server = chaos::stdio("chaos", &["rug-pull", "annotations"], &directory.path().join("notes"));
    let executor = chaos::builder()
        .mcp_server(server)
        .state_directory(directory.path().join("state"))
        .ask(["destructive"])
        .read_only(["chaos.add_tool"])
        .approver(person.saying(&no(""), NOW))
        .build()
        .unwrap();
    let call = "return call_tool('chaos', 'pulled', { a: 1 }).ok";
    assert_eq!(executor.run_ts(call).await.unwrap().value(), Some(&json!(false)));
    changed(&executor).await;
    let hints = executor.run_ts("return (await getToolSchema('chaos.pulled')).annotations").await.unwrap();
    assert_eq!(value(&hints), &json!({ "readOnlyHint": true }));
    assert_eq!(executor.run_ts(call).await.unwrap().value(), Some(&json!(false)));
    assert_eq!(person.count(), 2);
    let dry = async || executor.run(Script::typescript(call).dry_run()).await.unwrap();
    assert_eq!(statuses(&dry().await), [ToolCallStatus::Simulated]);
    // Once a person has accepted the definition, its annotations count.
    assert_eq!(executor.accept_tools("chaos", Some("pulled")).unwrap(), 1);
    executor.refresh_tools().await;
    assert_eq!(statuses(&dry().await), [ToolCallStatus::Ok]);
    executor.close().await;
}

/// Copies the files of a directory, with their rights.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Threats 166 and 167: a remembered definition is enough to make a call, and not enough to skip a prompt.
#[tokio::test]
async fn di_167_an_annotation_from_before_is_looked_at_again() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let process = || {
        let server =
            chaos::stdio("chaos", &["rug-pull", "restart-annotations"], &directory.path().join("notes"));
        let builder = chaos::builder().mcp_server(server).ask(["destructive"]);
        let builder = builder.cache_directory(directory.path().join("cache"));
        let builder = builder.state_directory(directory.path().join("state"));
        builder.approver(person.saying(&no(""), NOW)).build().unwrap()
    };
    let call = "return call_tool('chaos', 'pulled', { a: 1 }).ok";
    let dry = Script::typescript(call).dry_run();
    let first = process();
    let called = first.run_ts(call).await.unwrap();
    assert_eq!(value(&called), &json!(true), "{:?}", person.asked.lock());
    assert_eq!(statuses(&first.run(dry.clone()).await.unwrap()), [ToolCallStatus::Ok]);
    assert_eq!(person.count(), 0, "it said that it only reads");
    first.close().await;
    copy(&directory.path().join("cache"), &directory.path().join("kept"));
    // In between, the tool has lost these annotations. The definition that the person is shown is also only remembered,
    // and their approval does not hold for the new one.
    let remembering = process();
    let yes = Script::typescript(call).ask(["chaos.pulled"]).approver(person.saying(&Approval::Approve, NOW));
    let result = remembering.run(yes).await.unwrap();
    assert_eq!(statuses(&result), [ToolCallStatus::NotApproved(Refusal::Changed)]);
    assert_eq!(person.asked.lock().drain(..).count(), 1);
    remembering.close().await;
    std::fs::remove_dir_all(directory.path().join("cache")).unwrap();
    std::fs::rename(directory.path().join("kept"), directory.path().join("cache")).unwrap();
    let second = process();
    assert_eq!(statuses(&second.run(dry).await.unwrap()), [ToolCallStatus::Simulated]);
    second.close().await;
    let third = process();
    assert_eq!(third.run_ts(call).await.unwrap().value(), Some(&json!(false)));
    assert_eq!(person.count(), 1);
    third.close().await;
    let noted = std::fs::read_to_string(directory.path().join("notes")).unwrap();
    assert_eq!(noted.matches("executed pulled").count(), 2, "{noted}");
}

/// The rules in a server's entry about its own tools.
#[tokio::test]
async fn a_server_has_lists_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let person = Person::default();
    let mut asking = chaos::stdio("asking", &["well"], &directory.path().join("asking"));
    asking.rules = ToolRules::new().ask(["c*", "open-world"]).read_only(["echo"]);
    let mut other = chaos::stdio("other", &["well"], &directory.path().join("other"));
    other.rules = ToolRules::new().ask(["destructive"]).read_only(["c*", "echo"]);
    let builder = chaos::builder().mcp_server(asking).mcp_server(other);
    let executor = builder.approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
    let source = "for (const server of ['asking', 'other'])
            for (const tool of ['count', 'echo', 'add_tool']) await tools[server][tool]({})";
    let result = executor.run_ts(source).await.unwrap();
    assert_eq!(code(&result), None, "{}", result.to_json());
    let asked: Vec<_> = person
        .asked
        .lock()
        .iter()
        .map(|request| format!("{} {}", request.call_text(), request.reason))
        .collect();
    let reaches = "it may reach beyond its server, and `ask` has `open-world`";
    let expected = [
        "asking.count `ask` names it: `asking.c*`".to_owned(),
        format!("asking.echo {reaches}"),
        format!("asking.add_tool {reaches}"),
        "other.add_tool it may destroy something, and `ask` has `destructive`".to_owned(),
    ];
    assert_eq!(asked, expected);
    let result = executor.run(Script::typescript(source).dry_run()).await.unwrap();
    let calls: Vec<_> =
        planned(&result).iter().map(|call| format!("{}.{}", call.server, call.tool)).collect();
    assert_eq!(calls, ["asking.count", "asking.add_tool", "other.add_tool"]);
    executor.close().await;
}

/// The policy holds for requests for resources and prompts as for tools.
#[tokio::test]
async fn tl_145_resources_are_asked_about_too() {
    let (notes, person) = (Notes::default(), Person::default());
    let executor =
        notes.builder().ask(["notes.resources/*"]).approver(person.saying(&no(""), NOW)).build().unwrap();
    let source = "return await mcp.readResource('notes', 'a://b').catch((error) => error.code)";
    let result = run(&executor, Script::typescript(source)).await;
    assert_eq!(value(&result), "TOOL_DENIED");
    let asked = person.asked.lock().clone();
    assert_eq!(
        (&*asked[0].tool, &asked[0].arguments),
        ("resources/read", json!({ "uri": "a://b" }).as_object().unwrap())
    );
    let source = "return await mcp.listPrompts('notes').catch((error) => error.code)";
    assert_eq!(value(&run(&executor, Script::typescript(source)).await), "TOOL_NOT_FOUND");
    assert_eq!(person.count(), 1);
}

fn planned(result: &ExecuteResult) -> &[PlannedCall] {
    result.planned_calls.as_deref().expect("a dry run")
}

#[tokio::test]
async fn a_dry_run_makes_no_call_that_is_not_read_only() {
    let scripts = both(
        "const listed = await notes.list({ id: 1 });
         const added = await notes.add({ id: 2, text: 'ü' });
         const removed = call_tool('notes', 'delete', { id: added.deleted.id });
         return [listed.left, added, removed]",
        "listed = await notes.list(id=1)
added = await notes.add(id=2, text='ü')
removed = call_tool('notes', 'delete', {'id': added['deleted']['id']})
return [listed['left'], added, removed]",
    );
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor =
            notes.builder().ask(["*"]).approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
        let result = run(&executor, script.clone().dry_run()).await;
        let added = json!({ "deleted": { "id": 5 }, "left": 1, "when": "2000-01-01" });
        let removed = json!({ "ok": true, "result": { "dry run": true } });
        assert_eq!(value(&result), &json!([3, added, removed]));
        assert_eq!(*notes.calls.lock(), [("list", r#"{"id":1}"#.to_owned())]);
        // A call that is made still needs approval, and simulated ones do not.
        assert_eq!(person.count(), 1);
        let calls: Vec<_> =
            planned(&result).iter().map(|call| (&*call.server, &*call.tool, &call.arguments)).collect();
        let arguments = [json!({ "id": 2, "text": "ü" }), json!({ "id": 5 })].map(cx::Json::from);
        assert_eq!(calls, [("notes", "add", &arguments[0]), ("notes", "delete", &arguments[1])]);
        let report = result.to_json();
        assert_eq!(
            report["plannedCalls"],
            json!([
                { "tool": "mcp__notes__add", "arguments": arguments[0] },
                { "tool": "mcp__notes__delete", "arguments": arguments[1] },
            ])
        );
        let stubbed = ToolCallStatus::Simulated;
        assert_eq!(statuses(&result), [ToolCallStatus::Ok, stubbed, stubbed]);
        assert_eq!(report["toolCallsMade"], 1, "{report:#}");
        assert!(report.get("toolCallsRefused").is_none(), "{report:#}");
        // The next dry run returns a sample of what the tool was seen to return.
        let real = run(&executor, script.clone()).await;
        assert!(real.planned_calls.is_none() && real.to_json().get("plannedCalls").is_none());
        assert_eq!(notes.count(), 4);
        let again = run(&executor, script.dry_run()).await;
        assert_eq!(value(&again)[2]["result"], json!({ "deleted": { "id": 1 }, "left": 1 }));
        assert_eq!(notes.count(), 5, "only `list` again");
    }
}

/// Everything else about the run is the same.
#[tokio::test]
async fn a_dry_run_obeys_policy_schemas_and_limits() {
    let notes = Notes::default();
    let executor = notes.builder().deny(["notes.add"]).read_only(["notes.nothing"]).build().unwrap();
    let source = "const codes = [];
        for (const call of [() => notes.add({}), () => notes.delete({ id: 'x' }), () => notes.remove({})])
            codes.push(await call().catch((error) => error.code));
        return codes";
    let result = run(&executor, Script::typescript(source).dry_run()).await;
    assert_eq!(value(&result), &json!(["TOOL_DENIED", "INVALID_ARGUMENTS", "TOOL_NOT_FOUND"]));
    assert!(planned(&result).is_empty() && result.to_json()["plannedCalls"] == json!([]));
    let limits = Limits { tool_calls: 2, ..Limits::default() };
    let result =
        run(&executor, Script::typescript("for (;;) await notes.delete({})").limits(limits).dry_run()).await;
    assert_eq!(code(&result), Some(ErrorCode::MaxToolCallsExceeded));
    assert_eq!(planned(&result).len(), 2, "a run that fails still says what it would have called");
    // A person declares tools as read-only, in general and for one server.
    let executor = notes.builder().read_only(["notes.delete"]).build().unwrap();
    let result = run(&executor, Script::python("await notes.delete(id=1)").dry_run()).await;
    assert_eq!((planned(&result).len(), notes.count()), (0, 1));
}

#[tokio::test]
async fn planned_calls_have_bounds() {
    let notes = Notes::default();
    let executor = notes.builder().build().unwrap();
    let limits = Limits { tool_calls: 0, ..Limits::default() };
    let source = "for (let id = 0; id < 1_100; id++) await notes.delete({ id })";
    let result = run(&executor, Script::typescript(source).limits(limits).dry_run()).await;
    assert_eq!((planned(&result).len(), result.usage.planned_calls_dropped), (PlannedCall::KEPT, 100));
    assert_eq!(result.to_json()["plannedCallsDropped"], 100);
    let source = "for (let id = 0; id < 5; id++) await notes.delete({ id, text: 'x'.repeat(300_000) })";
    let result = run(&executor, Script::typescript(source).dry_run()).await;
    assert_eq!((planned(&result).len(), result.usage.planned_calls_dropped), (3, 2));
    assert_eq!(notes.count(), 0);
    // Arguments may be secrets.
    assert!(!format!("{result:?}").contains("xxx"));
}

/// The command in a directory with a configuration that requires approval, and a server that records its calls.
struct Place(tempfile::TempDir);

impl Place {
    fn new(config: Value) -> Self {
        Self::with("well", config)
    }

    /// The server's mode of `tests/chaos`.
    fn with(mode: &str, config: Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self(directory);
        let mut config = config;
        let notes = place.path("notes").display().to_string();
        config["mcpServers"] =
            json!({ "chaos": { "command": chaos::program(), "args": ["stdio", mode, "--notes", notes] } });
        std::fs::create_dir_all(place.path(".config/cx")).unwrap();
        std::fs::write(place.path(".config/cx/config.json"), config.to_string()).unwrap();
        place
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.current_dir(self.0.path()).env_clear().env("HOME", self.0.path()).env("PATH", path);
        command
    }

    fn cx(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_cx")));
        command.arg("run").args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs the command at a terminal where a user types `answer` when asked, and returns what is on the screen and
    /// the exit status.
    fn at_terminal(&self, answer: &str, arguments: &[&str]) -> (String, Option<i32>) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
        let mut command = self.command(Path::new("python3"));
        command.arg(script).arg(answer).arg(env!("CARGO_BIN_EXE_cx")).arg("run").args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut screen = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut screen).unwrap();
        let status = child.wait().unwrap();
        (String::from_utf8_lossy(&screen).replace('\r', ""), status.code())
    }

    fn was_called(&self, tool: &str) -> bool {
        let noted = std::fs::read_to_string(self.path("notes")).unwrap_or_default();
        noted.contains(&format!("executed {tool}"))
    }
}

const ECHO: &str = "return (await tools.chaos.echo({ a: 'x\\u001b[2K\\u202e', n: [1] })).n";

#[test]
fn the_command_without_a_terminal_refuses() {
    let place = Place::new(json!({ "ask": ["chaos.echo"] }));
    for arguments in
        [&["-e", ECHO][..], &["--ask", "destructive", "-e", ECHO], &["--allow", "chaos.echo", "-e", ECHO]]
    {
        let output = place.cx(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("TOOL_DENIED") && said.contains("takes `chaos.echo` out of `ask`"), "{said}");
    }
    assert!(!place.was_called("echo"));
}

/// A script whose call makes the server ask for a size, which has a default, and a color.
fn asking() -> String {
    let properties = json!({
        "size": { "type": "integer", "default": 2 },
        "color": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": ["color"] });
    let params = json!({ "message": "which\u{1b}[2J one?", "requestedSchema": schema });
    let arguments = json!({ "method": "elicitation/create", "params": params });
    format!(
        "const {{ result }} = (await tools.chaos.target({arguments})).answer; return JSON.stringify(result)"
    )
}

#[test]
fn a_server_asks_at_the_terminal() {
    let place = Place::with("elicits", json!({}));
    let script = asking();
    // Yes; the default; a color that does not exist, and one by its number.
    let (screen, status) = place.at_terminal("y\n\ngreen\n2", &["-e", &script]);
    assert_eq!(status, Some(0), "{screen}");
    for part in [
        "The server `chaos` asks in a call of `target`.",
        "\n> which\\u{1b}[2J one?\n",
        "size [2]> ",
        "  2. b (Blue)\n",
        "the field `color` expects one of `r`, `b`",
        r#"{\"action\":\"accept\",\"content\":{\"size\":2,\"color\":\"b\"}}"#,
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    // Text that was typed before the question does not answer it.
    let (screen, _) = place.at_terminal("n", &["-e", &script]);
    assert!(screen.contains(r#"{\"action\":\"decline\"}"#) && !screen.contains("size"), "{screen}");
}

/// An address is shown, and cx does not open it.
#[test]
fn a_server_names_an_address_at_the_terminal() {
    let place = Place::with("elicits", json!({}));
    let params = json!({
        "mode": "url", "message": "sign in", "url": "https://example.com/in?a=1", "elicitationId": "1"
    });
    let arguments = json!({ "method": "elicitation/create", "params": params });
    let script = format!("return (await tools.chaos.target({arguments})).answer.result.action");
    for (answer, action) in [("y", "accept"), ("n", "decline"), ("", "decline")] {
        let (screen, status) = place.at_terminal(answer, &["-e", &script]);
        assert_eq!(status, Some(0), "{screen}");
        for part in [
            "The server `chaos` asks in a call of `target`.",
            "\nAddress: https://example.com/in?a=1\n",
            "Open it in a browser if you trust it with this. Do you? [y/N] ",
        ] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
        assert!(screen.contains(&format!("\"{action}\"")), "{answer}: {screen}");
    }
}

#[test]
fn the_command_without_a_terminal_declares_no_questions() {
    let place = Place::with("elicits", json!({}));
    let source =
        asking().replace("const { result } =", "const { error } =").replace("(result)", "(error.code)");
    let output = place.cx(&["-e", &source]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "\"-32601\"", "{output:?}");
}

#[test]
fn the_command_asks_at_the_terminal() {
    let place = Place::new(json!({}));
    let arguments = ["--ask", "chaos.echo", "-e", ECHO];
    for (answer, expected) in
        [("n", "refused"), ("", "refused"), ("maybe later", "maybe later"), ("yy", "yy")]
    {
        let (screen, status) = place.at_terminal(answer, &arguments);
        assert_eq!(status, Some(1), "{answer}: {screen}");
        assert!(screen.contains("TOOL_DENIED") && screen.contains(expected), "{answer}: {screen}");
    }
    assert!(!place.was_called("echo"));
    let (screen, status) = place.at_terminal("y", &arguments);
    assert_eq!(status, Some(0), "{screen}");
    assert!(place.was_called("echo"));
    for shown in [
        "The script `eval.ts` asks to call chaos.echo\n",
        "because: `ask` names it: `chaos.echo`\n",
        "      \"a\": \"x\\u001b[2K\\u202e\",\n      \"n\": [\n        1\n      ]\n",
        "Make this call of chaos.echo, exactly as shown, once? [y/N, or why not] ",
    ] {
        assert!(screen.contains(shown), "{shown}: {screen}");
    }
    assert!(!screen.contains('\u{202e}') && !screen.contains("x\u{1b}[2K"), "{screen:?}");
}

/// Output that a script prints while a question is open comes after the answer: it cannot print a false question below.
#[test]
fn a_script_cannot_write_under_the_question() {
    let place = Place::new(json!({ "ask": ["chaos.echo"] }));
    let source = "const call = tools.chaos.echo({ n: 1 });
        const printing = (async () => { for (let i = 0; i < 20; i++) {
            console.log('FORGED'); await new Promise((done) => setTimeout(done, 50)) } })();
        await call; await printing; return 'end'";
    let (screen, status) = place.at_terminal("y", &["-e", source]);
    assert_eq!(status, Some(0), "{screen}");
    let question = screen.find("asks to call").unwrap();
    let answered = screen.find("or why not] ").unwrap();
    assert!(!screen[question..answered].contains("FORGED"), "{screen}");
    assert_eq!(screen.matches("FORGED").count(), 20, "{screen}");
    // The helper marks where the answer was typed, half a second after the question.
    let typed = screen.find("<typed>").unwrap();
    assert!(!screen[answered..typed].contains("FORGED"), "{screen}");
}

#[test]
fn the_command_makes_a_dry_run() {
    let place = Place::new(json!({ "readOnly": ["chaos.count"] }));
    let source = "await tools.chaos.count({}); return await tools.chaos.echo({ a: 'b' })";
    let output = place.cx(&["--dry-run", "-e", source]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"dry run\":true}\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "dry run: 1 call was not made:\n  chaos.echo {\"a\":\"b\"}\n");
    assert!(place.was_called("count") && !place.was_called("echo"));
    let output = place.cx(&["--dry-run", "--json", "-e", source]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["plannedCalls"], json!([{ "tool": "mcp__chaos__echo", "arguments": { "a": "b" } }]));
}
