//! The unfinished requests of a run: those in flight, and responses whose body is not read to its end.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::net::body::ResponseBody;
use crate::run::activity::{Activity, Busy, CHECK_INTERVAL, Watch};
use crate::run::errors::over;
use crate::tools::{ToolError, ToolErrorCode};

/// How many checks in a row may find no progress of other requests before a waiting request is refused.
const MAX_IDLE_CHECKS: u32 = 4;

/// The requests that have not ended, by the guest's numbers for them.
pub(in crate::run) struct Responses {
    entries: Mutex<HashMap<u64, Entry>>,
    /// The progress of the requests that have a permit.
    activity: Arc<Activity>,
    /// Bounds the concurrent connections. A request keeps its permit until the end of its body, so that a script which
    /// sends thousands of requests at once has only this many connections.
    permits: Arc<Semaphore>,
    max: usize,
}

enum Entry {
    /// A response or a part of its body is awaited.
    Busy(CancellationToken),
    /// The script has not asked for more of the body yet.
    Open(Box<Opened>),
}

struct Opened {
    body: ResponseBody,
    _permit: OwnedSemaphorePermit,
}

/// A request that has begun. Dropping it forgets the request, unless its body was kept.
pub(in crate::run) struct Begun<'a> {
    responses: &'a Responses,
    id: u64,
    /// Cancelled when the script ends the request.
    pub(in crate::run) token: CancellationToken,
}

/// The permit of a request to have a connection.
pub(in crate::run) struct ConnectionPermit {
    permit: OwnedSemaphorePermit,
    _busy: Busy,
}

/// A body of which a part is being read. Dropping it closes the body, unless it is kept.
pub(in crate::run) struct Reading<'a> {
    opened: Box<Opened>,
    begun: Begun<'a>,
    _busy: Busy,
}

impl Responses {
    /// No requests; at most `max` may have connections at once.
    pub(in crate::run) fn new(max: usize) -> Self {
        Self {
            entries: Mutex::default(),
            activity: Arc::default(),
            permits: Arc::new(Semaphore::new(max)),
            max,
        }
    }

    /// Begins a request with the guest's number for it.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` if the number is in use.
    pub(in crate::run) fn begin(&self, id: u64) -> Result<Begun<'_>, ToolError> {
        let mut entries = self.entries.lock();
        if entries.contains_key(&id) {
            return Err(ToolError::invalid_arguments("there is a request with this number already"));
        }
        let token = CancellationToken::new();
        entries.insert(id, Entry::Busy(token.clone()));
        Ok(Begun { responses: self, id, token })
    }

    /// Takes a response out to read the next part of its body.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` if there is no such response, or one of its parts is being read already.
    pub(in crate::run) fn read(&self, id: u64) -> Result<Reading<'_>, ToolError> {
        let mut entries = self.entries.lock();
        let entry =
            entries.get_mut(&id).ok_or_else(|| ToolError::invalid_arguments("there is no such response"))?;
        let token = CancellationToken::new();
        match std::mem::replace(entry, Entry::Busy(token.clone())) {
            Entry::Open(opened) => {
                let begun = Begun { responses: self, id, token };
                Ok(Reading { opened, begun, _busy: self.activity.begin() })
            }
            busy @ Entry::Busy(_) => {
                *entry = busy;
                Err(ToolError::invalid_arguments("the part before this one is still on its way"))
            }
        }
    }

    /// Ends a request that the script no longer needs.
    pub(in crate::run) fn close(&self, id: u64) {
        let removed = self.entries.lock().remove(&id);
        self.activity.note_closed();
        if let Some(Entry::Busy(token)) = removed {
            token.cancel();
        }
    }

    /// Ends all of them.
    pub(in crate::run) fn clear(&self) {
        let all = std::mem::take(&mut *self.entries.lock());
        for entry in all.into_values() {
            if let Entry::Busy(token) = entry {
                token.cancel();
            }
        }
    }
}

impl Begun<'_> {
    /// Waits until the request may have a connection. Dropping the future stops the wait.
    ///
    /// # Errors
    ///
    /// `QueueFull` if the script has as many responses as it may, reads none of them, and waits for no tool, as
    /// `is_waiting` says: then nothing would end the wait.
    pub(in crate::run) async fn acquire_connection(
        &self,
        is_waiting: impl Fn() -> bool,
    ) -> Result<ConnectionPermit, ToolError> {
        let responses = self.responses;
        let mut acquiring = std::pin::pin!(Arc::clone(&responses.permits).acquire_owned());
        let mut watch = Watch::new(MAX_IDLE_CHECKS);
        loop {
            if let Ok(permit) = timeout(CHECK_INTERVAL, &mut acquiring).await {
                // The semaphore is never closed; an error would only mean that the run is over.
                let permit = permit.map_err(|_closed| over())?;
                return Ok(ConnectionPermit { permit, _busy: responses.activity.begin() });
            }
            if watch.is_idle(&responses.activity, is_waiting()) {
                let message = format!(
                    "{} responses are open and none of them is read; read their bodies to the end, or cancel them",
                    responses.max
                );
                return Err(ToolError::new(ToolErrorCode::QueueFull, message));
            }
        }
    }

    /// Keeps the body for the script, unless it has ended the request meanwhile.
    pub(in crate::run) fn keep(&self, body: ResponseBody, permit: ConnectionPermit) {
        self.put(Box::new(Opened { body, _permit: permit.permit }));
    }

    fn put(&self, opened: Box<Opened>) {
        if let Some(entry) = self.responses.entries.lock().get_mut(&self.id) {
            *entry = Entry::Open(opened);
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let mut entries = self.responses.entries.lock();
        if matches!(entries.get(&self.id), Some(Entry::Busy(_))) {
            entries.remove(&self.id);
        }
    }
}

impl Reading<'_> {
    pub(in crate::run) fn body(&mut self) -> &mut ResponseBody {
        &mut self.opened.body
    }

    /// Cancelled when the script ends the request.
    pub(in crate::run) fn token(&self) -> CancellationToken {
        self.begun.token.clone()
    }

    /// Puts the body back, to read its next part later.
    pub(in crate::run) fn keep(self) {
        let Self { opened, begun, .. } = self;
        begun.put(opened);
    }
}
