//! Makes the startup snapshot of every isolate from `js/`. Uses no network and no source of `src`
//! except the declarations of the ops, which the snapshot and its reader must share.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]

use std::path::PathBuf;
use std::rc::Rc;
use std::{env, fs};

use deno_core::{JsRuntimeForSnapshot, PollEventLoopOptions};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

#[path = "src/engine/typescript/ops.rs"]
mod ops;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/engine/typescript/ops.rs");
    println!("cargo:rerun-if-changed=js");
    let snapshot = deno_core::snapshot::create_snapshot(
        deno_core::snapshot::CreateSnapshotOptions {
            cargo_manifest_dir: env!("CARGO_MANIFEST_DIR"),
            startup_snapshot: None,
            skip_op_registration: false,
            extensions: ops::extensions(),
            extension_transpiler: None,
            with_runtime_cb: Some(Box::new(warm_up)),
        },
        None,
    )
    .expect("js/ evaluates");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("snapshot.bin"), snapshot.output).expect("OUT_DIR is writable");
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
    fn call(&self, _server: String, tool: String, _arguments: String) -> LocalBoxFuture<'static, String> {
        answer(match &*tool {
            "fails" => r#"!{"server":"a-b","tool":"fails","code":"TOOL_ERROR","message":"f","content":[]}"#,
            _ => r#"{"a":[1,"b"]}"#,
        })
    }

    fn call_full(&self, _name: String, _arguments: String) -> LocalBoxFuture<'static, String> {
        answer("null")
    }

    fn call_blocking(&self, _calls: &str) -> String {
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

    fn random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}
