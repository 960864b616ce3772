//! Masks secrets in configuration that is shown.

use url::Url;

use crate::text::secrets::{looks_like_token, masked_address, names_secret, without_tokens};

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
    if let Some(address) = address(argument) {
        return address;
    }
    if let Some((name, value)) = argument.split_once(['=', ':']) {
        let separator = &argument[name.len()..argument.len() - value.len()];
        if names_secret(name) || looks_like_token(value.trim()) {
            return format!("{name}{separator}{MASK}");
        }
        if let Some(address) = address(value) {
            return format!("{name}{separator}{address}");
        }
    }
    if argument.split_whitespace().any(looks_like_token) {
        return MASK.to_owned();
    }
    argument.to_owned()
}

/// The masked address that a text is. `None` if it is none.
fn address(text: &str) -> Option<String> {
    match Url::parse(text) {
        Ok(parsed) => parsed.has_host().then(|| url(&parsed)),
        Err(_) => begins_as_address(text).then(|| masked_address(text)),
    }
}

/// Whether a text begins as the address of a host does. With references to variables, such as `${PORT}`, it need not be
/// one.
fn begins_as_address(text: &str) -> bool {
    let is_of_scheme = |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.chars().all(is_of_scheme)
}

/// A URL without its user's name and password, the values of its query, its fragment, and path segments that look like
/// tokens.
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
    shown.set_path(&without_tokens(url.path()));
    shown.to_string()
}

/// A URL as it is written, with the references to variables that it may have. Of one that cannot be parsed, more may be
/// masked than is secret.
pub(super) fn raw_url(text: &str) -> String {
    match Url::parse(text) {
        Ok(parsed) if parsed.has_host() => url(&parsed),
        _ => masked_address(text),
    }
}

/// An address as it is written, unless it has what is masked.
pub(super) fn written_url(text: &str) -> String {
    let masked = raw_url(text);
    if masked.contains(MASK) || text.contains(['?', '#']) { masked } else { text.to_owned() }
}

/// Addresses with commas between them, each as [`written_url`]. A comma that no address follows belongs to what is
/// before it: it may be one of a password.
pub(super) fn written_urls(text: &str) -> String {
    let mut addresses: Vec<String> = Vec::new();
    for part in text.split(',') {
        match addresses.last_mut() {
            Some(address) if !begins_as_address(part.trim_start()) => {
                address.push(',');
                address.push_str(part);
            }
            _ => addresses.push(part.to_owned()),
        }
    }
    addresses.iter().map(|address| written_url(address)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
