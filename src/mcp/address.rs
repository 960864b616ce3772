//! Checks the addresses that a server may name: in its metadata, and for its users to open.

use std::net::Ipv4Addr;

use url::{Host, Url};

use crate::net::address::embedded_v4;

/// Names for this machine in the hosts files of common systems, in addition to `localhost` and its
/// subdomains.
const LOOPBACK_NAMES: &[&str] = &[
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
];

/// Whether `server` may send this client, or the user's browser, to `url`: over `https`, or to the
/// server's own origin. Metadata of a remote server must not reach ports of this machine.
///
/// Names are not resolved. A name that resolves to this machine can be reached over `https` only,
/// and a service on this machine has no certificate for it.
pub(crate) fn may_send_to(server: &Url, url: &Url) -> bool {
    let has_same_origin = url.origin() == server.origin();
    match url.scheme() {
        "https" => has_same_origin || !may_be_local(url) || may_be_local(server),
        "http" => has_same_origin || (is_local(server) && is_local(url)),
        _ => false,
    }
}

/// Whether data that is sent to this URL cannot be read on the network.
pub(crate) fn is_private(url: &Url) -> bool {
    url.scheme() == "https" || is_local(url)
}

/// Whether data that is sent to this URL certainly stays on this machine. This permits plain `http`, so it must have no
/// false positives.
fn is_local(url: &Url) -> bool {
    let is_local_v4 = |address: Ipv4Addr| address.is_loopback() || address.is_unspecified();
    match url.host() {
        Some(Host::Domain(name)) => without_root_label(name) == "localhost",
        Some(Host::Ipv4(address)) => is_local_v4(address),
        Some(Host::Ipv6(address)) => {
            let is_local_v6 = address.is_loopback() || address.is_unspecified();
            is_local_v6 || address.to_ipv4_mapped().is_some_and(is_local_v4)
        }
        None => false,
    }
}

/// Whether data that is sent to this URL could arrive on this machine, by any spelling. This forbids URLs, so it must
/// have no false negatives.
fn may_be_local(url: &Url) -> bool {
    // 0.0.0.0/8 is "this network" (RFC 1122, section 3.2.1.3), and Linux connects 0.0.0.0 to
    // itself.
    let may_be_local_v4 = |address: Ipv4Addr| address.is_loopback() || address.octets()[0] == 0;
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = without_root_label(name);
            name == "localhost" || name.ends_with(".localhost") || LOOPBACK_NAMES.contains(&name)
        }
        Some(Host::Ipv4(address)) => may_be_local_v4(address),
        Some(Host::Ipv6(address)) => {
            let is_local_v6 = address.is_loopback() || address.is_unspecified();
            is_local_v6 || embedded_v4(address).into_iter().flatten().any(may_be_local_v4)
        }
        None => false,
    }
}

/// `localhost.` is `localhost`. The URL parser has converted the name to lower case.
fn without_root_label(name: &str) -> &str {
    name.trim_end_matches('.')
}

#[cfg(test)]
mod tests;
