//! Python scripts that were written for hosts with `mcp.runtime`, `mcp.servers` and `mcp_<server>` run unchanged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use cx::{
    BoxFuture, ExecuteResult, Executor, Script, ScriptLibrary, ServerDetails, ToolDefinition, ToolDispatcher,
    ToolError, ToolErrorCode, ToolList, ToolRequest, ToolResult,
};
use futures::FutureExt as _;
use futures::future::ready;
use serde_json::{Value, json};

use crate::support::python;

/// Servers with fixed answers: a string is one text block, `null` is one block with the call's own `message`, the
/// string `fails` is a failure, and anything else is structured content.
#[derive(Default)]
struct Fixed {
    servers: BTreeMap<Arc<str>, Server>,
}

#[derive(Default)]
struct Server {
    details: ServerDetails,
    tools: Vec<(ToolDefinition, Value)>,
    is_down: bool,
}

impl Fixed {
    /// Adds a server with these tools: name, description, answer.
    fn server(mut self, name: &str, tools: &[(&str, &str, Value)]) -> Self {
        let tools = tools.iter().map(|(name, description, answer)| {
            let mut definition = ToolDefinition::new(*name);
            definition.description = (!description.is_empty()).then(|| (*description).to_owned());
            (definition, answer.clone())
        });
        self.servers.insert(name.into(), Server { tools: tools.collect(), ..Server::default() });
        self
    }

    fn configured(mut self, name: &str, change: impl FnOnce(&mut Server)) -> Self {
        change(self.servers.get_mut(name).unwrap());
        self
    }

    async fn run(self, source: &str) -> ExecuteResult {
        // Compiled once for all tests.
        python().await;
        let executor = Executor::builder().dispatcher(self).build().unwrap();
        executor.run(Script::python(source).named("script.py")).await.unwrap()
    }

    /// Runs a script that must succeed and returns what it printed.
    async fn prints(self, source: &str) -> String {
        let result = self.run(source).await;
        assert!(result.error().is_none(), "{source}: {}", result.to_json());
        result.printed()
    }

    /// Runs a script that must succeed and returns its value.
    async fn value(self, source: &str) -> Value {
        let result = self.run(source).await;
        result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
    }
}

impl ToolDispatcher for Fixed {
    fn servers(&self) -> Vec<Arc<str>> {
        self.servers.keys().cloned().collect()
    }

    fn tools<'a>(
        &'a self,
        server: &'a str,
        _deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        let server = &self.servers[server];
        if server.is_down {
            return ready(Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, "it is down"))).boxed();
        }
        let tools = server.tools.iter().map(|(definition, _)| definition.clone()).collect();
        ready(Ok(Arc::new(ToolList::new(tools)))).boxed()
    }

    fn details(&self, server: &str) -> ServerDetails {
        self.servers[server].details.clone()
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let tools = &self.servers[&request.server].tools;
        let (_, answer) = tools.iter().find(|(tool, _)| tool.name == *request.tool).unwrap();
        let text = |text: &str| ToolResult::content(vec![json!({ "type": "text", "text": text })]);
        let result = match answer {
            Value::String(message) if message == "fails" => {
                let mut result = text("it has failed");
                result.is_error = true;
                result
            }
            Value::String(message) => text(message),
            Value::Null => text(request.arguments["message"].as_str().unwrap_or("")),
            answer => ToolResult::structured(answer.clone()),
        };
        ready(Ok(result)).boxed()
    }
}

/// One server whose name is not an identifier, with one tool and a directory.
fn demo() -> Fixed {
    Fixed::default()
        .server("demo-server", &[("list_things", "Lists what there is", json!(["ok"]))])
        .configured("demo-server", |server| server.details.directory = Some("/home/demo/work".into()))
}

// --- what the other host's own tests say of its scripts -------------------------------------------------------------

#[tokio::test]
async fn servers_are_modules() {
    let source = "
import sys
import mcp
import mcp.servers.demo_server as demo
found = await demo.list_things()
assert found == ['ok'], found
assert 'demo-server' in mcp_servers
assert isinstance(mcp_servers, dict)
assert 'demo_server' in mcp.servers.__all__
assert sys.modules['mcp.servers.demo_server'] is demo and hasattr(demo, 'list_things')
assert mcp.runtime is sys.modules['mcp.runtime']
assert mcp.runtime.discovered_servers() == ('demo-server',)
assert hasattr(mcp.runtime, 'query_tool_docs') and hasattr(mcp.runtime, 'search_tool_docs')
";
    assert_eq!(demo().prints(source).await, "");
}

#[tokio::test]
async fn helpers_have_a_blocking_form_and_one_to_await() {
    let source = "
from mcp import runtime
assert runtime.list_servers_sync() == ('demo-server',)
assert runtime.query_tool_docs_sync('demo-server')[0]['toolAlias'] == 'list_things'
assert runtime.search_tool_docs_sync('list')[0]['toolAlias'] == 'list_things'
assert [tool['alias'] for tool in runtime.list_tools_sync('demo-server')] == ['list_things']
print('SUMMARY:', runtime.capability_summary())

async def later():
    docs = await runtime.query_tool_docs('demo-server')
    found = await runtime.search_tool_docs('list')
    print('LATER:', docs, found, await runtime.list_servers())
await later()
";
    let printed = demo().prints(source).await;
    let (summary, later) = printed.split_once('\n').unwrap();
    assert!(summary.starts_with("SUMMARY: PYTHON SANDBOX MANUAL"), "{summary}");
    let docs = "[{'server': 'demo-server', 'serverAlias': 'demo_server', 'tool': 'list_things', \
                'toolAlias': 'list_things', 'description': 'Lists what there is'}]";
    assert_eq!(later, format!("LATER: {docs} {docs} ('demo-server',)"));
}

#[tokio::test]
async fn metadata_and_errors() {
    let source = "
from mcp import runtime
assert runtime.discovered_servers() == ('demo-server',)
metadata = runtime.list_loaded_server_metadata()
assert isinstance(metadata, tuple) and metadata[0]['alias'] == 'demo_server', metadata
assert runtime.describe_server('demo-server')['name'] == 'demo-server'
try:
    runtime.list_tools_sync()
except runtime.MCPError as error:
    print('REFUSED', isinstance(error, RuntimeError), error)
one = await runtime.query_tool_docs('demo-server', tool='list_things', detail='full')
assert isinstance(one, dict) and one['inputSchema'] == {'type': 'object'}, one
found = await runtime.search_tool_docs('list', limit=1, detail='full')
assert len(found) == 1 and 'inputSchema' in found[0], found
found = runtime.search_tool_docs_sync('list demo', limit=1, detail='full')
assert 'inputSchema' in found[0], found
print(runtime.describe_server('demo-server'))
";
    let expected = "REFUSED True list_tools_sync(server) needs a server's name: search_tool_docs(query) finds tools of \
                    all servers\n\
                    {'name': 'demo-server', 'alias': 'demo_server', 'tools': [{'name': 'list_things', 'alias': \
                    'list_things', 'description': 'Lists what there is', 'input_schema': {'type': 'object'}}], \
                    'cwd': '/home/demo/work'}";
    assert_eq!(demo().prints(source).await, expected);
}

#[tokio::test]
async fn a_servers_directory_is_known_where_it_is_configured() {
    let source = "
from mcp import runtime
for name in runtime.discovered_servers():
    print(name, runtime.describe_server(name).get('cwd') or 'the default')
print([server.get('cwd') for server in runtime.list_loaded_server_metadata()])
";
    let servers = demo().server("elsewhere", &[]);
    let expected = "demo-server /home/demo/work\nelsewhere the default\n['/home/demo/work', None]";
    assert_eq!(servers.prints(source).await, expected);
}

#[tokio::test]
async fn a_text_can_be_read_as_content() {
    let source = "
answer = await mcp_stub.echo(message='hello world')
assert answer['content'][0]['text'] == 'hello world'
assert answer == 'hello world' and answer[:5] == 'hello' and answer[-1] == 'd'
try:
    answer['contents']
except KeyError as error:
    print('no', error)
";
    let servers = Fixed::default().server("stub", &[("echo", "", Value::Null)]);
    assert_eq!(servers.prints(source).await, "no 'contents'");
}

// --- what its documents show ----------------------------------------------------------------------------------------

/// The servers of all scripts below.
fn office() -> Fixed {
    Fixed::default()
        .server(
            "filesystem",
            &[
                ("list_directory", "", json!(["a.txt", "b.txt"])),
                ("read_file", "", json!("first\nOPEN: second")),
            ],
        )
        .server("search", &[("search", "", json!({ "title": "Found", "hits": [{ "id": 3 }] }))])
        .server("google-drive", &[("get_document", "", json!("A long transcript"))])
        .server(
            "jira",
            &[
                ("search_issues", "", json!([{ "id": 7, "title": "Crash" }, { "id": 8, "title": "Wish" }])),
                ("get_issue", "", json!({ "description": "A Bug in it" })),
            ],
        )
        .server("github", &[("create_issue", "", Value::Null)])
        .server("service", &[("status", "", json!({ "ready": true })), ("execute", "", json!("fails"))])
}

#[tokio::test]
async fn fields_of_results_are_attributes() {
    let source = "
found = await mcp_search.search(query='it')
print(found.title, found['title'], found.hits[0].id, found)
print(hasattr(found, 'nothing'), getattr(found, 'nothing', 1), list(found.keys()))
issues = await mcp_jira.search_issues(project='API')
for issue in issues:
    details = await mcp_jira.get_issue(id=issue.id)
    if 'bug' in details.description.lower():
        print(await mcp_github.create_issue(message=f'Bug: {issue.title}'))
status = await mcp_service.status()
print(status.ready)
";
    let expected = "Found Found 3 {'title': 'Found', 'hits': [{'id': 3}]}\nFalse 1 ['title', 'hits']\nBug: Crash\n\
                    Bug: Wish\nTrue";
    assert_eq!(office().prints(source).await, expected);
}

/// Python's libraries treat results like any other object or text.
#[tokio::test]
async fn results_are_what_libraries_take() {
    let source = "
import copy, json, pickle, yaml
found = await mcp_search.search(query='it')
text = await mcp_filesystem.read_file(path='a.txt')
assert pickle.loads(pickle.dumps([found, text])) == [found, text]
assert copy.deepcopy(found) == found and copy.copy(found).title == 'Found'
assert json.loads(json.dumps([found, text])) == [found, text]
assert yaml.safe_load(yaml.safe_dump([found, text])) == [found, text]
assert yaml.safe_load(yaml.dump({'a': found, 'b': text})) == {'a': found, 'b': text}
match found:
    case {'title': str(title)}:
        print(title)
return {'found': found, 'text': text}
";
    let result = office().run(source).await;
    assert_eq!(result.printed(), "Found", "{}", result.to_json());
    let found = json!({ "title": "Found", "hits": [{ "id": 3 }] });
    assert_eq!(result.value(), Some(&json!({ "found": found, "text": "first\nOPEN: second" })));
}

#[tokio::test]
async fn a_missing_field_is_an_attribute_error_that_names_the_nearest() {
    let result = office().run("found = await mcp_search.search(query='')\nfound.titel").await;
    let error = result.error().unwrap();
    assert_eq!(error.message, "the object has no field 'titel'. Did you mean: 'title'?");
    assert_eq!((error.name.as_deref(), error.line), (Some("AttributeError"), Some(2)));
}

#[tokio::test]
async fn scripts_of_the_documents_run() {
    for (source, expected) in [
        (
            "
names = await mcp_filesystem.list_directory(path='/tmp')
for name in names:
    content = await mcp_filesystem.read_file(path=name)
    if 'OPEN' in content:
        print(f'OPEN in {name}')
",
            "OPEN in a.txt\nOPEN in b.txt",
        ),
        (
            "
transcript = await mcp_google_drive.get_document(documentId='abc123')
summary = transcript[:6] + '...'
print(await mcp_github.create_issue(message=summary))
",
            "A long...",
        ),
        // The script does not import asyncio.
        (
            "
issues = await mcp_jira.search_issues()
tasks = [mcp_jira.get_issue(id=issue.id) for issue in issues]
print(len(await asyncio.gather(*tasks)))
",
            "2",
        ),
        (
            "
try:
    await mcp_service.execute()
except Exception as error:
    print(f'failed: {error}')
",
            "failed: it has failed",
        ),
        (
            "
server = mcp_servers['filesystem']
print(len(await server.read_file(path='/tmp/a')))
",
            "18",
        ),
        (
            "
from mcp.servers.filesystem import *
print(await list_directory(path='/tmp'))
",
            "['a.txt', 'b.txt']",
        ),
        (
            "
from mcp import runtime
matches = await runtime.search_tool_docs('issues', limit=3)
for hit in sorted(matches, key=lambda hit: hit['tool']):
    print(hit['server'], hit['tool'], hit.get('description', 'no description'))
",
            "github create_issue no description\njira get_issue no description\njira search_issues no description",
        ),
        (
            "
from mcp import runtime
print('Discovered:', runtime.discovered_servers()[:2])
print('Selectable:', (await runtime.list_servers())[:2])
print('Awaited:', (await mcp.runtime.discovered_servers())[:2])
loaded = runtime.list_loaded_server_metadata()
if loaded:
  first = runtime.describe_server(loaded[0]['name'])
  for tool in first['tools']:
    print(tool['alias'], '→', tool.get('description', ''))
  summaries = await runtime.query_tool_docs(loaded[0]['name'])
  detailed = await runtime.query_tool_docs(
    loaded[0]['name'],
    tool=summaries[0]['toolAlias'],
    detail='full',
  )
  print(detailed)
  print('Cached:', runtime.list_tools_sync(loaded[0]['name'])[1])
print('Loaded:', LOADED_MCP_SERVERS[0], 'of', len(LOADED_MCP_SERVERS))
",
            "Discovered: ('filesystem', 'github')\nSelectable: ('filesystem', 'github')\n\
             Awaited: ('filesystem', 'github')\nlist_directory → \nread_file → \n\
             {'server': 'filesystem', 'serverAlias': 'filesystem', 'tool': 'list_directory', 'toolAlias': \
             'list_directory', 'inputSchema': {'type': 'object'}}\n\
             Cached: {'name': 'read_file', 'alias': 'read_file', 'description': '', 'input_schema': {'type': \
             'object'}}\nLoaded: filesystem of 6",
        ),
        (
            "
print(await mcp.runtime.call_tool('filesystem', 'read_file', {'path': 'x'}) == 'first\\nOPEN: second')
print([tool['name'] for tool in await mcp_filesystem.list_tools()])
print(mcp.runtime.list_tools_sync('search'), await mcp.runtime.list_tools('search'))
",
            "True\n['list_directory', 'read_file']\n({'name': 'search', 'alias': 'search', 'description': '', \
             'input_schema': {'type': 'object'}},) [{'name': 'search', 'inputSchema': {'type': 'object'}}]",
        ),
        (
            "
try:
    await mcp.runtime.call_tool('service', 'execute')
except mcp.runtime.MCPError as error:
    print('failed:', error)
",
            "failed: it has failed",
        ),
    ] {
        assert_eq!(office().prints(source).await, expected, "{source}");
    }
}

// --- beyond it ------------------------------------------------------------------------------------------------------

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
