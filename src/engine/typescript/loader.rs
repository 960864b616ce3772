//! The module loader: it loads `mcp:<server>` and refuses every other specifier.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use deno_core::{
    ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader, ModuleSource, ModuleSourceCode,
    ModuleSpecifier, ModuleType, RequestedModuleType, ResolutionKind,
};
use deno_error::JsErrorBox;
use futures::FutureExt as _;

use crate::run::context::ExecutionContext;
use crate::tools::catalog::ResolvedTool;
use crate::tools::names::typescript_name;

/// The scheme of the only modules that exist.
const SCHEME: &str = "mcp:";

/// Loads the modules of one isolate. Without a run it refuses all of them.
#[derive(Default)]
pub(crate) struct ServerModules {
    context: RefCell<Option<Arc<ExecutionContext>>>,
}

impl ServerModules {
    /// Assigns a run to the loader.
    pub(crate) fn start(&self, context: Arc<ExecutionContext>) {
        *self.context.borrow_mut() = Some(context);
    }
}

impl ModuleLoader for ServerModules {
    fn resolve(
        &self,
        specifier: &str,
        _referrer: &str,
        _kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        if !specifier.starts_with(SCHEME) {
            return Err(JsErrorBox::type_error(format!(
                "cannot import `{}`: scripts have no packages, files or URLs; `mcp:<server>` imports a server's tools",
                specifier.chars().take(100).collect::<String>()
            )));
        }
        ModuleSpecifier::parse(specifier).map_err(|error| JsErrorBox::type_error(error.to_string()))
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
        let Some(context) = self.context.borrow().clone() else {
            return refuse("there is no run");
        };
        let specifier = specifier.clone();
        let source = async move {
            let server = server_of(&specifier);
            let tools = Arc::clone(&context)
                .in_runtime(async { context.tools(&server).await })
                .await
                .map_err(|error| JsErrorBox::type_error(error.message))?;
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

/// The server in `mcp:<server>`.
fn server_of(specifier: &ModuleSpecifier) -> String {
    specifier.as_str().strip_prefix(SCHEME).unwrap_or_default().to_owned()
}

/// The names under which a module exports a tool: its own name and the camelCase form.
///
/// `then` is left out because it would make the module a thenable, and `default` because it is the
/// server.
pub(crate) fn export_names(tool: &ResolvedTool) -> Vec<String> {
    let mut names = vec![tool.tool.to_string(), typescript_name(&tool.tool)];
    names.dedup();
    names.retain(|name| !matches!(name.as_str(), "then" | "default" | ""));
    names
}

/// The source of a server's module. Every name is written as a JSON string, which is also a
/// JavaScript string literal, so that no name can become code.
fn module_source(server: &str, tools: &[ResolvedTool]) -> String {
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
            let name = quoted(&tool.tool);
            let _ = writeln!(source, "const tool{position} = server[{name}];\nexport {{ {exports}}};");
        }
    }
    source
}
