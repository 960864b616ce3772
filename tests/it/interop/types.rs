//! The output of `cx types`, compiled by `tsc --strict` and by pyright in strict mode: for the official servers, and
//! for generated odd schemas. A script that uses a tool wrongly is rejected.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use cx::{Executor, McpServer, ToolDefinition, ToolDispatcher, ToolError, ToolList, ToolRequest, ToolResult};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::support::interop::{node, python, type_checker};

/// Number of tools with generated schemas.
const ODD_TOOLS: u64 = 200;

/// A server that lists tools and does nothing else.
struct Listed(Arc<ToolList>);

impl ToolDispatcher for Listed {
    fn servers(&self) -> Vec<Arc<str>> {
        vec!["odd-server".into()]
    }

    fn tools<'a>(&'a self, _: &'a str, _: Instant) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>> {
        futures::future::ready(Ok(Arc::clone(&self.0))).boxed()
    }

    fn call(&self, _: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        futures::future::ready(Ok(ToolResult::default())).boxed()
    }
}

/// A small generator of pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % u64::try_from(most).unwrap()).unwrap()
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Names of tools and fields: keywords of both languages, names of types, and text that tries to end a literal or a
/// comment.
const NAMES: &[&str] = &[
    "path",
    "limit",
    "self",
    "str",
    "list",
    "items",
    "keys",
    "get",
    "copy",
    "class",
    "import",
    "None",
    "True",
    "type",
    "match",
    "_private",
    "__init__",
    "__proto__",
    "constructor",
    "a-b",
    "a.b",
    "a/b~c",
    "with space",
    "",
    "0",
    "42nd",
    "ünïcödé",
    "ﬁ",
    "new",
    "default",
    "then",
    "await",
    "async",
    "object",
    "Any",
    "TypedDict",
    "Tools",
    "OddServerTools",
    "\"\"\"",
    "'''",
    "*/ evil(); /*",
    "\\",
    "\\\"",
    "\n",
    "\u{2028}",
    "\u{202e}",
    "${x}",
    "`",
    "# comment",
    "}",
    ")",
    "others",
    "more",
    "named",
    "arguments",
    "name",
    "int",
    "float",
    "bool",
    "dict",
    "_t",
    "_b",
];

fn schema(random: &mut Random, depth: usize) -> Value {
    let inner = |random: &mut Random| schema(random, depth + 1);
    let kinds = if depth < 4 { 17 } else { 8 };
    match random.below(kinds) {
        0 => json!({ "type": "string", "description": random.pick(NAMES) }),
        1 => json!({ "type": "integer" }),
        2 => json!({ "type": ["number", "null"] }),
        3 => json!({ "type": "boolean" }),
        4 => json!({ "const": random.pick(NAMES) }),
        5 => json!({ "enum": [random.pick(NAMES), 1, -2.5, null, true, { "a": 1 }] }),
        6 => {
            json!({ "$ref": random.pick(&["#", "#/$defs/Node", "#/$defs/A", "#/$defs/B", "#/$defs/a~1b~0c", "#/none"]) })
        }
        7 => json!(random.below(2) == 0),
        8 => json!({ "type": "array", "items": inner(random) }),
        9 => json!({ "prefixItems": [inner(random), inner(random)], "items": random.below(2) == 0 }),
        10 => json!({ "type": "array", "items": [inner(random)], "additionalItems": inner(random) }),
        11 => json!({ "anyOf": [inner(random), inner(random), { "type": "null" }] }),
        12 => json!({ "oneOf": [inner(random), inner(random)], "nullable": true }),
        13 => json!({ "allOf": [object(random, depth), object(random, depth)] }),
        14 => json!({ "type": "object", "additionalProperties": inner(random) }),
        15 => json!({ "type": "object", "patternProperties": { "^x": inner(random) } }),
        _ => object(random, depth),
    }
}

fn object(random: &mut Random, depth: usize) -> Value {
    let mut properties = Map::new();
    for _ in 0..random.below(5) {
        let name = random.pick(NAMES).to_owned();
        let value = schema(random, depth + 1);
        properties.insert(name, value);
    }
    let required: Vec<String> = properties.keys().filter(|_| random.below(2) == 0).cloned().collect();
    let mut object = json!({ "type": "object", "properties": properties, "required": required });
    match random.below(4) {
        0 => object["additionalProperties"] = json!(false),
        1 => object["additionalProperties"] = schema(random, depth + 1),
        _ => {}
    }
    object
}

/// A schema that is a whole document, with definitions that refer to each other.
fn document(random: &mut Random) -> Value {
    let mut document = object(random, 0);
    document["$defs"] = json!({
        "Node": { "type": "object", "properties": {
            "next": { "$ref": "#/$defs/Node" },
            "children": { "type": "array", "items": { "$ref": "#/$defs/Node" } },
            "value": { "$ref": "#/$defs/A" },
        } },
        "A": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "$ref": "#/$defs/B" } }] },
        "B": { "oneOf": [{ "$ref": "#/$defs/A" }, { "type": "object", "additionalProperties": { "$ref": "#/$defs/A" } }] },
        "a/b~c": schema(random, 3),
    });
    document
}

fn odd_tools() -> Vec<ToolDefinition> {
    let mut random = Random(17);
    let mut tools = Vec::new();
    for at in 0..ODD_TOOLS {
        let name = match at.checked_sub(NAMES.len() as u64) {
            None => NAMES[usize::try_from(at).unwrap()].to_owned(),
            Some(_) => format!("{} {at}", random.pick(NAMES)),
        };
        let mut tool = ToolDefinition::new(name);
        tool.description = Some(format!("{}\n{}", random.pick(NAMES), random.pick(NAMES)));
        tool.input_schema = document(&mut random).into();
        tool.output_schema = (random.below(3) > 0).then(|| document(&mut random).into());
        tools.push(tool);
    }
    let mut well = ToolDefinition::new("read_file");
    well.input_schema = json!({ "type": "object", "properties": {
        "path": { "type": "string" }, "head": { "type": "integer" }, "mode": { "enum": ["text", "bytes"] },
        "within": { "$ref": "#/$defs/Node" } }, "required": ["path"],
        "$defs": { "Node": { "type": "object", "properties": {
            "name": { "type": "string" }, "up": { "$ref": "#/$defs/Node" } }, "required": ["name"] } } })
    .into();
    well.output_schema = Some(
        json!({ "type": "object", "properties": { "content": { "type": "string" },
            "lines": { "type": "array", "items": { "type": "integer" } } }, "required": ["content", "lines"] })
        .into(),
    );
    tools.push(well);
    tools
}

async fn executor() -> Executor {
    let listed = Listed(Arc::new(ToolList::new(odd_tools())));
    let directory = env!("CARGO_MANIFEST_DIR").to_owned();
    let executor = Executor::builder()
        .dispatcher(listed)
        .mcp_server(
            McpServer::stdio("everything", "node").args([node("server-everything"), "stdio".to_owned()]),
        )
        .mcp_server(
            McpServer::stdio("filesystem", "node").args([node("server-filesystem"), directory.clone()]),
        )
        .mcp_server(McpServer::stdio("memory", "node").args([node("server-memory")]))
        .mcp_server(McpServer::stdio("thinking", "node").args([node("server-sequential-thinking")]))
        .mcp_server(McpServer::stdio("time", python("mcp-server-time")))
        .mcp_server(
            McpServer::stdio("git", python("mcp-server-git")).args(["--repository".to_owned(), directory]),
        )
        .mcp_server(McpServer::stdio("fetch", python("mcp-server-fetch")))
        .build()
        .unwrap();
    for (server, result) in executor.refresh_tools().await {
        result.unwrap_or_else(|error| panic!("{server}: {error}"));
    }
    executor
}

/// The output of a checker for a folder, and whether it accepts the folder.
fn checked(program: &Path, arguments: &[&str], directory: &Path) -> (bool, String) {
    let output = Command::new("node").arg(program).args(arguments).current_dir(directory).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The lines of a script that a checker complains about. Each wrong line ends in `// wrong` or `# wrong`.
fn wrong_lines(script: &str) -> Vec<usize> {
    script.lines().enumerate().filter(|(_, line)| line.ends_with("wrong")).map(|(at, _)| at + 1).collect()
}

const TYPESCRIPT: &str = r#"
export async function main(): Promise<unknown> {
  const file = await tools.oddServer.readFile({ path: "a.txt", head: 3, mode: "text" });
  const again = await tools["odd-server"].read_file({ path: "b", within: { name: "x", up: { name: "y" } } });
  const sum: number = file.lines.reduce((a, b) => a + b, 0) + again.content.length;
  const total = await tools.everything.getSum({ a: 1, b: 2 });
  const weather = await getStructuredContent({ location: "Chicago" });
  const celsius: number = weather.temperature;
  await state.set("n", await tools.time.getCurrentTime({ timezone: "UTC" }));
  await tools.git.gitStatus({ repo_path: "." }, { signal: AbortSignal.timeout(5000), timeoutMs: 5000 });
  await tools.mcp__everything__echo({ message: "x" });
  const { mcp__git__git_status: status } = tools;
  await status({ repo_path: "." });
  await tools["mcp__odd-server__read_file"]({ path: "a.txt" });
  await tools["mcp__odd-server__readFile"]({ path: 5 }); // wrong
  await tools.mcp__everything__ech({ message: "x" }); // wrong
  await tools.mcp__everything__echo({ massage: "x" }); // wrong
  await tools.mcp__nothing__echo({ message: "x" }); // wrong
  await tools.git.gitStatus({ repo_path: "." }, { timeout: 5000 }); // wrong
  await tools.oddServer.readFile({ path: 5 }); // wrong
  await tools.oddServer.readFile({}); // wrong
  await tools.oddServer.readFile({ path: "a", mode: "lines" }); // wrong
  await tools.oddServer.readFile({ path: "a", within: { name: "x", up: { name: 1 } } }); // wrong
  await tools.oddServer.readFiles({ path: "a" }); // wrong
  await tools.everythin.echo({ message: "x" }); // wrong
  file.contents.trim(); // wrong
  await tools.everything.getSum({ a: "1", b: 2 }); // wrong
  await tools.filesystem.readTextFile({ file: "x" }); // wrong
  return [sum, total, celsius];
}
import { getStructuredContent } from "mcp:everything";
"#;

const PYTHON: &str = r#"
async def main() -> object:
    file = await tools.odd_server.read_file(path="a.txt", head=3, mode="text")
    again = await odd_server.read_file({"path": "b", "within": {"name": "x", "up": {"name": "y"}}})
    total = sum(file["lines"]) + len(again["content"])
    await tools.odd_server.read_file(path="a", head=None)
    added = await tools.everything.get_sum(a=1, b=2)
    weather = await tools.everything.get_structured_content(location="Chicago")
    celsius: float = weather["temperature"]
    await state.set("n", await tools.time.get_current_time(timezone="UTC"))
    await tools.git.git_status(repo_path=".")
    await tools.mcp__everything__get_sum(a=1, b=2)
    status = tools.mcp__git__git_status
    await status({"repo_path": "."})
    print([name for server in tools for name in tools[server]], len(tools), "echo" in tools.everything)
    print([name for name in tools.everything])
    await tools.git.git_status({"repo_path": "."}, {"timeout": 5})
    await tools.mcp__everything__get_sum({"a": 1, "b": 2}, {"timeoutMs": 500})
    print(call_tool("git", "git_status", {"repo_path": "."}, {"timeout": 5}), search_tools_sync("x", timeout=5))
    print(call_mcp_tool_sync("mcp__git__git_status", {"repo_path": "."}, {"timeout": 0.5}))
    await tools.git.git_status({"repo_path": "."}, {"timout": 5})  # wrong
    await tools.mcp__everything__get_sum(a="1", b=2)  # wrong
    await tools.mcp__everything__get_su(a=1, b=2)  # wrong
    await tools.odd_server.read_file(path=5)  # wrong
    await tools.odd_server.read_file()  # wrong
    await tools.odd_server.read_file(path="a", mode="lines")  # wrong
    await tools.odd_server.read_file({"path": "b", "within": {"name": "x", "up": {"name": 1}}})  # wrong
    await tools.odd_server.read_files(path="a")  # wrong
    await tools.everythin.echo(message="x")  # wrong
    print(file["contents"])  # wrong
    await tools.everything.get_sum(a="1", b=2)  # wrong
    await tools.filesystem.read_text_file(file="x")  # wrong
    return [total, added, celsius]
"#;

#[tokio::test]
async fn declarations_compile_and_catch_wrong_calls() {
    let executor = executor().await;
    let declarations = executor.declarations();
    assert_eq!(executor.declarations(), declarations, "the same each time");
    let stubs = executor.python_stubs();
    assert_eq!(executor.python_stubs(), stubs, "the same each time");
    executor.close().await;

    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::write(root.join("cx.d.ts"), declarations).unwrap();
    let config = json!({
        "compilerOptions": { "strict": true, "noEmit": true, "target": "esnext", "module": "esnext",
            "moduleResolution": "bundler", "lib": ["esnext", "dom"], "types": [], "skipLibCheck": false },
        "include": ["*.ts"],
    });
    fs::write(root.join("tsconfig.json"), config.to_string()).unwrap();
    let tsc = type_checker("typescript/bin/tsc");
    let (accepted, said) = checked(&tsc, &["-p", "."], root);
    assert!(accepted, "{said}");
    fs::write(root.join("script.ts"), TYPESCRIPT).unwrap();
    let (_, said) = checked(&tsc, &["-p", ".", "--pretty", "false"], root);
    let complaints: Vec<usize> = said
        .lines()
        .filter_map(|line| line.strip_prefix("script.ts(")?.split_once(',')?.0.parse().ok())
        .collect();
    assert_eq!(complaints, wrong_lines(TYPESCRIPT), "{said}");

    let typings = root.join("typings");
    fs::create_dir(&typings).unwrap();
    for (name, text) in stubs {
        fs::write(typings.join(name), text).unwrap();
    }
    let config = json!({ "typeCheckingMode": "strict", "include": ["."], "stubPath": "typings",
        "pythonVersion": "3.14", "pythonPlatform": "Linux" });
    fs::write(root.join("pyrightconfig.json"), config.to_string()).unwrap();
    let pyright = type_checker("pyright/index.js");
    let (accepted, said) = checked(&pyright, &[], root);
    assert!(accepted, "{said}");
    fs::write(root.join("script.py"), PYTHON).unwrap();
    let (_, said) = checked(&pyright, &["--outputjson", "script.py"], root);
    let report: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let mut complaints: Vec<u64> = report["generalDiagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["severity"] == "error")
        .map(|one| one["range"]["start"]["line"].as_u64().unwrap() + 1)
        .collect();
    complaints.dedup();
    let expected: Vec<u64> = wrong_lines(PYTHON).into_iter().map(|line| line as u64).collect();
    assert_eq!(complaints, expected, "{said}");
}
