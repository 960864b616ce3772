//! Behavior that only a test inside the process can provoke.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex, split,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::run_answer::answer_run;
use super::{Server, ServerOptions, ShutdownReason};
use crate::error::{Error, OptionName};
use crate::executor::Executor;
use crate::run::history::HistoryLimits;
use crate::run::script::Language;

/// Fails a test that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// A client of a server in this process.
struct Client {
    reader: BufReader<tokio::io::ReadHalf<DuplexStream>>,
    writer: tokio::io::WriteHalf<DuplexStream>,
}

impl Client {
    fn new(server: &Server, stop: &CancellationToken) -> (Self, tokio::task::JoinHandle<ShutdownReason>) {
        let (ours, theirs) = duplex(1 << 16);
        let (reader, writer) = split(theirs);
        let (server, stop) = (server.clone(), stop.clone());
        let serving = tokio::spawn(async move { server.serve(reader, writer, &stop).await });
        let (reader, writer) = split(ours);
        (Self { reader: BufReader::new(reader), writer }, serving)
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.writer.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        let read = timeout(WATCHDOG, self.reader.read_line(&mut line)).await;
        read.expect("the server answers").unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn server() -> Server {
    Server::new(Executor::builder().build().unwrap(), ServerOptions::default())
}

/// Threat 204.
#[tokio::test]
async fn mp_204_a_panic_is_an_error_of_its_request() {
    let (mut client, _serving) = Client::new(&server(), &CancellationToken::new());
    for _ in 0..3 {
        let answer = client.request("test/panic", json!({})).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("failed to handle this request"));
    }
    let answer = client.request("tools/list", json!({})).await;
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 3);
}

/// A change of the tools waits for what reads their version, so that must not wait for the change.
#[test]
fn a_list_is_made_while_tools_come_and_go() {
    let server = server();
    let executor = server.shared.executor.clone();
    let (sender, ended) = std::sync::mpsc::channel();
    let lists = sender.clone();
    std::thread::spawn(move || {
        for _ in 0..20_000 {
            server.shared.tools();
        }
        lists.send(())
    });
    std::thread::spawn(move || {
        let schema = json!({ "type": "object" });
        for _ in 0..2_000 {
            executor
                .add_tool("s.t", schema.clone(), |_: Value| async { Ok::<_, String>(Value::Null) })
                .unwrap();
            executor.remove_tool("s.t");
        }
        sender.send(())
    });
    for _ in 0..2 {
        ended.recv_timeout(WATCHDOG).expect("no caller waits for ever");
    }
}

/// A model can only change what it can write.
#[tokio::test]
async fn errors_of_options_name_the_parameters_of_the_tools() {
    let server = server();
    for (option, parameter) in [
        (OptionName::WallTime, "timeoutMs"),
        (OptionName::ToolCalls, "maxToolCalls"),
        (OptionName::Session, "session"),
    ] {
        let error = Error::InvalidOptions { option, problem: "is too much".to_owned() };
        let answer = answer_run(&server.shared, "client", Language::TypeScript, Err(error), None).await;
        let error = &answer.structured["error"];
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{error}");
        assert_eq!(error["message"], format!("`{parameter}`: is too much"));
    }
    // A cause that is in the text already is said once.
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, "broken");
    let answer = answer_run(
        &server.shared,
        "client",
        Language::TypeScript,
        Err(Error::Files { what: "x", source }),
        None,
    )
    .await;
    assert_eq!(answer.structured["error"]["message"], "x cannot be read or written: broken");
}

#[tokio::test]
async fn the_output_schema_of_health_names_the_fields_that_are_sent() {
    let (mut client, _serving) = Client::new(&server(), &CancellationToken::new());
    let list = client.request("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "health").unwrap();
    let answer = client.request("tools/call", json!({ "name": "health" })).await;
    let names =
        |object: &Value| -> BTreeSet<String> { object.as_object().unwrap().keys().cloned().collect() };
    let mut named = names(&tool["outputSchema"]["properties"]);
    if !cfg!(target_os = "linux") {
        named.remove("residentBytes");
    }
    // Sent only if a workspace file waits for trust, there is a configuration, or something is granted.
    assert!(named.remove("hint") && named.remove("config") && named.remove("grants"));
    assert_eq!(names(&answer["result"]["structuredContent"]), named);
    // What is refused has none of these fields.
    let wrong = json!({ "name": "health", "arguments": { "x".repeat(1_000): 1 } });
    let refused = client.request("tools/call", wrong).await["result"].clone();
    assert_eq!((&refused["isError"], refused.get("structuredContent")), (&json!(true), None), "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("INVALID_ARGUMENTS: `health` takes no parameters") && text.len() < 200,
        "{text}"
    );
}

/// A failed start is reported whatever its cause, and no longer reported when the engine has
/// started after all.
#[tokio::test]
async fn an_engine_that_does_not_start_is_not_healthy() {
    let server = server();
    let (mut client, _serving) = Client::new(&server, &CancellationToken::new());
    let health = json!({ "name": "health" });
    assert_eq!(
        client.request("tools/call", health.clone()).await["result"]["structuredContent"]["healthy"],
        true
    );
    let failure = Error::Start {
        what: "Python",
        source: std::io::Error::new(std::io::ErrorKind::OutOfMemory, "no memory"),
    };
    server.shared.record_start(Language::Python, Some(&failure));
    let sick = client.request("tools/call", health.clone()).await["result"]["structuredContent"].clone();
    assert_eq!(sick["healthy"], false, "{sick}");
    assert_eq!(sick["engines"]["python"]["error"], "failed to start Python: no memory");
    server.shared.record_start(Language::Python, None);
    assert_eq!(client.request("tools/call", health).await["result"]["structuredContent"]["healthy"], true);
}

#[tokio::test]
async fn clients_of_one_server_end_apart() {
    let server = server();
    let (stop, other_stop) = (CancellationToken::new(), CancellationToken::new());
    let (mut first, first_ends) = Client::new(&server, &stop);
    let (mut second, second_ends) = Client::new(&server, &other_stop);
    let run = json!({ "name": "executeTypescript", "arguments": { "code": "return 1" } });
    assert_eq!(first.request("tools/call", run.clone()).await["result"]["structuredContent"]["value"], 1);
    stop.cancel();
    assert_eq!(first_ends.await.unwrap(), ShutdownReason::Stopped);
    assert_eq!(second.request("tools/call", run).await["result"]["structuredContent"]["value"], 1);
    drop(second);
    assert_eq!(second_ends.await.unwrap(), ShutdownReason::ClientGone);
}

#[tokio::test]
async fn a_run_record_is_visible_to_its_client_only() {
    let executor = Executor::builder().keep_runs(HistoryLimits::default()).build().unwrap();
    let server = Server::new(executor.clone(), ServerOptions::default());
    let stop = CancellationToken::new();
    let (mut first, first_ends) = Client::new(&server, &stop);
    let (mut second, _serving) = Client::new(&server, &stop);
    let run = json!({ "name": "executeTypescript", "arguments": { "code": "return 'x'.repeat(30000)" } });
    let answer = first.request("tools/call", run).await;
    let id = answer["result"]["structuredContent"]["runId"].as_str().unwrap().to_owned();
    let by_script = json!({
        "name": "executeTypescript",
        "arguments": {
            "code": "try { return (await mcp.run(input)).value.length } catch (error) { return error.message }",
            "input": id,
        },
    });
    let value = |answer: &Value| answer["result"]["structuredContent"]["value"].clone();
    assert_eq!(value(&first.request("tools/call", by_script.clone()).await), 30_000);
    // The answer is the same as for a run that does not exist.
    let others = value(&second.request("tools/call", by_script.clone()).await);
    let missing = by_script.to_string().replace(&id, "absent");
    let missing = value(&second.request("tools/call", serde_json::from_str(&missing).unwrap()).await);
    assert_eq!(others.as_str().unwrap().replace(&id, "absent"), missing.as_str().unwrap());
    assert!(missing.as_str().unwrap().starts_with("no run `absent` is kept"), "{missing}");
    let read = json!({ "uri": format!("cx://runs/{id}/value") });
    assert!(first.request("resources/read", read.clone()).await["result"].is_object());
    assert_eq!(second.request("resources/read", read).await["error"]["code"], -32002);
    let listed = second.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 1, "the guide: {listed}");
    drop(first);
    first_ends.await.unwrap();
    assert!(executor.history().unwrap().list("client 0").is_empty(), "no client can ask for it any more");
}

#[tokio::test]
async fn a_stop_is_told_to_the_run_that_it_ends() {
    let stop = CancellationToken::new();
    let (mut client, ends) = Client::new(&server(), &stop);
    let code = "console.log('began'); await new Promise((done) => setTimeout(done, 20000))";
    let run = json!({ "name": "executeTypescript", "arguments": { "code": code } });
    let call = client.request("tools/call", run);
    let stopping = async {
        // It makes no difference whether the run has started.
        tokio::task::yield_now().await;
        stop.cancel();
    };
    let (answer, ()) = tokio::join!(call, stopping);
    assert_eq!(answer["result"]["structuredContent"]["error"]["code"], "CANCELLED", "{answer}");
    assert_eq!(ends.await.unwrap(), ShutdownReason::Stopped);
}

/// The run already has its slot, but still waits for memory.
#[tokio::test]
async fn a_run_that_waits_for_memory_is_not_active() {
    let memory = crate::run::limits::Limits::default().memory_bytes;
    let executor = Executor::builder().total_memory_bytes(memory).build().unwrap();
    let server = Server::new(executor, ServerOptions::default());
    let stop = CancellationToken::new();
    let (mut first, _first_serving) = Client::new(&server, &stop);
    let (mut second, _second_serving) = Client::new(&server, &stop);
    let (mut watching, _watching_serving) = Client::new(&server, &stop);
    let code = "await new Promise((done) => setTimeout(done, 20000))";
    let run = json!({ "name": "executeTypescript", "arguments": { "code": code } });
    let watch = async {
        loop {
            let answer = watching.request("tools/call", json!({ "name": "health" })).await;
            let pool = answer["result"]["structuredContent"]["connectionPool"].clone();
            let runs = [&pool["active"], &pool["waiting"]].map(|count| count.as_u64().unwrap());
            assert!(runs[0] <= 1, "there is memory for one: {pool}");
            if runs == [1, 1] {
                return;
            }
        }
    };
    tokio::select! {
        () = watch => {}
        answer = first.request("tools/call", run.clone()) => panic!("{answer}"),
        answer = second.request("tools/call", run) => panic!("{answer}"),
    }
}

/// If scripts are slow to stop but do stop, the server must not end.
#[tokio::test]
async fn v_262_a_server_whose_hung_workers_come_back_goes_on() {
    let released = Arc::new((parking_lot::Mutex::new(false), parking_lot::Condvar::new()));
    let blocking = Arc::clone(&released);
    let executor = Executor::builder()
        .tool("blocks", json!({ "type": "object" }), move |_: Value| {
            let blocking = Arc::clone(&blocking);
            async move {
                let (released, changed) = &*blocking;
                let mut released = released.lock();
                while !*released {
                    changed.wait(&mut released);
                }
                Ok::<_, String>(1)
            }
        })
        .build()
        .unwrap();
    let server = Server::new(executor.clone(), ServerOptions::default());
    let (mut client, serving) = Client::new(&server, &CancellationToken::new());
    let run = |code: &str, milliseconds: u64| json!({ "name": "executeTypescript", "arguments": { "code": code, "timeoutMs": milliseconds } });
    let hangs = format!("return call_tool({:?}, 'blocks', {{}})", executor.server_names()[0]);
    for _ in 0..3 {
        // Long enough to begin the call: before that, a script can be stopped.
        let answer = client.request("tools/call", run(&hangs, 5_000)).await;
        assert_eq!(answer["result"]["structuredContent"]["error"]["code"], "TIMEOUT", "{answer}");
    }
    let refused = client.request("tools/call", run("return 1", 60_000)).await;
    assert_eq!(refused["result"]["structuredContent"]["error"]["code"], "ENGINE_UNAVAILABLE", "{refused}");
    assert!(server.shared.hung_workers.are_watched());
    *released.0.lock() = true;
    released.1.notify_all();
    let back = async {
        while server.shared.hung_workers.are_watched() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(WATCHDOG, back).await.expect("the server looks again");
    let answer = client.request("tools/call", run("return 1", 60_000)).await;
    assert_eq!(answer["result"]["structuredContent"]["value"], 1, "{answer}");
    let health = client.request("tools/call", json!({ "name": "health" })).await;
    assert_eq!(health["result"]["structuredContent"]["healthy"], true, "{health}");
    assert!(!serving.is_finished());
}

/// Threat 765.
#[tokio::test]
async fn v_765_a_dropped_connection_writes_nothing_more() {
    const BUFFERED: usize = 16;
    let (server, stop) = (server(), CancellationToken::new());
    let (mut input, reader) = duplex(1 << 16);
    let (writer, mut output) = duplex(BUFFERED);
    let mut serving = Box::pin(server.serve(reader, writer, &stop));
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n").await.unwrap();
    let first = tokio::select! {
        ended = &mut serving => panic!("{ended:?}"),
        first = timeout(WATCHDOG, output.read_u8()) => first.expect("the answer begins").unwrap(),
    };
    assert_eq!(first, b'{');
    drop(serving);
    let mut rest = Vec::new();
    let read = timeout(WATCHDOG, output.read_to_end(&mut rest)).await;
    read.expect("the connection ends").unwrap();
    assert!(rest.len() <= BUFFERED, "{}", String::from_utf8_lossy(&rest));
}
