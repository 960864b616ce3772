//! The ops: the only host functions that a script's code can reach.
//!
//! They are thin on purpose. Most take text, pass it to the [`HostInterface`], and return text; an
//! answer that begins with `!` is an error (no JSON text does). Four ops inspect a value for the
//! formatting of values and report what JavaScript cannot see of it. Two run or compile JavaScript
//! of cx that is not in the snapshot. build.rs compiles this file too, because the startup snapshot
//! must be made with the same ops that restore it. The trait keeps the rest of the crate out of
//! build.rs. The modules of `js/` are not named here: build.rs adds them to the extension, and at
//! run time they are in the snapshot.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use deno_core::{Extension, OpState, op2, v8};
use deno_error::JsErrorBox;
use futures::future::LocalBoxFuture;

/// The host functions behind the ops, implemented for one run.
pub(crate) trait HostInterface {
    /// Calls `server.tool`. The script can end the call by its number `id`, and gives it `timeout_ms` milliseconds;
    /// zero for none.
    fn call(
        &self,
        server: String,
        tool: String,
        arguments: String,
        id: u32,
        timeout_ms: f64,
    ) -> LocalBoxFuture<'static, String>;
    /// Calls `mcp__server__tool`, on the same terms.
    fn call_full(
        &self,
        name: String,
        arguments: String,
        id: u32,
        timeout_ms: f64,
    ) -> LocalBoxFuture<'static, String>;
    /// Makes several calls and waits for all of them. `batch` is JSON text: `{calls, maxParallel}`.
    fn call_blocking(&self, batch: &str) -> String;
    /// Answers a query about servers, tools or state.
    fn query(&self, request: &str) -> LocalBoxFuture<'static, String>;
    /// As `query`, but blocks until the answer is there.
    fn query_blocking(&self, request: &str) -> String;
    /// Logs text at a level from 0 (debug) to 3 (error).
    fn log(&self, level: u32, text: String);
    /// Emits a content block. An empty answer means success.
    fn emit(&self, block: &str) -> String;
    /// A reading of a clock in nanoseconds, in a run with a tape: since 1970, or since some moment before
    /// the run.
    fn clock(&self, is_wall: bool) -> f64;
    /// Fills `bytes` with random bytes.
    fn random(&self, bytes: &mut [u8]);
}

/// The run's host functions, if there is a run. An idle isolate has none.
type CurrentHost = Rc<dyn HostInterface>;

fn host(state: &RefCell<OpState>) -> Result<CurrentHost, JsErrorBox> {
    let host = state.borrow().try_borrow::<CurrentHost>().cloned();
    host.ok_or_else(|| JsErrorBox::generic("there is no run"))
}

#[op2]
#[string]
fn op_cx_call(
    state: Rc<RefCell<OpState>>,
    #[string] server: String,
    #[string] tool: String,
    #[string] arguments: String,
    #[smi] id: u32,
    timeout_ms: f64,
) -> Result<impl Future<Output = Result<String, JsErrorBox>>, JsErrorBox> {
    let call = host(&state)?.call(server, tool, arguments, id, timeout_ms);
    Ok(async move { Ok(call.await) })
}

#[op2]
#[string]
fn op_cx_call_full(
    state: Rc<RefCell<OpState>>,
    #[string] name: String,
    #[string] arguments: String,
    #[smi] id: u32,
    timeout_ms: f64,
) -> Result<impl Future<Output = Result<String, JsErrorBox>>, JsErrorBox> {
    let call = host(&state)?.call_full(name, arguments, id, timeout_ms);
    Ok(async move { Ok(call.await) })
}

#[op2(reentrant)]
#[string]
fn op_cx_call_blocking(state: Rc<RefCell<OpState>>, #[string] batch: String) -> Result<String, JsErrorBox> {
    Ok(host(&state)?.call_blocking(&batch))
}

#[op2]
#[string]
fn op_cx_query(
    state: Rc<RefCell<OpState>>,
    #[string] request: String,
) -> Result<impl Future<Output = Result<String, JsErrorBox>>, JsErrorBox> {
    let answer = host(&state)?.query(&request);
    Ok(async move { Ok(answer.await) })
}

#[op2(reentrant)]
#[string]
fn op_cx_query_blocking(
    state: Rc<RefCell<OpState>>,
    #[string] request: String,
) -> Result<String, JsErrorBox> {
    Ok(host(&state)?.query_blocking(&request))
}

#[op2(fast)]
fn op_cx_log(
    state: Rc<RefCell<OpState>>,
    #[smi] level: u32,
    #[string] text: String,
) -> Result<(), JsErrorBox> {
    host(&state)?.log(level, text);
    Ok(())
}

#[op2]
#[string]
fn op_cx_emit(state: Rc<RefCell<OpState>>, #[string] block: String) -> Result<String, JsErrorBox> {
    Ok(host(&state)?.emit(&block))
}

#[op2(fast)]
fn op_cx_random(state: Rc<RefCell<OpState>>, #[buffer] bytes: &mut [u8]) -> Result<(), JsErrorBox> {
    host(&state)?.random(bytes);
    Ok(())
}

#[op2(fast)]
fn op_cx_clock(state: Rc<RefCell<OpState>>, is_wall: bool) -> Result<f64, JsErrorBox> {
    Ok(host(&state)?.clock(is_wall))
}

/// The kind of a value according to V8, in the numbers of `js/32_objects.js`. Runs no script code
/// and allocates nothing, whatever the value is.
#[op2(fast, no_side_effects)]
fn op_cx_kind(value: &v8::Value) -> u32 {
    if !value.is_object() {
        return 0;
    }
    if value.is_proxy() {
        return 1;
    }
    if value.is_array() {
        return 2;
    }
    if value.is_function() {
        return match (value.is_async_function(), value.is_generator_function()) {
            (false, false) => 3,
            (true, false) => 4,
            (false, true) => 5,
            (true, true) => 6,
        };
    }
    let kinds = [
        value.is_map(),
        value.is_set(),
        value.is_typed_array(),
        value.is_map_iterator(),
        value.is_set_iterator(),
        value.is_arguments_object(),
        value.is_reg_exp(),
        value.is_date(),
        value.is_native_error(),
        value.is_array_buffer(),
        value.is_data_view(),
        value.is_promise(),
        value.is_weak_set(),
        value.is_weak_map(),
        value.is_module_namespace_object(),
        value.is_number_object(),
        value.is_string_object(),
        value.is_boolean_object(),
        value.is_big_int_object(),
        value.is_symbol_object(),
        value.is_generator_object(),
    ];
    kinds.iter().zip(7..).find_map(|(is, kind)| is.then_some(kind)).unwrap_or(0)
}

/// Only enumerable properties.
const KEYS_ENUMERABLE: u32 = 1;
/// Without indices.
const KEYS_WITHOUT_INDICES: u32 = 2;

/// The keys of an object's own properties, names before symbols. An index is returned as a number,
/// so that no string is allocated for each element of a long list. The list is in the guest's heap,
/// like the properties. Not for proxies, because their traps would run.
#[op2]
fn op_cx_keys<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    bits: u32,
) -> v8::Local<'s, v8::Value> {
    let property_filter = match bits & KEYS_ENUMERABLE {
        0 => v8::PropertyFilter::ALL_PROPERTIES,
        _ => v8::PropertyFilter::ONLY_ENUMERABLE,
    };
    let index_filter = match bits & KEYS_WITHOUT_INDICES {
        0 => v8::IndexFilter::IncludeIndices,
        _ => v8::IndexFilter::SkipIndices,
    };
    let wanted = v8::GetPropertyNamesArgs {
        mode: v8::KeyCollectionMode::OwnOnly,
        property_filter,
        index_filter,
        key_conversion: v8::KeyConversionMode::KeepNumbers,
    };
    v8::tc_scope!(let scope, scope);
    let keys = if object.is_proxy() { None } else { object.get_property_names(scope, wanted) };
    keys.unwrap_or_else(|| v8::Array::new(scope, 0)).into()
}

/// The internals of a proxy (its target and its handler, or null twice) or of a promise (0 for
/// pending, 1 for fulfilled, 2 for rejected; and its value or reason). The array is created with
/// its elements: setting them later would call a setter that a script has defined on
/// `Array.prototype`.
#[op2]
fn op_cx_details<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    value: v8::Local<'s, v8::Value>,
) -> v8::Local<'s, v8::Value> {
    let details = if let Ok(proxy) = v8::Local::<v8::Proxy>::try_from(value) {
        [proxy.get_target(scope), proxy.get_handler(scope)]
    } else if let Ok(promise) = v8::Local::<v8::Promise>::try_from(value) {
        let (state, result) = match promise.state() {
            v8::PromiseState::Pending => (0, v8::undefined(scope).into()),
            v8::PromiseState::Fulfilled => (1, promise.result(scope)),
            v8::PromiseState::Rejected => (2, promise.result(scope)),
        };
        [v8::Integer::new(scope, state).into(), result]
    } else {
        [v8::null(scope).into(), v8::null(scope).into()]
    };
    v8::Array::new_with_elements(scope, &details).into()
}

/// The name of the class with which V8 created an object, even if its prototype has changed. It is
/// V8's own string, not a copy.
#[op2]
fn op_cx_constructor_name<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
) -> v8::Local<'s, v8::Value> {
    v8::Local::new(scope, object.get_constructor_name()).into()
}

/// The polyfill of `Temporal`. ASCII, so that V8 can use the bytes in place.
const TEMPORAL: &[u8] = include_bytes!("../../../js/temporal/global.js");

/// Runs the polyfill of `Temporal`, which defines it in the script's realm. The text is not copied.
/// What it throws, such as a termination, goes on to the caller.
#[op2(nofast, reentrant)]
fn op_cx_temporal(scope: &mut v8::PinScope<'_, '_>) -> Result<(), JsErrorBox> {
    let name = v8::String::new(scope, "ext:cx/temporal/global.js");
    let source = v8::String::new_external_onebyte_static(scope, TEMPORAL);
    let (Some(name), Some(source)) = (name, source) else {
        return Err(JsErrorBox::generic("no memory for `Temporal`"));
    };
    let origin = v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, -1, None, false, false, false, None);
    if let Some(script) = v8::Script::compile(scope, source, Some(&origin)) {
        script.run(scope);
    }
    Ok(())
}

/// The name of deno_web's file of streams.
pub(crate) const STREAMS: &str = "ext:deno_web/06_streams.js";

const FETCH: &str = include_str!("../../../js/network/fetch.js");

/// deno_web's code for streams as the body of a function that sets `holder.made`, in ASCII. It takes what the file
/// takes from `__bootstrap`, which is not a global of scripts. build.rs makes it, because deno_web exposes the file's
/// path on the build machine and not its text.
pub(crate) struct StreamsSource(pub(crate) &'static str);

/// Compiles the file with this number to a function that sets `holder.made`, and returns the function. These files are
/// not in the snapshot, because there they would make each isolate slower.
#[op2]
fn op_cx_late<'s>(
    state: Rc<RefCell<OpState>>,
    scope: &mut v8::PinScope<'s, '_>,
    #[smi] file: u32,
) -> Result<v8::Local<'s, v8::Value>, JsErrorBox> {
    let streams = state.borrow().try_borrow::<StreamsSource>().map(|source| source.0);
    let (name, parameter, body) = match (file, streams) {
        (0, Some(body)) => (STREAMS, "__bootstrap", body),
        (1, _) => ("ext:cx/network/fetch.js", "parts", FETCH),
        _ => return Err(JsErrorBox::type_error("there is no such file")),
    };
    let none = || JsErrorBox::generic("no memory for a file of cx");
    let body = v8::String::new_from_one_byte(scope, body.as_bytes(), v8::NewStringType::Normal);
    let name = v8::String::new(scope, name).ok_or_else(none)?;
    let arguments = [
        v8::String::new(scope, parameter).ok_or_else(none)?,
        v8::String::new(scope, "holder").ok_or_else(none)?,
    ];
    let origin = v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, -1, None, false, false, false, None);
    let mut source = v8::script_compiler::Source::new(body.ok_or_else(none)?, Some(&origin));
    let options = v8::script_compiler::CompileOptions::NoCompileOptions;
    let reason = v8::script_compiler::NoCacheReason::NoReason;
    let compiled =
        v8::script_compiler::compile_function(scope, &mut source, &arguments, &[], options, reason);
    compiled.map(Into::into).ok_or_else(none)
}

/// Replaces every op that scripts must not have.
#[op2(fast)]
fn op_cx_refused() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::type_error("this is not available to scripts"))
}

/// Replaces the op with which deno_core's JavaScript takes the unhandled rejections. That fills an array while it has
/// borrowed their list: a setter on `Array.prototype` that rejects another promise made it panic. Without it the event
/// loop passes them as arguments, right afterwards.
#[op2]
fn op_cx_no_rejections<'s>(scope: &mut v8::PinScope<'s, '_>) -> v8::Local<'s, v8::Value> {
    v8::undefined(scope).into()
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
        op_cx_clock,
        op_cx_kind,
        op_cx_keys,
        op_cx_details,
        op_cx_constructor_name,
        op_cx_refused,
        op_cx_no_rejections,
        op_cx_temporal,
        op_cx_late,
    ],
);

/// The extensions of every isolate, in the order in which the snapshot numbers their ops. The last
/// one is cx's own.
pub(crate) fn extensions() -> Vec<Extension> {
    vec![deno_webidl::deno_webidl::init(), web(), cx::init()]
}

/// The ops of deno_web that scripts' globals need.
pub(crate) const WEB_OPS: &[&str] = &[
    // the formatting of values (js/35_inspect.js)
    "op_preview_entries",
    // the web API of js/10_web.js
    "op_base64_decode",
    "op_base64_decode_into",
    "op_base64_encode_from_buffer",
    "op_base64_atob",
    "op_base64_btoa",
    "op_encoding_normalize_label",
    "op_encoding_decode_single",
    "op_encoding_decode_utf8",
    "op_encoding_decode_utf8_ascii_only",
    "op_encoding_new_decoder",
    "op_encoding_decode",
    "op_encoding_encode_into",
    "op_encoding_encode_into_fallback",
    "op_now",
    "op_defer",
    "op_url_reparse",
    "op_url_parse",
    "op_url_get_serialization",
    "op_url_parse_with_base",
    "op_url_parse_search_params",
    "op_url_stringify_search_params",
];

/// deno_web without the ops and classes that nothing uses. Every isolate would have each of them as a function: together
/// they took 7 % of the time in which an isolate is made.
fn web() -> Extension {
    let mut web = deno_web::deno_web::init(
        std::sync::Arc::new(deno_web::BlobStore::default()),
        None,
        false,
        deno_web::InMemoryBroadcastChannel::default(),
    );
    web.ops.to_mut().retain(|op| WEB_OPS.contains(&op.name));
    web.objects = Cow::Borrowed(&[]);
    web
}
