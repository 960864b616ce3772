//! The startup snapshot of every isolate, made of `js/`. Uses no network and no source of `src`
//! except the declarations of the ops, which the snapshot and its reader must share.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{env, fs};

use deno_core::{ExtensionFileSource, JsRuntimeForSnapshot, PollEventLoopOptions};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

#[path = "../src/engine/typescript/ops.rs"]
mod ops;

/// Makes the snapshot.
pub(crate) fn make() -> Box<[u8]> {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=src/engine/typescript/ops.rs");
    println!("cargo:rerun-if-changed=js");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let mut extensions = ops::extensions();
    let cx = extensions.last_mut().expect("an extension of cx");
    cx.esm_files = Cow::Owned(guest_modules(&root.join("js")));
    cx.esm_entry_point = Some("ext:cx/90_bootstrap.js");
    let options = deno_core::snapshot::CreateSnapshotOptions {
        // Nothing reads it.
        cargo_manifest_dir: "",
        startup_snapshot: None,
        skip_op_registration: false,
        extensions,
        extension_transpiler: None,
        with_runtime_cb: Some(Box::new(warm_up)),
    };
    deno_core::snapshot::create_snapshot(options, None).expect("js/ evaluates").output
}

/// What `ops::StreamsSource` needs at run time.
pub(crate) fn streams() -> String {
    let extensions = ops::extensions();
    let mut files = extensions.iter().flat_map(|extension| extension.lazy_loaded_js_files.iter());
    let file = files.find(|file| file.specifier == ops::STREAMS).expect("deno_web has streams");
    let text = file.load().expect("deno_web's files are readable");
    assert!(text.as_str().is_ascii(), "V8 reads it as one byte for each character");
    format!("holder.made = {}", text.as_str())
}

/// Reads the guest's modules, in the order of their names.
///
/// They are read when this program runs, and `extension!` does not name them: it would fix their
/// absolute paths when this program is compiled, and cargo uses one compiled build script for all
/// checkouts that share a target directory.
fn guest_modules(directory: &Path) -> Vec<ExtensionFileSource> {
    let entries = fs::read_dir(directory).expect("js/ is readable");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("js/ is readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "js"));
    paths.sort();
    let module = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name in ASCII");
        let source = fs::read_to_string(path).expect("js/ is readable");
        ExtensionFileSource::new_computed(format!("ext:cx/{name}").leak(), source.into())
    };
    paths.iter().map(module).collect()
}

/// Lets the bootstrap do once what scripts do, so that the snapshot has the code for it. Nothing else stays behind.
fn warm_up(runtime: &mut JsRuntimeForSnapshot) {
    let host: Rc<dyn ops::HostInterface> = Rc::new(WarmUp);
    runtime.op_state().borrow_mut().put(host);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio.block_on(async {
        let script = "__cx.warmUp().then(() => { delete __cx.warmUp })";
        let promise = runtime.execute_script("ext:cx/warm_up", script).expect("the warm-up begins");
        let ended = runtime.resolve(promise);
        let ended = runtime.with_event_loop_promise(ended, PollEventLoopOptions::default());
        ended.await.expect("the warm-up ends");
    });
    runtime.op_state().borrow_mut().take::<Rc<dyn ops::HostInterface>>();
}

/// A host that has an answer to everything.
struct WarmUp;

/// Later, as the answers of real tools come.
fn answer(text: &'static str) -> LocalBoxFuture<'static, String> {
    async move {
        tokio::task::yield_now().await;
        text.to_owned()
    }
    .boxed_local()
}

impl ops::HostInterface for WarmUp {
    fn call(
        &self,
        _server: String,
        tool: String,
        _arguments: String,
        _id: u32,
        _timeout_ms: f64,
    ) -> LocalBoxFuture<'static, String> {
        answer(match &*tool {
            "fails" => r#"!{"server":"a-b","tool":"fails","code":"TOOL_ERROR","message":"f","content":[]}"#,
            _ => r#"{"a":[1,"b"]}"#,
        })
    }

    fn call_full(
        &self,
        _name: String,
        _arguments: String,
        _id: u32,
        _timeout_ms: f64,
    ) -> LocalBoxFuture<'static, String> {
        answer("null")
    }

    fn call_blocking(&self, _batch: &str) -> String {
        r#"[{"ok":true,"result":1}]"#.to_owned()
    }

    fn query(&self, _request: &str) -> LocalBoxFuture<'static, String> {
        answer("[]")
    }

    fn query_blocking(&self, _request: &str) -> String {
        "null".to_owned()
    }

    fn log(&self, _level: u32, _text: String) {}

    fn emit(&self, _block: &str) -> String {
        String::new()
    }

    fn clock(&self, _is_wall: bool) -> f64 {
        0.0
    }

    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}
