//! Patterns of hosts and ports.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::text::{self, visible};

/// Maximum length of a host's name (RFC 1035).
const MAX_NAME: usize = 253;

/// A host that scripts may reach, as `HOST` or `HOST:PORT`.
///
/// A host is a name such as `api.example.com`, `*.example.com` for all names below one, `*` for every name,
/// an IPv4 address, or an IPv6 address in brackets. Without a port all ports match.
///
/// A name is compared without regard to case. Names with other letters than those of ASCII are written as
/// they are resolved (`xn--…`). Addresses in other spellings than the usual one (`0x7f.1`, `127.1`) are
/// refused, so that a pattern never means more than it seems to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Host {
    /// Every name and no address.
    Any,
    /// All names that end with a dot and this one.
    Below(String),
    Name(String),
    Address(IpAddr),
}

/// The error of a text that is not a [`HostPattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a host such as `api.example.com`, `*.example.com:443`, `192.0.2.1` or `[2001:db8::1]:8080`, \
     without a scheme and a path: `{0}`"
)]
pub struct InvalidHostPattern(String);

impl HostPattern {
    /// Whether the pattern matches this host, a name in lower case or an address without brackets, and
    /// port. A dot at the end of a name is ignored.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let Ok(host) = Host::concrete(host) else { return false };
        self.host.covers(&host) && self.port.is_none_or(|own| own == port)
    }

    /// Whether the pattern names one host. Private and link-local addresses can only be reached if such a pattern
    /// matches.
    pub fn names_one_host(&self) -> bool {
        matches!(self.host, Host::Name(_) | Host::Address(_))
    }

    /// Whether this pattern matches everything that `other` matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.host.covers(&other.host) && (self.port.is_none() || self.port == other.port)
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidHostPattern(visible(text::start(text, 80)));
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or_else(invalid)?;
                let address: Ipv6Addr = address.parse().map_err(|_| invalid())?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':').ok_or_else(invalid)?),
                };
                (Host::Address(address.to_canonical()), port)
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (text, None),
                };
                (Host::pattern(host).map_err(|()| invalid())?, port)
            }
        };
        let port = port.map(|port| parse_port(port).ok_or_else(invalid)).transpose()?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Any => formatter.write_str("*")?,
            Host::Below(name) => write!(formatter, "*.{name}")?,
            Host::Name(name) => formatter.write_str(name)?,
            Host::Address(IpAddr::V4(address)) => write!(formatter, "{address}")?,
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

impl Host {
    fn pattern(text: &str) -> Result<Self, ()> {
        match text {
            "*" => Ok(Self::Any),
            _ => match text.strip_prefix("*.") {
                Some(name) => match Self::concrete(name)? {
                    Self::Name(name) => Ok(Self::Below(name)),
                    _ => Err(()),
                },
                None => Self::concrete(text),
            },
        }
    }

    /// A name or an address.
    fn concrete(text: &str) -> Result<Self, ()> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_label = |label: &str| {
            let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !label.is_empty() && label.len() <= 63 && label.bytes().all(inner)
        };
        let last = name.rsplit('.').next().unwrap_or_default();
        // URL parsers read a name whose last label is a number as an IPv4 address, in several
        // spellings.
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
            || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if name.len() > MAX_NAME || is_number || !name.split('.').all(is_label) {
            return Err(());
        }
        Ok(Self::Name(name))
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, other) => !matches!(other, Self::Address(_)),
            (Self::Below(above), Self::Name(name) | Self::Below(name)) => {
                let is_same_pattern = matches!(other, Self::Below(_)) && name == above;
                let below = name.strip_suffix(above.as_str());
                is_same_pattern || below.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (own, other) => own == other,
        }
    }
}

/// A port as digits without a sign. No host listens at port 0.
fn parse_port(text: &str) -> Option<u16> {
    let port = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    port.filter(|&port| port > 0)
}
