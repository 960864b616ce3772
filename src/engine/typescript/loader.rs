//! The module loader: it loads `mcp:<server>` and refuses every other specifier.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use deno_core::url::form_urlencoded;
use deno_core::{
    ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader, ModuleSource, ModuleSourceCode,
    ModuleSpecifier, ModuleType, RequestedModuleType, ResolutionKind,
};
use deno_error::JsErrorBox;
use futures::FutureExt as _;

use super::instead;
use super::transpile::FILE_MODULES;
use crate::engine::host::{HostCalls, RunHost};
use crate::text;
use crate::tools::names::typescript_name;

/// The scheme of the modules of servers.
const SCHEME: &str = "mcp:";

/// What the module of files exports: the functions of the global `fs`.
pub(super) const FILE_EXPORTS: [&str; 17] = [
    "access",
    "appendFile",
    "constants",
    "copyFile",
    "lstat",
    "mkdir",
    "mkdtemp",
    "promises",
    "readFile",
    "readdir",
    "rename",
    "rm",
    "rmdir",
    "stat",
    "truncate",
    "unlink",
    "writeFile",
];

/// The source of that module. The functions are those of the global `fs`, also where a server has taken that
/// name.
fn files_source() -> String {
    let names = FILE_EXPORTS.join(", ");
    format!(
        "const fs = globalThis[Symbol.for(\"cx.fs\")];\nexport default fs;\nexport const {{ {names} }} = fs;\n"
    )
}

/// Whether a specifier is one of the module of files.
pub(super) fn is_of_files(specifier: &str) -> bool {
    FILE_MODULES.contains(&specifier)
}

/// Loads the modules of one isolate. Without a run it refuses all of them.
#[derive(Default)]
pub(crate) struct ServerModules {
    host: RefCell<Option<Arc<dyn RunHost>>>,
}

impl ServerModules {
    /// Assigns a run to the loader.
    pub(crate) fn start(&self, host: Arc<dyn RunHost>) {
        *self.host.borrow_mut() = Some(host);
    }
}

impl ModuleLoader for ServerModules {
    fn resolve(
        &self,
        specifier: &str,
        _referrer: &str,
        _kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let url = if is_of_files(specifier) {
            FILE_MODULES[0].to_owned()
        } else if let Some(server) = specifier.strip_prefix(SCHEME) {
            url_of(server)
        } else {
            return Err(JsErrorBox::type_error(format!(
                "cannot import `{}`: scripts have no packages and no URLs; {}",
                text::start(specifier, 100),
                instead::of_import(specifier)
            )));
        };
        ModuleSpecifier::parse(&url).map_err(|error| JsErrorBox::type_error(error.to_string()))
    }

    fn load(
        &self,
        specifier: &ModuleSpecifier,
        _referrer: Option<&ModuleLoadReferrer>,
        options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        let refuse =
            |message: &str| ModuleLoadResponse::Sync(Err(JsErrorBox::type_error(message.to_owned())));
        if options.requested_module_type != RequestedModuleType::None {
            return refuse("`mcp:` modules take no import attributes");
        }
        if specifier.as_str() == FILE_MODULES[0] {
            return ModuleLoadResponse::Sync(Ok(ModuleSource::new(
                ModuleType::JavaScript,
                ModuleSourceCode::String(files_source().into()),
                specifier,
                None,
            )));
        }
        let Some(host) = self.host.borrow().clone() else {
            return refuse("there is no run");
        };
        let specifier = specifier.clone();
        let source = async move {
            let server = server_of(&specifier);
            let tools = HostCalls::new(host).tool_names(&server).await;
            let tools = tools.map_err(|error| JsErrorBox::type_error(error.message))?;
            Ok(ModuleSource::new(
                ModuleType::JavaScript,
                ModuleSourceCode::String(module_source(&server, &tools).into()),
                &specifier,
                None,
            ))
        };
        ModuleLoadResponse::Async(source.boxed_local())
    }
}

/// The URL of a server's module. The name is encoded here, because a URL parser changes names: it encodes what is not
/// ASCII, drops tabs and spaces, and takes `?` and `#` for the ends of them.
fn url_of(server: &str) -> String {
    let name: String = form_urlencoded::byte_serialize(server.as_bytes()).collect();
    format!("{SCHEME}{name}")
}

/// The server of a module that [`url_of`] names.
fn server_of(specifier: &ModuleSpecifier) -> String {
    let name = specifier.as_str().strip_prefix(SCHEME).unwrap_or_default();
    form_urlencoded::parse(name.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

/// The names under which a module exports a tool: its own name and the camelCase form.
///
/// `then` is left out because it would make the module a thenable, and `default` because it is the
/// server.
pub(crate) fn export_names(tool: &str) -> Vec<String> {
    let mut names = vec![tool.to_owned(), typescript_name(tool)];
    names.dedup();
    names.retain(|name| !matches!(name.as_str(), "then" | "default" | ""));
    names
}

/// The source of a server's module. Every name is written as a JSON string, which is also a
/// JavaScript string literal, so that no name can become code.
fn module_source(server: &str, tools: &[String]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut source = format!("const server = tools[{}];\nexport default server;\n", quoted(server));
    let mut exported = std::collections::HashSet::new();
    for (position, tool) in tools.iter().enumerate() {
        let mut exports = String::new();
        for name in export_names(tool) {
            if exported.insert(name.clone()) {
                let _ = write!(exports, "tool{position} as {}, ", quoted(&name));
            }
        }
        if !exports.is_empty() {
            let name = quoted(tool);
            let _ = writeln!(source, "const tool{position} = server[{name}];\nexport {{ {exports}}};");
        }
    }
    source
}
