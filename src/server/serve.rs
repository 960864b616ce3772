//! The server, as embedders use it.

use std::fmt;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "http")]
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "http")]
use super::http::{self, HttpOptions, MetricsOptions};
use super::metrics;
use super::serve_stdio;
use super::shared::{ServerOptions, Shared};
use super::shutdown::ShutdownReason;
use crate::engine::engines;
use crate::error::Error;
use crate::executor::Executor;

/// What a client adds to the context of its model: [`Server::context`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerContext {
    /// The name, description and input schema of each tool. Clients do not show output schemas to
    /// models.
    pub definitions: Vec<serde_json::Value>,
    /// The instructions.
    pub instructions: String,
}

/// An MCP server with the tools `executeTypescript`, `executePython` and `health`. Cheap to clone;
/// all clones use the same executor.
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
}

impl Server {
    /// Makes a server that runs scripts on `executor`. If the executor [keeps a run
    /// history](crate::ExecutorBuilder::keep_runs), clients can read later what did not fit into an answer.
    pub fn new(executor: Executor, options: ServerOptions) -> Self {
        Self { shared: Arc::new(Shared::new(executor, options)) }
    }

    /// What a client that connects now adds to the context of its model: the definitions of the tools, and the
    /// instructions. May read files.
    pub fn context(&self) -> ServerContext {
        let tools = self.shared.tools().list(false, true);
        let definitions = tools.iter().map(|tool| {
            json!({ "name": tool.name, "description": tool.description, "inputSchema": *tool.input_schema })
        });
        ServerContext { definitions: definitions.collect(), instructions: self.shared.instructions() }
    }

    /// Starts all engines and connects to all upstream servers in the background, so that the
    /// first scripts need not wait. Returns at once; `health` reports the progress.
    pub fn warm(&self) {
        for &language in engines::AVAILABLE {
            let shared = Arc::clone(&self.shared);
            self.shared.executor.spawn(async move {
                let started = shared.executor.warm(language).await;
                shared.record_start(language, started.as_ref().err());
            });
        }
        #[cfg(feature = "mcp")]
        let executor = self.shared.executor.clone();
        #[cfg(feature = "mcp")]
        self.shared.executor.spawn(async move {
            for (server, connected) in executor.connect_servers().await {
                if let Err(error) = connected {
                    tracing::warn!(%server, %error, "the server cannot be reached yet");
                }
            }
        });
    }

    /// Serves one client over a pair of pipes until it disconnects, `stop` is cancelled, or too
    /// many workers are hung. In the last case the calls in flight may continue for up to 10 s.
    /// Then the client's runs are cancelled, and their answers are written if the client reads
    /// them; that takes at most 1.5 s. Other clients of this server are not affected.
    ///
    /// At most 512 requests, or 64 MiB of them, are handled at once. Beyond that up to 512 lines or 8 MiB are read
    /// ahead, so that cancellations and answers among them are handled; then nothing is read until answers have been
    /// written. The exception is a call that waits for the client's answer to a question: then lines are still read,
    /// and requests among them are refused. A client that reads nothing for two minutes meanwhile is treated as gone.
    ///
    /// Only protocol messages are written to `writer`. Dropping the future ends the connection and
    /// its runs. It has to be polled in a tokio runtime, with timers.
    pub async fn serve<R, W>(&self, reader: R, writer: W, stop: &CancellationToken) -> ShutdownReason
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        serve_stdio::serve(&self.shared, reader, writer, stop).await
    }

    /// Serves any number of clients over HTTP until `stop` is cancelled or too many workers are
    /// hung. MCP is at `/mcp`, the answer of the tool `health` is at `/healthz` as JSON, and the
    /// metrics are at `/metrics` if there is a printer for them.
    ///
    /// Each session of a client of a handshake revision has its own runs and can read only their
    /// records. Clients of the stateless revision (2026-07-28) cannot be told apart: their run
    /// records and tasks are found only by their ids, which are random. If the connection of a
    /// request is closed, the request and its run are cancelled.
    ///
    /// If too many workers are hung, the calls in flight may continue for up to 10 s. At the end
    /// all runs are cancelled, and their answers are written if the clients read them; that takes
    /// at most 1.5 s. Dropping the future ends all connections and runs. It has to be polled in the
    /// tokio runtime of the listener.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if other machines can reach the address and the options have no
    /// token of at least 32 characters, or if an entry of `allow_origins` is not an origin;
    /// [`Error::Start`] if the listener has no local address.
    #[cfg(feature = "http")]
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        options: HttpOptions,
        stop: &CancellationToken,
    ) -> Result<ShutdownReason, Error> {
        http::serve(&self.shared, listener, options, stop).await
    }

    /// Records the current values of the gauges through the `metrics` facade. The metrics pages do this when they are
    /// read; an exporter that pushes metrics must call this before each export.
    pub fn sample_metrics(&self) {
        metrics::sample(&self.shared, 0, 0);
    }

    /// Serves the metrics at a separate address until `stop` is cancelled, in addition to [`serve`](Self::serve), whose
    /// client is at a pair of pipes.
    ///
    /// It answers `GET /metrics`, the page at `/ui` if there is one, and nothing else, on at most 8 connections at
    /// once, each for at most one minute; a further one waits, and is refused after 8 s. On a loopback address the
    /// `Host` header must name this machine, so that no web page can read it through a domain name of its own. Dropping
    /// the future ends all connections.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if other machines can reach the address and there is no token of at
    /// least 32 characters; [`Error::Start`] if the listener has no local address.
    #[cfg(feature = "http")]
    pub async fn serve_metrics(
        &self,
        listener: TcpListener,
        options: MetricsOptions,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        http::serve_metrics(&self.shared, listener, options, stop).await
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Server").field("options", &self.shared.options).finish_non_exhaustive()
    }
}
