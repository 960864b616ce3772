//! Errors that no code can catch.
//!
//! V8 reports those of the callbacks of a `FinalizationRegistry` and of its own `queueMicrotask`. If nothing listens,
//! it prints them to stdout, which belongs to the protocol.
//!
//! deno_core makes a value of the host of those with which its event loop ends, also when a run is stopped. It follows
//! causes, copies each text and makes room for each list that it finds there, of any length, and also what a script has
//! put on `Error.prototype`.

use deno_core::v8;

/// `failRun` of `js/90_bootstrap.js`, in a slot of its isolate.
struct FailRun(v8::Global<v8::Function>);

/// From now on such an error of `isolate` fails its run, and nothing is printed.
///
/// # Errors
///
/// If V8 has no memory for a listener.
pub(crate) fn listen(isolate: &mut v8::Isolate, fail_run: v8::Global<v8::Function>) -> Result<(), String> {
    isolate.set_slot(FailRun(fail_run));
    if isolate.add_message_listener(report) {
        Ok(())
    } else {
        Err("no memory for the listener to uncaught errors".to_owned())
    }
}

/// V8's callback. What it throws is dropped.
#[expect(unsafe_code, reason = "V8 takes the callback as a C function")]
unsafe extern "C" fn report(message: v8::Local<'_, v8::Message>, error: v8::Local<'_, v8::Value>) {
    // SAFETY: V8 calls this on the isolate's own thread, where a script may run, and `message` lives as long.
    v8::callback_scope!(unsafe scope, message);
    let Some(fail_run) = scope.get_slot::<FailRun>().map(|fail_run| fail_run.0.clone()) else { return };
    let fail_run = v8::Local::new(scope, fail_run);
    let undefined = v8::undefined(scope).into();
    fail_run.call(scope, undefined, &[error]);
}

/// What is left for deno_core to report: a run that was stopped has an error already.
const MANY_REJECTIONS: &str = "too many promises were rejected at once that nothing handles";

/// The function that deno_core asks for the text of such an error before it reads the rest. Without a prototype the
/// object is no error, of which it reads nothing more. This calls no JavaScript, so no termination keeps it from that.
pub(crate) fn text_of_error(
    scope: &mut v8::PinScope<'_, '_>,
    arguments: v8::FunctionCallbackArguments<'_>,
    mut result: v8::ReturnValue<'_>,
) {
    let Ok(error) = arguments.get(0).try_cast::<v8::Object>() else { return };
    // deno_core takes no proxy for an error, and its traps would be called.
    if !error.is_proxy() {
        let null = v8::null(scope).into();
        error.set_prototype(scope, null);
    }
    if let Some(text) = v8::String::new(scope, MANY_REJECTIONS) {
        result.set(text.into());
    }
}
