use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio_util::sync::DropGuard;

use super::{Caller, MAX_CALLERS, MAX_OF_CALL, MAX_OPEN, MAX_QUESTION_BYTES, Questions, Refused, Reply};
use crate::mcp::answers::RequestTrace;
use crate::mcp::settings::{McpServer, Root};
use crate::tools::{ElicitationAnswer, ElicitationHandler, ElicitationRequest};

fn process() -> McpServer {
    McpServer::stdio("s", "true")
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

/// A run's user, who accepts everything with nothing, and what they were asked.
fn user() -> (ElicitationHandler, Arc<Mutex<Vec<ElicitationRequest>>>) {
    let asked: Arc<Mutex<Vec<ElicitationRequest>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let handler: ElicitationHandler = Arc::new(move |request| {
        seen.lock().push(request);
        async { Ok(ElicitationAnswer::Accept(Map::new())) }.boxed()
    });
    (handler, asked)
}

/// A run's user who never answers.
fn absent() -> ElicitationHandler {
    Arc::new(|_request| futures::future::pending().boxed())
}

fn call(handler: Option<&ElicitationHandler>) -> (Arc<Caller>, DropGuard) {
    Caller::new(&Arc::from("s"), &Arc::from("t"), handler.cloned(), RequestTrace::default())
}

fn form() -> Value {
    json!({ "message": "who?", "requestedSchema": { "type": "object", "properties": {} } })
}

fn address(url: &str) -> Value {
    json!({ "mode": "url", "message": "open it", "url": url, "elicitationId": "1" })
}

/// The answer to a question that may belong to these calls.
async fn answer(questions: &Arc<Questions>, id: &str, parameters: &Value, callers: &[&Arc<Caller>]) -> Value {
    let id = RawValue::from_string(id.to_owned()).unwrap();
    let callers = || callers.iter().map(|caller| Arc::clone(caller)).collect();
    match questions.answer("elicitation/create", &id, Some(&raw(parameters)), callers) {
        Reply::None => Value::Null,
        Reply::Now(answer) => answer,
        Reply::Later(answer) => answer.await.unwrap_or_default(),
    }
}

#[tokio::test]
async fn a_question_reaches_the_user_of_the_call() {
    let questions = Questions::new(&process());
    let (handler, asked) = user();
    let (caller, _over) = call(Some(&handler));
    let answered = answer(&questions, "\"q\"", &form(), &[&caller]).await;
    assert_eq!(
        answered,
        json!({ "jsonrpc": "2.0", "id": "q", "result": { "action": "accept", "content": {} } })
    );
    let asked = asked.lock().pop().unwrap();
    assert_eq!((asked.server.as_str(), asked.tool.as_deref()), ("s", Some("t")));
    assert!(asked.render().starts_with("The server `s` asks in a call of `t`."), "{}", asked.render());
}

/// A question that cannot be assigned to one run is put to no user: another client could be asked.
#[tokio::test]
async fn a_question_of_several_runs_is_put_to_no_user() {
    let questions = Questions::new(&process());
    let ((one, asked), (other, also_asked)) = (user(), user());
    let ((first, _a), (second, _b)) = (call(Some(&one)), call(Some(&other)));
    let (unasked, _c) = call(None);
    for callers in [&[&first, &second][..], &[&first, &unasked], &[&unasked, &unasked], &[&unasked], &[]] {
        let answered = answer(&questions, "1", &form(), callers).await;
        assert_eq!(answered["error"]["code"], -32600, "{answered}");
    }
    assert!(asked.lock().is_empty() && also_asked.lock().is_empty());
    // Two calls of one run have one user, and it is not known which of them asks.
    let (same, _d) = call(Some(&one));
    let answered = answer(&questions, "1", &form(), &[&first, &same]).await;
    assert_eq!(answered["result"]["action"], "accept");
    assert_eq!(asked.lock().pop().unwrap().tool, None);
}

/// A call that goes on as a task is in flight also while no request of it is pending.
#[tokio::test]
async fn v_633_a_question_says_of_which_task_it_is() {
    let questions = Questions::new(&process());
    let ((one, asked), (other, also_asked)) = (user(), user());
    let ((first, _a), (second, _b)) = (call(Some(&one)), call(Some(&other)));
    assert!(questions.begin_task("t", &first).is_some());
    assert!(questions.begin_task("t", &second).is_none());
    let in_flight =
        |pending: &[&Arc<Caller>]| questions.in_flight(pending.iter().map(|caller| Arc::clone(caller)));
    // It could be that of the task, whose user is another one.
    let all = in_flight(&[&second]);
    assert_eq!(all.len(), 2);
    let both: Vec<&Arc<Caller>> = all.iter().collect();
    assert_eq!(answer(&questions, "1", &form(), &both).await["error"]["code"], -32600);
    // A request about the task is no second call.
    assert_eq!(in_flight(&[&first, &first]).len(), 1);
    let named = |task: &str| {
        let mut question = form();
        question["_meta"] = json!({ "io.modelcontextprotocol/related-task": { "taskId": task } });
        question
    };
    assert_eq!(answer(&questions, "1", &named("t"), &[&second]).await["result"]["action"], "accept");
    assert_eq!(answer(&questions, "1", &named("u"), &[&second]).await["error"]["code"], -32600);
    questions.end_task("t");
    assert_eq!(answer(&questions, "1", &named("t"), &[&second]).await["error"]["code"], -32600);
    assert_eq!((asked.lock().len(), also_asked.lock().len()), (1, 0));
}

#[tokio::test]
async fn a_server_of_the_configuration_asks_no_user() {
    let (handler, asked) = user();
    let (caller, _over) = call(Some(&handler));
    let off = Questions::new(&process().elicitation(false));
    assert_eq!(answer(&off, "1", &form(), &[&caller]).await["error"]["code"], -32601);
    assert!(matches!(off.ask(&caller, Some(&raw(&form()))).await, Err(Refused::Off)));
    assert!(off.capabilities(true).elicitation.is_none());
    assert!(asked.lock().is_empty());
    assert!(Questions::new(&process()).capabilities(true).elicitation.is_some());
    assert!(Questions::new(&process()).capabilities(false).elicitation.is_none());
}

#[tokio::test]
async fn a_user_is_sent_to_no_address_but_one_of_the_web() {
    let (handler, asked) = user();
    let (caller, _over) = call(Some(&handler));
    let here = Questions::new(&process());
    let remote = Questions::new(&McpServer::http("s", "https://mcp.example.com/mcp".parse().unwrap()));
    for (url, from_here, from_remote) in [
        ("https://example.com/pay?x=1", true, true),
        ("http://localhost:8080/", true, false),
        ("https://localhost/", true, false),
        ("http://127.0.0.1:631/", true, false),
        ("http://example.com/", false, false),
        ("https://bank.example@example.com/", false, false),
        ("javascript:alert(1)", false, false),
        ("file:///etc/passwd", false, false),
        ("data:text/html,x", false, false),
        ("", false, false),
    ] {
        for (questions, may) in [(&here, from_here), (&remote, from_remote)] {
            let answered = answer(questions, "1", &address(url), &[&caller]).await;
            assert_eq!(answered["result"]["action"] == "accept", may, "{url}: {answered}");
        }
    }
    assert_eq!(asked.lock().len(), 5);
    let long = format!("https://example.com/{}", "x".repeat(9_000));
    assert!(answer(&here, "1", &address(&long), &[&caller]).await.get("error").is_some());
}

#[tokio::test]
async fn what_is_no_question_is_refused() {
    let questions = Questions::new(&process());
    let (handler, asked) = user();
    let (caller, _over) = call(Some(&handler));
    let long = json!({ "message": "x".repeat(MAX_QUESTION_BYTES), "requestedSchema": { "type": "object" } });
    let nested = json!({ "message": "x", "requestedSchema": { "type": "object",
        "properties": { "a": { "type": "object" } } } });
    for parameters in [long, nested, json!({}), json!([]), json!({ "mode": "voice", "message": "x" })] {
        let answered = answer(&questions, "1", &parameters, &[&caller]).await;
        assert!(answered.get("error").is_some(), "{answered}");
    }
    assert!(asked.lock().is_empty());
}

#[tokio::test]
async fn open_questions_are_bounded_and_end_with_the_call() {
    let questions = Questions::new(&process());
    let handler = absent();
    let (caller, over) = call(Some(&handler));
    let begin = |number: usize| {
        let id = RawValue::from_string(number.to_string()).unwrap();
        questions.answer("elicitation/create", &id, Some(&raw(&form())), || vec![Arc::clone(&caller)])
    };
    let mut open: Vec<_> = (0..MAX_OPEN).map(begin).collect();
    assert!(open.iter().all(|reply| matches!(reply, Reply::Later(_))));
    let Reply::Now(refused) = begin(MAX_OPEN) else { panic!("one too many is open") };
    assert_eq!(refused["error"]["code"], -32600);
    // The server withdraws one, and gets no answer to it.
    questions.cancelled(Some(&raw(&json!({ "requestId": 3 }))));
    let Reply::Later(withdrawn) = open.remove(3) else { panic!("an open question") };
    assert_eq!(withdrawn.await, None);
    let Reply::Later(last) = begin(MAX_OPEN) else { panic!("there is room for one") };
    drop(open);
    drop(over);
    let ended = tokio::time::timeout(Duration::from_secs(60), last).await.expect("its call is over").unwrap();
    assert!(ended["error"]["message"].as_str().unwrap().contains("the run is over"), "{ended}");
    assert!(questions.open.lock().is_empty());
}

/// A server that asks hundreds of questions while many calls are in flight.
#[tokio::test]
async fn v_536_a_flood_of_questions_does_not_touch_the_calls() {
    let questions = Questions::new(&process());
    let handler = absent();
    let (caller, _over) = call(Some(&handler));
    let begin = |number: usize, callers: &dyn Fn() -> Vec<Arc<Caller>>| {
        let id = RawValue::from_string(number.to_string()).unwrap();
        questions.answer("elicitation/create", &id, Some(&raw(&form())), callers)
    };
    let one = || vec![Arc::clone(&caller)];
    let _open: Vec<_> = (0..MAX_OPEN).map(|number| begin(number, &one)).collect();
    for number in [MAX_OPEN, 0] {
        let Reply::Now(refused) = begin(number, &|| panic!("the calls are not looked at")) else {
            panic!("one too many is open")
        };
        assert_eq!(refused["error"]["message"], "at most 16 questions can be open");
    }

    // A user who answers at once, or is asked nothing because the run has asked enough.
    let questions = Questions::new(&process());
    let (handler, asked) = user();
    let (caller, _over) = call(Some(&handler));
    for number in 0..2 * MAX_OF_CALL {
        let answered = answer(&questions, "1", &form(), &[&caller]).await;
        assert_eq!(answered.get("error").is_some(), number >= MAX_OF_CALL, "{number}: {answered}");
    }
    assert_eq!(asked.lock().len(), MAX_OF_CALL);
    let (next, _next_over) = call(Some(&handler));
    assert_eq!(answer(&questions, "1", &form(), &[&next]).await["result"]["action"], "accept");
    let many = vec![&next; MAX_CALLERS + 1];
    assert_eq!(answer(&questions, "1", &form(), &many).await["error"]["code"], -32600);
}

#[tokio::test]
async fn roots_are_those_of_the_configuration() {
    let ask = |questions: &Arc<Questions>| {
        let id = RawValue::from_string("1".to_owned()).unwrap();
        let Reply::Now(answer) = questions.answer("roots/list", &id, None, Vec::new) else {
            panic!("roots are known")
        };
        answer
    };
    let root = Root::from_directory("/srv/my data").unwrap();
    let some = Questions::new(&process().root(root));
    let told = json!([{ "uri": "file:///srv/my%20data", "name": "my data" }]);
    assert_eq!(ask(&some)["result"]["roots"], told);
    assert!(some.capabilities(false).roots.is_some());
    let none = Questions::new(&process());
    assert_eq!(ask(&none)["error"]["code"], -32601);
    assert!(none.capabilities(true).roots.is_none());
    assert_eq!(Root::from_directory("relative"), None);
}
