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
        peer,
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
fn v_331_whoever_holds_the_most_makes_room_first() {
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
        assert_eq!(select_for_eviction(held(&all), newcomer, 5), Some("a3"), "{newcomer:?}");
    }
    // No peer loses anything to a peer that holds more.
    let all = [("b1", B, Allowed(0)), ("a1", A, Never), ("a2", A, Never)];
    assert_eq!(select_for_eviction(held(&all), A, 3), None);
    assert_eq!(select_for_eviction(held(&all), B, 3), Some("b1"), "its own");
    assert_eq!(select_for_eviction(held(&all), C, 3), Some("b1"));
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
    assert_eq!(select_for_eviction(held(&all), C, 5), Some("a3"));
    // B holds less than its share of two, and A holds more.
    assert_eq!(select_for_eviction(held(&all), B, 5), Some("a3"));
    // For its own peer, what is in use is not evicted.
    assert_eq!(select_for_eviction(held(&all), A, 5), None);
    // A peer that has its share cannot evict what other peers use.
    let all = [
        ("a1", A, OverShare(2)),
        ("a2", A, OverShare(2)),
        ("a3", A, OverShare(2)),
        ("b1", B, Never),
        ("b2", B, Never),
    ];
    assert_eq!(select_for_eviction(held(&all), B, 5), None);
    // It is evicted before anything that other peers hold within their share.
    let all = [("b1", B, Allowed(0)), ("a1", A, OverShare(2)), ("a2", A, OverShare(2))];
    assert_eq!(select_for_eviction(held(&all), C, 3), Some("a1"));
    let all = [("b1", B, Allowed(0)), ("a1", A, Never), ("a2", A, Never)];
    assert_eq!(select_for_eviction(held(&all), C, 3), Some("b1"));
}

#[test]
fn v_331_one_peer_may_hold_everything_that_nobody_else_wants() {
    let all = [("a1", PeerKey::Local, Eviction::OverShare(2)), ("a2", PeerKey::Local, Eviction::Never)];
    assert_eq!(select_for_eviction(held(&all), PeerKey::Local, 2), None);
    assert_eq!(select_for_eviction(held(&all), B, 2), Some("a1"));
    assert_eq!(select_for_eviction::<()>(Vec::new(), A, 0), None);
}
