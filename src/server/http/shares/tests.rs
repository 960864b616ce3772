//! Who makes room for whom.

use std::time::Duration;

use super::*;

const A: Peer = Peer::Network(1);
const B: Peer = Peer::Network(2);
const C: Peer = Peer::Network(3);

/// What is held, oldest first, by name.
fn held(all: &[(&'static str, Peer, Standing)]) -> Vec<Held<&'static str>> {
    let start = Instant::now();
    let all = all.iter().zip(0..);
    all.map(|(&(key, peer, standing), seconds)| Held {
        key,
        peer,
        standing,
        since: start + Duration::from_secs(seconds),
    })
    .collect()
}

#[test]
fn v_331_peers_are_told_apart_by_what_they_cannot_choose() {
    let peer = |address: &str| Peer::from(address.parse::<IpAddr>().unwrap());
    for local in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(peer(local), Peer::Local, "{local}");
    }
    assert_eq!(peer("10.0.0.1"), peer("::ffff:10.0.0.1"));
    assert_ne!(peer("10.0.0.1"), peer("10.0.0.2"));
    assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff::"));
    assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
}

#[test]
fn v_331_whoever_holds_the_most_makes_room_first() {
    use Standing::{Stays, Yields};
    let all = [
        ("b1", B, Yields(0)),
        ("a1", A, Stays),
        ("a2", A, Yields(1)),
        ("a3", A, Yields(0)),
        ("a4", A, Yields(0)),
    ];
    // The oldest of those of the first rank, of the peer that has the most.
    for newcomer in [A, B, C] {
        assert_eq!(displaced(held(&all), newcomer, 5), Some("a3"), "{newcomer:?}");
    }
    // Nobody loses anything to a peer that holds more.
    let all = [("b1", B, Yields(0)), ("a1", A, Stays), ("a2", A, Stays)];
    assert_eq!(displaced(held(&all), A, 3), None);
    assert_eq!(displaced(held(&all), B, 3), Some("b1"), "its own");
    assert_eq!(displaced(held(&all), C, 3), Some("b1"));
}

#[test]
fn v_331_more_than_a_share_is_given_up() {
    use Standing::{Stays, Yields, YieldsShare};
    let all = [
        ("a1", A, Stays),
        ("a2", A, YieldsShare(3)),
        ("a3", A, YieldsShare(2)),
        ("a4", A, YieldsShare(2)),
        ("b1", B, YieldsShare(2)),
    ];
    // Of five places for three, one is everyone's share; C has none and A four.
    assert_eq!(displaced(held(&all), C, 5), Some("a3"));
    // B has less than its share of two, and A more.
    assert_eq!(displaced(held(&all), B, 5), Some("a3"));
    // To its own peer A does not give up what is in use.
    assert_eq!(displaced(held(&all), A, 5), None);
    // Who has its share takes nothing that is in use from others.
    let all = [
        ("a1", A, YieldsShare(2)),
        ("a2", A, YieldsShare(2)),
        ("a3", A, YieldsShare(2)),
        ("b1", B, Stays),
        ("b2", B, Stays),
    ];
    assert_eq!(displaced(held(&all), B, 5), None);
    // It goes before what others hold within their share, whatever that is.
    let all = [("b1", B, Yields(0)), ("a1", A, YieldsShare(2)), ("a2", A, YieldsShare(2))];
    assert_eq!(displaced(held(&all), C, 3), Some("a1"));
    let all = [("b1", B, Yields(0)), ("a1", A, Stays), ("a2", A, Stays)];
    assert_eq!(displaced(held(&all), C, 3), Some("b1"));
}

#[test]
fn v_331_one_peer_may_hold_everything_that_nobody_else_wants() {
    let all = [("a1", Peer::Local, Standing::YieldsShare(2)), ("a2", Peer::Local, Standing::Stays)];
    assert_eq!(displaced(held(&all), Peer::Local, 2), None);
    assert_eq!(displaced(held(&all), B, 2), Some("a1"));
    assert_eq!(displaced::<()>(Vec::new(), A, 0), None);
}
