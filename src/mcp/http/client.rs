//! HTTP exchanges with one server: sets the headers, handles redirects, refuses compressed bodies.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use reqwest::{Client, Request, Response};
use url::Url;

use super::failure::{self, RequestFailure};
use crate::mcp::errors::unavailable;
use crate::mcp::oauth::Authorization;
use crate::mcp::settings::HttpTransport;
use crate::mcp::web::{self, is_compressed};
use crate::net::response::cause;
use crate::net::tls::check_clock;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum number of redirects within the server's origin. More are a loop.
const MAX_REDIRECTS: usize = 3;

/// Headers that this transport sets itself. A configured one would contradict the body.
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// The client for one server.
pub(crate) struct HttpClient {
    pub(crate) server: Arc<str>,
    http: Client,
    headers: HeaderMap,
    authorization: Option<Arc<Authorization>>,
}

impl HttpClient {
    /// # Errors
    ///
    /// If a configured header cannot be sent.
    pub(crate) fn new(
        server: Arc<str>,
        config: &HttpTransport,
        authorization: Option<Arc<Authorization>>,
        connect_timeout: Duration,
    ) -> Result<Self, ToolError> {
        if !matches!(config.url.scheme(), "http" | "https") {
            let scheme = config.url.scheme();
            return Err(unavailable(format!(
                "server `{server}` cannot be reached: its `url` has the scheme `{scheme}`, expected `https` or `http`"
            )));
        }
        let mut headers = HeaderMap::with_capacity(config.headers.len());
        for (name, value) in &config.headers {
            let bad = |problem: &str| {
                unavailable(format!("server `{server}` cannot be reached: its header `{name}` {problem}"))
            };
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("is not a header's name"))?;
            if RESERVED.contains(&key.as_str()) {
                return Err(bad("is set by the protocol; remove it"));
            }
            let mut value =
                HeaderValue::from_str(value).map_err(|_| bad("has a value that cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        // A configured `Authorization` header takes precedence.
        let authorization = authorization.filter(|_| !headers.contains_key(header::AUTHORIZATION));
        Ok(Self { server, http: web::client(connect_timeout)?, headers, authorization })
    }

    /// Sends one request and returns the response's head, whatever its status.
    ///
    /// A request is sent again in four cases only. In each the server has said that it did not act on
    /// it: a redirect within the origin, a 401 for a token that could be renewed, a 401 for the nonce of a
    /// proof, once for each token, and a 403 for a scope, if the user has signed in again since.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, redirects to another origin, or sends an encoded body. The
    /// message does not contain the query or headers.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<Response, RequestFailure> {
        let mut token = match &self.authorization {
            Some(authorization) => authorization.token(url).await?,
            None => None,
        };
        let mut url = url.clone();
        let mut redirects = 0;
        let mut refreshed = false;
        let mut reloaded = false;
        let mut has_nonce = false;
        loop {
            check_clock(&url, SystemTime::now()).map_err(|problem| {
                unavailable(format!("server `{}` cannot be reached: {problem}", self.server))
            })?;
            let mut request = Request::new(method.clone(), url.clone());
            *request.headers_mut() = self.headers.clone();
            request.headers_mut().extend(headers.clone());
            if let Some(token) = &token {
                token.authorize(&method, &url, request.headers_mut());
            }
            *request.body_mut() = body.map(|body| body.to_vec().into());
            let response = self.http.execute(request).await.map_err(|error| self.unreached(&error))?;
            let status = response.status();
            let lacks_nonce =
                token.as_ref().is_some_and(|token| token.take_nonce(&url, status, response.headers()));
            if lacks_nonce && !has_nonce {
                has_nonce = true;
                continue;
            }
            if status == StatusCode::UNAUTHORIZED
                && token.as_ref().is_some_and(|token| token.is_bound())
                && let Some(error) = failure::proof_error(response.headers())
            {
                // Another token would change nothing.
                return Err(failure::refused_proof(&self.server, error).into());
            }
            if status == StatusCode::UNAUTHORIZED
                && !refreshed
                && let Some(authorization) = &self.authorization
            {
                refreshed = true;
                has_nonce = false;
                token = authorization.renew(&url, token.as_ref()).await?;
                if token.is_some() {
                    continue;
                }
            }
            if status == StatusCode::FORBIDDEN
                && !reloaded
                && let Some(authorization) = &self.authorization
                && failure::asks_for_scope(response.headers())
            {
                reloaded = true;
                if let Some(other) = authorization.reload(&url, token.as_ref()).await? {
                    token = Some(other);
                    has_nonce = false;
                    continue;
                }
            }
            if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
                redirects += 1;
                url = self.redirected(&method, &url, &response, redirects)?;
                continue;
            }
            if is_compressed(&response) {
                return Err(RequestFailure::Unreadable(
                    "its body is compressed, which was not asked for".to_owned(),
                ));
            }
            return Ok(response);
        }
    }

    /// The target of a redirect, if it may be followed: within the origin, so that credentials are
    /// sent to no other server, and with an unchanged method.
    fn redirected(
        &self,
        method: &Method,
        url: &Url,
        response: &Response,
        redirects: usize,
    ) -> Result<Url, ToolError> {
        let server = &self.server;
        let status = response.status();
        let refused = |problem: String| {
            ToolError::new(ToolErrorCode::UpstreamProtocol, format!("server `{server}` {problem} ({status})"))
        };
        let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
        let Some(target) = location.and_then(|location| url.join(location).ok()) else {
            return Err(refused("redirects without a valid `Location`".to_owned()));
        };
        if target.origin() != url.origin() {
            let origin = target.origin().ascii_serialization();
            return Err(refused(format!(
                "redirects to `{origin}`, which is not followed; set its `url` to the new address if it is right"
            )));
        }
        let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if !keeps_method && method != Method::GET {
            let path = target.path();
            return Err(refused(format!("redirects a call to `{path}`; set its `url` to that address")));
        }
        if redirects > MAX_REDIRECTS {
            return Err(refused("redirects in circles".to_owned()));
        }
        Ok(target)
    }

    /// The error for a status other than success.
    pub(crate) fn status_error(&self, response: &Response) -> ToolError {
        let has_header = self.headers.contains_key(header::AUTHORIZATION);
        failure::of_status(&self.server, response.status(), response.headers(), has_header)
    }

    fn unreached(&self, error: &reqwest::Error) -> ToolError {
        let server = &self.server;
        let cause = cause(error);
        unavailable(if error.is_connect() {
            format!("server `{server}` cannot be reached: {cause}")
        } else {
            format!("server `{server}` broke off the request; whether it took effect is unknown: {cause}")
        })
    }
}
