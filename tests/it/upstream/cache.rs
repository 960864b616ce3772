//! Files that are kept from one process to the next, and their state after processes are killed: docs/threats.md, UP
//! 229 and 230.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cx::{
    Executor, McpServer, ServerState, Tool, ToolChange, ToolDefinition, ToolDispatcher, ToolError,
    ToolErrorCode, ToolList, ToolRequest, ToolResult,
};
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::chaos::{builder, stdio};
use crate::support::interop::python_old;

/// How often two processes are killed.
const ROUNDS: u64 = 200;

/// Both directories, and what is known to be in them.
struct Directories {
    root: TempDir,
    /// The round of the list that was read last.
    round: u64,
    /// The fields of results that a process has reported as written.
    fields: BTreeSet<String>,
    /// The accepted version, which is the first one.
    accepted: Option<String>,
}

/// A process that writes until it is killed.
struct Writer {
    process: Child,
    name: &'static str,
    lines: Receiver<String>,
    reader: JoinHandle<()>,
}

/// `round.writer.number`, with which each description begins.
#[derive(Debug, PartialEq)]
struct Version {
    round: u64,
    writer: String,
    number: u64,
}

/// A server that cannot be asked, so that everything known about it comes from the disk.
struct Unreachable;

impl ToolDispatcher for Unreachable {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["versions".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        ready(Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "it is not there"))).boxed()
    }

    fn identity(&self, _server: &str) -> Option<String> {
        Some("versions".to_owned())
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        ready(Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "it is not there"))).boxed()
    }
}

impl Writer {
    fn start(directories: &Directories, name: &'static str, round: u64) -> Self {
        let test_binary = std::env::current_exe().unwrap();
        let program = test_binary.parent().unwrap().parent().unwrap().join("examples/cache-writer");
        assert!(program.exists(), "cargo builds the examples with the tests: {}", program.display());
        let mut process = Command::new(program)
            .args([directories.cache(), directories.state()])
            .args([name, &round.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            output.lines().map_while(Result::ok).for_each(|line| sender.send(line).unwrap());
        });
        Self { process, name, lines, reader }
    }

    /// The output so far and from now on; nothing comes after it was killed.
    fn killed(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        let status = self.process.wait().unwrap();
        assert!(!status.success() && status.code().is_none(), "{} ended by itself: {status}", self.name);
        self.reader.join().unwrap();
        self.lines.iter().collect()
    }
}

impl Directories {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self { root, round: 0, fields: BTreeSet::new(), accepted: None }
    }

    fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Starts two writers, kills both a moment after the first has written, and checks the files.
    fn round(&mut self, round: u64, pause: Duration) {
        let [first, second] = ["a", "b"].map(|name| Writer::start(self, name, round));
        // The first output of one of them. That of the other is read with the rest.
        let mut said = vec![first.lines.recv_timeout(Duration::from_secs(120)).expect("it writes")];
        std::thread::sleep(pause);
        said.extend(first.killed());
        self.check(round, &[("a", said), ("b", second.killed())]);
    }

    /// Reads everything as a new process would.
    fn check(&mut self, round: u64, said: &[(&str, Vec<String>)]) {
        let executor = Executor::builder()
            .warm_instances(0)
            .cache_directory(self.cache())
            .state_directory(self.state())
            .dispatcher(Unreachable)
            .build()
            .unwrap();
        let known = executor.known_tools();
        let tools = known[0].tools.as_ref().expect("a list that was written is there");
        let version = version_of(tools.iter().map(|tool| tool.definition.description.as_deref().unwrap()));
        assert_eq!(tools.len(), 60, "all tools of one version");
        let last = tools.last().unwrap();
        assert_eq!(last.definition.name, format!("only_{}", version.to_string().replace('.', "_")));
        // Both writers of a round begin after the previous round, so its lists are older.
        assert_eq!(version.round, round, "one of this round was complete: {version:?}, {said:?}");
        assert!(version.round >= self.round, "{version:?} is older than {}", self.round);
        self.round = version.round;
        // A writer's own lists come in order; any list of the other one may have come last.
        let complete = |writer: &str| {
            let (_, lines) = said.iter().find(|(name, _)| *name == writer).unwrap();
            let numbers = lines.iter().filter_map(|line| line.strip_prefix("listed ")?.parse::<u64>().ok());
            numbers.max().unwrap_or(0)
        };
        assert!(version.number >= complete(&version.writer), "{version:?} is older than what was complete");
        self.check_fields(tools, said);
        self.check_changes(&executor, round);
    }

    /// A field of a result is never lost once it was written, whichever writer wrote it.
    fn check_fields(&mut self, tools: &[Tool], said: &[(&str, Vec<String>)]) {
        let lines = said.iter().flat_map(|(_, lines)| lines);
        self.fields.extend(lines.filter_map(|line| line.strip_prefix("closed ").map(str::to_owned)));
        if self.fields.is_empty() {
            return;
        }
        let tool = tools.iter().find(|tool| tool.definition.name == "tool_1").unwrap();
        let inferred = tool.inferred_output_schema.as_ref().expect("a schema that was written is there");
        for field in &self.fields {
            assert_eq!(inferred["properties"][field]["type"], "boolean", "{field} in {inferred}");
        }
    }

    /// The accepted version stays, and the current definitions are of one version too. They are written after the list,
    /// so they may be of another version, and in the first round of none.
    fn check_changes(&mut self, executor: &Executor, round: u64) {
        let changes = executor.tool_changes().unwrap();
        let description = |definition: &Option<ToolDefinition>| {
            definition.as_ref().map(|definition| definition.description.clone().unwrap())
        };
        let accepted: Vec<String> = changes.iter().filter_map(|change| description(&change.pinned)).collect();
        let current: Vec<String> = changes.iter().filter_map(|change| description(&change.current)).collect();
        if accepted.is_empty() {
            assert_eq!(round, 1, "from the second round on there are changes");
            return;
        }
        // 59 tools that differ, one that was removed, one that is new.
        assert_eq!((accepted.len(), current.len(), changes.len()), (60, 60, 61), "{round}");
        let first = version_of(accepted.iter().map(String::as_str)).to_string();
        assert_eq!(*self.accepted.get_or_insert_with(|| first.clone()), first);
        let current = version_of(current.iter().map(String::as_str));
        assert!(current.round == round, "{current:?} is not of round {round}");
    }

    /// The files that processes left unfinished.
    fn leftovers(&self) -> Vec<PathBuf> {
        let files =
            |directory: PathBuf| std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let all = files(self.cache()).chain(files(self.state()));
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".new-")).collect()
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.round, self.writer, self.number)
    }
}

/// The single version of all descriptions, in full.
fn version_of<'a>(descriptions: impl Iterator<Item = &'a str>) -> Version {
    let parse = |description: &str| {
        let (version, filling) = description.split_once(' ').expect("a version and the filling");
        assert_eq!(filling.len(), 1_000, "the filling is whole");
        let mut parts = version.split('.');
        let mut part = || parts.next().expect("three parts");
        Version { round: part().parse().unwrap(), writer: part().to_owned(), number: part().parse().unwrap() }
    };
    let mut versions = descriptions.map(parse);
    let first = versions.next().expect("some tools");
    versions.for_each(|version| assert_eq!(version, first, "tools of two versions in one list"));
    first
}

/// Pseudo-random numbers: xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn nothing_is_lost_when_two_processes_are_killed_200_times() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let mut random = Random(u64::from(seed) | 1);
    let mut directories = Directories::new();
    let mut round = 0;
    // On a busy machine some more, with longer pauses: the kills must leave time to write.
    while round < ROUNDS || (directories.fields.len() <= 20 && round < 2 * ROUNDS) {
        round += 1;
        let longest = if round <= ROUNDS { 40_000 } else { 400_000 };
        let pause = Duration::from_micros(random.next() % longest);
        let check = std::panic::AssertUnwindSafe(|| directories.round(round, pause));
        if let Err(panic) = std::panic::catch_unwind(check) {
            // The message has all that is known: the seed alone does not reproduce the failure.
            let text = panic.downcast_ref::<String>().map(String::as_str);
            panic!("seed {seed}, round {round}, {pause:?}: {}", text.unwrap_or("see above"));
        }
    }
    assert!(directories.fields.len() > 20, "the kills leave time to write: {:?}", directories.fields);
    let leftovers = directories.leftovers();
    // At most one for each document: its list, its inferred schemas and its pinned definitions.
    assert!(leftovers.len() <= 3, "{} unfinished files after {round} rounds", leftovers.len());
}

/// A server of `tests/chaos`, and the directories of the executors that use it one after the other.
struct Used {
    root: TempDir,
    arguments: &'static [&'static str],
}

impl Used {
    fn new(arguments: &'static [&'static str]) -> Self {
        Self { root: tempfile::tempdir().unwrap(), arguments }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// An executor that knows only what is on disk.
    fn executor(&self, strict: bool) -> Executor {
        builder()
            .cache_directory(self.path("cache"))
            .state_directory(self.path("state"))
            .strict(strict)
            .mcp_server(stdio("faulty", self.arguments, &self.path("notes")))
            .build()
            .unwrap()
    }

    /// How often the server was started.
    fn starts(&self) -> usize {
        let notes = std::fs::read_to_string(self.path("notes")).unwrap_or_default();
        notes.lines().filter(|line| line.starts_with("started")).count()
    }
}

async fn value(executor: &Executor, source: &str) -> Value {
    let result = executor.run_ts(source).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

/// The code of the error that an expression throws, or what it returns.
async fn outcome(executor: &Executor, expression: &str) -> Value {
    value(executor, &format!("try {{ return await {expression} }} catch (error) {{ return error.code }}"))
        .await
}

fn known(executor: &Executor) -> Option<Vec<Tool>> {
    executor.known_tools().remove(0).tools
}

#[tokio::test]
async fn tools_are_known_without_starting_the_server() {
    let used = Used::new(&["well"]);
    let first = used.executor(false);
    assert_eq!(known(&first), None, "the list was not requested");
    assert_eq!(value(&first, "return (await tools.faulty.echo({ n: 1 })).n").await, 1);
    let tools = known(&first).unwrap();
    first.close().await;
    assert_eq!(used.starts(), 1);

    let second = used.executor(false);
    let names = |tools: &[Tool]| tools.iter().map(Tool::full_name).collect::<Vec<_>>();
    assert_eq!(names(&known(&second).unwrap()), names(&tools));
    assert_eq!(second.search_known_tools("fails", 1)[0].path(), "faulty.fail");
    assert_eq!(second.server_stats()[0].state, ServerState::Stopped);
    assert_eq!(used.starts(), 1, "nothing of this needs the server");
    assert_eq!(value(&second, "return (await tools.faulty.echo({ n: 2 })).n").await, 2);
    assert_eq!(used.starts(), 2);
    assert!(second.clear_cache().unwrap() >= 1);
    second.close().await;

    assert_eq!(known(&used.executor(false)), None, "the cache was cleared");
}

/// A server that does not say how long its list is valid. (The one of `tests/chaos` says that it is not valid at all,
/// so that scripts use the old list while the server is asked.)
#[tokio::test]
async fn scripts_know_tools_without_starting_the_server() {
    let root = tempfile::tempdir().unwrap();
    let executor = || {
        let server =
            McpServer::stdio("time", python_old("mcp-server-time")).args(["--local-timezone", "UTC"]);
        Executor::builder().cache_directory(root.path()).mcp_server(server).build().unwrap()
    };
    let names = "return (await discoverMCPTools({})).map((tool) => tool.name)";
    let first = executor();
    let listed = value(&first, names).await;
    first.close().await;

    let second = executor();
    assert_eq!(value(&second, names).await, listed);
    assert_eq!(
        value(&second, "return (await searchTools('convert'))[0].name").await,
        "mcp__time__convert_time"
    );
    let schema = value(&second, "return getToolSchema('mcp__time__convert_time')").await;
    assert_eq!(schema["parameters"]["type"], "object", "{schema}");
    assert_eq!(second.server_stats()[0].state, ServerState::Stopped, "nothing of this needs the server");
    second.close().await;
}

#[tokio::test]
async fn shapes_of_results_are_seen_at_once_and_later() {
    let used = Used::new(&["well"]);
    let read = "return (await getToolSchema('mcp__faulty__echo')).inferredOutputSchema ?? null";
    let first = used.executor(false);
    assert_eq!(value(&first, read).await, Value::Null);
    value(&first, "return tools.faulty.echo({ secretary: 'Ada Lovelace', age: 36 })").await;
    let shape = value(&first, read).await;
    assert_eq!(shape["properties"]["age"]["type"], "integer", "{shape}");
    assert_eq!(shape["properties"]["secretary"]["type"], "string", "{shape}");
    first.close().await;
    for entry in std::fs::read_dir(used.path("cache")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("Lovelace"), "values are not kept: {text}");
    }

    let second = used.executor(false);
    assert_eq!(value(&second, read).await, shape);
    let tool = known(&second).unwrap().into_iter().find(|tool| tool.definition.name == "echo").unwrap();
    assert_eq!(tool.inferred_output_schema.as_ref(), Some(&shape));
    assert_eq!(tool.to_json()["inferredOutputSchema"], shape);
    assert!(tool.signature.contains("secretary: string"), "{}", tool.signature);
    second.close().await;
}

/// A server that answers `{"result": 7}`, with or without an output schema in its list.
struct Wrapping {
    declares: bool,
}

impl ToolDispatcher for Wrapping {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["wrapping".into()]
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let mut tool = ToolDefinition::new("seven");
        let schema = json!({
            "type": "object",
            "properties": { "result": { "type": "integer" } },
            "required": ["result"],
        });
        tool.output_schema = self.declares.then(|| schema.into());
        ready(Ok(Arc::new(ToolList::new(vec![tool])))).boxed()
    }

    fn identity(&self, _server: &str) -> Option<String> {
        Some("wrapping".to_owned())
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        ready(Ok(ToolResult::structured(json!({ "result": 7 })))).boxed()
    }
}

/// The list on disk is from before the server declared an output schema, and then from when it did.
#[tokio::test]
async fn a_results_shape_does_not_depend_on_the_age_of_the_list() {
    let root = tempfile::tempdir().unwrap();
    let executor = |declares| {
        Executor::builder()
            .cache_directory(root.path().join("cache"))
            .state_directory(root.path().join("state"))
            .dispatcher(Wrapping { declares })
            .build()
            .unwrap()
    };
    for (round, declares) in [false, true, true, false].into_iter().enumerate() {
        let used = executor(declares);
        let expected = if declares { json!(7) } else { json!({ "result": 7 }) };
        for _ in 0..2 {
            assert_eq!(value(&used, "return tools.wrapping.seven({})").await, expected, "round {round}");
        }
        let changes = used.tool_changes().unwrap().len();
        assert_eq!(changes, usize::from(declares), "round {round}");
        used.close().await;
    }
}

#[tokio::test]
async fn strict_blocks_a_changed_tool_until_it_is_accepted() {
    let used = Used::new(&["rug-pull", "restart"]);
    let first = used.executor(true);
    assert_eq!(outcome(&first, "tools.faulty.pulled({})").await, "odd");
    assert_eq!(first.tool_changes().unwrap(), []);
    first.close().await;

    let second = used.executor(true);
    assert_eq!(outcome(&second, "tools.faulty.pulled({})").await, "TOOL_DENIED");
    assert_eq!(outcome(&second, "tools.faulty.echo({ n: 1 })").await, json!({ "n": 1 }));
    let names = value(&second, "return (await discoverMCPTools({})).map((tool) => tool.name)").await;
    assert!(!names.to_string().contains("pulled"), "{names}");
    let changes = second.tool_changes().unwrap();
    let [change] = &*changes else { panic!("{changes:?}") };
    assert_eq!((&*change.server, &*change.tool), ("faulty", "pulled"));
    assert_eq!(ToolChange::changed_parts(change), ["description"]);
    second.close().await;

    // Without strict mode the call is made, and the definition is not accepted by that.
    let lax = used.executor(false);
    assert_eq!(outcome(&lax, "tools.faulty.pulled({})").await, "odd");
    lax.close().await;

    let third = used.executor(true);
    assert_eq!(outcome(&third, "tools.faulty.pulled({})").await, "TOOL_DENIED");
    assert_eq!(third.accept_tools("faulty", Some("echo")).unwrap(), 0);
    assert_eq!(third.accept_tools("faulty", Some("pulled")).unwrap(), 1);
    assert_eq!(third.tool_changes().unwrap(), []);
    third.close().await;

    let fourth = used.executor(true);
    assert_eq!(outcome(&fourth, "tools.faulty.pulled({})").await, "odd");
    fourth.close().await;
}
