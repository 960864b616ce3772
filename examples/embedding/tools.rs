//! Tools and servers that come and go while the executor runs, and tools of one run.

use cx::{Error, Executor, Script};
use serde_json::{Value, json};

/// Returns the servers that a script sees: at first, with a tool, with a tool of its own, and
/// without any.
pub(crate) async fn example() -> Result<Vec<Vec<String>>, Error> {
    let executor = Executor::builder().build()?;
    let servers = async |script: Script| executor.run(script).await?.value_as().map_err(unexpected);
    let list = || Script::typescript("return Object.keys(tools)");
    let mut seen: Vec<Vec<String>> = vec![servers(list()).await?];

    // From now on all runs have it. `add_server` does the same for an MCP server.
    executor.add_tool("clock.now", Value::Null, |_: Value| async { Ok::<_, String>(json!("noon")) })?;
    seen.push(servers(list()).await?);

    // Only this run has it. `Script::server` does the same for an MCP server.
    let order = Script::typescript("return [...Object.keys(tools), await tools.order.address()]");
    let order = order
        .tool("order.address", Value::Null, |_: Value| async { Ok::<_, String>(json!("12 Main Street")) });
    seen.push(servers(order).await?);

    // A run that has started keeps what it started with.
    executor.remove_server("clock").await;
    seen.push(servers(list()).await?);
    Ok(seen)
}

fn unexpected(error: Box<cx::ScriptError>) -> Error {
    Error::WorkerLost { message: error.to_string() }
}
