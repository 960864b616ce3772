//! Questions of a server to the user during a call (the protocol's elicitation): the question, the answer, and the
//! handler that forwards it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use super::form::Form;
use crate::text::one_line;

/// A question of a server to the user. Everything except the names is untrusted text.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ElicitationRequest {
    /// The name of the server that asks, as configured. Show it with the question.
    pub server: String,
    /// The tool during whose call the server asks, if that is known.
    pub tool: Option<String>,
    /// The server's text.
    pub message: String,
    /// What the user is asked to do.
    pub mode: ElicitationMode,
    /// The script's name, as in stack traces. Set by the run.
    pub script: String,
    /// Time limit for the answer, after which the future is dropped. Set by the run.
    pub time: Duration,
}

/// What a server asks the user to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// Fill in a form.
    Form(Form),
    /// Open this address and continue there. It is `https`, or `http` on this machine for a server on this machine.
    /// Nothing may open it before the user has agreed to the whole address.
    Url(String),
}

/// The user's answer to an [`ElicitationRequest`].
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAnswer {
    /// The values of the form's fields, by name; empty for an address that the user opens. Fields that are left out get
    /// their defaults: [`Form::complete`].
    Accept(Map<String, Value>),
    /// The user refuses.
    Decline,
    /// The user has not decided.
    Cancel,
    /// The user could not be asked: there is no terminal, or the client is gone or cannot show this.
    Unavailable,
}

/// Why a question of a server was not passed to the user, or its answer not to the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElicitationRefusal {
    /// There is no user who can be asked.
    #[error("no user can be asked here")]
    Unavailable,
    /// The run has used up its number of prompts.
    #[error("this run has asked {max} questions already, as many as `maxQuestions` allows")]
    TooManyQuestions {
        /// The maximum number.
        max: u32,
    },
    /// The user's answer does not match the form.
    #[error("what was answered does not fit: {0}")]
    Unfit(#[from] super::form::FormError),
    /// The run has ended.
    #[error("the run is over")]
    RunOver,
}

/// Passes a server's questions to the user of one run, within its bounds. All calls of a run have the
/// same one.
pub type ElicitationHandler = Arc<
    dyn Fn(ElicitationRequest) -> BoxFuture<'static, Result<ElicitationAnswer, ElicitationRefusal>>
        + Send
        + Sync,
>;

/// Shows a question to the user. Polled on the executor's own runtime and not on the script's thread. Dropped when the
/// run ends or the time limit for the answer has passed.
pub(crate) type Elicitor =
    Arc<dyn Fn(ElicitationRequest) -> BoxFuture<'static, ElicitationAnswer> + Send + Sync>;

impl ElicitationRequest {
    /// Makes a question. The run that passes it on sets `script` and `time`.
    pub fn new(
        server: impl Into<String>,
        tool: Option<String>,
        message: impl Into<String>,
        mode: ElicitationMode,
    ) -> Self {
        let (server, message) = (server.into(), message.into());
        Self { server, tool, message, mode, script: String::new(), time: Duration::ZERO }
    }

    /// The text to show: which server asks, and its message. Each line of the message begins with
    /// `> ` and has its hidden characters escaped, so that the server can neither forge the first line
    /// nor hide anything.
    pub fn render(&self) -> String {
        let server = one_line(&self.server);
        let call = self
            .tool
            .as_deref()
            .map_or_else(String::new, |tool| format!(" in a call of `{}`", one_line(tool)));
        let mut text = format!("The server `{server}` asks{call}. What you answer is sent to it.");
        for line in self.message.lines() {
            text.push_str("\n> ");
            text.push_str(&one_line(line));
        }
        text
    }
}

impl fmt::Debug for ElicitationRequest {
    /// Omits the message and the address, which may contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ElicitationRequest")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ElicitationAnswer {
    /// Omits the values: they are the user's.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Accept(_) => "Accept(..)",
            Self::Decline => "Decline",
            Self::Cancel => "Cancel",
            Self::Unavailable => "Unavailable",
        })
    }
}
