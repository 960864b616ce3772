//! A collector of OpenTelemetry, built with the official protobuf classes, and what it has received.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::interop::telemetry_python;
use crate::tidy::root;

/// A collector as a process.
pub(crate) struct Collector {
    process: Mutex<Child>,
    lines: Receiver<Value>,
    /// The address of its service.
    pub(crate) endpoint: &'static str,
}

impl Collector {
    /// Starts one that answers exports with this status, or never with `hang`.
    pub(crate) fn start(mode: &str) -> Self {
        let program = root().join("tests/interop/telemetry/collector.py");
        let mut process =
            Command::new(telemetry_python()).arg(program).arg(mode).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut port = String::new();
        stdout.read_line(&mut port).unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _gone = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let endpoint: &str = Box::leak(format!("http://127.0.0.1:{}", port.trim()).into_boxed_str());
        Self { process: Mutex::new(process), lines, endpoint }
    }

    /// All exports. The client must have ended: the collector writes an export before it answers, and ends here.
    pub(crate) fn exports(&self) -> Vec<Value> {
        self.end();
        self.lines.iter().collect()
    }

    /// The exports that come until none does for a moment.
    pub(crate) fn so_far(&self) -> Vec<Value> {
        let next = || self.lines.recv_timeout(Duration::from_millis(100)).ok();
        std::iter::from_fn(next).collect()
    }

    fn end(&self) {
        let mut process = self.process.lock().unwrap();
        let _gone = process.kill();
        let _ended = process.wait();
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.end();
    }
}

/// The items of a list in a message.
pub(crate) fn each<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[name].as_array().into_iter().flatten()
}

/// All spans of exports.
pub(crate) fn spans(exports: &[Value]) -> Vec<Value> {
    let resources = exports.iter().flat_map(|export| each(&export["message"], "resourceSpans"));
    let scopes = resources.flat_map(|resource| each(resource, "scopeSpans"));
    scopes.flat_map(|scope| each(scope, "spans")).cloned().collect()
}

/// All metrics of exports by name: the last one of each name.
pub(crate) fn metrics(exports: &[Value]) -> BTreeMap<String, Value> {
    let resources = exports.iter().flat_map(|export| each(&export["message"], "resourceMetrics"));
    let scopes = resources.flat_map(|resource| each(resource, "scopeMetrics"));
    scopes
        .flat_map(|scope| each(scope, "metrics"))
        .map(|metric| (metric["name"].as_str().unwrap().to_owned(), metric.clone()))
        .collect()
}

/// The attributes by name, as text.
pub(crate) fn attributes(value: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| {
        let (_kind, value) = value.as_object().unwrap().iter().next().unwrap();
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    each(value, "attributes")
        .map(|entry| (entry["key"].as_str().unwrap().to_owned(), text(&entry["value"])))
        .collect()
}
