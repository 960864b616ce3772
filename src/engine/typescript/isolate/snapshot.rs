//! How an isolate is restored from the snapshot, and what of it scripts cannot reach afterwards.

use std::rc::Rc;
use std::sync::Arc;

use deno_core::{JsRuntime, OpDecl, RuntimeOptions, v8};

use crate::engine::typescript::loader::ServerModules;
use crate::engine::typescript::memory::{self, MemoryMeter};
use crate::engine::typescript::ops;
use crate::engine::typescript::uncaught;

/// The startup snapshot that build.rs makes from `js/`.
static SNAPSHOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/snapshot.bin"));

/// The ops of deno_core and cx that scripts' globals need at run time. Every other op of deno_core is replaced by one
/// that throws: some print to stdout, abort the process or evaluate text. Of deno_web there are only [`ops::WEB_OPS`].
pub(super) const ALLOWED_OPS: &[&str] = &[
    // cx
    "op_cx_call",
    "op_cx_call_full",
    "op_cx_call_blocking",
    "op_cx_query",
    "op_cx_query_blocking",
    "op_cx_log",
    "op_cx_emit",
    "op_cx_random",
    "op_cx_clock",
    "op_cx_refused",
    "op_cx_temporal",
    "op_cx_late",
    // the event loop's own JavaScript
    "op_run_microtasks",
    // `op_cx_no_rejections` in its place
    "op_drain_pending_rejections",
    "op_event_loop_has_more_work",
    "op_immediate_check",
    "op_timer_schedule",
    "op_timer_track",
    "op_timer_untrack",
    "op_timer_now",
    "op_ref_op",
    "op_unref_op",
    // the bootstrap, before there is a script
    "op_set_format_exception_callback",
    // the formatting of values (js/35_inspect.js): these ops only read values, and their results
    // are in the guest's heap, no larger than what they read
    "op_cx_kind",
    "op_cx_keys",
    "op_cx_details",
    "op_cx_constructor_name",
    // type checks of deno_web and of ours
    "op_is_any_array_buffer",
    "op_is_array_buffer",
    "op_is_array_buffer_view",
    "op_is_data_view",
    "op_is_native_error",
    "op_is_proxy",
    "op_is_reg_exp",
    "op_is_shared_array_buffer",
    "op_is_string_object",
    "op_is_typed_array",
    // text of bytes, and the bytes of text (js/05_bounds.js)
    "op_decode",
    "op_str_byte_length",
];

/// Restores the snapshot. All of deno_core is still reachable from the global object.
pub(super) fn restore(
    meter: &Arc<MemoryMeter>,
    modules: &Rc<ServerModules>,
    memory_bytes: usize,
) -> Result<JsRuntime, String> {
    let mut extensions = ops::extensions();
    if let Some(cx) = extensions.last_mut() {
        let own =
            |name: &str| cx.ops.iter().find(|op| op.name == name).copied().ok_or("an op of cx is missing");
        let (refused, no_rejections) = (own("op_cx_refused")?, own("op_cx_no_rejections")?);
        cx.middleware_fn = Some(Box::new(move |op: OpDecl| match op.name {
            "op_drain_pending_rejections" => op.with_implementation_from(&no_rejections),
            name if ALLOWED_OPS.contains(&name) || ops::WEB_OPS.contains(&name) => op,
            _ => op.with_implementation_from(&refused),
        }));
    }
    JsRuntime::try_new(RuntimeOptions {
        extensions,
        startup_snapshot: Some(SNAPSHOT),
        // The snapshot's functions are bound to these ops already.
        skip_op_registration: true,
        module_loader: Some(Rc::clone(modules) as Rc<dyn deno_core::ModuleLoader>),
        create_params: Some(
            v8::CreateParams::default()
                .heap_limits(0, memory_bytes)
                .allow_atomics_wait(false)
                .array_buffer_allocator(memory::buffer_allocator(meter)),
        ),
        ..RuntimeOptions::default()
    })
    .map_err(|error| error.to_string())
}

/// Globals that scripts must not see. They are removed instead of refused, so that none of their
/// members can be overlooked: the engine's own namespace, memory outside the heap limit, threads,
/// and code that is not JavaScript. `Atomics` is removed with the shared memory that it operates
/// on.
const HIDDEN_GLOBALS: &[&str] =
    &["__cx", "Deno", "__bootstrap", "WebAssembly", "SharedArrayBuffer", "Atomics"];

/// The functions of the bootstrap that the host calls.
pub(super) struct EntryPoints {
    pub(super) start: v8::Global<v8::Function>,
    pub(super) run: v8::Global<v8::Function>,
    pub(super) set_time_zone: v8::Global<v8::Function>,
    pub(super) fail_run: v8::Global<v8::Function>,
}

/// Takes the bootstrap's functions, lets the bootstrap guard what V8 has added, and removes
/// [`HIDDEN_GLOBALS`].
///
/// This cannot be part of the snapshot: deno_core creates `Deno.core` again when it restores one,
/// and V8 adds new members to `Atomics` then and aborts if it is missing.
pub(super) fn take_entry_points(runtime: &mut JsRuntime) -> Result<EntryPoints, String> {
    deno_core::scope!(scope, runtime);
    let context = scope.get_current_context();
    context.set_allow_generation_from_strings(false);
    let global = context.global(scope);
    let broken = || "the bootstrap is incomplete".to_owned();
    let text_of_error = v8::Function::new(scope, uncaught::text_of_error).ok_or_else(broken)?;
    let key = |name: &str| v8::String::new(scope, name).map(v8::Local::<v8::Value>::from).ok_or_else(broken);
    let holder =
        global.get(scope, key("__cx")?).and_then(|holder| holder.to_object(scope)).ok_or_else(broken)?;
    let function = |name: &str| {
        let value = holder.get(scope, key(name)?).ok_or_else(broken)?;
        let function = v8::Local::<v8::Function>::try_from(value).map_err(|_| broken())?;
        Ok::<_, String>(v8::Global::new(scope, function))
    };
    let entry_points = EntryPoints {
        start: function("start")?,
        run: function("run")?,
        set_time_zone: function("setTimeZone")?,
        fail_run: function("failRun")?,
    };
    let restored = v8::Local::new(scope, function("restored")?);
    let undefined = v8::undefined(scope).into();
    restored.call(scope, undefined, &[text_of_error.into()]).ok_or_else(broken)?;
    for name in HIDDEN_GLOBALS {
        if global.delete(scope, key(name)?) != Some(true) {
            return Err(broken());
        }
    }
    scope.set_allow_wasm_code_generation_callback(refuse_wasm);
    Ok(entry_points)
}

/// The global has been removed; this applies if a script finds another way to it.
#[expect(unsafe_code, reason = "V8 takes the callback as a C function")]
unsafe extern "C" fn refuse_wasm(_context: v8::Local<v8::Context>, _source: v8::Local<v8::String>) -> bool {
    false
}
