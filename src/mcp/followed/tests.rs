use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;

fn notified(followed: &FollowedResources, uri: &str) {
    followed.report(Some(&to_raw_value(&json!({ "uri": uri })).unwrap()));
}

#[test]
fn a_change_is_reported_to_the_subscribers_of_its_resource() {
    let followed = FollowedResources::default();
    let (first, mut of_first) = ResourceUpdates::channel();
    let (second, mut of_second) = ResourceUpdates::channel();
    let (other, of_other) = ResourceUpdates::channel();
    assert!(!followed.add("ui://a", &first).unwrap().is_confirmed);
    followed.confirm("ui://a", None);
    assert!(followed.add("ui://a", &second).unwrap().is_confirmed);
    followed.add("ui://b", &other).unwrap();
    for _ in 0..1_000 {
        notified(&followed, "ui://a");
    }
    notified(&followed, "ui://unknown");
    followed.report(None);
    followed.report(Some(&to_raw_value(&json!({ "uri": 1 })).unwrap()));
    assert_eq!((*of_first.borrow_and_update(), *of_second.borrow_and_update()), (1_000, 1_000));
    assert!(!of_other.has_changed().unwrap());
    // The server is told when the last subscriber of a subscription is gone that it has confirmed.
    assert!(!followed.remove("ui://a", &first));
    notified(&followed, "ui://a");
    assert!(!of_first.has_changed().unwrap() && of_second.has_changed().unwrap());
    assert!(followed.remove("ui://a", &second));
    assert!(!followed.remove("ui://a", &second));
    assert!(!followed.remove("ui://b", &other));
    assert!(followed.is_empty());
}

#[test]
fn the_resources_that_are_followed_over_a_connection_are_bounded() {
    let followed = FollowedResources::default();
    let channels: Vec<_> = (0..MAX_RESOURCES).map(|_| ResourceUpdates::channel()).collect();
    for (number, (updates, _)) in channels.iter().enumerate() {
        assert!(followed.add(&format!("ui://{number}"), updates).is_some());
    }
    let (more, _of_more) = ResourceUpdates::channel();
    assert!(followed.add("ui://more", &more).is_none());
    followed.remove("ui://0", &channels[0].0);
    assert!(followed.add("ui://more", &more).is_some());
}

/// Threat 713.
#[test]
fn v_713_many_subscribers_of_one_resource_take_none_of_another_client() {
    let followed = FollowedResources::default();
    let (updates, _of_updates) = ResourceUpdates::channel();
    // Four clients with 64 subscriptions each had all of a connection.
    for _ in 0..MAX_SUBSCRIBERS {
        assert!(followed.add("ui://a", &updates).is_some());
    }
    assert!(followed.add("ui://a", &updates).is_none(), "those of one resource are bounded too");
    assert!(followed.add("ui://b", &updates).is_some());
}

#[test]
fn a_subscription_that_the_server_has_ended_is_over_for_all() {
    let followed = FollowedResources::default();
    let (updates, _of_updates) = ResourceUpdates::channel();
    let added = followed.add("ui://a", &updates).unwrap();
    followed.end("ui://b");
    assert!(!added.over.is_cancelled());
    followed.end("ui://a");
    assert!(added.over.is_cancelled() && followed.is_empty());
}

/// Threat 712.
#[tokio::test]
async fn v_712_a_turn_for_one_resource_is_no_turn_for_another() {
    let followed = FollowedResources::default();
    let first = followed.turn("ui://a").await;
    let mut second = Box::pin(followed.turn("ui://a"));
    assert!(futures::poll!(second.as_mut()).is_pending(), "the first one is not over");
    drop(followed.turn("ui://b").await);
    // One that is left while it waits leaves nothing behind, whatever ends first.
    let given_up = {
        let mut given_up = Box::pin(followed.turn("ui://a"));
        assert!(futures::poll!(given_up.as_mut()).is_pending());
        given_up
    };
    drop(first);
    drop(second.await);
    drop(given_up);
    assert!(followed.turns.lock().is_empty());
}
