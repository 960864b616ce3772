//! What happens to calls that have private addresses in their arguments.

use std::fmt;

/// What happens to a call whose arguments have a private address: of this machine, of a private network, or of a
/// service of a cloud. A tool that fetches such an address does so from its own machine.
///
/// The order is that of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PrivateAddresses {
    /// It is sent like any other.
    #[default]
    Allow,
    /// It needs approval, like the calls of an `ask` list.
    Ask,
    /// It is refused.
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
