//! The key `oauth` of a server's entry in cx's own format.

use super::entry::OAuthEntry;
use super::reader::{At, Fields};

/// Every key of `oauth`.
pub(super) const OAUTH_KEYS: &[&str] = &[
    "clientId",
    "clientMetadataUrl",
    "clientSecret",
    "privateKey",
    "assertionFile",
    "identityProvider",
    "identityClientId",
    "identityClientSecret",
    "idTokenFile",
    "issuer",
    "scopes",
    "clientCredentials",
];

/// What a client shows to prove who it is. Each takes the place of the others.
const PROOFS: [&str; 3] = ["clientSecret", "privateKey", "assertionFile"];

/// Keys, each with another that it needs.
const NEEDED: [(&str, &str); 12] = [
    ("privateKey", "clientId"),
    ("privateKey", "issuer"),
    ("privateKey", "clientCredentials"),
    ("assertionFile", "issuer"),
    ("assertionFile", "clientCredentials"),
    ("identityProvider", "idTokenFile"),
    ("identityClientId", "identityProvider"),
    ("identityClientSecret", "identityProvider"),
    ("idTokenFile", "identityProvider"),
    ("idTokenFile", "clientId"),
    ("idTokenFile", "issuer"),
    ("idTokenFile", "clientCredentials"),
];

/// Reads how to sign in.
pub(super) fn oauth(fields: &mut Fields<'_, '_>) -> Option<OAuthEntry> {
    let mut section = fields.section("oauth")?;
    section.check_names(OAUTH_KEYS);
    if section.has(&["clientSecret"]) && !section.has(&["issuer"]) {
        section.unexpected(
            &["clientSecret"],
            "the key `issuer` beside `clientSecret`",
            "a secret without it",
        );
        let hint = "`issuer` is the authorization server that the secret is for, such as https://login.example.com: \
                    the secret is sent nowhere else";
        if let Some(finding) = section.findings.last_mut() {
            finding.hint = Some(hint.to_owned());
        }
    }
    let client_credentials = section.read(&["clientCredentials"], At::boolean).unwrap_or(false);
    for (name, other) in NEEDED {
        let is_there = if other == "clientCredentials" { client_credentials } else { section.has(&[other]) };
        if section.has(&[name]) && !is_there {
            section.unexpected(&[name], &format!("the key `{other}` beside `{name}`"), "it without that");
        }
    }
    let proofs: Vec<&str> = PROOFS.into_iter().filter(|&name| section.has(&[name])).collect();
    if let [_, second, ..] = proofs.as_slice() {
        let expected = "one of `clientSecret`, `privateKey` and `assertionFile`";
        section.unexpected(&[*second], expected, "more than one");
    }
    if section.has(&["idTokenFile"]) && section.has(&["assertionFile"]) {
        section.unexpected(&["idTokenFile"], "one of `assertionFile` and `idTokenFile`", "both");
    }
    Some(OAuthEntry {
        client_id: section.read(&["clientId"], At::text),
        client_metadata_url: section.read(&["clientMetadataUrl"], At::text),
        client_secret: section.read(&["clientSecret"], At::text),
        private_key: section.read(&["privateKey"], At::text),
        assertion_file: section.read(&["assertionFile"], At::text),
        identity_provider: section.read(&["identityProvider"], At::text),
        identity_client_id: section.read(&["identityClientId"], At::text),
        identity_client_secret: section.read(&["identityClientSecret"], At::text),
        id_token_file: section.read(&["idTokenFile"], At::text),
        issuer: section.read(&["issuer"], At::text),
        scopes: section.read(&["scopes"], At::strings).unwrap_or_default(),
        client_credentials,
    })
}
