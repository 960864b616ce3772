//! The treatment of calls that have private addresses in their arguments.

use std::fmt;

/// The treatment of a call whose arguments contain a private address: of this machine, of a private network, or of a
/// cloud's metadata service. A tool that fetches such an address does so from its own machine.
///
/// Ordered by strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PrivateAddresses {
    /// The call is sent like any other.
    #[default]
    Allow,
    /// The call needs approval, like the calls of an `ask` list.
    Ask,
    /// The call is refused.
    Deny,
}

impl PrivateAddresses {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// The value as it is written in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The value that is written like this.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|value| value.as_str() == name)
    }
}

impl fmt::Display for PrivateAddresses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
