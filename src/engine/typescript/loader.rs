//! The module loader: it loads `mcp:<server>` and refuses every other specifier.
//!
//! It returns no error. From the error of an import deno_core makes the one that the script gets, in a native callback:
//! it reads the name and the trace, which may run the script's code, and then expects a text as the message. A panic
//! there ends the process. So a failed import is a module that throws a plain object, which no code of the script can
//! reach.
//!
//! Each import is a module of its own, also of a server that was imported before. deno_core lets an import of a module
//! whose evaluation it has not seen end wait for that, and resolves it with its list of modules borrowed: if the script
//! then imports again, deno_core panics.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use deno_core::url::form_urlencoded;
use deno_core::{
    ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader, ModuleSource, ModuleSourceCode,
    ModuleSpecifier, ModuleType, RequestedModuleType, ResolutionKind,
};
use deno_error::JsErrorBox;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::instead;
use super::transpile::FILE_MODULES;
use crate::engine::host::{HostCalls, RunHost};
use crate::text;
use crate::tools::names::typescript_name;

/// The scheme of the modules of servers.
const SCHEME: &str = "mcp:";

/// The scheme of modules that throw why an import was refused.
const REFUSED: &str = "refused:";

/// Maximum bytes of a server's name; a longer one names no server.
const MAX_NAME: usize = 4096;

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
/// name. A script may have replaced what is used here.
fn files_source() -> String {
    let names = FILE_EXPORTS.join(", ");
    let failed = throws("the functions of `fs` cannot be imported: the script has replaced `Symbol.for`");
    format!(
        "let fs, {names};\ntry {{\nfs = globalThis[Symbol.for(\"cx.fs\")];\n({{ {names} }} = fs);\n}} catch {{\n\
         {failed}}}\nexport {{ fs as default, {names} }};\n"
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
    /// How often the event loop was polled.
    turn: Rc<Cell<u64>>,
    /// How many imports there have been.
    imports: Cell<u64>,
}

impl ServerModules {
    /// Assigns a run to the loader.
    pub(crate) fn start(&self, host: Arc<dyn RunHost>) {
        *self.host.borrow_mut() = Some(host);
    }

    /// Called before the event loop is polled.
    pub(crate) fn next_turn(&self) {
        self.turn.set(self.turn.get() + 1);
    }

    /// Resolves at the next poll of the event loop. A script that imports again as soon as an import fails would
    /// otherwise keep deno_core in one poll, where a stopped run is not noticed.
    fn wait_for_turn(&self) -> LocalBoxFuture<'static, ()> {
        let turn = Rc::clone(&self.turn);
        let now = turn.get();
        poll_fn(move |task| {
            if turn.get() > now {
                return Poll::Ready(());
            }
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .boxed_local()
    }
}

impl ModuleLoader for ServerModules {
    fn resolve(
        &self,
        specifier: &str,
        _referrer: &str,
        _kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let import = self.imports.get() + 1;
        self.imports.set(import);
        let url = if is_of_files(specifier) {
            format!("{}#{import}", FILE_MODULES[0])
        } else if let Some(server) = specifier.strip_prefix(SCHEME).filter(|server| server.len() <= MAX_NAME)
        {
            format!("{SCHEME}{}#{import}", encoded(server))
        } else {
            let message = format!(
                "cannot import `{}`: scripts have no packages and no URLs; {}",
                text::start(specifier, 100),
                instead::of_import(specifier)
            );
            format!("{REFUSED}{import}?{}", encoded(&message))
        };
        // Each of these is a URL, whatever the specifier was.
        ModuleSpecifier::parse(&url).map_err(|error| JsErrorBox::type_error(error.to_string()))
    }

    fn load(
        &self,
        specifier: &ModuleSpecifier,
        _referrer: Option<&ModuleLoadReferrer>,
        options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        let host = self.host.borrow().clone();
        let turn = self.wait_for_turn();
        let specifier = specifier.clone();
        let has_attributes = options.requested_module_type != RequestedModuleType::None;
        let source = async move {
            turn.await;
            let source = if has_attributes {
                Err("`mcp:` modules take no import attributes".to_owned())
            } else if specifier.as_str().starts_with(FILE_MODULES[0]) {
                Ok(files_source())
            } else if specifier.as_str().starts_with(REFUSED) {
                Err(decoded(specifier.query().unwrap_or_default()))
            } else {
                load_server(host, &specifier).await
            };
            let source = source.unwrap_or_else(|message| throws(&message));
            Ok(ModuleSource::new(
                ModuleType::JavaScript,
                ModuleSourceCode::String(source.into()),
                &specifier,
                None,
            ))
        };
        ModuleLoadResponse::Async(source.boxed_local())
    }
}

/// The source of a server's module, or why there is none.
async fn load_server(host: Option<Arc<dyn RunHost>>, specifier: &ModuleSpecifier) -> Result<String, String> {
    let host = host.ok_or("there is no run")?;
    let server = decoded(specifier.path());
    let tools = HostCalls::new(host).tool_names(&server).await.map_err(|error| error.message)?;
    Ok(module_source(&server, &tools))
}

/// A name or a message as a part of a URL. A URL parser changes names: it encodes what is not ASCII, drops tabs and
/// spaces, and takes `?` and `#` for the ends of them.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The text that [`encoded`] has encoded.
fn decoded(encoded: &str) -> String {
    form_urlencoded::parse(encoded.as_bytes()).next().map(|(text, _)| text.into_owned()).unwrap_or_default()
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

/// A text as a JSON string, which is also a JavaScript string literal, so that no text can become code.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Statements that throw what an import fails with. deno_core makes a `TypeError` with this message of it. All that it
/// reads are own data properties, so it runs no getter of the script, to which the object would be passed.
fn throws(message: &str) -> String {
    format!(
        "let prototype;\ntry {{\nprototype = TypeError.prototype;\n}} catch {{}}\n\
         throw {{ __proto__: prototype, name: \"TypeError\", message: {}, stack: undefined }};\n",
        quoted(message)
    )
}

/// The source of a server's module.
fn module_source(server: &str, tools: &[String]) -> String {
    let mut variables = String::from("let server");
    let mut assignments = format!("server = tools[{}];\n", quoted(server));
    let mut exports = String::from("server as default");
    let mut exported = std::collections::HashSet::new();
    for (position, tool) in tools.iter().enumerate() {
        let mut is_exported = false;
        for name in export_names(tool) {
            if exported.insert(name.clone()) {
                let _ = write!(exports, ", tool{position} as {}", quoted(&name));
                is_exported = true;
            }
        }
        if is_exported {
            let _ = write!(variables, ", tool{position}");
            let _ = writeln!(assignments, "tool{position} = server[{}];", quoted(tool));
        }
    }
    let failed = throws("the tools of this server cannot be imported");
    format!("{variables};\ntry {{\n{assignments}}} catch {{\n{failed}}}\nexport {{ {exports} }};\n")
}
