//! Errors that no code can catch and that V8 reports: those of the callbacks of a `FinalizationRegistry` and of V8's
//! own `queueMicrotask`. If nothing listens, V8 prints them to stdout, which belongs to the protocol.

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
    v8::callback_scope!(unsafe scope, message);
    let Some(fail_run) = scope.get_slot::<FailRun>().map(|fail_run| fail_run.0.clone()) else { return };
    let fail_run = v8::Local::new(scope, fail_run);
    let undefined = v8::undefined(scope).into();
    fail_run.call(scope, undefined, &[error]);
}
