//! Selects the session or connection that is evicted for a new one when the bound is reached.
//!
//! Below the bound a peer may hold any number. At the bound, peers that hold more than an equal
//! share lose theirs first, and no peer loses one to a peer that holds more.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

/// The peer that a connection is counted for. The token is not part of the key, because all clients
/// use the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum PeerKey {
    /// Any loopback address: processes of this machine, or a proxy on it.
    #[default]
    Local,
    Address(IpAddr),
    /// The /64 network of an IPv6 address: a host can use any number of addresses of its network.
    Network(u64),
}

impl From<IpAddr> for PeerKey {
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Self::Local;
        }
        match address {
            IpAddr::V4(_) => Self::Address(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Self::Network(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
            }
        }
    }
}

/// For which peers a session or connection may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// For its own peer, and for peers that hold less. Lower numbers are evicted first.
    Allowed(u8),
    /// Only for a peer below its share, and only if its own peer is above its share. Lower numbers
    /// are evicted first.
    OverShare(u8),
    Never,
}

/// A session or connection that a peer holds.
pub(crate) struct EvictionCandidate<K> {
    pub(crate) key: K,
    pub(crate) peer: PeerKey,
    pub(crate) eviction: Eviction,
    /// When it was last used. Among equals the oldest is evicted first.
    pub(crate) since: Instant,
}

/// Selects what to evict so that `newcomer` can hold one more, when all of `max` are held. `None`
/// if nothing may be evicted for it.
pub(crate) fn select_for_eviction<K>(
    held: Vec<EvictionCandidate<K>>,
    newcomer: PeerKey,
    max: usize,
) -> Option<K> {
    let mut counts = HashMap::<PeerKey, usize>::from([(newcomer, 0)]);
    for each in &held {
        *counts.entry(each.peer).or_default() += 1;
    }
    let share = (max / counts.len()).max(1);
    let held_by_newcomer = counts[&newcomer];
    let candidates = held.into_iter().filter_map(|each| {
        let count = counts[&each.peer];
        let rank = match each.eviction {
            Eviction::Allowed(rank) if each.peer == newcomer || count > held_by_newcomer => rank,
            Eviction::OverShare(rank) if held_by_newcomer < share && count > share => rank,
            _ => return None,
        };
        let is_within_share = count <= share;
        Some(((is_within_share, rank, Reverse(count), each.since), each.key))
    });
    candidates.min_by_key(|(order, _)| *order).map(|(_, key)| key)
}

#[cfg(test)]
mod tests;
