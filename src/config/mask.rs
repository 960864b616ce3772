//! Masks secrets in configuration that is shown.

use url::Url;

use crate::text::secrets::{looks_like_token, names_secret};

pub(super) use crate::text::secrets::MASK;

/// Arguments with what looks like a secret masked.
pub(super) fn arguments<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut follows = false;
    arguments
        .into_iter()
        .map(|argument| {
            let is_option = argument.starts_with('-');
            let masked = if follows && !is_option { MASK.to_owned() } else { one_argument(argument) };
            follows = is_option && !argument.contains('=') && names_secret(argument);
            masked
        })
        .collect()
}

fn one_argument(argument: &str) -> String {
    if let Ok(address) = Url::parse(argument)
        && address.has_host()
    {
        return url(&address);
    }
    if let Some((name, value)) = argument.split_once(['=', ':'])
        && (names_secret(name) || looks_like_token(value.trim()))
    {
        let separator = argument.chars().nth(name.chars().count()).unwrap_or('=');
        return format!("{name}{separator}{MASK}");
    }
    if argument.split_whitespace().any(looks_like_token) {
        return MASK.to_owned();
    }
    argument.to_owned()
}

/// A URL without its password, the values of its query, and path segments that look like tokens.
pub(super) fn url(url: &Url) -> String {
    let mut shown = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        // Fails only for URLs without a host, which have neither.
        let _ = shown.set_password(None);
        let _ = shown.set_username(MASK);
    }
    if url.query().is_some() {
        let names: Vec<String> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        let mut query = shown.query_pairs_mut();
        query.clear();
        for name in names {
            let name = if looks_like_token(&name) { MASK.to_owned() } else { name };
            query.append_pair(&name, MASK);
        }
        drop(query);
    }
    if let Some(fragment) = url.fragment()
        && !fragment.is_empty()
    {
        shown.set_fragment(Some(MASK));
    }
    let segments: Vec<String> = url
        .path()
        .split('/')
        .map(|segment| if looks_like_token(segment) { MASK.to_owned() } else { segment.to_owned() })
        .collect();
    shown.set_path(&segments.join("/"));
    shown.to_string()
}

/// A raw URL that may contain references.
pub(super) fn raw_url(text: &str) -> String {
    Url::parse(text)
        .map_or_else(|_| text.split(['?', '@']).next().unwrap_or_default().to_owned(), |parsed| url(&parsed))
}

/// Addresses with commas between them, of which none should have a password. The rest of each is as it is written.
pub(super) fn addresses(text: &str) -> String {
    let shown = |address: &str| {
        if address.contains(['@', '?']) { raw_url(address.trim()) } else { address.to_owned() }
    };
    text.split(',').map(shown).collect::<Vec<_>>().join(",")
}
