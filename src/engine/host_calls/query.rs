//! What scripts ask of their host beside calls of tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::documentation::Wanted;
use super::files::{FileBlock, FileCall};
use crate::llm::call::LlmCall;
use crate::net::call::FetchCall;
use crate::storage::state::StateCall;

/// A query of a script. This names all that there are: guests write them as JSON, and so do back ends of an embedder,
/// for which `docs/backends.md` describes them.
#[derive(Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Query {
    /// The names of a server's tools.
    Names {
        server: String,
    },
    /// The exact name of a server. Engines send it only for names that they do not know: most are
    /// wrong, and get the error.
    Server {
        server: String,
    },
    Search {
        query: String,
        server: Option<String>,
        limit: Option<f64>,
        detail: String,
    },
    Schema {
        name: String,
    },
    /// The names of all servers.
    Servers,
    /// A server without its tools: alias, description and working directory.
    Describe {
        server: String,
    },
    /// Documentation of tools: one of a server's, all of a server's, or those that match a query.
    Documentation(Wanted),
    ListResources {
        server: String,
    },
    ReadResource {
        server: String,
        uri: String,
    },
    ListPrompts {
        server: String,
    },
    GetPrompt {
        server: String,
        name: String,
        #[serde(default)]
        arguments: Map<String, Value>,
    },
    /// Returns the guide, one of its sections, or the description of a server or a tool.
    Help {
        topic: Option<String>,
    },
    /// Returns the record of an earlier run.
    Run {
        id: String,
    },
    /// Reports the script's progress.
    Progress {
        done: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    /// Reads or changes the state that the script keeps between runs.
    State {
        call: StateCall,
    },
    /// An operation on files.
    File {
        call: FileCall,
    },
    /// Returns a file as a content block.
    FileBlock {
        file: FileBlock,
    },
    /// Asks a language model.
    Llm {
        call: LlmCall,
    },
    /// Sends a request to a host that a person has granted.
    Fetch {
        call: FetchCall,
    },
    /// Ends an unfinished call of a tool, for which the guest has this number. A call without a number, such as those
    /// of back ends, ends when its future is dropped.
    CancelCall {
        id: u64,
    },
    /// Gives an unfinished call of a tool, for which the guest has this number, `timeout_ms` for its answer.
    LimitCall {
        id: u64,
        #[serde(rename = "timeoutMs")]
        timeout_ms: f64,
    },
    /// Waits for some milliseconds. Only with a tape: else guests have timers of their own.
    Timer {
        delay: f64,
    },
}

impl Query {
    /// Whether the bytes of its text count as bytes of calls in flight: the query can wait for a server's list, and
    /// nothing else counts them.
    pub(super) const fn is_held_here(&self) -> bool {
        matches!(
            self,
            Self::Names { .. }
                | Self::Server { .. }
                | Self::Search { .. }
                | Self::Schema { .. }
                | Self::Describe { .. }
                | Self::Documentation(_)
                | Self::Help { .. }
                | Self::Run { .. }
        )
    }
}

#[cfg(test)]
mod tests;
