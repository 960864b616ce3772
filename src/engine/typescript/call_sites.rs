//! Call sites, V8's frames of a stack trace: as text, and for a script's own `Error.prepareStackTrace`.
//!
//! A script chooses the names in them and the error's message, of half a billion characters each. deno_core copies them
//! for each frame, expects that V8 takes all of it as one text, and prints what it has where the stack ends. A panic
//! there ends the process, because V8 calls it as a C function. So they are read here, with bounds.

use deno_core::error::{JsStackFrame, NoAnsiColors, format_frame};
use deno_core::v8;

/// Maximum characters of a name in a frame. A frame with a longer one is left out.
const MAX_NAME: usize = 1024;

/// Maximum characters of an error's name or message in its trace.
const MAX_HEADER: usize = 1 << 24;

/// Maximum bytes of the frames of one trace. Those below are left out.
const MAX_FRAMES: usize = 1 << 20;

/// Maximum number of call sites that a script gets of one error.
const MAX_SITES: u32 = 1_000;

/// The methods of a call site.
const METHODS: [&str; 18] = [
    "getThis",
    "getTypeName",
    "getFunction",
    "getFunctionName",
    "getMethodName",
    "getFileName",
    "getLineNumber",
    "getColumnNumber",
    "getEvalOrigin",
    "isToplevel",
    "isEval",
    "isNative",
    "isConstructor",
    "isAsync",
    "isPromiseAll",
    "getPromiseIndex",
    "getScriptNameOrSourceURL",
    "toString",
];

/// Why a frame is not in a trace.
enum Unreadable {
    LongName,
    /// A method threw: the stack ends here, or the run was stopped.
    Failed,
}

/// The methods of V8's call sites. Scripts get copies of call sites, so they cannot replace them.
struct Methods<'s>(Vec<(&'static str, v8::Local<'s, v8::Function>)>);

impl<'s> Methods<'s> {
    /// Those of `site`; all call sites have the same.
    fn read(scope: &mut v8::PinScope<'s, '_>, site: v8::Local<'s, v8::Object>) -> Option<Self> {
        let mut methods = Vec::with_capacity(METHODS.len());
        for name in METHODS {
            let key = v8::String::new(scope, name)?;
            let method = site.get(scope, key.into())?;
            methods.push((name, method.try_cast::<v8::Function>().ok()?));
        }
        Some(Self(methods))
    }

    fn call(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        site: v8::Local<'s, v8::Object>,
        name: &str,
    ) -> Result<v8::Local<'s, v8::Value>, Unreadable> {
        let method = self.0.iter().find(|(known, _)| *known == name).ok_or(Unreadable::Failed)?.1;
        method.call(scope, site.into(), &[]).ok_or(Unreadable::Failed)
    }

    fn flag(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        site: v8::Local<'s, v8::Object>,
        name: &str,
    ) -> Result<bool, Unreadable> {
        Ok(self.call(scope, site, name)?.is_true())
    }

    fn number(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        site: v8::Local<'s, v8::Object>,
        name: &str,
    ) -> Result<Option<i64>, Unreadable> {
        let value = self.call(scope, site, name)?;
        Ok(value.try_cast::<v8::Number>().ok().map(|number| number.value() as i64))
    }

    fn text(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        site: v8::Local<'s, v8::Object>,
        name: &str,
    ) -> Result<Option<String>, Unreadable> {
        let value = self.call(scope, site, name)?;
        if is_long(value) {
            return Err(Unreadable::LongName);
        }
        Ok(value.try_cast::<v8::String>().ok().map(|text| text.to_rust_string_lossy(scope)))
    }

    /// What a trace shows of a call site. There is no code of `eval` and no WebAssembly.
    fn frame(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        site: v8::Local<'s, v8::Object>,
    ) -> Result<JsStackFrame, Unreadable> {
        Ok(JsStackFrame {
            type_name: self.text(scope, site, "getTypeName")?,
            function_name: self.text(scope, site, "getFunctionName")?,
            method_name: self.text(scope, site, "getMethodName")?,
            file_name: self.text(scope, site, "getFileName")?,
            line_number: self.number(scope, site, "getLineNumber")?,
            column_number: self.number(scope, site, "getColumnNumber")?,
            eval_origin: None,
            is_top_level: Some(self.flag(scope, site, "isToplevel")?),
            is_eval: false,
            is_native: self.flag(scope, site, "isNative")?,
            is_constructor: self.flag(scope, site, "isConstructor")?,
            is_async: self.flag(scope, site, "isAsync")?,
            is_promise_all: self.flag(scope, site, "isPromiseAll")?,
            is_wasm: false,
            promise_index: self.number(scope, site, "getPromiseIndex")?,
        })
    }

    /// An object with the same methods, which return what those of `site` return now. A long text is null.
    fn copy(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        site: v8::Local<'s, v8::Object>,
    ) -> Result<v8::Local<'s, v8::Object>, Unreadable> {
        let has_long_name = match self.frame(scope, site) {
            Ok(_) => false,
            Err(Unreadable::LongName) => true,
            Err(Unreadable::Failed) => return Err(Unreadable::Failed),
        };
        let copy = v8::Object::new(scope);
        for (name, method) in &self.0 {
            // V8 would make a text of all names.
            let value = if has_long_name && *name == "toString" {
                v8::null(scope).into()
            } else {
                method.call(scope, site.into(), &[]).ok_or(Unreadable::Failed)?
            };
            let value = if is_long(value) { v8::null(scope).into() } else { value };
            let key = v8::String::new(scope, name).ok_or(Unreadable::Failed)?;
            let method = v8::Function::builder(return_data)
                .data(value)
                .constructor_behavior(v8::ConstructorBehavior::Throw)
                .build(scope)
                .ok_or(Unreadable::Failed)?;
            method.set_name(key);
            copy.define_own_property(scope, key.into(), method.into(), v8::PropertyAttribute::DONT_ENUM);
        }
        Ok(copy)
    }
}

fn is_long(value: v8::Local<'_, v8::Value>) -> bool {
    value.try_cast::<v8::String>().is_ok_and(|text| text.length() > MAX_NAME)
}

fn return_data(
    _scope: &mut v8::PinScope<'_, '_>,
    arguments: v8::FunctionCallbackArguments<'_>,
    mut result: v8::ReturnValue<'_>,
) {
    result.set(arguments.data());
}

fn site_at<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    sites: v8::Local<'s, v8::Array>,
    index: u32,
) -> Option<v8::Local<'s, v8::Object>> {
    sites.get_index(scope, index)?.try_cast::<v8::Object>().ok()
}

/// The trace of `error` as text: its name and message, and the frames of `sites`.
pub(super) fn trace<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> String {
    let mut trace = header(scope, error);
    let end = trace.len() + MAX_FRAMES;
    v8::tc_scope!(let scope, scope);
    let Some(first) = site_at(scope, sites, 0) else { return trace };
    let Some(methods) = Methods::read(scope, first) else { return trace };
    for index in 0..sites.length() {
        let Some(site) = site_at(scope, sites, index) else { break };
        match methods.frame(scope, site) {
            Ok(frame) => {
                trace.push_str("\n    at ");
                trace.push_str(&format_frame::<NoAnsiColors>(&frame, None));
            }
            Err(Unreadable::LongName) => {}
            Err(Unreadable::Failed) => break,
        }
        if trace.len() > end {
            break;
        }
    }
    trace
}

fn header<'s>(scope: &mut v8::PinScope<'s, '_>, error: v8::Local<'s, v8::Value>) -> String {
    let Ok(error) = error.try_cast::<v8::Object>() else { return String::new() };
    let message = property(scope, error, "message").unwrap_or_default();
    let name = property(scope, error, "name").unwrap_or_else(|| "Error".to_owned());
    match (name.is_empty(), message.is_empty()) {
        (false, false) => format!("{name}: {message}"),
        (false, true) => name,
        (true, _) => message,
    }
}

/// A property of an error as text. To read and to convert it may run the script's code.
fn property<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Object>,
    name: &str,
) -> Option<String> {
    v8::tc_scope!(let scope, scope);
    let key = v8::String::new(scope, name)?;
    let value = error.get(scope, key.into()).filter(|value| !value.is_undefined())?;
    let text = value.to_string(scope)?;
    let length = text.length();
    let is_long = length > MAX_HEADER;
    Some(if is_long { format!("{length} characters") } else { text.to_rust_string_lossy(scope) })
}

/// Copies of V8's call sites for a script's function.
pub(super) fn copies<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Array> {
    v8::tc_scope!(let scope, scope);
    let mut copies: Vec<v8::Local<'s, v8::Value>> = Vec::new();
    let methods = site_at(scope, sites, 0).and_then(|first| Methods::read(scope, first));
    if let Some(methods) = methods {
        for index in 0..sites.length().min(MAX_SITES) {
            let Some(site) = site_at(scope, sites, index) else { break };
            let Ok(copy) = methods.copy(scope, site) else { break };
            copies.push(copy.into());
        }
    }
    v8::Array::new_with_elements(scope, &copies)
}
