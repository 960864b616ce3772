use std::time::Instant;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};

use super::*;
use crate::tools::{ToolDispatcher, ToolList, ToolRequest, ToolResult};

/// Two servers whose state cannot be asked for.
struct BadServers;

impl ToolDispatcher for BadServers {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["one".into(), "two".into()]
    }

    fn generation(&self, _server: &str) -> u64 {
        panic!("a secret of the program")
    }

    fn tools<'a>(
        &'a self,
        _server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        ready(Ok(Arc::new(ToolList::new(Vec::new())))).boxed()
    }

    fn call(&self, _request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        ready(Err(ToolError::new(ToolErrorCode::ToolNotFound, "in a test"))).boxed()
    }
}

/// The servers that have failed, with codes and messages.
fn failures(asked: Asked) -> Vec<(String, ToolErrorCode, String)> {
    let failure = |(name, result): (String, Result<(), ToolError>)| {
        let error = result.unwrap_err();
        (name, error.code, error.message)
    };
    asked.into_iter().map(failure).collect()
}

#[tokio::test]
async fn servers_whose_state_panics_have_failed() {
    let executor = Executor::builder().languages([]).dispatcher(BadServers).build().unwrap();
    let failed =
        |name: &str, what: &str| (name.to_owned(), ToolErrorCode::ToolError, format!("{what} has panicked"));
    let refreshed = failures(executor.refresh_tools().await);
    assert_eq!(refreshed, ["one", "two"].map(|name| failed(name, "the server")));
    let fetched = failures(executor.fetch_missing_tools().await);
    assert_eq!(fetched, ["one", "two"].map(|name| failed(name, ASKING)));
}

/// A runtime that an embedder has ended too early drops the task.
#[test]
fn servers_have_failed_if_the_runtime_has_ended() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let same = |input: Value| async move { Ok::<_, String>(input) };
    let builder = Executor::builder().languages([]).runtime(runtime.handle().clone());
    let executor = builder.tool("math.same", json!({ "type": "object" }), same).build().unwrap();
    runtime.shutdown_background();
    for asked in
        [pollster::block_on(executor.refresh_tools()), pollster::block_on(executor.fetch_missing_tools())]
    {
        let failed = failures(asked);
        assert_eq!((failed.len(), &*failed[0].0, failed[0].1), (1, "math", ToolErrorCode::Cancelled));
    }
}
