//! Resolves one server's entry, with all references expanded, to a server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use url::Url;

use super::entry::{HttpTarget, OAuthEntry, ServerEntry, StdioTarget, Target};
use super::error::Finding;
use super::expand::{Role, Scope, Text};
use crate::mcp::{McpServer, McpTransport, OAuth, Root};

/// Resolves an entry.
///
/// # Errors
///
/// Every reference that cannot be expanded, and every value that is not a valid URL or header after
/// expansion.
pub(super) fn resolve(entry: &ServerEntry, scope: Scope<'_>) -> Result<McpServer, Vec<Finding>> {
    let mut expander = Expander { scope, findings: Vec::new() };
    let mut server = match &entry.target {
        Some(Target::Stdio(target)) => stdio(&entry.name, target, &mut expander),
        Some(Target::Http(target)) => http(&entry.name, target, &mut expander)?,
        None => return Err(vec![entry.without_target()]),
    };
    server.roots = entry.roots.iter().filter_map(|root| expander.root(root)).collect();
    if !expander.findings.is_empty() {
        return Err(expander.findings);
    }
    server.description.clone_from(&entry.description);
    server.rules = entry.rules();
    server.call_timeout = entry.call_timeout.unwrap_or(server.call_timeout);
    if let Some(timeout) = entry.connect_timeout {
        server = server.connect_timeout(timeout);
    }
    server.max_concurrent = entry.max_concurrent.unwrap_or(server.max_concurrent);
    server.max_queued = entry.max_queued.unwrap_or(server.max_queued);
    server.queue_timeout = entry.queue_timeout.unwrap_or(server.queue_timeout);
    server.rate_limit = entry.rate_limit;
    server.idle_timeout = entry.idle_timeout;
    server.elicitation = entry.elicitation.unwrap_or(server.elicitation);
    Ok(server)
}

/// Expands the texts of one entry and collects the mistakes.
struct Expander<'a> {
    scope: Scope<'a>,
    findings: Vec<Finding>,
}

impl Expander<'_> {
    /// The expanded text; an empty one if there is a mistake.
    fn expand(&mut self, text: &Text, role: Role) -> String {
        text.expand(role, self.scope).unwrap_or_else(|finding| {
            self.findings.push(finding);
            String::new()
        })
    }

    fn secrets(&mut self, pairs: &[(String, Text)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| (name.clone(), self.expand(text, Role::Secret))).collect()
    }

    /// A root: the absolute path of a directory, or its `file:` URI. It need not exist.
    fn root(&mut self, text: &Text) -> Option<Root> {
        let written = self.expand(text, Role::Path);
        let path = match Url::parse(&written) {
            Ok(url) if url.scheme() == "file" => url.to_file_path().ok(),
            _ => Some(PathBuf::from(&written)),
        };
        let root = path.and_then(Root::from_directory);
        // A reference that cannot be expanded is a mistake already.
        if root.is_none() && !written.is_empty() {
            let expected = "the absolute path of a directory, or its `file:` address";
            self.findings.push(Finding::unexpected(&text.key, text.location, expected, "another text"));
        }
        root
    }

    /// The path of a file. A relative one would name another file in each directory in which cx is started.
    fn absolute(&mut self, text: &Text) -> PathBuf {
        let path = PathBuf::from(self.expand(text, Role::Path));
        // A reference that cannot be expanded is a mistake already.
        if path.is_relative() && !path.as_os_str().is_empty() {
            let expected = "an absolute path, `~/…` or `${workspaceFolder}/…`";
            self.findings.push(Finding::unexpected(&text.key, text.location, expected, "another text"));
        }
        path
    }

    fn oauth(&mut self, oauth: &OAuthEntry) -> OAuth {
        OAuth {
            client_id: oauth.client_id.as_ref().map(|text| self.expand(text, Role::Secret)),
            client_metadata_url: oauth
                .client_metadata_url
                .as_ref()
                .map(|text| self.expand(text, Role::Address)),
            client_secret: oauth.client_secret.as_ref().map(|text| self.expand(text, Role::Secret)),
            private_key: oauth.private_key.as_ref().map(|text| self.expand(text, Role::Secret)),
            assertion_file: oauth.assertion_file.as_ref().map(|text| self.absolute(text)),
            identity_provider: oauth.identity_provider.as_ref().map(|text| self.expand(text, Role::Address)),
            identity_client_id: oauth.identity_client_id.as_ref().map(|text| self.expand(text, Role::Secret)),
            identity_client_secret: oauth
                .identity_client_secret
                .as_ref()
                .map(|text| self.expand(text, Role::Secret)),
            id_token_file: oauth.id_token_file.as_ref().map(|text| self.absolute(text)),
            issuer: oauth.issuer.as_ref().map(|text| self.expand(text, Role::Address)),
            scopes: oauth.scopes.clone(),
            client_credentials: oauth.client_credentials,
        }
    }
}

fn stdio(name: &str, target: &StdioTarget, expander: &mut Expander<'_>) -> McpServer {
    let mut server = McpServer::stdio(name, expander.expand(&target.command, Role::Path));
    if let McpTransport::Stdio(stdio) = &mut server.transport {
        stdio.args = target.args.iter().map(|text| expander.expand(text, Role::Path)).collect();
        stdio.env = expander.secrets(&target.env);
        stdio.cwd = target.cwd.as_ref().map(|text| PathBuf::from(expander.expand(text, Role::Path)));
    }
    server
}

fn http(name: &str, target: &HttpTarget, expander: &mut Expander<'_>) -> Result<McpServer, Vec<Finding>> {
    let address = expander.expand(&target.url, Role::Address);
    let headers = expander.secrets(&target.headers);
    let oauth = target.oauth.as_ref().map(|oauth| expander.oauth(oauth));
    if !expander.findings.is_empty() {
        // The values that were not expanded would be further mistakes.
        return Err(std::mem::take(&mut expander.findings));
    }
    let url = parse_url(&target.url, &address).map_err(|finding| vec![finding])?;
    if let (Some(oauth), Some(written)) = (&oauth, &target.oauth) {
        check_oauth(oauth, written, &mut expander.findings);
    }
    for (name, text) in &target.headers {
        if headers.get(name).is_some_and(|value| http::HeaderValue::try_from(value.as_str()).is_err()) {
            let expected = "a header's value without control characters";
            expander.findings.push(Finding::unexpected(&text.key, text.location, expected, "another"));
        }
    }
    let mut server = McpServer::http(name, url);
    if let McpTransport::Http(http) = &mut server.transport {
        http.headers = headers;
        http.kind = target.kind;
        http.oauth = oauth;
    }
    Ok(server)
}

fn parse_url(text: &Text, address: &str) -> Result<Url, Finding> {
    let expected = "an address that begins with `https://` or `http://`";
    let unexpected = |found: &str| Finding::unexpected(&text.key, text.location, expected, found);
    let url = Url::parse(address).map_err(|error| unexpected(&format!("another ({error})")))?;
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
        return Err(unexpected("another scheme"));
    }
    Ok(url)
}

/// Checks the addresses of the settings for signing in.
fn check_oauth(oauth: &OAuth, written: &OAuthEntry, findings: &mut Vec<Finding>) {
    for (issuer, text) in
        [(&oauth.issuer, &written.issuer), (&oauth.identity_provider, &written.identity_provider)]
    {
        if let (Some(issuer), Some(text)) = (issuer, text) {
            findings.extend(check_issuer(text, issuer).err());
        }
    }
    if let (Some(document), Some(text)) = (&oauth.client_metadata_url, &written.client_metadata_url)
        && !Url::parse(document).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
    {
        let expected = "the address of a document such as `https://example.com/client.json`";
        findings.push(Finding::unexpected(&text.key, text.location, expected, "another"));
    }
}

/// An issuer is compared as text with the one in the metadata, so it must be one that metadata can
/// contain (RFC 8414, section 2).
fn check_issuer(text: &Text, issuer: &str) -> Result<(), Finding> {
    let expected = "an issuer such as `https://login.example.com`, without query and fragment";
    let unexpected = |found: &str| Finding::unexpected(&text.key, text.location, expected, found);
    let url = parse_url(text, issuer).map_err(|_| unexpected("another"))?;
    let has_more = url.query().is_some() || url.fragment().is_some();
    if has_more || !url.username().is_empty() || url.password().is_some() {
        return Err(unexpected("more than that"));
    }
    // The spelling must be that of the metadata: `https://Login.Example.com:443` would never match.
    let is_as_written = url.as_str() == issuer || url.as_str().strip_suffix('/') == Some(issuer);
    if !is_as_written {
        return Err(unexpected("another spelling")
            .hint(format!("did you mean `{}`?", url.as_str().trim_end_matches('/'))));
    }
    Ok(())
}
