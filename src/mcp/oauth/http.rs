//! HTTP for OAuth: discovery, registration and tokens, with the bounds of all our HTTP.

use std::time::Duration;

use http::{Method, Request, Response, header};
use reqwest::Client;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use tokio::time::timeout;
use url::Url;

use super::may_send_to;
use crate::mcp::http::{cause, pool};
use crate::tools::ToolError;

/// Authorization servers answer in milliseconds, and a person or a call waits.
const CONNECT_TIME: Duration = Duration::from_secs(5);
const EXCHANGE_TIME: Duration = Duration::from_secs(10);

/// Metadata documents have a few kilobytes.
const LONGEST_BODY: usize = 1024 * 1024;
const MOST_REDIRECTS: usize = 3;

/// Everything that rmcp's OAuth sends goes through here.
pub(super) struct OAuthHttp {
    client: Client,
    /// The server's own address, which the person has configured.
    server: Url,
}

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("`{0}` is not behind `https`, or is on this machine and the server is not")]
    Address(String),
    #[error("a redirect to `{0}` is not followed")]
    Redirect(String),
    #[error("the answer is larger than {LONGEST_BODY} bytes")]
    TooLarge,
    #[error("no answer within {} s", EXCHANGE_TIME.as_secs())]
    Elapsed,
    #[error("the answer is compressed, which was not asked for")]
    Compressed,
    #[error("{0}")]
    Failed(String),
}

impl OAuthHttp {
    /// # Errors
    ///
    /// When TLS cannot be used.
    pub(super) fn new(server: &Url) -> Result<Self, ToolError> {
        Ok(Self { client: pool(CONNECT_TIME)?, server: server.clone() })
    }

    async fn send(&self, request: OAuthHttpRequest) -> Result<Response<Vec<u8>>, Refused> {
        let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        let (parts, body) = request.request.into_parts();
        let mut url =
            Url::parse(&parts.uri.to_string()).map_err(|error| Refused::Failed(error.to_string()))?;
        for _ in 0..=MOST_REDIRECTS {
            // Secrets go there, and the server chooses where it is.
            if !may_send_to(&self.server, &url) {
                return Err(Refused::Address(url.origin().ascii_serialization()));
            }
            let mut sent = Request::new(body.clone());
            *sent.method_mut() = parts.method.clone();
            *sent.headers_mut() = parts.headers.clone();
            let (mut head, body) = sent.into_parts();
            head.uri =
                url.as_str().parse().map_err(|_| Refused::Failed("an address that is not one".to_owned()))?;
            let sent = reqwest::Request::try_from(Request::from_parts(head, body))
                .map_err(|error| Refused::Failed(cause(&error)))?;
            let response = self.client.execute(sent).await.map_err(|error| Refused::Failed(cause(&error)))?;
            if follows && parts.method == Method::GET && response.status().is_redirection() {
                let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
                let target = location.and_then(|location| url.join(location).ok());
                match target {
                    Some(target) if target.origin() == url.origin() => {
                        url = target;
                        continue;
                    }
                    Some(target) => return Err(Refused::Redirect(target.origin().ascii_serialization())),
                    None => return Err(Refused::Redirect("nowhere".to_owned())),
                }
            }
            return collect(response).await;
        }
        Err(Refused::Redirect("itself".to_owned()))
    }
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let answered = timeout(EXCHANGE_TIME, self.send(request)).await;
            answered.map_err(|_elapsed| Refused::Elapsed).flatten().map_err(OAuthHttpClientError::from)
        })
    }
}

async fn collect(mut response: reqwest::Response) -> Result<Response<Vec<u8>>, Refused> {
    let encoding = response.headers().get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Refused::Compressed);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Refused::Failed(cause(&error)))? {
        if body.len() + chunk.len() > LONGEST_BODY {
            return Err(Refused::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    let mut answer = Response::new(body);
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    Ok(answer)
}
