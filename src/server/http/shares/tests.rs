//! Which one is evicted for which peer.

use std::time::Duration;

use super::*;

const A: PeerKey = PeerKey::Network(1);
const B: PeerKey = PeerKey::Network(2);
const C: PeerKey = PeerKey::Network(3);

/// What the peers hold, oldest first, by name.
fn held(all: &[(&'static str, PeerKey, Eviction)]) -> Vec<EvictionCandidate<&'static str>> {
    let start = Instant::now();
    let all = all.iter().zip(0..);
    all.map(|(&(key, peer, eviction), seconds)| EvictionCandidate {
        key,
        holder: Holder::from(peer),
        eviction,
        since: start + Duration::from_secs(seconds),
    })
    .collect()
}

#[test]
fn v_331_peers_are_told_apart_by_what_they_cannot_choose() {
    let peer = |address: &str| PeerKey::from(address.parse::<IpAddr>().unwrap());
    for local in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(peer(local), PeerKey::Local, "{local}");
    }
    assert_eq!(peer("10.0.0.1"), peer("::ffff:10.0.0.1"));
    assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::"));
    assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
}

#[test]
fn v_331_the_largest_holder_makes_room_first() {
    use Eviction::{Allowed, Never};
    let all = [
        ("b1", B, Allowed(0)),
        ("a1", A, Never),
        ("a2", A, Allowed(1)),
        ("a3", A, Allowed(0)),
        ("a4", A, Allowed(0)),
    ];
    // The oldest one of the lowest rank, of the peer that holds the most.
    for newcomer in [A, B, C] {
        assert_eq!(select_for_eviction(held(&all), Holder::from(newcomer), 5), Some("a3"), "{newcomer:?}");
    }
    // No peer loses anything to a peer that holds more.
    let all = [("b1", B, Allowed(0)), ("a1", A, Never), ("a2", A, Never)];
    assert_eq!(select_for_eviction(held(&all), Holder::from(A), 3), None);
    assert_eq!(select_for_eviction(held(&all), Holder::from(B), 3), Some("b1"), "its own");
    assert_eq!(select_for_eviction(held(&all), Holder::from(C), 3), Some("b1"));
}

#[test]
fn v_331_more_than_a_share_is_evicted() {
    use Eviction::{Allowed, Never, OverShare};
    let all = [
        ("a1", A, Never),
        ("a2", A, OverShare(3)),
        ("a3", A, OverShare(2)),
        ("a4", A, OverShare(2)),
        ("b1", B, OverShare(2)),
    ];
    // With five for three peers, one is the share. C holds none and A four.
    assert_eq!(select_for_eviction(held(&all), Holder::from(C), 5), Some("a3"));
    // B holds less than its share of two, and A holds more.
    assert_eq!(select_for_eviction(held(&all), Holder::from(B), 5), Some("a3"));
    // For its own peer, what is in use is not evicted.
    assert_eq!(select_for_eviction(held(&all), Holder::from(A), 5), None);
    // A peer that has its share cannot evict what other peers use.
    let all = [
        ("a1", A, OverShare(2)),
        ("a2", A, OverShare(2)),
        ("a3", A, OverShare(2)),
        ("b1", B, Never),
        ("b2", B, Never),
    ];
    assert_eq!(select_for_eviction(held(&all), Holder::from(B), 5), None);
    // It is evicted before anything that other peers hold within their share.
    let all = [("b1", B, Allowed(0)), ("a1", A, OverShare(2)), ("a2", A, OverShare(2))];
    assert_eq!(select_for_eviction(held(&all), Holder::from(C), 3), Some("a1"));
    let all = [("b1", B, Allowed(0)), ("a1", A, Never), ("a2", A, Never)];
    assert_eq!(select_for_eviction(held(&all), Holder::from(C), 3), Some("b1"));
}

#[test]
fn v_331_one_peer_may_hold_all_that_no_other_wants() {
    let all = [("a1", PeerKey::Local, Eviction::OverShare(2)), ("a2", PeerKey::Local, Eviction::Never)];
    assert_eq!(select_for_eviction(held(&all), Holder::from(PeerKey::Local), 2), None);
    assert_eq!(select_for_eviction(held(&all), Holder::from(B), 2), Some("a1"));
    assert_eq!(select_for_eviction::<()>(Vec::new(), Holder::from(A), 0), None);
}

/// What the holders hold, oldest first: the tenant, and the number of its peer.
fn held_by(all: &[(TenantKey, u64, Eviction)]) -> Vec<EvictionCandidate<usize>> {
    let start = Instant::now();
    let all = all.iter().enumerate().zip(0..);
    all.map(|((key, &(tenant, peer, eviction)), seconds)| EvictionCandidate {
        key,
        holder: Holder { tenant, peer: PeerKey::Network(peer) },
        eviction,
        since: start + Duration::from_secs(seconds),
    })
    .collect()
}

#[test]
fn v_505_a_tenant_with_many_addresses_has_one_share() {
    use Eviction::{Never, OverShare};
    use TenantKey::Number;
    let newcomer = |tenant, peer| Holder { tenant: Number(tenant), peer: PeerKey::Network(peer) };
    // The first tenant has seven addresses, the second one: each address has less than the share of one.
    let mut all: Vec<_> = (0..7).map(|peer| (Number(0), peer, OverShare(2))).collect();
    all.push((Number(1), 9, OverShare(2)));
    assert_eq!(select_for_eviction(held_by(&all), newcomer(1, 9), 8), Some(0));
    assert_eq!(select_for_eviction(held_by(&all), newcomer(2, 9), 8), Some(0));
    // It takes nothing from the other one, which is below its share, with another address neither.
    assert_eq!(select_for_eviction(held_by(&all), newcomer(0, 7), 8), None);
    // A tenant that has its share cannot take what others use.
    let mut all: Vec<_> = (0..4).map(|peer| (Number(0), peer, OverShare(2))).collect();
    all.extend((0..4).map(|_| (Number(1), 9, Never)));
    assert_eq!(select_for_eviction(held_by(&all), newcomer(1, 9), 8), None);
}

#[test]
fn v_505_the_peers_of_one_tenant_have_shares_of_what_is_its_own() {
    use Eviction::OverShare;
    use TenantKey::Number;
    let newcomer = |tenant, peer| Holder { tenant: Number(tenant), peer: PeerKey::Network(peer) };
    // Of the first tenant's three one address has them all; the second tenant has more than its share.
    let mut all: Vec<_> = (0..3).map(|_| (Number(0), 1, OverShare(2))).collect();
    all.extend((0..5).map(|_| (Number(1), 1, OverShare(2))));
    assert_eq!(select_for_eviction(held_by(&all), newcomer(0, 2), 8), Some(3), "of the larger tenant first");
    let mut all: Vec<_> = (0..4).map(|_| (Number(0), 1, OverShare(2))).collect();
    all.extend((0..4).map(|_| (Number(1), 1, OverShare(2))));
    assert_eq!(select_for_eviction(held_by(&all), newcomer(0, 2), 8), Some(0), "of its own tenant");
    assert_eq!(select_for_eviction(held_by(&all), newcomer(0, 1), 8), None);
}

/// Behind a proxy all come from one address, and a client without a token is unknown.
#[test]
fn v_505_connections_without_a_token_take_nothing_from_tenants() {
    use Eviction::{Allowed, OverShare};
    use TenantKey::{Number, Unknown};
    let newcomer = Holder { tenant: Unknown, peer: PeerKey::Network(1) };
    let mut all: Vec<_> = (0..7).map(|_| (Number(0), 1, Allowed(1))).collect();
    all.push((Unknown, 1, Allowed(0)));
    // The next one takes the place of the last, again and again.
    assert_eq!(select_for_eviction(held_by(&all), newcomer, 8), Some(7));
    // The first one gets a place: it may be a client of another tenant.
    all[7] = (Number(0), 1, OverShare(4));
    assert_eq!(select_for_eviction(held_by(&all), newcomer, 8), Some(0));
    // From another address only what is not theirs is taken, once they hold as much as the tenant.
    let mut all: Vec<_> = (0..4).map(|_| (Number(0), 1, OverShare(4))).collect();
    all.extend((0..4).map(|peer| (Unknown, peer + 2, Allowed(0))));
    assert_eq!(select_for_eviction(held_by(&all), newcomer, 8), Some(4));
}
