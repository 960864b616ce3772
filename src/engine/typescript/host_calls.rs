//! Implements the ops' host interface for one run.

use futures::FutureExt as _;
use futures::executor::block_on;
use futures::future::{LocalBoxFuture, join_all};
use serde::Deserialize;
use serde_json::json;

use super::ops::HostInterface;
use crate::engine::host_calls::{HostCalls, text, tool_name};
use crate::json::Json;
use crate::run::calls::ToolName;
use crate::run::context::ExecutionContext;
use crate::run::result::LogLevel;
use crate::tools::names::{typescript_binding, typescript_name};
use crate::tools::{ToolError, ToolErrorCode};

impl HostInterface for HostCalls {
    fn call(&self, server: String, tool: String, arguments: String) -> LocalBoxFuture<'static, String> {
        Self::call(self, ToolName::Pair { server, tool }, arguments).map(text).boxed_local()
    }

    fn call_full(&self, name: String, arguments: String) -> LocalBoxFuture<'static, String> {
        Self::call(self, tool_name(name), arguments).map(text).boxed_local()
    }

    fn call_blocking(&self, calls: &str) -> String {
        let calls: Vec<Call> = match serde_json::from_str(calls) {
            Ok(calls) => calls,
            Err(error) => {
                let error = ToolError::new(ToolErrorCode::InvalidArguments, error.to_string());
                return text(Err(error));
            }
        };
        let results = join_all(calls.into_iter().map(|Call { server, tool, arguments }| {
            Self::call(self, ToolName::Pair { server, tool }, arguments)
        }));
        // Ends at the run's deadline at the latest, because every call does.
        let results = block_on(self.turn().compute(results));
        let mut answer = String::from("[");
        for (position, result) in results.into_iter().enumerate() {
            if position > 0 {
                answer.push(',');
            }
            match result {
                // The value is JSON text already and need not be parsed and printed again.
                Ok(value) => {
                    answer.push_str(r#"{"ok":true,"result":"#);
                    answer.push_str(&value);
                    answer.push('}');
                }
                Err(error) => {
                    answer.push_str(r#"{"ok":false,"error":"#);
                    answer.push_str(&error.to_guest_json());
                    answer.push('}');
                }
            }
        }
        answer.push(']');
        answer
    }

    fn query(&self, request: &str) -> LocalBoxFuture<'static, String> {
        Self::query(self, request).map(text).boxed_local()
    }

    fn query_blocking(&self, request: &str) -> String {
        text(block_on(self.turn().compute(Self::query(self, request))))
    }

    fn log(&self, level: u32, text: String) {
        let level = match level {
            0 => LogLevel::Debug,
            1 => LogLevel::Info,
            2 => LogLevel::Warn,
            _ => LogLevel::Error,
        };
        Self::log_line(self, level, text);
    }

    fn emit(&self, block: &str) -> String {
        text(Self::emit(self, block))
    }

    fn random(&self, bytes: &mut [u8]) {
        // Without random numbers the run is cancelled; zeros would be insecure.
        if getrandom::fill(bytes).is_err() {
            self.cancel();
        }
    }
}

/// One call of a list of blocking calls.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    server: String,
    tool: String,
    /// JSON text, so that each call's arguments are parsed, and refused, separately.
    arguments: String,
}

/// The argument of `start` in `js/90_bootstrap.js`, as JSON text.
pub(crate) fn start_options(context: &ExecutionContext) -> String {
    let names = context.server_names();
    let servers: Vec<[String; 3]> = names
        .iter()
        .map(|name| [name.to_string(), typescript_name(name), typescript_binding(name)])
        .collect();
    let servers = json!(servers);
    let input = context.script.input.as_ref().map_or("null", Json::text);
    format!(r#"{{"servers":{servers},"input":{input}}}"#)
}
