//! The events of runs, as observers receive them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::json::Json;
use crate::run::grants::RunGrants;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, LogLevel, Refusal};
use crate::tools::approval::AskReason;
use crate::tools::{RemoteServer, SentRequest, ToolErrorCode};

/// A request of a client that has been answered. A run that it started has events of its own.
pub(crate) struct ClientRequest<'a> {
    pub(crate) method: &'a str,
    /// The tool of a call.
    pub(crate) tool: Option<&'a str>,
    /// The id of the run that a REST request names or gets. Untrusted.
    pub(crate) run_id: Option<&'a str>,
    /// As in [`ObservedRun::client`](super::ObservedRun::client).
    pub(crate) client: &'a str,
    /// As in [`ObservedRun::client_name`](super::ObservedRun::client_name).
    pub(crate) client_name: Option<&'a str>,
    /// Why it failed: the code of the answer's error, or the number of a JSON-RPC error.
    pub(crate) code: Option<&'a str>,
    pub(crate) duration: Duration,
}

/// What happens to the tokens of a server over HTTP, while it serves.
pub(crate) enum TokenEvent<'a> {
    /// Tokens were added or revoked. `in_force` is the number of this owner's tokens.
    Changed { owner: TokenOwner, added: usize, revoked: usize, in_force: usize },
    /// The new token list cannot be used, so the previous tokens stay in force.
    Refused { owner: TokenOwner, reason: &'a str },
}

/// Whose tokens they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenOwner {
    /// Of all clients of a server without tenants, which share one token.
    Clients,
    /// Of the operator: of a server with tenants, or of a metrics page.
    Operator,
    /// Of the tenants.
    Tenants,
}

impl TokenOwner {
    /// The name in the audit trail.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Operator => "operator",
            Self::Tenants => "tenants",
        }
    }
}

/// What happens in a run.
pub(crate) enum RunEvent<'a> {
    /// The run was requested, with valid options. It may still wait for its engine and its turn, or be refused one.
    Started { source: &'a str, limits: &'a Limits, grants: &'a RunGrants, input_bytes: usize },
    /// The run is over. Without a result it was dropped by its caller, or the executor failed.
    Ended { result: Option<&'a ExecuteResult>, code: Option<ErrorCode>, duration: Duration },
    /// A call is about to be sent. [`RunEvent::Answered`] follows with the same number.
    Sending(Sending<'a>),
    /// A call that was about to be sent has ended.
    Answered(Answered<'a>),
    /// A dry run simulates a call.
    Simulated { call: u64, server: &'a str, tool: &'a str, arguments: &'a str },
    /// The script has printed a line that is kept for its result. Without a level: it has emitted a content block, and
    /// `text` is the block's JSON.
    Printed { level: Option<LogLevel>, text: &'a str },
    /// The script has searched, listed or described tools.
    Discovered(Discovered<'a>),
    /// A call of the script was not sent, or the limits of its server refused it.
    Refused(Refused<'a>),
    /// A call waits for the user's approval from now on.
    ApprovalAsked {
        call: u64,
        server: &'a str,
        tool: &'a str,
        arguments: Arguments<'a>,
        reason: &'a AskReason,
    },
    /// The approval was given or not.
    ApprovalAnswered(ApprovalAnswered<'a>),
    /// A request to a language model is about to be sent. [`RunEvent::ModelAnswered`] follows with the
    /// same number.
    ModelSending(ModelSending<'a>),
    /// The request to a language model has ended.
    ModelAnswered(ModelAnswered<'a>),
}

/// A call that is about to be sent.
pub(crate) struct Sending<'a> {
    /// Number of the call in its run, from 1. All events of a call have the same.
    pub(crate) call: u64,
    pub(crate) server: &'a str,
    /// The tool, or the method of a request for resources or prompts.
    pub(crate) tool: &'a str,
    /// Bytes of the arguments as the script wrote them.
    pub(crate) argument_bytes: usize,
    /// The arguments as they are sent.
    pub(crate) arguments: Arguments<'a>,
    /// The policy's rule that permits the call.
    pub(crate) rule: &'a str,
    /// The kind of approver, if it needed an approval.
    pub(crate) approver: Option<ApproverKind>,
    /// How long the call has waited since the script made it.
    pub(crate) waited: Duration,
    /// The address of its server; `None` for tools of this process.
    pub(crate) remote: Option<RemoteServer>,
}

/// A call that has ended.
pub(crate) struct Answered<'a> {
    pub(crate) call: u64,
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    /// The result, or why there is none: `Cancelled` if the run ended first.
    pub(crate) result: Result<&'a Json, ToolErrorCode>,
    /// The error's message.
    pub(crate) message: Option<&'a str>,
    /// The code of the JSON-RPC error with which the server answered, if it did.
    pub(crate) json_rpc_code: Option<i32>,
    /// What was sent, if it is known.
    pub(crate) sent: Option<&'a SentRequest>,
    /// Time since the call was sent.
    pub(crate) duration: Duration,
}

/// A search, list or description of tools.
pub(crate) struct Discovered<'a> {
    /// `search`, `list` or `describe`.
    pub(crate) kind: &'static str,
    pub(crate) query: Option<&'a str>,
    pub(crate) server: Option<&'a str>,
    /// How many tools were found, or why none.
    pub(crate) found: Result<usize, ToolErrorCode>,
    pub(crate) duration: Duration,
}

/// A call that was refused.
pub(crate) struct Refused<'a> {
    /// The number of the call; `None` if it was refused before it was counted.
    pub(crate) call: Option<u64>,
    /// The names, as far as they were resolved.
    pub(crate) server: Option<&'a str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) code: ToolErrorCode,
    /// The policy's rule that refuses the call, if the policy refuses it.
    pub(crate) rule: Option<&'a str>,
}

/// An answer to an approval prompt.
pub(crate) struct ApprovalAnswered<'a> {
    pub(crate) call: u64,
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) approver: ApproverKind,
    /// Why the call was not approved. `None` if it was.
    pub(crate) refusal: Option<Refusal>,
    /// How long the prompt was open or waited to be shown.
    pub(crate) duration: Duration,
}

/// Whose approver was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApproverKind {
    /// The run's own: the user of the client that requested it.
    Client,
    /// The executor's: the user at the terminal, or code of the embedder.
    Executor,
    /// There is none.
    None,
}

impl ApproverKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Executor => "executor",
            Self::None => "none",
        }
    }
}

/// A request to a language model that is about to be sent.
pub(crate) struct ModelSending<'a> {
    /// Number of the request in its run, from 1.
    pub(crate) request: u64,
    /// The provider's name, or `client` for the client's sampling.
    pub(crate) provider: &'a str,
    /// The model that is asked, the provider's default if the script names none. `None` if that is not known.
    pub(crate) model: Option<&'a str>,
    /// All messages as JSON text.
    pub(crate) messages: &'a str,
    pub(crate) system_prompt: Option<&'a str>,
    /// Whether the answer comes in pieces.
    pub(crate) is_stream: bool,
}

/// A request to a language model that has ended.
pub(crate) struct ModelAnswered<'a> {
    pub(crate) request: u64,
    pub(crate) provider: &'a str,
    /// The model's name, as the answer has it.
    pub(crate) model: Option<&'a str>,
    /// The answer's text as the script got it, or the code of why there is none.
    pub(crate) result: Result<Option<&'a str>, &'static str>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) finish_reason: Option<&'a str>,
    /// What the content filter found, by kind.
    pub(crate) violations: &'a [&'a str],
    pub(crate) duration: Duration,
}

/// What happens to tool definitions.
pub(crate) enum DefinitionEvent<'a> {
    /// The definitions of a server's tools differ from the pinned ones since its last list.
    Changed { server: &'a str, tools: &'a [String] },
    /// The user has accepted the current definition of one tool, or of all.
    Accepted { server: &'a str, tool: Option<&'a str>, count: usize },
}

/// Arguments of a call. Their JSON text is made when an observer first needs it.
pub(crate) struct Arguments<'a> {
    tree: &'a Map<String, Value>,
    text: OnceLock<Arc<str>>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(tree: &'a Map<String, Value>) -> Self {
        Self { tree, text: OnceLock::new() }
    }

    /// The argument `name`, if it is a string.
    pub(crate) fn string(&self, name: &str) -> Option<&'a str> {
        self.tree.get(name)?.as_str()
    }

    /// The arguments as JSON text, in the order in which they are sent.
    pub(crate) fn text(&self) -> Arc<str> {
        // A map of JSON values can always be serialized.
        let text = || serde_json::to_string(self.tree).unwrap_or_default().into();
        Arc::clone(self.text.get_or_init(text))
    }
}
