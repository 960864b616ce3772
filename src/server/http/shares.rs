//! Which session or connection makes room for another one when there are no more.
//!
//! Nothing is refused because of where it comes from while there is room. When there is none, peers that hold more than
//! an equal share give something up first, and nobody loses anything to a peer that holds more.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

/// Where a connection comes from, as far as peers can be told apart. All who can ask have the same token, so that it
/// tells nobody apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// This machine: its processes, or a proxy for clients that nobody can tell apart.
    #[default]
    Local,
    Address(IpAddr),
    /// The first half of an IPv6 address: whoever has one address of a network can have all.
    Network(u64),
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Local,
            address @ IpAddr::V4(_) => Self::Address(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Self::Network(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
            }
        }
    }
}

/// When something that is held makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// For its own peer and for peers that hold less. Lower numbers first.
    Yields(u8),
    /// For a peer that holds less than an equal share, if its own holds more than that.
    YieldsShare(u8),
    /// For nobody.
    Stays,
}

/// Something that is held.
pub(super) struct Held<K> {
    pub(super) key: K,
    pub(super) peer: Peer,
    pub(super) standing: Standing,
    /// Since when it has been as it is. The oldest makes room first.
    pub(super) since: Instant,
}

/// What makes room for one more that `newcomer` wants to hold, when all of `most` are held. `None` if nothing does.
pub(super) fn displaced<K>(held: Vec<Held<K>>, newcomer: Peer, most: usize) -> Option<K> {
    let mut counts = HashMap::<Peer, usize>::from([(newcomer, 0)]);
    for each in &held {
        *counts.entry(each.peer).or_default() += 1;
    }
    let share = (most / counts.len()).max(1);
    let of_newcomer = counts[&newcomer];
    let candidates = held.into_iter().filter_map(|each| {
        let count = counts[&each.peer];
        let rank = match each.standing {
            Standing::Yields(rank) if each.peer == newcomer || count > of_newcomer => rank,
            Standing::YieldsShare(rank) if of_newcomer < share && count > share => rank,
            _ => return None,
        };
        let is_within_share = count <= share;
        Some(((is_within_share, rank, Reverse(count), each.since), each.key))
    });
    candidates.min_by_key(|(order, _)| *order).map(|(_, key)| key)
}

#[cfg(test)]
mod tests;
