//! Run history: keeps the records of runs for a while, so that output that did not fit into an
//! answer can be read later.

pub(crate) mod shared;

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use self::shared::SharedRuns;
use crate::json::Json;
use crate::run::result::{ExecuteResult, Output, ToolCallRecord};
use crate::run::result_json::{error_json, milliseconds};
use crate::storage::shared::SharedError;
use crate::text::ids::short_random_id;
use crate::tools::names::full_name;

/// The client name of all clients without a session. They find a record by its random id, at any front end.
pub(crate) const WITHOUT_SESSION: &str = "all clients without a session";

/// Separates the name of a tenant from that of its client. Tenant names do not contain it.
const OF_TENANT: char = '/';

/// The history's name of a client of a tenant. No client of another tenant has the same.
#[cfg(feature = "http")]
pub(crate) fn client_of_tenant(tenant: Option<&str>, client: &str) -> String {
    tenant.map_or_else(|| client.to_owned(), |tenant| format!("{tenant}{OF_TENANT}{client}"))
}

/// Splits the name of a client into tenant and rest. The tenant is empty for clients without one.
pub(crate) fn split_client(client: &str) -> (&str, &str) {
    client.split_once(OF_TENANT).unwrap_or(("", client))
}

/// Bounds of the run history. Beyond a bound the oldest records are removed. If a server has several tenants, they are
/// removed from the tenant that has the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Maximum number of runs. Default: 64.
    pub runs: usize,
    /// Maximum bytes of all records together. A larger single run is not kept. Default: 64 MiB.
    pub bytes: usize,
    /// How long each record is kept. Default: one hour.
    pub age: Duration,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        // An agent returns to an answer within its next few turns, or never.
        Self { runs: 64, bytes: 64 << 20, age: Duration::from_hours(1) }
    }
}

/// The run records of an executor. Each can be read only by the client that requested the run.
pub struct History {
    limits: HistoryLimits,
    records: Mutex<Records>,
    shared: Option<SharedRuns>,
}

#[derive(Default)]
struct Records {
    /// Oldest first.
    runs: VecDeque<Arc<RunRecord>>,
    bytes: usize,
}

/// The record of a run, as text.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunRecord {
    /// Identifies the run. It is random, so that no client can guess another's.
    pub id: String,
    /// Everything that the script printed and emitted, in order. A content block other than text is
    /// replaced by its kind and MIME type.
    pub output: String,
    /// The value as JSON, if the script returned one.
    pub value: Option<String>,
    /// The error of a failed run as a JSON object, in the format of an answer's `error`.
    pub error: Option<String>,
    /// Every tool call in order, as a JSON array of
    /// `{tool, status, ms, argumentBytes, resultBytes}`. `status` is `ok`, `in flight` or an error
    /// code.
    pub calls: String,
    client: String,
    ended_at: Instant,
}

impl History {
    pub(crate) fn new(limits: HistoryLimits) -> Self {
        Self { limits, records: Mutex::default(), shared: None }
    }

    /// This history, sharing the records of [`WITHOUT_SESSION`] with other front ends.
    pub(crate) fn sharing(self, shared: SharedRuns) -> Self {
        Self { shared: Some(shared), ..self }
    }

    fn shared(&self, client: &str) -> Option<&SharedRuns> {
        self.shared.as_ref().filter(|_| split_client(client).1 == WITHOUT_SESSION)
    }

    /// Shares a stored record with other front ends. After this returns they find it.
    pub(crate) async fn share(&self, client: &str, id: &str) {
        if let Some(shared) = self.shared(client)
            && let Some(run) = self.get(client, id)
        {
            shared.keep(split_client(client).0, &run).await;
        }
    }

    /// As [`get`](Self::get), and also finds runs of other front ends.
    ///
    /// # Errors
    ///
    /// If the shared store does not answer.
    pub(crate) async fn find(&self, client: &str, id: &str) -> Result<Option<Arc<RunRecord>>, SharedError> {
        match (self.get(client, id), self.shared(client)) {
            (None, Some(shared)) => shared.find(split_client(client).0, client, id).await,
            (found, _) => Ok(found),
        }
    }

    /// Stores a run's record for `client` and returns its id. Returns `None` if the
    /// record is larger than the history may be, or does not fit beside those of tenants that have less, or if the
    /// system provides no random numbers.
    pub fn keep(&self, client: &str, result: &ExecuteResult) -> Option<String> {
        self.keep_as(client, short_random_id().ok()?, result)
    }

    /// The same under an id that the client knows already.
    pub(crate) fn keep_as(&self, client: &str, id: String, result: &ExecuteResult) -> Option<String> {
        let mut run = RunRecord {
            id,
            output: output_text(result),
            value: result.value_json().map(Json::to_string),
            error: result.error().map(|error| error_json(error).to_string()),
            calls: result.tool_calls.iter().map(call_json).collect::<Value>().to_string(),
            client: client.to_owned(),
            ended_at: Instant::now(),
        };
        run.release_capacity();
        let (id, bytes) = (run.id.clone(), run.bytes());
        if bytes > self.limits.bytes || self.limits.runs == 0 {
            return None;
        }
        let mut records = self.records.lock();
        records.expire(self.limits.age);
        while records.runs.len() >= self.limits.runs {
            if !records.drop_of_largest(client, 1, |_| 1) {
                return None;
            }
        }
        while records.bytes + bytes > self.limits.bytes {
            if !records.drop_of_largest(client, bytes, RunRecord::bytes) {
                return None;
            }
        }
        records.bytes += bytes;
        records.runs.push_back(Arc::new(run));
        Some(id)
    }

    /// Returns the record of one of the client's runs, if it is still kept.
    pub fn get(&self, client: &str, id: &str) -> Option<Arc<RunRecord>> {
        let mut records = self.records.lock();
        records.expire(self.limits.age);
        records.runs.iter().find(|run| run.id == id && run.client == client).cloned()
    }

    /// The client's run records, newest first.
    pub fn list(&self, client: &str) -> Vec<Arc<RunRecord>> {
        let mut records = self.records.lock();
        records.expire(self.limits.age);
        records.runs.iter().rev().filter(|run| run.client == client).cloned().collect()
    }

    /// Removes all records of a client that will not return.
    pub fn forget(&self, client: &str) {
        let mut records = self.records.lock();
        records.runs.retain(|run| run.client != client);
        records.bytes = records.runs.iter().map(|run| run.bytes()).sum();
    }
}

impl fmt::Debug for History {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("History").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Records {
    fn expire(&mut self, age: Duration) {
        while self.runs.front().is_some_and(|run| run.ended_at.elapsed() > age) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(run) = self.runs.pop_front() {
            self.bytes -= run.bytes();
        }
    }

    /// Removes the oldest record of the tenant that uses the most, by `size`, including the new record of `client`.
    /// Returns false if that tenant has no other record, so that nothing is taken from tenants that use less.
    fn drop_of_largest(&mut self, client: &str, new: usize, size: impl Fn(&RunRecord) -> usize) -> bool {
        let oldest = {
            let mut sizes = HashMap::from([(split_client(client).0, new)]);
            for run in &self.runs {
                *sizes.entry(split_client(&run.client).0).or_default() += size(run);
            }
            let largest = sizes.values().max();
            self.runs.iter().position(|run| sizes.get(split_client(&run.client).0) == largest)
        };
        let Some(run) = oldest.and_then(|position| self.runs.remove(position)) else { return false };
        self.bytes -= run.bytes();
        true
    }
}

impl RunRecord {
    /// Time since the run ended.
    pub fn age(&self) -> Duration {
        self.ended_at.elapsed()
    }

    /// The record as a JSON object: `{id, output, value, calls}`, with `error` instead of `value`
    /// if the run failed.
    pub(crate) fn to_json_text(&self) -> String {
        let (id, output) = (Value::from(&*self.id), Value::from(&*self.output));
        let field = |name: &str, text: &Option<String>| {
            text.as_ref().map_or_else(String::new, |text| format!(r#""{name}":{text},"#))
        };
        let (value, error) = (field("value", &self.value), field("error", &self.error));
        // `value`, `error` and `calls` are JSON text already.
        format!(r#"{{"id":{id},"output":{output},{value}{error}"calls":{}}}"#, self.calls)
    }

    /// Releases memory beyond the texts, which can be as much again: a text that grows by appending
    /// doubles its capacity.
    fn release_capacity(&mut self) {
        self.output.shrink_to_fit();
        self.calls.shrink_to_fit();
        for text in [&mut self.value, &mut self.error].into_iter().flatten() {
            text.shrink_to_fit();
        }
    }

    fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let texts = self.output.len() + length(&self.value) + length(&self.error) + self.calls.len();
        texts + self.client.len() + size_of::<Self>()
    }
}

/// Everything that a script printed and emitted, in order.
fn output_text(result: &ExecuteResult) -> String {
    let mut text = String::new();
    for entry in &result.logs {
        if !text.is_empty() {
            text.push('\n');
        }
        match entry {
            Output::Log { text: line, .. } => text.push_str(line),
            Output::Emit(block) => match block.string_field("text") {
                Some(emitted) => text.push_str(&emitted),
                None => {
                    let kind = block.string_field("type").unwrap_or_else(|| "block".to_owned());
                    let mime_type = block.string_field("mimeType").unwrap_or_else(|| "no type".to_owned());
                    // Writing to a string cannot fail.
                    let _ = write!(text, "[{kind}: {mime_type}]");
                }
            },
        }
    }
    text
}

fn call_json(call: &ToolCallRecord) -> Value {
    json!({
        "tool": full_name(&call.server, &call.tool),
        "status": call.status.as_str(),
        "ms": milliseconds(call.duration),
        "argumentBytes": call.argument_bytes,
        "resultBytes": call.result_bytes,
    })
}

#[cfg(test)]
mod tests;
