//! Private addresses in the arguments of a tool: of this machine, of its networks, and of services of a cloud.
//!
//! A tool fetches an address from its own machine, which this one does not see. So this reads texts, and resolves no
//! name: a name of the internet that leads to a private address is not found.

use std::net::IpAddr;

use serde_json::{Map, Value};
use url::Host;

use super::address::{AddressKind, is_private_name, kind};
use crate::text::visible_preview;

/// Maximum number of addresses that are checked in the arguments of one call.
const MAX_ADDRESSES: usize = 10_000;

/// Maximum bytes of a host with its user name, password and port. A name has at most 253.
const MAX_AUTHORITY: usize = 4 << 10;

/// Maximum characters of a host that are shown.
const MAX_SHOWN: usize = 80;

/// What ends the part of an address that has the host, wherever the address stands.
const ENDS: [char; 7] = ['/', '?', '#', '"', '`', '<', '>'];

/// The schemes whose hosts have one form in all clients: the URL standard calls them special. In other schemes, such
/// as `memo://7`, the part after the slashes may be anything.
const WEB_SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Says which private address the arguments have: in a text that is an address or a host, or that contains addresses
/// with `://`, also as a name of a field. Also says if there are too many addresses to check them all.
pub(crate) fn private_address(arguments: &Map<String, Value>) -> Option<String> {
    let mut search = Search { left: MAX_ADDRESSES };
    if let Some(found) = arguments.keys().find_map(|name| search.check(name)) {
        return Some(found);
    }
    let mut open: Vec<&Value> = arguments.values().collect();
    while let Some(value) = open.pop() {
        let found = match value {
            Value::String(text) => search.check(text),
            Value::Array(items) => {
                open.extend(items);
                None
            }
            Value::Object(members) => {
                open.extend(members.values());
                members.keys().find_map(|name| search.check(name))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

struct Search {
    /// How many more addresses may be checked.
    left: usize,
}

impl Search {
    fn check(&mut self, text: &str) -> Option<String> {
        whole(text).or_else(|| self.inside(text))
    }

    /// Checks each address in a text that is longer than an address.
    fn inside(&mut self, text: &str) -> Option<String> {
        for (at, slashes) in text.match_indices("://") {
            if self.left == 0 {
                return Some(format!("more than {MAX_ADDRESSES} addresses"));
            }
            self.left -= 1;
            let before = &text[..at];
            let scheme = before.rsplit(|letter: char| !is_of_scheme(letter)).next().unwrap_or(before);
            let found = authority(&text[at + slashes.len()..], is_web(scheme));
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// Checks a text that is nothing but an address, or a host with or without a port.
fn whole(text: &str) -> Option<String> {
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter.is_control());
    // Clients drop these characters, wherever they stand.
    let is_kept = |letter: &char| !matches!(letter, '\t' | '\n' | '\r');
    let start: String = text.chars().filter(is_kept).take(2 * MAX_AUTHORITY).collect();
    if let Some((scheme, rest)) = start.split_once(':')
        && is_web(scheme)
    {
        // Clients need no slashes after these, and take others for them.
        return authority(rest, true);
    }
    let has_slashes = start.starts_with("//") || start.starts_with(r"\\");
    let bare: &str = if has_slashes { start.trim_start_matches(['/', '\\']) } else { &start };
    let authority = bare.split(['/', '\\', '?', '#']).next().unwrap_or(bare);
    let host = host(authority);
    let is_private = match literal(host) {
        Some(address) => kind(address) != AddressKind::Public,
        None => is_local_name(host),
    };
    is_private.then(|| described(host))
}

/// Checks the host after a scheme and its slashes.
fn authority(rest: &str, is_web: bool) -> Option<String> {
    // More slashes are the beginning of a path in other schemes.
    let rest = if is_web { rest.trim_start_matches(['/', '\\']) } else { rest };
    let end =
        rest.find(|letter: char| letter.is_whitespace() || ENDS.contains(&letter)).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.len() > MAX_AUTHORITY {
        return Some("an address that is too long to look at".to_owned());
    }
    // `\` ends it for some clients and is a letter of the user name for others.
    let until_backslash = authority.split('\\').next().unwrap_or(authority);
    [until_backslash, authority].into_iter().map(host).find(|host| is_private(host, is_web)).map(described)
}

/// The host in `user:password@host:port`, without brackets, the zone in them, and what cannot be a part of it.
fn host(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if let Some(address) = host.strip_prefix('[') {
        return address.split([']', '%']).next().unwrap_or(address);
    }
    let is_of_host =
        |letter: char| letter.is_alphanumeric() || !letter.is_ascii() || "-._:%".contains(letter);
    let host = host.split(|letter: char| !is_of_host(letter)).next().unwrap_or(host);
    match host.split_once(':') {
        // Several colons are those of an IPv6 address.
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

/// Whether a host is private, in any spelling of addresses that clients know.
fn is_private(host: &str, is_web: bool) -> bool {
    if let Some(address) = literal(host) {
        return kind(address) != AddressKind::Public;
    }
    if !is_web {
        let name = lower(host);
        return is_local_name(host) || (name.contains('.') && is_private_name(&name));
    }
    match Host::parse(host) {
        Ok(Host::Ipv4(address)) => kind(IpAddr::V4(address)) != AddressKind::Public,
        Ok(Host::Ipv6(address)) => kind(IpAddr::V6(address)) != AddressKind::Public,
        Ok(Host::Domain(name)) => {
            let name = lower(&name);
            !name.is_empty() && is_private_name(&name)
        }
        // No client connects to it.
        Err(_) => false,
    }
}

/// An address in its usual form.
fn literal(host: &str) -> Option<IpAddr> {
    let address = host.split('%').next().unwrap_or(host);
    address.strip_suffix('.').unwrap_or(address).parse().ok()
}

/// Whether a name can only mean this machine, or the metadata service of a cloud. Other names that are private stand
/// for something else as often, if nothing else says that they are hosts.
fn is_local_name(name: &str) -> bool {
    let name = lower(name);
    ["localhost", "metadata.google.internal"].contains(&&*name) || name.ends_with(".localhost")
}

fn lower(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn is_of_scheme(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "+-.".contains(letter)
}

fn is_web(scheme: &str) -> bool {
    WEB_SCHEMES.iter().any(|web| web.eq_ignore_ascii_case(scheme))
}

fn described(host: &str) -> String {
    format!("the private address `{}`", visible_preview(host, MAX_SHOWN))
}

#[cfg(test)]
mod tests;
