//! Why signing in, or renewing a sign-in, failed, and how it is reported.

use rmcp::transport::auth::AuthError as RmcpError;

use super::issuer::IssuerError;
use crate::error::with_sources;
use crate::text;
use crate::text::secrets::MASK;

/// Maximum characters of a server's own error text.
const MAX_PROBLEM: usize = 500;

/// Why signing in, or renewing a sign-in, failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    #[error(transparent)]
    Protocol(#[from] RmcpError),
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    /// The server answers without a token, and names no authorization server.
    #[error("it answers without signing in")]
    NotNeeded,
}

/// The failure of a sign-in without a browser.
pub(crate) fn failed(problem: impl Into<String>) -> SignInError {
    RmcpError::ClientCredentialsError(problem.into()).into()
}

/// Formats an error and its sources. None of these contain tokens: rmcp and oauth2 keep them out. Addresses are written
/// without what the configuration may have as a secret in them.
pub(crate) fn described(error: &SignInError) -> String {
    let text = with_sources(error);
    preview(&text.split_inclusive(char::is_whitespace).map(without_secrets).collect::<String>())
}

/// A word that may have addresses, without their users' names, passwords and queries. What follows it stays. JSON without
/// spaces is one word.
fn without_secrets(word: &str) -> String {
    let addresses = word.trim_end_matches(|last: char| last.is_whitespace() || ":,;.`\"')>".contains(last));
    let end = &word[addresses.len()..];
    let mut parts = addresses.split("://");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (authority, path) = part.split_at(part.find(['/', '?', '#']).unwrap_or(part.len()));
        text.push_str("://");
        match authority.rsplit_once('@') {
            Some((_, host)) => text.extend([MASK, "@", host]),
            None => text.push_str(authority),
        }
        let Some((path, _)) = path.split_once('?') else {
            text.push_str(path);
            continue;
        };
        // A query may have an address too, and all of it is secret.
        text.extend([path, "?", MASK]);
        break;
    }
    text + end
}

/// The beginning of a server's own text on one line, with its hidden characters written out.
pub(crate) fn preview(text: &str) -> String {
    text::preview(&text::one_line(text), MAX_PROBLEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v_783_an_address_in_an_error_has_no_secrets() {
        let described = |text: &str| described(&RmcpError::OAuthError(text.to_owned()).into());
        for (text, expected) in [
            ("at https://me:geheim@h:8/mcp?key=geheim: refused", "at https://***@h:8/mcp?***: refused"),
            ("`https://h?key=geheim#geheim`", "`https://h?***`"),
            ("https://geheim@h", "https://***@h"),
            ("(https://h?key=geheim): refused", "(https://h?***): refused"),
            ("a https://h/\thttps://geheim@h", "a https://h/\\u{9}https://***@h"),
            ("https://h/a/b.c, and no more.", "https://h/a/b.c, and no more."),
            ("a://", "a://"),
            (
                "{\"a\":\"https://h/x\",\"b\":\"https://me:geheim@h\"}",
                "{\"a\":\"https://h/x\",\"b\":\"https://***@h\"}",
            ),
            ("[\"https://h\",\"https://me:geheim@h/\"]", "[\"https://h\",\"https://***@h/\"]"),
            ("https://h?to=https://geheim/geheim", "https://h?***"),
        ] {
            assert_eq!(described(text), format!("OAuth error: {expected}"));
        }
    }
}
