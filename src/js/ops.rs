//! The ops: the only functions of the host that a script's code can reach.
//!
//! Thin on purpose. Each takes text, hands it to the [`Door`] and returns text; an answer that
//! begins with `!` is an error (no JSON text does). build.rs compiles this file too, because the
//! startup snapshot is made with the very ops that read it; hence the trait, which keeps the rest
//! of the crate out of build.rs.

use std::cell::RefCell;
use std::rc::Rc;

use deno_core::{Extension, OpState, op2};
use deno_error::JsErrorBox;
use futures::future::LocalBoxFuture;

/// What the ops do, as the host implements it for one run.
pub(crate) trait Door {
    /// Calls `server.tool`.
    fn call(&self, server: String, tool: String, arguments: String) -> LocalBoxFuture<'static, String>;
    /// Calls `mcp__server__tool`.
    fn call_full(&self, name: String, arguments: String) -> LocalBoxFuture<'static, String>;
    /// Makes calls at the same time and waits for all of them.
    fn call_blocking(&self, calls: &str) -> String;
    /// Answers a question about tools.
    fn query(&self, request: &str) -> LocalBoxFuture<'static, String>;
    /// The same, waiting for the answer.
    fn query_blocking(&self, request: &str) -> String;
    /// Prints text of a level from 0 (debug) to 3 (error).
    fn log(&self, level: u32, text: String);
    /// Emits a content block; an empty answer is success.
    fn emit(&self, block: &str) -> String;
    /// Fills `bytes` with random ones.
    fn random(&self, bytes: &mut [u8]);
}

/// The run's door, if there is a run. An isolate that only waits has none.
type CurrentDoor = Rc<dyn Door>;

fn door(state: &RefCell<OpState>) -> Result<CurrentDoor, JsErrorBox> {
    let door = state.borrow().try_borrow::<CurrentDoor>().cloned();
    door.ok_or_else(|| JsErrorBox::generic("there is no run"))
}

#[op2]
#[string]
fn op_cx_call(
    state: Rc<RefCell<OpState>>,
    #[string] server: String,
    #[string] tool: String,
    #[string] arguments: String,
) -> Result<impl Future<Output = Result<String, JsErrorBox>>, JsErrorBox> {
    let call = door(&state)?.call(server, tool, arguments);
    Ok(async move { Ok(call.await) })
}

#[op2]
#[string]
fn op_cx_call_full(
    state: Rc<RefCell<OpState>>,
    #[string] name: String,
    #[string] arguments: String,
) -> Result<impl Future<Output = Result<String, JsErrorBox>>, JsErrorBox> {
    let call = door(&state)?.call_full(name, arguments);
    Ok(async move { Ok(call.await) })
}

#[op2(reentrant)]
#[string]
fn op_cx_call_blocking(state: Rc<RefCell<OpState>>, #[string] calls: String) -> Result<String, JsErrorBox> {
    Ok(door(&state)?.call_blocking(&calls))
}

#[op2]
#[string]
fn op_cx_query(
    state: Rc<RefCell<OpState>>,
    #[string] request: String,
) -> Result<impl Future<Output = Result<String, JsErrorBox>>, JsErrorBox> {
    let answer = door(&state)?.query(&request);
    Ok(async move { Ok(answer.await) })
}

#[op2(reentrant)]
#[string]
fn op_cx_query_blocking(
    state: Rc<RefCell<OpState>>,
    #[string] request: String,
) -> Result<String, JsErrorBox> {
    Ok(door(&state)?.query_blocking(&request))
}

#[op2(fast)]
fn op_cx_log(
    state: Rc<RefCell<OpState>>,
    #[smi] level: u32,
    #[string] text: String,
) -> Result<(), JsErrorBox> {
    door(&state)?.log(level, text);
    Ok(())
}

#[op2]
#[string]
fn op_cx_emit(state: Rc<RefCell<OpState>>, #[string] block: String) -> Result<String, JsErrorBox> {
    Ok(door(&state)?.emit(&block))
}

#[op2(fast)]
fn op_cx_random(state: Rc<RefCell<OpState>>, #[buffer] bytes: &mut [u8]) -> Result<(), JsErrorBox> {
    door(&state)?.random(bytes);
    Ok(())
}

/// Stands in for every op that scripts must not have.
#[op2(fast)]
fn op_cx_refused() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::type_error("this is not available to scripts"))
}

deno_core::extension!(
    cx,
    deps = [deno_webidl, deno_web],
    ops = [
        op_cx_call,
        op_cx_call_full,
        op_cx_call_blocking,
        op_cx_query,
        op_cx_query_blocking,
        op_cx_log,
        op_cx_emit,
        op_cx_random,
        op_cx_refused,
    ],
    esm_entry_point = "ext:cx/90_bootstrap.js",
    esm = [
        dir "js",
        "05_bounds.js",
        "10_web.js",
        "15_clone.js",
        "20_guards.js",
        "21_text_guards.js",
        "30_json.js",
        "40_errors.js",
        "50_tools.js",
        "55_state.js",
        "60_output.js",
        "90_bootstrap.js",
    ],
);

/// The extensions of every isolate, in the order in which the snapshot numbers their ops.
pub(crate) fn extensions() -> Vec<Extension> {
    vec![
        deno_webidl::deno_webidl::init(),
        deno_web::deno_web::init(
            std::sync::Arc::new(deno_web::BlobStore::default()),
            None,
            false,
            deno_web::InMemoryBroadcastChannel::default(),
        ),
        cx::init(),
    ]
}
