//! The recipes of `examples/recipes` against the servers that they are about: those of npm and PyPI.
//!
//! A recipe in both languages has the same outcome in both.

/// The page of the recipes.
mod page;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cx::{
    Approval, ApprovalRequest, ExecuteResult, Executor, ExecutorBuilder, McpServer, Output, ProviderKind,
    RateLimit, Script, StateStore,
};
use serde_json::{Value, json};

use super::{blocks, check_block, prose, read};
use crate::support::interop::{node, python as python_program};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::{python, python_cache};
use crate::tidy::{files, root};

const PAGE: &str = "docs/recipes.md";

/// A directory with the files that the recipes are about.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        // The file server compares real paths.
        place.write("notes/one.md", "# One\n\nfour words in all\n");
        place.write("notes/two.md", "# Two\n\nfour words in all\n");
        place.write("notes/deep/three.md", "three\n");
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = PathBuf::from(self.path(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// An executor with the servers of `examples/recipes/mcp.json`. One that no script names is not started.
    fn executor(&self) -> ExecutorBuilder {
        let memory = self.path("memory.json");
        let time = McpServer::stdio("time", python_program("mcp-server-time"));
        Executor::builder()
            .cache_directory(python_cache())
            .mcp_server(McpServer::stdio("files", "node").args([node("server-filesystem"), self.path("")]))
            .mcp_server(
                McpServer::stdio("memory", "node")
                    .args([node("server-memory")])
                    .env("MEMORY_FILE_PATH", memory),
            )
            .mcp_server(
                McpServer::stdio("everything", "node").args([node("server-everything"), "stdio".to_owned()]),
            )
            .mcp_server(McpServer::stdio("git", python_program("mcp-server-git")))
            .mcp_server(
                McpServer::stdio("fetch", python_program("mcp-server-fetch"))
                    .args(["--ignore-robots-txt", "--allow-private-ips"]),
            )
            .mcp_server(time.args(["--local-timezone", "UTC"]))
    }
}

fn source(recipe: &str) -> String {
    read(&Path::new("examples/recipes").join(recipe))
}

fn script(recipe: &str) -> Script {
    let source = source(recipe);
    let script = if recipe.ends_with(".py") { Script::python(source) } else { Script::typescript(source) };
    script.named(recipe)
}

async fn run(executor: &Executor, script: Script) -> ExecuteResult {
    python().await;
    executor.run(script).await.unwrap()
}

#[track_caller]
fn value(result: &ExecuteResult) -> Value {
    result.value().cloned().unwrap_or_else(|| panic!("{:#}", result.to_json()))
}

/// Runs the recipes with the same input, and compares what each returns.
async fn check(executor: &Executor, recipes: &[&str], input: Value, expected: Value) {
    for recipe in recipes {
        let result = run(executor, script(recipe).input(input.clone())).await;
        assert_eq!(value(&result), expected, "{recipe}: {:#}", result.to_json());
    }
}

/// A repository with three commits, whose dates are known.
fn repository(place: &Place) -> String {
    let path = place.path("repository");
    fs::create_dir_all(&path).unwrap();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(&path)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", "2026-05-01T12:00:00Z")
            .env("GIT_COMMITTER_DATE", "2026-05-01T12:00:00Z")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet"]);
    for subject in ["docs: a first page", "server: fix a leak", "server: answer sooner", "without a part"] {
        git(&["commit", "--quiet", "--allow-empty", "--message", subject]);
    }
    path
}

#[tokio::test]
async fn fan_out() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    for recipe in ["fan_out.ts", "fan_out.py"] {
        let result = run(&executor, script(recipe).input(json!({ "directory": place.path("notes") }))).await;
        let value = value(&result);
        assert_eq!((&value["files"], &value["words"]), (&json!(3), &json!(13)), "{recipe}: {value}");
        assert_eq!(value["longest"][2]["path"], place.path("notes/deep/three.md"), "{recipe}");
    }
    executor.close().await;
}

#[tokio::test]
async fn join_servers() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    let person = |name: &str, zone: &str| json!({ "name": name, "entityType": "person", "observations": [format!("time zone: {zone}")] });
    let people = [person("Ada", "Asia/Kolkata"), person("Bo", "Asia/Tokyo"), person("Cy", "Asia/Tokyo")];
    let fill =
        Script::typescript("await tools.memory.create_entities({ entities: input })").input(json!(people));
    value(&run(&executor, fill).await);
    let expected = json!([
        { "name": "Ada", "zone": "Asia/Kolkata", "time": "20:30" },
        { "name": "Bo", "zone": "Asia/Tokyo", "time": "00:00" },
        { "name": "Cy", "zone": "Asia/Tokyo", "time": "00:00" },
    ]);
    let result = run(&executor, script("join_servers.ts")).await;
    assert_eq!(value(&result), expected);
    // One call for each zone.
    assert_eq!(result.tool_calls.len(), 3);
    executor.close().await;
}

#[tokio::test]
async fn filter_log() {
    let place = Place::new();
    let mut log = String::new();
    for number in 0..20_000 {
        log.push_str(&match number % 100 {
            7 => format!("12:00:00 ERROR request {number} timed out\n"),
            9 if number < 1_000 => "12:00:00 ERROR disk full\n".to_owned(),
            _ => format!("12:00:00 INFO request {number} in 12 ms\n"),
        });
    }
    place.write("server.log", &log);
    let executor = place.executor().build().unwrap();
    let kinds = json!({ "request N timed out": 200, "disk full": 10 });
    let expected = json!({ "lines": 20_000, "errors": 210, "kinds": kinds });
    let recipes = ["filter_log.ts", "filter_log.py"];
    check(&executor, &recipes, json!({ "path": place.path("server.log") }), expected).await;
    executor.close().await;
}

/// Serves one text to every request.
fn serve(text: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                line.clear();
            }
            let length = text.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length:";
            let _gone = write!(stream, "{head} {length}\r\n\r\n{text}");
        }
    });
    format!("http://{address}/document.txt")
}

#[tokio::test]
async fn pages() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    // The fifth thousand bytes end in the middle of the word.
    let text = format!("{}needle{}needle", "x".repeat(4_997), "y".repeat(6_000));
    let input = json!({ "url": serve(text.clone()), "word": "needle" });
    let expected = json!({ "parts": 3, "letters": text.len(), "found": 2 });
    check(&executor, &["pages.ts"], input, expected).await;
    executor.close().await;
}

#[tokio::test]
async fn retry() {
    let place = Place::new();
    let mut time =
        McpServer::stdio("time", python_program("mcp-server-time")).args(["--local-timezone", "UTC"]);
    time.rate_limit = Some(RateLimit { calls: 2.try_into().unwrap(), period: Duration::from_secs(3) });
    let executor = Executor::builder().cache_directory(python_cache()).mcp_server(time).build().unwrap();
    let zones = ["Asia/Tokyo", "Asia/Kolkata", "Africa/Cairo", "Europe/Oslo", "America/Lima"];
    let expected = json!({ "zones": zones, "retried": true });
    check(&executor, &["retry.ts", "retry.py"], Value::Null, expected).await;
    drop(place);
    executor.close().await;
}

#[tokio::test]
async fn archive() {
    let place = Place::new();
    place.write("notes/a.draft.md", "a");
    place.write("notes/b.draft.md", "b");
    let executor = place.executor().build().unwrap();
    let input = json!({ "directory": place.path("notes") });
    let result = run(&executor, script("archive.ts").input(input.clone()).dry_run()).await;
    assert_eq!(value(&result), json!({ "moved": 2 }));
    let planned: Vec<_> = result.planned_calls.as_ref().unwrap().iter().map(|call| &*call.tool).collect();
    assert_eq!(planned, ["create_directory", "move_file", "move_file"]);
    assert_eq!(place.read("notes/a.draft.md"), "a");
    check(&executor, &["archive.ts"], input, json!({ "moved": 2 })).await;
    assert_eq!(place.read("notes/archive/b.draft.md"), "b");
    executor.close().await;
}

#[tokio::test]
async fn only_new() {
    for recipe in ["only_new.ts", "only_new.py"] {
        let place = Place::new();
        let store = StateStore::new(place.0.path().join("state.sqlite3"));
        let executor = place.executor().state(store, place.0.path()).build().unwrap();
        let input = json!({ "directory": place.path("notes") });
        let first = json!({ "files": 2, "new": ["one.md", "two.md"] });
        check(&executor, &[recipe], input.clone(), first).await;
        place.write("notes/four.md", "");
        check(&executor, &[recipe], input.clone(), json!({ "files": 3, "new": ["four.md"] })).await;
        check(&executor, &[recipe], input, json!({ "files": 3, "new": [] })).await;
        executor.close().await;
    }
}

#[tokio::test]
async fn approval() {
    let place = Place::new();
    let executor = place.executor().ask(["files.write_file"]).build().unwrap();
    let input = json!({ "path": place.path("report.md"), "lines": ["all is well"] });
    let shown = Arc::new(Mutex::new(Vec::new()));
    for answer in [Approval::Deny { reason: Some("not today".to_owned()) }, Approval::Approve] {
        let (shown, answer) = (Arc::clone(&shown), answer.clone());
        let script = script("approval.ts").input(input.clone()).approver(move |request: ApprovalRequest| {
            shown.lock().unwrap().push(request.arguments["content"].clone());
            let answer = answer.clone();
            async move { answer }
        });
        let value = value(&run(&executor, script).await);
        if value["written"].is_null() {
            assert!(value["reason"].as_str().unwrap().contains("not today"), "{value}");
            assert_eq!(value["draft"], "# Report\n\n- all is well\n");
            assert!(!Path::new(&place.path("report.md")).exists());
        }
    }
    assert_eq!(place.read("report.md"), "# Report\n\n- all is well\n");
    assert_eq!(shown.lock().unwrap().len(), 2);
    executor.close().await;
}

#[tokio::test]
async fn summarise() {
    let place = Place::new();
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| {
        let about = if asked.prompt.contains("# One") { "one" } else { "two" };
        Reply::Text(json!({ "summary": format!("It is about {about}."), "audience": "users" }).to_string())
    });
    let executor = place.executor().llm(provider.options()).build().unwrap();
    let expected = json!([
        { "file": "one.md", "summary": "It is about one.", "audience": "users" },
        { "file": "two.md", "summary": "It is about two.", "audience": "users" },
    ]);
    let input = json!({ "directory": place.path("notes") });
    check(&executor, &["summarise.ts", "summarise.py"], input, expected).await;
    executor.close().await;
}

#[tokio::test]
async fn to_csv() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    let result = run(&executor, script("to_csv.py").input(json!({ "repository": repository(&place) }))).await;
    assert_eq!(value(&result), json!({ "rows": 1, "commits": 4 }));
    let emitted = result.logs.iter().filter_map(|output| match output {
        Output::Emit(block) => serde_json::from_str::<Value>(block.text()).ok(),
        _ => None,
    });
    let emitted: Vec<Value> = emitted.collect();
    assert_eq!(emitted.len(), 1);
    assert_eq!(emitted[0]["resource"]["text"], "day,author,commits\r\n2026-05-01,Ada,4\r\n");
    executor.close().await;
}

#[tokio::test]
async fn unknown_tool() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    let task = "convert a time between time zones";
    let values = json!({ "source_timezone": "UTC", "time": "12:00" });
    let result =
        run(&executor, script("unknown_tool.ts").input(json!({ "task": task, "values": values }))).await;
    let asked = value(&result);
    assert_eq!(
        (&asked["tool"], &asked["missing"]),
        (&json!("mcp__time__convert_time"), &json!(["target_timezone"]))
    );
    let values =
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo", "other": 1 });
    let result =
        run(&executor, script("unknown_tool.ts").input(json!({ "task": task, "values": values }))).await;
    assert_eq!(value(&result)["result"]["time_difference"], "+9.0h");
    executor.close().await;
}

#[tokio::test]
async fn typed() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    let result = run(&executor, script("typed.ts")).await;
    let value = value(&result);
    assert!(value["warmest"].is_string() && value["temperature"].is_number(), "{value}");
    executor.close().await;
}

#[tokio::test]
async fn progress() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    for recipe in ["progress.ts", "progress.py"] {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&reports);
        let script = script(recipe).input(json!({ "seconds": [0.01, 0.01] }));
        let script =
            script.on_report(move |report| seen.lock().unwrap().push((report.progress, report.total)));
        assert_eq!(value(&run(&executor, script).await), json!(2), "{recipe}");
        let reports = reports.lock().unwrap();
        assert_eq!(reports.last(), Some(&(2.0, Some(2.0))), "{recipe}");
    }
    executor.close().await;
}

#[tokio::test]
async fn errors() {
    let place = Place::new();
    place.write("large.txt", &"a line of text\n".repeat(10_000));
    let limits = cx::Limits { result_bytes: 50_000, ..cx::Limits::default() };
    let executor = place.executor().build().unwrap();
    let (one, large, absent) =
        (place.path("notes/one.md"), place.path("large.txt"), place.path("absent.txt"));
    for recipe in ["errors.ts", "errors.py"] {
        let input = json!({ "paths": [one, large, absent] });
        let result = value(&run(&executor, script(recipe).input(input).limits(limits)).await);
        assert_eq!(result["read"], 2, "{recipe}: {result}");
        assert_eq!(result["skipped"][&large], "only the first 100 lines", "{recipe}: {result}");
        assert!(result["skipped"][&absent].as_str().unwrap().contains("ENOENT"), "{recipe}: {result}");
        // An error that is the script's own mistake fails the run.
        let result = run(&executor, script(recipe).input(json!({ "paths": [7] }))).await;
        assert!(result.value().is_none(), "{recipe}");
    }
    executor.close().await;
}

#[tokio::test]
async fn fallback() {
    let place = Place::new();
    place.write("settings.json", r#"{ "colour": "green" }"#);
    let executor = place.executor().build().unwrap();
    let ask = async |key: &str, file: &str| {
        let input = json!({ "key": key, "file": place.path(file) });
        value(&run(&executor, script("fallback.ts").input(input)).await)
    };
    let known = "await tools.memory.create_entities({ entities: [
        { name: 'size', entityType: 'setting', observations: ['large'] }] })";
    value(&run(&executor, Script::typescript(known)).await);
    assert_eq!(
        ask("size", "settings.json").await,
        json!({ "answer": "large", "source": "memory", "failed": {} })
    );
    assert_eq!(ask("colour", "settings.json").await["source"], "file");
    let expected = json!({ "answer": "unknown", "source": "default", "failed": { "file": "TOOL_ERROR" } });
    assert_eq!(ask("colour", "absent.json").await, expected);
    executor.close().await;
}

#[tokio::test]
async fn deadline() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    let input = json!({ "budgetMs": 1_000, "seconds": [1.2, 0.3, 0.4] });
    check(&executor, &["deadline.ts"], input, json!({ "done": [1.2], "left": [0.3, 0.4] })).await;
    let input = json!({ "budgetMs": 20_000, "seconds": [0.01, 0.02] });
    check(&executor, &["deadline.ts"], input, json!({ "done": [0.01, 0.02], "left": [] })).await;
    executor.close().await;
}

#[tokio::test]
async fn duplicates() {
    let place = Place::new();
    place.write("notes/copy.md", "three\n");
    let executor = place.executor().build().unwrap();
    let expected = json!([["copy.md", "three.md"]]);
    check(&executor, &["duplicates.py"], json!({ "directory": place.path("notes") }), expected).await;
    executor.close().await;
}

#[tokio::test]
async fn release_notes() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    let result =
        run(&executor, script("release_notes.py").input(json!({ "repository": repository(&place) }))).await;
    assert_eq!(value(&result), json!({ "commits": 4, "parts": 2 }));
    let notes = "## docs\n- a first page\n## server\n- answer sooner\n- fix a leak";
    let printed = result.logs.iter().filter_map(|output| match output {
        Output::Log { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(printed.collect::<Vec<_>>().join("\n"), notes);
    executor.close().await;
}

#[tokio::test]
async fn resources() {
    let place = Place::new();
    let executor = place.executor().build().unwrap();
    let found = value(&run(&executor, script("resources.ts")).await);
    let documents = found["documents"].as_array().unwrap();
    assert!(documents.len() > 3 && found["resources"].as_u64().unwrap() >= 7, "{found}");
    assert!(
        documents.iter().any(|document| document["begins"].as_str().unwrap().starts_with("# ")),
        "{found}"
    );
    executor.close().await;
}

#[tokio::test]
async fn checked_edit() {
    let place = Place::new();
    place.write("settings.txt", "size = 1\ncolour = green\n");
    let executor = place.executor().build().unwrap();
    let path = place.path("settings.txt");
    let change = |from: &str, to: &str| json!({ "path": path, "from": from, "to": to });
    let script = |input| script("checked_edit.ts").input(input);
    let result = value(&run(&executor, script(change("size = 1", "size = 2"))).await);
    assert_eq!(result, json!({ "written": true, "changed": ["-size = 1", "+size = 2"] }));
    let result = value(&run(&executor, script(change("size = 2\ncolour = green", "nothing"))).await);
    assert_eq!(result["written"], false, "{result}");
    assert_eq!(place.read("settings.txt"), "size = 2\ncolour = green\n");
    executor.close().await;
}
