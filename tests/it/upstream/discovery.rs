//! The times of discovery rest on this (promises 6, 12, 21, 22 and 47 of docs/promises.md): all servers are asked at
//! the same time, each is asked once, and the next process has their lists on disk. The times are in
//! `benches/README.md`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cx::{
    Executor, McpServer, ToolDefinition, ToolDispatcher, ToolError, ToolErrorCode, ToolList, ToolRequest,
    ToolResult,
};
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::chaos::program;

/// Every way in which scripts find tools.
const EVERY_WAY: &str = "const names = (await discoverMCPTools({})).map((tool) => tool.name);
                         const found = await searchTools('read volumes', 5);
                         const schema = await getToolSchema(names[0]);
                         return [names.length, found.length > 0, schema !== null]";

/// Tools of one server.
const TOOLS: usize = 3;

/// A program that becomes a server when as many of its kind have been started. Its arguments: the directory for their
/// marks, its own mark, their number, the program.
const WAITING_SERVER: &str = "touch \"$1/$2\"
                              while [ $(ls \"$1\" | wc -l) -lt $3 ]; do sleep 0.02; done
                              exec \"$4\" stdio well";

/// Servers that do not list their tools before all of them have been asked.
struct Together {
    lists: Vec<Arc<ToolList>>,
    /// How often a list was requested.
    requests: Arc<AtomicUsize>,
    all_are_asked: Barrier,
}

impl ToolDispatcher for Together {
    fn servers(&self) -> Vec<Arc<str>> {
        (0..self.lists.len()).map(|number| format!("shelf{number}").into()).collect()
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let number: usize = server.trim_start_matches("shelf").parse().unwrap();
        async move {
            // A list that is requested again does not wait for the other servers.
            if self.requests.fetch_add(1, Ordering::SeqCst) < self.lists.len() {
                self.all_are_asked.wait().await;
            }
            Ok(Arc::clone(&self.lists[number]))
        }
        .boxed()
    }

    fn identity(&self, server: &str) -> Option<String> {
        Some(format!("{server:0>64}"))
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        ready(Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "nothing is called"))).boxed()
    }
}

/// An executor with this many of these servers, and how often their lists are requested.
fn executor(servers: usize, cache: &Path) -> (Executor, Arc<AtomicUsize>) {
    let list = |server: usize| {
        let tool = |number: usize| {
            let mut tool = ToolDefinition::new(format!("read_{number}"));
            tool.description = Some(format!("Reads volume {number} of shelf {server}"));
            tool
        };
        Arc::new(ToolList::new((0..TOOLS).map(tool).collect()))
    };
    let requests = Arc::new(AtomicUsize::new(0));
    let dispatcher = Together {
        lists: (0..servers).map(list).collect(),
        requests: Arc::clone(&requests),
        all_are_asked: Barrier::new(servers),
    };
    let builder = Executor::builder().warm_instances(1).cache_directory(cache).dispatcher(dispatcher);
    (builder.build().unwrap(), requests)
}

async fn find_in_every_way(executor: &Executor) -> Value {
    let result = executor.run_ts(EVERY_WAY).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{}", result.to_json()))
}

#[tokio::test]
async fn servers_are_asked_at_the_same_time_and_once() {
    for servers in [1, 3, 10] {
        let cache = tempfile::tempdir().unwrap();
        let (first, requests) = executor(servers, cache.path());
        for _ in 0..2 {
            assert_eq!(find_in_every_way(&first).await, json!([servers * TOOLS, true, true]));
            assert_eq!(requests.load(Ordering::SeqCst), servers, "each of {servers} is asked once");
        }
        first.close().await;
        // Another process.
        let (second, requests) = executor(servers, cache.path());
        assert_eq!(find_in_every_way(&second).await, json!([servers * TOOLS, true, true]));
        assert_eq!(requests.load(Ordering::SeqCst), 0, "the lists of {servers} are on disk");
        second.close().await;
    }
}

/// If they were asked one after the other, the first would wait for the others until its time is over.
#[tokio::test]
async fn processes_of_servers_are_started_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    let marks = directory.path().join("marks");
    std::fs::create_dir(&marks).unwrap();
    let (marks, program) = (marks.display().to_string(), program().display().to_string());
    let names = ["one", "two", "three", "four", "five"];
    let number = names.len().to_string();
    let mut builder = Executor::builder().warm_instances(1);
    for name in names {
        let arguments = ["-c", WAITING_SERVER, "sh", &*marks, name, &*number, &*program];
        let server = McpServer::stdio(name, "sh").args(arguments);
        builder = builder.mcp_server(server.connect_timeout(Duration::from_secs(20)));
    }
    let executor = builder.build().unwrap();
    let refreshed = executor.refresh_tools().await;
    assert_eq!(refreshed.len(), names.len());
    for (name, result) in refreshed {
        assert!(result.is_ok(), "{name}: {result:?}");
    }
    executor.close().await;
}
