//! Tools that come and go while the executor runs, and tools of one run.

use cx::{Executor, Script};
use serde_json::{Value, json};

/// Returns the servers that a script sees: at first, with a tool, with its own tool, and
/// without any.
pub(crate) async fn example() -> Result<Vec<Vec<String>>, Box<dyn std::error::Error>> {
    let executor = Executor::builder().build()?;
    // The first `?` is for a failure of the executor; `value_as` returns the script's own failure.
    let servers = async |script: Script| -> Result<Vec<String>, Box<dyn std::error::Error>> {
        Ok(executor.run(script).await?.value_as()?)
    };
    let list = || Script::typescript("return Object.keys(tools)");
    let mut seen = vec![servers(list()).await?];

    // From now on all runs have it. `add_server` does the same for an MCP server.
    executor.add_tool("clock.now", Value::Null, |_: Value| async { Ok::<_, String>(json!("noon")) })?;
    seen.push(servers(list()).await?);

    // Only this run has it. `Script::server` does the same for an MCP server.
    let order = Script::typescript("return [...Object.keys(tools), await tools.order.address()]");
    let order = order
        .tool("order.address", Value::Null, |_: Value| async { Ok::<_, String>(json!("12 Main Street")) });
    seen.push(servers(order).await?);

    // A run that has started keeps its tools.
    executor.remove_tool("clock.now");
    seen.push(servers(list()).await?);
    Ok(seen)
}
