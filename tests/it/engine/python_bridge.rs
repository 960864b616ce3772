//! Python scripts that were written for hosts with `mcp.runtime`, `mcp.servers` and `mcp_<server>` run unchanged.

/// Helpers that describe servers, beyond those of the other host.
mod servers;

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
