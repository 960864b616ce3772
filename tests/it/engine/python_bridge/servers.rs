//! Helpers that describe servers, beyond those of the other host.

use super::*;

#[tokio::test]
async fn servers_can_be_described() {
    let servers = demo()
        .configured("demo-server", |server| server.details.description = Some("Things".to_owned()))
        .server("other", &[]);
    let source = "
from mcp import runtime
print(runtime.discovered_servers(detailed=True))
print(runtime.describe_server('demo-server')['description'])
";
    let expected =
        "({'name': 'demo-server', 'description': 'Things'}, {'name': 'other', 'description': ''})\nThings";
    assert_eq!(servers.prints(source).await, expected);
}

#[tokio::test]
async fn a_server_that_fails_hides_no_other() {
    let servers = demo().server("broken", &[]).configured("broken", |server| server.is_down = true);
    let source = "
from mcp import runtime
return [[server['name'], len(server['tools']), server.get('error')] for server in runtime.list_loaded_server_metadata()]
";
    let expected = json!([["broken", 0, "it is down"], ["demo-server", 1, null]]);
    assert_eq!(servers.value(source).await, expected);
}

/// A Python name that two tools share is not used: the alias is then the exact name.
#[tokio::test]
async fn aliases_call_the_tool_that_they_are_of() {
    let servers = Fixed::default().server(
        "Names",
        &[
            ("getUser", "", json!([1])),
            ("get-all", "", json!([2])),
            ("get.all", "", json!([3])),
            ("class", "", json!([4])),
        ],
    );
    let source = "
from mcp import runtime
from mcp.servers.names import *
about = runtime.describe_server('Names')
aliases = [tool['alias'] for tool in about['tools']]
server = mcp_servers[about['alias']]
[about['alias'], aliases, [await server[alias]() for alias in aliases], await get_user(), await class_()]
";
    let expected =
        json!(["names", ["get_user", "get-all", "get.all", "class_"], [[1], [2], [3], [4]], [1], [4]]);
    assert_eq!(servers.value(source).await, expected);
}

#[tokio::test]
async fn a_tool_that_is_called_list_tools_is_called() {
    let servers = Fixed::default().server("meta", &[("list_tools", "", json!("its own"))]);
    let source = "return [await mcp_meta.list_tools(), await mcp.servers.meta.list_tools(a=1)]";
    assert_eq!(servers.value(source).await, json!(["its own", "its own"]));
}

#[tokio::test]
async fn wrong_names_say_the_right_ones() {
    let cases = [
        (
            "import mcp.servers.demo_sever",
            "no server `demo_sever`; did you mean `demo-server`? (in Python `from mcp_tools import demo_server`)",
        ),
        ("from mcp.servers import demo_sever", "no server `demo_sever`; did you mean `demo-server`?"),
        ("import mcp_tools.nothing", "no server `nothing`; the servers are "),
        ("mcp_servers['demo_sever']", "no server `demo_sever`; did you mean `demo-server`?"),
        ("mcp.runtime.describe_server('nothing')", "no server `nothing`"),
        (
            "mcp.runtime.query_tool_docs_sync('demo-server', 'list_thing')",
            "no tool `list_thing` on server `demo-server`",
        ),
    ];
    for (source, expected) in cases {
        let result = demo().run(source).await;
        let message = result.error().map(|error| error.message.clone()).unwrap_or_default();
        assert!(message.starts_with(expected), "{source}: {}", result.to_json());
    }
}

/// Scripts of other hosts try the servers that they find first, and saved scripts are no server there.
#[tokio::test]
async fn helpers_do_not_list_saved_scripts() {
    python().await;
    let directory = tempfile::tempdir().unwrap();
    let library = ScriptLibrary::of_folder(directory.path().join("scripts"));
    let executor = Executor::builder().dispatcher(demo()).scripts(library).build().unwrap();
    let source = "
from mcp import runtime
names = [runtime.discovered_servers(), await runtime.list_servers(), runtime.list_servers_sync(), LOADED_MCP_SERVERS]
names.append([server['name'] for server in runtime.discovered_servers(detailed=True)])
names.append([server['name'] for server in runtime.list_loaded_server_metadata()])
return [names, 'Servers: demo-server.' in runtime.capability_summary(), sorted(tools)]
";
    let result = executor.run(Script::python(source)).await.unwrap();
    let names = vec![["demo-server"]; 6];
    let expected = json!([names, true, ["demo-server", "scripts"]]);
    assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
    // Nor do hints.
    let result = executor.run(Script::python("client.call('list_things')")).await.unwrap();
    let hint = result.error().and_then(|error| error.hint.clone()).unwrap_or_default();
    assert!(hint.ends_with("; here there are `tools.demo_server`"), "{hint}: {}", result.to_json());
}

/// The helpers do not show tools that a run may not call.
#[tokio::test]
async fn rules_hold_for_the_helpers() {
    python().await;
    let executor = Executor::builder().dispatcher(office()).build().unwrap();
    let source = "
from mcp import runtime
seen = [runtime.discovered_servers(), [tool['name'] for tool in runtime.list_tools_sync('jira')]]
for question in (
    lambda: runtime.describe_server('github'),
    lambda: runtime.query_tool_docs_sync('github'),
    lambda: runtime.query_tool_docs_sync('jira', 'get_issue'),
):
    try:
        question()
        seen.append('answered')
    except runtime.MCPError as error:
        seen.append(error.code)
return seen
";
    let script = Script::python(source).allow(["jira.search_issues"]);
    let result = executor.run(script).await.unwrap();
    let denied = "TOOL_DENIED";
    assert_eq!(
        result.value(),
        Some(&json!([["jira"], ["search_issues"], denied, denied, denied])),
        "{}",
        result.to_json()
    );
}

/// The directory is the configured one, and no server is started to report it.
#[tokio::test]
async fn configured_servers_are_described_without_a_start() {
    python().await;
    let server = cx::McpServer::stdio("files", "/nowhere/no-such-program").cwd("/srv").description("Files");
    let executor = Executor::builder().mcp_server(server).build().unwrap();
    let source = "
from mcp import runtime
return runtime.discovered_servers(detailed=True)
";
    let result = executor.run(Script::python(source)).await.unwrap();
    let expected = json!([{ "name": "files", "description": "Files" }]);
    assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
    let source = "return mcp.runtime.list_loaded_server_metadata()[0]['cwd']";
    let result = executor.run(Script::python(source)).await.unwrap();
    assert_eq!(result.value(), Some(&json!("/srv")), "{}", result.to_json());
}
