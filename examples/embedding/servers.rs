//! An MCP server that comes and goes while the executor runs, next to a tool, and a server of one run.

use std::error::Error;

use cx::{Executor, McpServer, Script, ToolRules};
use serde_json::{Value, json};

/// The script's use of the library: the title of a book, the note of a tool in Rust, and whether it may change anything
/// there.
const READ: &str = r#"
    const { title } = await tools.library.get_book({ id: "B0001" });
    const refused = await call_tool("library", "reserve_book", { id: "B0001", branch: "central" });
    return [title, await tools.notes.read(), refused.error.code];
"#;

/// Returns the servers that scripts see, and their results. `library` is the server of `examples/library`; any other
/// MCP server is added in the same way, with `McpServer::http` if it has an address.
pub(crate) async fn example(library: McpServer) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let executor = Executor::builder().build()?;
    let run = async |script: Script| -> Result<Vec<String>, Box<dyn Error>> {
        Ok(executor.run(script).await?.value_as()?)
    };
    let list = || Script::typescript("return Object.keys(tools)");

    // Each run that starts from now on has the server and the tool. The process of the server starts when a script
    // first needs it, and serves all runs. Rules of a server restrict what scripts can call there.
    let mut restricted = library.clone();
    restricted.rules = ToolRules::new().allow(["get_*", "search_*"]);
    executor.add_server(restricted)?;
    executor
        .add_tool("notes.read", Value::Null, |_: Value| async { Ok::<_, String>(json!("due on Friday")) })?;
    let mut seen = vec![run(list()).await?, run(Script::typescript(READ)).await?];

    // Two servers cannot have the same name.
    let again = executor.add_server(library.clone());
    assert!(matches!(again, Err(cx::Error::InvalidOptions { .. })), "{again:?}");

    // For later runs the server and its rules are gone. Its process is shut down before this returns.
    assert!(executor.remove_server("library").await);
    seen.push(run(list()).await?);

    // One run has its own server, which ends with the run. The removed rules do not restrict it.
    let reserve = r#"
        const reserved = await tools.library.reserve_book({ id: "B0001", branch: "central" });
        return [reserved, ...Object.keys(tools)];
    "#;
    seen.push(run(Script::typescript(reserve).server(library)).await?);
    seen.push(run(list()).await?);
    Ok(seen)
}
