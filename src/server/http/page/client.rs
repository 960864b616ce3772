//! A client of a server on this machine, for its metrics and its approvals: used by the user's other commands.
//!
//! Each request has its own connection, to an address and not to a name, without TLS, proxies or redirects, so that the
//! token reaches that server only.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{Method, Request, StatusCode};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PAGE;
use crate::text::preview;

/// How long a request may take. The server is on this machine.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Maximum bytes of an answer. Sixty-four approvals with the longest arguments that are shown take 5 MB.
const MAX_ANSWER: usize = 16 << 20;

/// Maximum characters of an answer that an error shows.
const MAX_PROBLEM: usize = 200;

/// Why a request of a [`PageClient`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The server cannot be reached.
    #[error(transparent)]
    Unreachable(io::Error),
    /// The server did not answer within two seconds.
    #[error("the server does not answer")]
    Timeout,
    /// The connection was lost, or the answer is not HTTP or too long.
    #[error(transparent)]
    Connection(Box<dyn std::error::Error + Send + Sync>),
    /// The server refused the request.
    #[error("the server answered {status}: {problem}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The start of the answer.
        problem: String,
    },
    /// The text is not an id of an approval. Nothing was sent.
    #[error("this is not an id of an approval")]
    InvalidId,
}

impl PageError {
    fn connection(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Connection(Box::new(error))
    }
}

/// A client of a [`Page`](super::Page).
#[derive(Clone)]
pub struct PageClient {
    address: SocketAddr,
    token: Option<String>,
}

impl std::fmt::Debug for PageClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PageClient").field("address", &self.address).finish_non_exhaustive()
    }
}

impl PageClient {
    /// A client of the server at `address`, with the operator's token of its page.
    pub fn new(address: SocketAddr, token: Option<String>) -> Self {
        Self { address, token }
    }

    /// The metrics in Prometheus' text format. Dropping the future ends the request.
    ///
    /// # Errors
    ///
    /// If the server does not answer within two seconds, or answers something else, or more than 16 MiB.
    pub async fn metrics(&self) -> Result<String, PageError> {
        self.send(Method::GET, &format!("{PAGE}/metrics"), String::new()).await
    }

    /// The approvals that wait at the server, as its page's handler renders them. Dropping the future ends
    /// the request.
    ///
    /// # Errors
    ///
    /// As [`metrics`](Self::metrics).
    pub async fn approvals(&self) -> Result<String, PageError> {
        self.send(Method::GET, &format!("{PAGE}/approvals"), String::new()).await
    }

    /// Answers an approval. If the future is dropped, the server may have received the answer or not.
    ///
    /// # Errors
    ///
    /// As [`metrics`](Self::metrics); also if the approval no longer waits.
    pub async fn answer(&self, id: &str, approve: bool, reason: Option<&str>) -> Result<(), PageError> {
        if !super::is_name(id) {
            return Err(PageError::InvalidId);
        }
        let body = json!({ "approve": approve, "reason": reason }).to_string();
        self.send(Method::POST, &format!("{PAGE}/approvals/{id}"), body).await.map(drop)
    }

    async fn send(&self, method: Method, path: &str, body: String) -> Result<String, PageError> {
        let answered = timeout(MAX_TIME, self.exchange(method, path, body)).await;
        answered.map_err(|_elapsed| PageError::Timeout)?
    }

    async fn exchange(&self, method: Method, path: &str, body: String) -> Result<String, PageError> {
        let stream = TcpStream::connect(self.address).await.map_err(PageError::Unreachable)?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(PageError::connection)?;
        let mut request = Request::builder().method(method).uri(path).header(HOST, self.address.to_string());
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Body::from(body)).map_err(PageError::connection)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(PageError::connection)?;
            let status = response.status();
            let bytes = axum::body::to_bytes(Body::new(response.into_body()), MAX_ANSWER)
                .await
                .map_err(PageError::connection)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if status == StatusCode::OK {
                return Ok(text);
            }
            let problem = preview(text.trim(), MAX_PROBLEM);
            Err(PageError::Refused { status: status.as_u16(), problem })
        };
        // The connection is polled together with the exchange, and dropped with it.
        tokio::pin!(exchange);
        tokio::pin!(connection);
        tokio::select! {
            answered = &mut exchange => answered,
            ended = &mut connection => {
                ended.map_err(PageError::connection)?;
                // Data that was received before the end is still read.
                exchange.await
            }
        }
    }
}
