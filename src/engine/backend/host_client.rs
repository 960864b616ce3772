//! Passes the queries of a back end to the host, at most as many at once as those of an engine of this crate.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::engine::host::{Answer, MAX_CALLS, MAX_QUERY_BYTES, RunHost};
use crate::engine::host_calls::query::Query;
use crate::tools::{ToolError, ToolErrorCode};

/// Makes a back end's queries to the host of its run, within the bounds of what may be in flight.
#[derive(Clone)]
pub(super) struct HostClient {
    pub(super) host: Arc<dyn RunHost>,
    in_flight: Arc<Mutex<InFlight>>,
}

/// What is in flight.
#[derive(Default)]
struct InFlight {
    calls: usize,
    query_bytes: usize,
}

/// One call in flight, until this is dropped.
pub(super) struct Permit {
    in_flight: Arc<Mutex<InFlight>>,
    query_bytes: usize,
}

impl HostClient {
    pub(super) fn new(host: Arc<dyn RunHost>) -> Self {
        Self { host, in_flight: Arc::default() }
    }

    /// Begins a call, of which the host would keep `query_bytes` bytes.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` for a query that is too long, `QueueFull` if too much is in flight.
    pub(super) fn begin(&self, query_bytes: usize) -> Result<Permit, ToolError> {
        if query_bytes > MAX_QUERY_BYTES {
            let message =
                format!("the query has {query_bytes} bytes, at most {MAX_QUERY_BYTES} can be asked");
            return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
        }
        let mut in_flight = self.in_flight.lock();
        if in_flight.calls >= MAX_CALLS || in_flight.query_bytes + query_bytes > MAX_QUERY_BYTES {
            let message = format!("{} calls are in flight; await some of them first", in_flight.calls);
            return Err(ToolError::new(ToolErrorCode::QueueFull, message));
        }
        in_flight.calls += 1;
        in_flight.query_bytes += query_bytes;
        Ok(Permit { in_flight: Arc::clone(&self.in_flight), query_bytes })
    }

    /// Asks with the text of a query. Nothing is begun before the future is polled.
    pub(super) fn ask_text(&self, query: String) -> BoxFuture<'static, Answer> {
        let client = self.clone();
        async move {
            let _permit = client.begin(query.len())?;
            client.host.query(&query).await
        }
        .boxed()
    }

    /// Asks, and returns the JSON text of the answer.
    pub(super) fn ask(&self, query: &Query) -> BoxFuture<'static, Answer> {
        match serde_json::to_string(query) {
            Ok(text) => self.ask_text(text),
            Err(error) => {
                ready(Err(ToolError::new(ToolErrorCode::InvalidArguments, error.to_string()))).boxed()
            }
        }
    }

    /// Asks, and reads the answer.
    pub(super) fn read<T: DeserializeOwned + Send + 'static>(
        &self,
        query: &Query,
    ) -> BoxFuture<'static, Result<T, ToolError>> {
        let answer = self.ask(query);
        async move { serde_json::from_str(&answer.await?).map_err(|error| unreadable(&error)) }.boxed()
    }

    /// The same for a short query that continues another one: it is never refused, so that nothing stays half done.
    pub(super) async fn read_more<T: DeserializeOwned>(&self, query: &Query) -> Result<T, ToolError> {
        let text = serde_json::to_string(query).map_err(|error| unreadable(&error))?;
        let answer = Arc::clone(&self.host).query(&text).await?;
        serde_json::from_str(&answer).map_err(|error| unreadable(&error))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        in_flight.calls -= 1;
        in_flight.query_bytes -= self.query_bytes;
    }
}

/// The error for an answer that is not what the query returns.
pub(super) fn unreadable(error: &serde_json::Error) -> ToolError {
    ToolError::new(ToolErrorCode::UpstreamProtocol, format!("the answer of the host cannot be read: {error}"))
}

#[cfg(test)]
mod tests;
