//! A run that a pool is asked for, and its reply, which is sent once.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::Error;
use crate::run::context::RunEnvironment;
use crate::run::result::ExecuteResult;
use crate::run::script::Script;
use crate::sync::Mutex;

/// A run to be executed by a worker.
pub(crate) struct Job {
    pub(crate) script: Script,
    pub(crate) environment: RunEnvironment,
    pub(crate) reply: oneshot::Sender<Result<ExecuteResult, Error>>,
    /// A resource that the run occupies. It is dropped when the reply is sent.
    pub(crate) permit: Box<dyn Any + Send>,
}

/// The reply to a run that has begun. Its worker sends it, or the watchdog in place of a hung worker.
#[derive(Clone)]
pub(super) struct Reply(Arc<Mutex<Option<UnsentReply>>>);

/// The reply, for the one that sends it.
pub(super) struct UnsentReply {
    sender: oneshot::Sender<Result<ExecuteResult, Error>>,
    permit: Box<dyn Any + Send>,
}

impl Reply {
    pub(super) fn new(
        sender: oneshot::Sender<Result<ExecuteResult, Error>>,
        permit: Box<dyn Any + Send>,
    ) -> Self {
        Self(Arc::new(Mutex::new(Some(UnsentReply { sender, permit }))))
    }

    /// `None` if the worker or the watchdog has taken it before.
    pub(super) fn take(&self) -> Option<UnsentReply> {
        self.0.lock().take()
    }
}

impl UnsentReply {
    pub(super) fn send(self, result: Result<ExecuteResult, Error>) {
        drop(self.permit);
        // A caller that has gone needs no reply.
        let _ = self.sender.send(result);
    }
}
