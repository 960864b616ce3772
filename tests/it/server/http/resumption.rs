//! Calls that go on without their connection, and streams that are resumed with `Last-Event-ID`.

use std::time::Duration;

use super::*;
use crate::support::serve_http::wait_within;

/// Shorter than the run's own time limit, at which its calls are cancelled anyway.
const SOON: Duration = Duration::from_secs(15);

/// Prints a line, and ends when another script of the session says so.
const WAITS: &str = "console.info('first');
    while (!(await state.get('go'))) await new Promise((done) => setTimeout(done, 20));
    console.info('second'); return 42";

fn with_metrics() -> Server {
    Server::start(Start::new().server("slow", &["hang-call"]).arguments(&["--metrics"]))
}

/// Reads the first event of a stream, and returns its id.
fn first_event(reply: &mut Reply) -> String {
    let (id, message) = reply.event().unwrap();
    assert_eq!(message, None);
    id.unwrap()
}

/// Waits until the server has no connection but the one that asks.
fn wait_until_cut(server: &Server) {
    wait_for(|| {
        let text = server.get("/metrics", &[]).body();
        text.lines().any(|line| line == "cx_http_connections 1").then_some(())
    });
}

/// The lines that a run has printed, and the value in its answer.
fn read_rest(mut reply: Reply) -> (Vec<Value>, Value) {
    assert_eq!(reply.status, 200);
    let (mut lines, mut answer) = (Vec::new(), Value::Null);
    while let Some(message) = reply.next() {
        if message["method"] == "notifications/message" {
            lines.push(message["params"]["data"].clone());
        } else {
            answer = message;
        }
    }
    assert_eq!(answer["id"], 7, "{answer}");
    (lines, answer["result"]["structuredContent"]["value"].clone())
}

#[test]
fn a_run_goes_on_without_its_connection_and_its_stream_is_resumed() {
    let server = with_metrics();
    let session = server.session();
    let level = session.begin(1, "logging/setLevel", json!({ "level": "info" })).message();
    assert!(level["result"].is_object(), "{level}");
    let mut cut = session.begin_run(7, WAITS);
    let first = first_event(&mut cut);
    let (second, line) = cut.event().unwrap();
    assert_eq!(line.unwrap()["params"]["data"], "first");
    drop(cut);
    wait_until_cut(&server);
    // In the middle, also while the client has a standalone stream, and again: the newer one has the stream.
    let _listening = session.listen();
    let mut replaced = session.resume(&first);
    assert_eq!(replaced.next().unwrap()["params"]["data"], "first");
    let resumed = session.resume(&second.unwrap());
    assert_eq!(replaced.next(), None);
    assert_eq!(session.run("await state.set('go', true); return 1")["value"], 1);
    assert_eq!(read_rest(resumed), (vec![json!("second")], json!(42)));
    // The client need not have received what was written to its connection.
    assert_eq!(read_rest(session.resume(&first)), (vec![json!("first"), json!("second")], json!(42)));
}

#[test]
fn a_run_that_has_ended_without_its_connection_is_answered() {
    let server = with_metrics();
    let session = server.session();
    let mut cut = session.begin_run(7, WAITS);
    let first = first_event(&mut cut);
    drop(cut);
    wait_until_cut(&server);
    // On a busy machine its engine may still be starting.
    server.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    assert_eq!(session.run("await state.set('go', true); return 1")["value"], 1);
    server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    assert_eq!(read_rest(session.resume(&first)), (Vec::new(), json!(42)));
}

#[test]
fn a_run_without_its_connection_ends_when_its_client_says_so() {
    let server = with_metrics();
    let cancelled = || server.notes("slow").matches("cancelled").count();
    let [cancelling, ending] = [server.session(), server.session()];
    let begin = |session: &Session<'_>, number: usize| {
        let mut cut = session.begin_run("long", HANGS);
        let first = first_event(&mut cut);
        wait_for(|| (server.notes("slow").matches("executed target").count() == number).then_some(()));
        drop(cut);
        wait_until_cut(&server);
        first
    };
    let first = begin(&cancelling, 1);
    let params = json!({ "requestId": "long" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    assert_eq!(cancelling.post(&cancel).status, 202);
    wait_within(SOON, || (cancelled() == 1).then_some(()));
    // It gets no answer, so that nothing comes.
    assert_eq!(cancelling.resume(&first).status, 204);
    let first = begin(&ending, 2);
    assert_eq!(ending.delete(), 202);
    wait_within(SOON, || (cancelled() == 2).then_some(()));
    assert_eq!(ending.resume(&first).status, 404);
}

#[test]
fn events_have_ids_in_the_revision_that_resumes_streams() {
    let server = Server::plain();
    let session = server.session();
    let mut ids = std::collections::BTreeSet::new();
    for number in 1..=3 {
        let mut reply = session.begin_run(number, "return 1");
        let id = first_event(&mut reply);
        let (answer, message) = reply.event().unwrap();
        assert_eq!(message.unwrap()["id"], number);
        let answer = answer.unwrap();
        assert_eq!(session.resume(&answer).status, 204, "nothing comes after the answer");
        assert!(ids.insert(id) && ids.insert(answer), "{ids:?}");
        assert!(reply.event().is_none());
    }
    let earlier = server.session_without_resumption();
    let mut reply = earlier.begin_run(1, "return 1");
    let (id, message) = reply.event().unwrap();
    assert_eq!((id, &message.unwrap()["id"]), (None, &json!(1)));
    // What is no event of a session's streams.
    for event in ["0-0", "1-9", "99-0", "x", "\"", &"9".repeat(1_000)] {
        assert_eq!(session.resume(event).status, 400, "{event}");
    }
    let known = ids.first().unwrap();
    assert_eq!(session.resume(known).status, 200);
    for other in [&earlier, &server.session()] {
        assert_eq!(other.resume(known).status, 400);
    }
    assert_eq!(session.delete(), 202);
    assert_eq!(session.resume(known).status, 404);
}
