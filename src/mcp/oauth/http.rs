//! HTTP for OAuth: discovery, registration and tokens, within the bounds of all HTTP of this crate.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use parking_lot::Mutex;
use reqwest::Client;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use super::dpop::{self, ProofKey};
use super::issuer::{self, Document, Endpoints};
use crate::mcp::address::may_send_to;
use crate::mcp::challenge::find_challenge;
use crate::mcp::web::{self, is_compressed};
use crate::net::response::{cause, read_up_to};
use crate::net::tls::check_clock;
use crate::tools::ToolError;

/// Maximum time for connecting, and for one exchange. Authorization servers answer in milliseconds,
/// and a user or a call waits.
const CONNECT_TIME: Duration = Duration::from_secs(5);
const EXCHANGE_TIME: Duration = Duration::from_secs(10);

/// Maximum bytes of a body. Metadata documents, registrations and tokens have a few kilobytes, the
/// largest in use about twenty. rmcp parses them into trees, which can be 180 times as large.
const MAX_BODY: usize = 64 * 1024;

/// Maximum time until the server refuses a request without a token. A renewal waits for it.
const CHALLENGE_TIME: Duration = Duration::from_secs(5);

/// Requests without a token that a server may refuse, in the order in which they are sent: some servers allow the
/// handshake without a token. They have no effects but a session, which the server forgets. The notification between
/// them ends the handshake; some servers do not answer the last request without it.
const REQUESTS_WITHOUT_TOKEN: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cx","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
];

/// Maximum number of requests. Discovery, registration and a token take about ten. The bound protects third parties,
/// because a server may name any number of authorization servers.
const MAX_REQUESTS: usize = 32;

/// Sends all requests of rmcp's OAuth client in one sign-in or renewal.
pub(crate) struct OAuthHttp {
    client: Client,
    /// The configured URL of the server.
    server: Url,
    seen: Mutex<Seen>,
}

/// The requests and findings so far.
#[derive(Default)]
struct Seen {
    requests: usize,
    /// The target of the last redirect, and the URL that was requested first.
    redirect: Option<(Url, Url)>,
    /// The metadata of the last authorization server.
    document: Option<Document>,
    /// The authorization servers that the server has named.
    named: Vec<String>,
    /// The endpoints of the authorization server that was checked. Nothing is posted to other URLs.
    endpoints: Vec<Url>,
    /// Whether the server has listed its tools without a token.
    is_open: bool,
    /// Whether the server asks for tokens that are bound to a key.
    asks_for_bound_tokens: bool,
    /// Where tokens are issued, and the key that they are bound to there.
    token_endpoint: Option<Url>,
    key: Option<Arc<ProofKey>>,
}

/// The authorization servers of a resource, in the field of RFC 9728 and in that of a draft.
#[derive(Deserialize)]
struct Resource {
    authorization_server: Option<String>,
    authorization_servers: Option<Vec<String>>,
    dpop_bound_access_tokens_required: Option<Value>,
    dpop_signing_alg_values_supported: Option<Value>,
}

impl Resource {
    /// Whether the resource takes tokens that are bound to a key (RFC 9728, section 2). Authorization servers have one
    /// of these fields too, and name no authorization server.
    fn asks_for_bound_tokens(&self) -> bool {
        let is_resource = self.authorization_server.is_some() || self.authorization_servers.is_some();
        let lists = self.dpop_signing_alg_values_supported.as_ref().is_some_and(dpop::lists_algorithm);
        is_resource && (lists || self.dpop_bound_access_tokens_required == Some(Value::Bool(true)))
    }
}

/// An answer of a token endpoint that refuses a request.
#[derive(Deserialize)]
struct TokenRefusal {
    error: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("`{0}` is not behind `https`, or is on this machine and the server is not")]
    Address(String),
    #[error("nothing is sent to `{0}`, which is not an endpoint of the authorization server")]
    Endpoint(String),
    #[error("more than {MAX_REQUESTS} requests would be needed")]
    TooMany,
    #[error("the answer is larger than {MAX_BODY} bytes")]
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
    /// If TLS cannot be used.
    pub(crate) fn new(server: &Url) -> Result<Self, ToolError> {
        Ok(Self { client: web::client(CONNECT_TIME)?, server: server.clone(), seen: Mutex::default() })
    }

    /// The metadata document that was fetched last.
    pub(crate) fn document(&self) -> Option<Document> {
        self.seen.lock().document.clone()
    }

    /// Whether the server has named `issuer` among its authorization servers. Any server can name
    /// it, so this is a reason to ask the issuer, and does not prove anything.
    pub(crate) fn has_named(&self, issuer: &str) -> bool {
        self.seen.lock().named.iter().any(|entry| issuer::names(entry, issuer))
    }

    /// Allows requests to the endpoints of an authorization server that was checked.
    pub(crate) fn permit(&self, endpoints: &Endpoints) {
        let mut seen = self.seen.lock();
        seen.endpoints = endpoints.posted_to();
        seen.token_endpoint = Url::parse(&endpoints.token_endpoint).ok();
    }

    /// Whether the server has asked for tokens that are bound to a key.
    pub(crate) fn asks_for_bound_tokens(&self) -> bool {
        self.seen.lock().asks_for_bound_tokens
    }

    /// Binds the tokens that are requested from now on to a key.
    pub(crate) fn use_key(&self, key: Option<Arc<ProofKey>>) {
        self.seen.lock().key = key;
    }

    /// The key for a request to `url`, if it is for tokens that are to be bound.
    fn key_for(&self, url: &Url, is_get: bool) -> Option<Arc<ProofKey>> {
        let seen = self.seen.lock();
        let is_for_tokens = !is_get && seen.token_endpoint.as_ref() == Some(url);
        seen.key.clone().filter(|_| is_for_tokens)
    }

    /// The challenge with which the server refuses a request without a token: the address of its metadata, and the
    /// scopes that it requires. `None` if it has neither. The requests are POST requests of the protocol, because many
    /// servers refuse only those.
    ///
    /// rmcp's reader finds `scope=` and similar parameters anywhere in a header, so it gets only these parts.
    pub(crate) async fn challenge(&self) -> Option<String> {
        let mut session = None;
        for body in REQUESTS_WITHOUT_TOKEN {
            let refusing = timeout(CHALLENGE_TIME, self.post_without_token(body, session.clone()));
            let response = refusing.await.ok()?.ok()?;
            if response.status() == StatusCode::UNAUTHORIZED {
                if dpop::is_offered(response.headers()) {
                    self.seen.lock().asks_for_bound_tokens = true;
                }
                return self.parts(response.headers());
            }
            let given = response.headers().get("mcp-session-id").cloned();
            session = session.or(given);
            if body == REQUESTS_WITHOUT_TOKEN[2] && response.status() == StatusCode::OK {
                let is_open = timeout(CHALLENGE_TIME, lists_tools(response)).await.unwrap_or(false);
                self.seen.lock().is_open = is_open;
            }
        }
        None
    }

    /// Whether the server has listed its tools without a token, when it was asked for its challenge.
    pub(crate) fn is_open(&self) -> bool {
        self.seen.lock().is_open
    }

    /// Sends a request to the server itself. Its answer's body, which may be a stream, is not read.
    async fn post_without_token(
        &self,
        body: &'static str,
        session: Option<HeaderValue>,
    ) -> Result<reqwest::Response, Refused> {
        {
            let mut seen = self.seen.lock();
            seen.requests += 1;
            if seen.requests > MAX_REQUESTS {
                return Err(Refused::TooMany);
            }
        }
        let mut request = reqwest::Request::new(Method::POST, self.server.clone());
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if let Some(session) = session {
            headers.insert("mcp-session-id", session);
        }
        *request.body_mut() = Some(body.into());
        check_clock(request.url(), SystemTime::now())
            .map_err(|problem| Refused::Failed(problem.to_owned()))?;
        self.client.execute(request).await.map_err(|error| Refused::Failed(cause(&error)))
    }

    /// The first challenge with the address of metadata or with scopes, reduced to these.
    fn parts(&self, headers: &HeaderMap) -> Option<String> {
        find_challenge(headers, |challenge| {
            let metadata =
                challenge.parameter("resource_metadata").and_then(|url| self.server.join(url).ok());
            let metadata = metadata.map(|url| format!("resource_metadata=\"{url}\""));
            let scope = challenge.parameter("scope").filter(|scope| is_scope(scope));
            let scope = scope.map(|scope| format!("scope=\"{scope}\""));
            let parts: Vec<String> = metadata.into_iter().chain(scope).collect();
            (!parts.is_empty()).then(|| format!("Bearer {}", parts.join(", ")))
        })
    }

    /// Fetches a document.
    ///
    /// # Errors
    ///
    /// If there is none, or it must not be requested.
    pub(crate) async fn get(&self, url: &Url) -> Result<Response<Vec<u8>>, Refused> {
        let request = Request::get(url.as_str()).body(Vec::new());
        self.execute_in_time(request.map_err(|error| Refused::Failed(error.to_string()))?, true).await
    }

    /// Sends a form to an endpoint that was checked. It is not sent again for the nonce of its proof: see
    /// [`lacks_nonce`](Self::lacks_nonce).
    ///
    /// # Errors
    ///
    /// If there is no answer, or it must not be sent there.
    pub(crate) async fn post(&self, url: &Url, form: String) -> Result<Response<Vec<u8>>, Refused> {
        let request = Request::post(url.as_str())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(form.into_bytes());
        self.execute_in_time(request.map_err(|error| Refused::Failed(error.to_string()))?, false).await
    }

    /// Whether the token endpoint at `url` refuses a request only because its proof lacks the nonce. Takes up the one
    /// that the answer has, so that the next proof has it.
    pub(crate) fn lacks_nonce(&self, url: &Url, response: &Response<Vec<u8>>) -> bool {
        let has_nonce = |key: Arc<ProofKey>| key.take_nonce(url, response.headers());
        self.key_for(url, false).is_some_and(has_nonce) && refuses_for_nonce(response)
    }

    async fn execute_in_time(
        &self,
        request: Request<Vec<u8>>,
        is_repeated: bool,
    ) -> Result<Response<Vec<u8>>, Refused> {
        let sent = timeout(EXCHANGE_TIME, self.send(request, is_repeated)).await;
        sent.map_err(|_elapsed| Refused::Elapsed).flatten()
    }

    /// Sends one request; once more for the nonce of its proof, if `is_repeated`. Redirects are never followed here:
    /// rmcp follows those of discovery within the origin, and a request with a secret follows none.
    async fn send(
        &self,
        mut request: Request<Vec<u8>>,
        is_repeated: bool,
    ) -> Result<Response<Vec<u8>>, Refused> {
        let invalid = |_| Refused::Failed("invalid URL".to_owned());
        let url =
            Url::parse(&request.uri().to_string()).map_err(|error| Refused::Failed(error.to_string()))?;
        // Sends to the URL that was checked, even if another parser would read the text
        // differently.
        *request.uri_mut() = url.as_str().parse().map_err(invalid)?;
        let is_get = request.method() == Method::GET;
        let key = self.key_for(&url, is_get);
        let mut has_nonce = false;
        loop {
            let asked_first = self.admit(&url, is_get)?;
            if let Some(proof) = key.as_ref().and_then(|key| key.proof(request.method(), &url, None)) {
                request.headers_mut().insert(dpop::PROOF, proof);
            }
            let sent = reqwest::Request::try_from(request.clone())
                .map_err(|error| Refused::Failed(cause(&error)))?;
            check_clock(sent.url(), SystemTime::now())
                .map_err(|problem| Refused::Failed(problem.to_owned()))?;
            let response = self.client.execute(sent).await.map_err(|error| Refused::Failed(cause(&error)))?;
            let response = collect(response).await?;
            // Such an answer means that nothing else of the request was looked at: a code can still be used.
            let lacks_nonce = !is_get && self.lacks_nonce(&url, &response);
            if lacks_nonce && is_repeated && !has_nonce {
                has_nonce = true;
                continue;
            }
            if is_get {
                self.note(url, asked_first, &response);
            }
            return Ok(response);
        }
    }

    /// Checks where a request goes. Returns the URL that was requested before redirects.
    fn admit(&self, url: &Url, is_get: bool) -> Result<Url, Refused> {
        let mut seen = self.seen.lock();
        seen.requests += 1;
        if seen.requests > MAX_REQUESTS {
            return Err(Refused::TooMany);
        }
        // The server chooses this URL.
        if !may_send_to(&self.server, url) {
            return Err(Refused::Address(url.origin().ascii_serialization()));
        }
        // Requests to these endpoints contain secrets.
        if !is_get && !seen.endpoints.contains(url) {
            return Err(Refused::Endpoint(url.origin().ascii_serialization()));
        }
        Ok(match seen.redirect.take() {
            Some((target, asked_first)) if target == *url => asked_first,
            _ => url.clone(),
        })
    }

    /// Records what an answer reveals about authorization servers.
    fn note(&self, url: Url, asked_first: Url, response: &Response<Vec<u8>>) {
        let mut seen = self.seen.lock();
        if response.status().is_redirection() {
            let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            seen.redirect = location.and_then(|location| url.join(location).ok()).map(|to| (to, asked_first));
            return;
        }
        if response.status() != StatusCode::OK {
            return;
        }
        if let Ok(resource) = serde_json::from_slice::<Resource>(response.body()) {
            seen.asks_for_bound_tokens |= resource.asks_for_bound_tokens();
            seen.named.extend(resource.authorization_server);
            seen.named.extend(resource.authorization_servers.into_iter().flatten());
        }
        if let Ok(endpoints) = serde_json::from_slice(response.body()) {
            seen.document = Some(Document { location: asked_first, endpoints });
        }
    }
}

/// Whether the answer to the last request without a token is a list of tools. Reads the beginning of its
/// body: JSON, or a stream of events whose first message is the answer.
async fn lists_tools(mut response: reqwest::Response) -> bool {
    let mut start = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        start.extend_from_slice(&piece[..piece.len().min(MAX_BODY - start.len())]);
        let text = String::from_utf8_lossy(&start);
        // Not parsed: the list may be longer than the part that is read.
        if text.contains("\"tools\"") && text.contains("\"result\"") {
            return true;
        }
        if start.len() >= MAX_BODY || text.contains("\"error\"") {
            return false;
        }
    }
    false
}

/// Whether a text is a list of scopes (RFC 6749, section 3.3).
pub(crate) fn is_scope(text: &str) -> bool {
    let is_token = |character: char| matches!(character, '!' | '#'..='[' | ']'..='~');
    !text.trim().is_empty() && text.split(' ').all(|token| token.chars().all(is_token))
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            self.execute_in_time(request.request, true).await.map_err(OAuthHttpClientError::from)
        })
    }
}

/// Whether a token endpoint refuses a request only because its proof lacks the nonce (RFC 9449, section 8).
fn refuses_for_nonce(response: &Response<Vec<u8>>) -> bool {
    response.status().is_client_error()
        && serde_json::from_slice::<TokenRefusal>(response.body())
            .is_ok_and(|refusal| refusal.error == dpop::USE_NONCE)
}

async fn collect(mut response: reqwest::Response) -> Result<Response<Vec<u8>>, Refused> {
    if is_compressed(&response) {
        return Err(Refused::Compressed);
    }
    let body = read_up_to(&mut response, MAX_BODY).await.map_err(|error| Refused::Failed(cause(&error)))?;
    let mut answer = Response::new(body.ok_or(Refused::TooLarge)?);
    *answer.status_mut() = response.status();
    *answer.headers_mut() = std::mem::take(response.headers_mut());
    Ok(answer)
}
