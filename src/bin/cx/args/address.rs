//! Addresses to listen on, as given on the command line.

use std::net::{Ipv4Addr, SocketAddr};

/// Where `--http` listens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HttpAddress {
    /// At this address.
    Own(SocketAddr),
    /// The socket that systemd, or another program with the same protocol, has opened.
    Passed,
}

/// Where `--metrics` serves the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MetricsAddress {
    /// At `/metrics` of `--http`.
    OfHttp,
    /// At `/metrics` of this address.
    Own(SocketAddr),
}

/// Parses an address with a port. `localhost` is the loopback address (RFC 6761); other names are not resolved, because
/// their addresses can change.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| host.eq_ignore_ascii_case("localhost"));
    if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    text.parse().map_err(|_invalid| "expected an IP address or `localhost`, and a port".to_owned())
}

/// Parses the address to listen on, or the word for a passed socket.
pub(super) fn parse_http_address(text: &str) -> Result<HttpAddress, String> {
    if text == "systemd" { Ok(HttpAddress::Passed) } else { parse_address(text).map(HttpAddress::Own) }
}

/// Parses the address of the metrics page; without one it is that of `--http`.
pub(super) fn parse_metrics_address(text: &str) -> Result<MetricsAddress, String> {
    if text.is_empty() { Ok(MetricsAddress::OfHttp) } else { parse_address(text).map(MetricsAddress::Own) }
}
