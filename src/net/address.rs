//! Which kind of network an IP address belongs to, whatever form it is written in.
//!
//! The standard library's `is_global` is not stable. It knows neither the metadata services of clouds
//! nor the IPv4 addresses that addresses of IPv6 carry.

#[cfg(any(feature = "mcp", feature = "fetch"))]
use std::net::IpAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// How far an address reaches, from the network's point of view.
#[cfg(any(feature = "mcp", feature = "fetch"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AddressKind {
    /// Any host of the internet.
    Public,
    /// This machine, or a network that only its users reach: loopback, RFC 1918, unique local addresses, and
    /// the space that providers share (RFC 6598).
    Private,
    /// Link-local addresses, metadata services of clouds, and addresses that belong to no host of the internet. No name
    /// should resolve to one.
    Special,
    /// Groups and broadcasts: nothing can connect to one.
    Unusable,
}

/// Metadata and host services of clouds whose addresses are not link-local: Azure, Alibaba Cloud and Oracle
/// Cloud; and over IPv6 AWS and Google Cloud.
#[cfg(any(feature = "mcp", feature = "fetch"))]
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];
#[cfg(any(feature = "mcp", feature = "fetch"))]
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// The kind of an address. An IPv6 address that carries IPv4 addresses is of the worst kind among them.
#[cfg(any(feature = "mcp", feature = "fetch"))]
pub(crate) fn kind(address: IpAddr) -> AddressKind {
    match address.to_canonical() {
        IpAddr::V4(address) => kind_v4(address),
        // `::1` has the form of an address that carries an IPv4 address.
        IpAddr::V6(Ipv6Addr::LOCALHOST) => AddressKind::Private,
        IpAddr::V6(address) => {
            let embedded = embedded_v4(address).into_iter().flatten().map(kind_v4);
            embedded.fold(kind_v6(address), AddressKind::max)
        }
    }
}

/// By the registry of special-purpose addresses (RFC 6890 and later).
#[cfg(any(feature = "mcp", feature = "fetch"))]
fn kind_v4(address: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&address) {
        return AddressKind::Special;
    }
    match address.octets() {
        [224..=239, ..] | [255, 255, 255, 255] => AddressKind::Unusable,
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => AddressKind::Private,
        // "This network", which Linux connects to itself; link-local; protocol assignments; documentation;
        // relays of 6to4; benchmarks; reserved.
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [240..=255, ..] => AddressKind::Special,
        _ => AddressKind::Public,
    }
}

#[cfg(any(feature = "mcp", feature = "fetch"))]
fn kind_v6(address: Ipv6Addr) -> AddressKind {
    if METADATA_V6.contains(&address) {
        return AddressKind::Special;
    }
    match address.segments() {
        [0xff00..=0xffff, ..] => AddressKind::Unusable,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressKind::Private,
        // NAT64, where the address that it carries decides; with the prefix of a local network, it is in that.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => AddressKind::Public,
        [0x64, 0xff9b, 1, ..] => AddressKind::Private,
        // Documentation, twice; protocol assignments except for Teredo, where the address that it carries decides.
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2001, 1..=0x1ff, ..] => AddressKind::Special,
        // Global unicast. Whatever is not in it is link-local, unspecified or reserved.
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Special,
    }
}

/// Whether only a private network or this machine can answer for this name: it has one label, or ends in one
/// that the internet does not have. `name` is in lower case and has no dot at its end.
#[cfg(any(feature = "mcp", feature = "fetch"))]
pub(crate) fn is_private_name(name: &str) -> bool {
    const SUFFIXES: [&str; 11] = [
        "localhost",
        "localdomain",
        "local",
        "internal",
        "intranet",
        "private",
        "corp",
        "home",
        "lan",
        "test",
        "home.arpa",
    ];
    let below = |suffix: &str| name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'));
    !name.contains('.') || SUFFIXES.iter().any(|suffix| below(suffix))
}

/// The IPv4 addresses that translators and tunnels may extract from `address`.
pub(crate) fn embedded_v4(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match [a, b, c, d, e, f] {
        // IPv4-compatible, IPv4-mapped, IPv4-translated (RFC 4291, 2.5.5; RFC 2765), and NAT64 (RFC
        // 6052).
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => {
            [v4(g, h), None]
        }
        // NAT64 of a local network (RFC 8215): with a prefix of 96 bits, and of 48 around the octet
        // that is zero.
        [0x64, 0xff9b, 1, ..] => [v4(g, h), v4(d, (e << 8) | (f >> 8))],
        // 6to4 (RFC 3056).
        [0x2002, ..] => [v4(b, c), None],
        // Teredo (RFC 4380): the client's address is inverted.
        [0x2001, 0, ..] => [v4(!g, !h), None],
        // ISATAP (RFC 5214).
        [.., 0 | 0x200, 0x5efe] => [v4(g, h), None],
        _ => [None, None],
    }
}

#[cfg(any(feature = "mcp", feature = "fetch"))]
#[cfg(test)]
mod tests;
