//! Replaces the OAuth module in a build without the feature `oauth`: there are no tokens, and a server whose
//! configuration has OAuth settings is refused.

use std::path::Path;

use ::http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::mcp::settings::{HttpTransport, McpServer, McpTransport};
use crate::tools::{ToolError, ToolErrorCode};

/// The authorization for a server that is configured to need one.
#[derive(Debug)]
pub(crate) struct Authorization {
    server: String,
}

/// An access token. It has no value, because there are none.
pub(super) enum Token {}

impl Token {
    pub(super) fn authorize(&self, _method: &Method, _url: &Url, _headers: &mut HeaderMap) {
        match *self {}
    }

    pub(super) fn is_bound(&self) -> bool {
        match *self {}
    }

    pub(super) fn take_nonce(&self, _url: &Url, _status: StatusCode, _headers: &HeaderMap) -> bool {
        match *self {}
    }
}

impl Authorization {
    pub(crate) fn new(server: &McpServer, _directory: &Path) -> Option<Self> {
        let McpTransport::Http(HttpTransport { oauth: Some(_), .. }) = &server.transport else { return None };
        Some(Self { server: server.name.clone() })
    }

    pub(super) async fn token(&self, _url: &Url) -> Result<Option<Token>, ToolError> {
        let message = format!(
            "server `{}` asks to sign in, which this build cannot: enable the feature `oauth` of the crate `cx`",
            self.server
        );
        Err(ToolError::new(ToolErrorCode::UpstreamUnavailable, message))
    }

    pub(super) async fn reload(
        &self,
        url: &Url,
        _lacking: Option<&Token>,
    ) -> Result<Option<Token>, ToolError> {
        self.token(url).await
    }

    pub(crate) async fn finish(&self) {}

    pub(super) async fn renew(
        &self,
        url: &Url,
        _rejected: Option<&Token>,
    ) -> Result<Option<Token>, ToolError> {
        self.token(url).await
    }
}
