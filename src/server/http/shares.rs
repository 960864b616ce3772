//! Selects the session or connection that is evicted for a new one when the bound is reached.
//!
//! Below the bound a peer may hold any number. At the bound, peers that hold more than an equal share lose theirs
//! first, and no peer loses one to a peer that holds more. With several tenants this rule applies to tenants first, and
//! then to the peers of one tenant.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Instant;

/// The peer that a connection is counted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum PeerKey {
    /// Any loopback address: processes of this machine, or a proxy that runs on it.
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

/// The tenant that a session or connection is counted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum TenantKey {
    /// The server has no tenants: all clients use the same token, or none.
    #[default]
    Only,
    /// No request on the connection has had a token of a tenant yet.
    Unknown,
    /// The tenant of this number.
    Number(usize),
}

/// The holder of a session or connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    pub(crate) tenant: TenantKey,
    pub(crate) peer: PeerKey,
}

/// A peer of a server without tenants.
#[cfg(test)]
impl From<PeerKey> for Holder {
    fn from(peer: PeerKey) -> Self {
        Self { tenant: TenantKey::Only, peer }
    }
}

/// Which holders may evict a session or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Its own holder, and holders that hold fewer. Lower numbers are evicted first.
    Allowed(u8),
    /// Only a holder below its share, and only if its own holder is above its share. Lower numbers are evicted first.
    OverShare(u8),
    Never,
}

/// A session or connection that is held.
pub(crate) struct EvictionCandidate<K> {
    pub(crate) key: K,
    pub(crate) holder: Holder,
    pub(crate) eviction: Eviction,
    /// When it was last used. Among equals the oldest is evicted first.
    pub(crate) since: Instant,
}

/// Selects what to evict so that `newcomer` can hold one more, when all of `max` are held. `None`
/// if nothing may be evicted for it.
pub(crate) fn select_for_eviction<K>(
    held: Vec<EvictionCandidate<K>>,
    newcomer: Holder,
    max: usize,
) -> Option<K> {
    let tenants = Counts::new(held.iter().map(|each| each.holder.tenant), newcomer.tenant, max);
    // The peers of a tenant share the tenant's number.
    let mut peers = HashMap::new();
    for tenant in tenants.by_key.keys() {
        let of_tenant = held.iter().map(|each| each.holder).filter(|holder| holder.tenant == *tenant);
        peers.insert(*tenant, Counts::new(of_tenant, Holder { tenant: *tenant, ..newcomer }, tenants.share));
    }
    let candidates = held.into_iter().filter_map(|each| {
        let Holder { tenant, .. } = each.holder;
        let of_tenant = &peers[&tenant];
        let rank = if tenant == newcomer.tenant {
            of_tenant.rank(each.eviction, each.holder)?
        } else {
            tenants.rank(each.eviction, tenant)?
        };
        let is_within_share = (tenants.is_within_share(tenant), of_tenant.is_within_share(each.holder));
        // Connections that have not sent a token are counted for their peer, and evict each other first: peers without
        // a token cannot take what tenants hold.
        let is_other = newcomer.tenant != TenantKey::Unknown || each.holder != newcomer || rank > 0;
        let count = of_tenant.by_key[&each.holder];
        Some(((is_other, is_within_share, rank, Reverse(count), each.since), each.key))
    });
    candidates.min_by_key(|(order, _)| *order).map(|(_, key)| key)
}

/// The key with the most bytes.
pub(crate) fn with_most<K: Eq + Hash>(parts: impl Iterator<Item = (K, usize)>) -> Option<K> {
    let mut all: HashMap<K, usize> = HashMap::new();
    for (key, bytes) in parts {
        *all.entry(key).or_default() += bytes;
    }
    all.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(key, _)| key)
}

/// How many each tenant, or each peer of a tenant, holds.
struct Counts<H> {
    by_key: HashMap<H, usize>,
    /// The newcomer's count.
    own: usize,
    newcomer: H,
    /// An equal share for each holder.
    share: usize,
}

impl<H: Copy + Eq + Hash> Counts<H> {
    /// Counts the holders; `max` is what all of them together may hold.
    fn new(held: impl Iterator<Item = H>, newcomer: H, max: usize) -> Self {
        let mut by_key = HashMap::from([(newcomer, 0)]);
        for each in held {
            *by_key.entry(each).or_default() += 1;
        }
        let share = (max / by_key.len()).max(1);
        Self { own: by_key[&newcomer], newcomer, share, by_key }
    }

    fn is_within_share(&self, holder: H) -> bool {
        self.by_key[&holder] <= self.share
    }

    /// The rank of a candidate for eviction; `None` if it may not be evicted.
    fn rank(&self, eviction: Eviction, holder: H) -> Option<u8> {
        let count = self.by_key[&holder];
        match eviction {
            Eviction::Allowed(rank) if holder == self.newcomer || count > self.own => Some(rank),
            Eviction::OverShare(rank) if self.own < self.share && count > self.share => Some(rank),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
