//! Implements the ops' host interface for one run.

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt as _};
use serde::Deserialize;
use serde_json::json;

use super::ops::HostInterface;
use crate::durations::nanoseconds;
use crate::engine::host::{HostCalls, RunHost, RunTape, encode_answer};
use crate::json::Json;
use crate::run::call_terms::CallTerms;
use crate::run::calls::resolve::ToolName;
use crate::run::errors::over;
use crate::run::recording::GuestClock;
use crate::run::result::LogLevel;
use crate::tools::names::{typescript_binding, typescript_name};
use crate::tools::{ToolError, ToolErrorCode};

impl HostInterface for HostCalls {
    fn call(
        &self,
        server: String,
        tool: String,
        arguments: String,
        id: u32,
        timeout_ms: f64,
    ) -> LocalBoxFuture<'static, String> {
        let terms = CallTerms::from_guest(id.into(), timeout_ms);
        Self::call(self, ToolName::Pair { server, tool }, arguments, terms).map(encode_answer).boxed_local()
    }

    fn call_full(
        &self,
        name: String,
        arguments: String,
        id: u32,
        timeout_ms: f64,
    ) -> LocalBoxFuture<'static, String> {
        let terms = CallTerms::from_guest(id.into(), timeout_ms);
        Self::call(self, ToolName::of_text(&name), arguments, terms).map(encode_answer).boxed_local()
    }

    fn call_blocking(&self, batch: &str) -> String {
        let Batch { calls, max_parallel } = match serde_json::from_str(batch) {
            Ok(batch) => batch,
            Err(error) => return encode_answer(Err(ToolError::unreadable(&error))),
        };
        let max_parallel = max_parallel.map_or(usize::MAX, |max| max.get() as usize);
        let calls = calls.into_iter().map(|Call { server, tool, arguments }| {
            Self::call(self, ToolName::Pair { server, tool }, arguments, CallTerms::default())
        });
        let results = stream::iter(calls).buffered(max_parallel).collect::<Vec<_>>();
        // Ends at the run's deadline at the latest, because every call does.
        let mut results = self.block_on(results).unwrap_or_default();
        // A failed call is an entry of the answer, but one beyond the run's limit of calls fails
        // the whole list.
        let is_beyond_limit = |result: &Result<String, ToolError>| {
            result.as_ref().is_err_and(|error| error.code == ToolErrorCode::MaxToolCallsExceeded)
        };
        if let Some(position) = results.iter().position(is_beyond_limit) {
            return encode_answer(results.swap_remove(position));
        }
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
        Self::query(self, request).map(encode_answer).boxed_local()
    }

    fn query_blocking(&self, request: &str) -> String {
        encode_answer(self.block_on(Self::query(self, request)).unwrap_or_else(|| Err(over())))
    }

    fn log(&self, level: u32, text: String) {
        Self::log_line(self, LogLevel::from_number(u8::try_from(level).unwrap_or(u8::MAX)), text);
    }

    fn emit(&self, block: &str) -> String {
        encode_answer(Self::emit(self, block))
    }

    fn clock(&self, is_wall: bool) -> f64 {
        let nanoseconds = self.tape().map(|tape| read_clock(&*tape, is_wall, self.clock_resolution()));
        // Exact for months, and to a quarter of a microsecond for the time since 1970.
        nanoseconds.map_or(0.0, |nanoseconds| nanoseconds as f64)
    }

    fn random(&self, bytes: &mut [u8]) {
        if let Some(tape) = self.tape() {
            tape.fill_random(bytes);
            return;
        }
        // Without random numbers the run is cancelled; zeros would be insecure.
        if getrandom::fill(bytes).is_err() {
            self.cancel();
        }
    }
}

/// A tape's reading of a clock.
fn read_clock(tape: &dyn RunTape, is_wall: bool, resolution: Duration) -> u64 {
    let (clock, resolution) = match is_wall {
        // V8 reads this clock in milliseconds.
        true => (GuestClock::Wall, 1_000_000),
        false => (GuestClock::Monotonic, nanoseconds(resolution).max(1)),
    };
    let now = nanoseconds(match clock {
        GuestClock::Wall => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        GuestClock::Monotonic => tape.elapsed(),
    });
    tape.read_clock(clock, now - now % resolution)
}

/// Blocking calls, and how many of them may be in flight at once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Batch {
    calls: Vec<Call>,
    max_parallel: Option<NonZeroU32>,
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
pub(crate) fn start_options(host: &dyn RunHost) -> String {
    let names = host.server_names();
    let servers: Vec<[String; 3]> = names
        .iter()
        .map(|name| [name.to_string(), typescript_name(name), typescript_binding(name)])
        .collect();
    let servers = json!(servers);
    let input = host.input().map_or("null", Json::text);
    let clock = host.clock_resolution().as_nanos().max(1);
    let tape = host.tape().is_some();
    let network = host.has_network();
    format!(r#"{{"servers":{servers},"clock":{clock},"tape":{tape},"network":{network},"input":{input}}}"#)
}
