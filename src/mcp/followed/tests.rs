use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::watch;

use super::*;

fn subscriber(owner: &str) -> (ResourceUpdates, watch::Receiver<u64>) {
    ResourceUpdates::channel(Arc::from(owner))
}

fn notified(followed: &FollowedResources, uri: &str) {
    followed.report(Some(&to_raw_value(&json!({ "uri": uri })).unwrap()));
}

#[test]
fn a_change_is_reported_to_the_subscribers_of_its_resource() {
    let followed = FollowedResources::default();
    let (first, mut of_first) = subscriber("a");
    let (second, mut of_second) = subscriber("b");
    let (other, of_other) = subscriber("a");
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
    let channels: Vec<_> = (0..MAX_RESOURCES).map(|number| subscriber(&number.to_string())).collect();
    for (number, (updates, _)) in channels.iter().enumerate() {
        assert!(followed.add(&format!("ui://{number}"), updates).is_ok());
    }
    let (more, _of_more) = subscriber("more");
    assert_eq!(followed.add("ui://more", &more).err(), Some(NotAdded::ManyResources));
    followed.remove("ui://0", &channels[0].0);
    assert!(followed.add("ui://more", &more).is_ok());
}

/// Threat 718.
#[test]
fn v_718_a_few_clients_never_have_all_resources_of_a_connection() {
    let followed = FollowedResources::default();
    // As many as each asks for, with other resources than all others.
    let take = |owner: &str, most: usize| {
        let (updates, reports) = subscriber(owner);
        let added = |number: &usize| followed.add(&format!("ui://{owner}/{number}"), &updates).is_ok();
        ((0..most).take_while(added).count(), updates, reports)
    };
    // Four sessions of one client, each with all that a client may have.
    let first = take("1", 64);
    assert_eq!((first.0, take("2", 64).0, take("3", 64).0, take("4", 64).0), (64, 64, 64, 32));
    let (updates, _reports) = subscriber("4");
    let refused = followed.add("ui://4/more", &updates).err().unwrap();
    assert_eq!(refused, NotAdded::FullShare { own: 32, left: 32 });
    assert!(refused.message("apps").contains("end one of these subscriptions first"));
    // Another one gets what it needs, and one that subscribes to what others follow takes nothing.
    assert_eq!(take("5", 8).0, 8);
    assert!(followed.add("ui://1/0", &updates).is_ok());
    // What a client gives back is there for all.
    for number in 0..64 {
        followed.remove(&format!("ui://1/{number}"), &first.1);
    }
    assert_eq!(take("6", 64).0, 44);
}

/// Threat 713.
#[test]
fn v_713_many_subscribers_of_one_resource_take_none_of_another_client() {
    let followed = FollowedResources::default();
    let (updates, _of_updates) = subscriber("a");
    // Four clients with 64 subscriptions each had all of a connection.
    for _ in 0..MAX_SUBSCRIBERS {
        assert!(followed.add("ui://a", &updates).is_ok());
    }
    let refused = followed.add("ui://a", &updates).err();
    assert_eq!(refused, Some(NotAdded::ManySubscribers), "those of one resource are bounded too");
    assert!(followed.add("ui://b", &updates).is_ok());
}

#[test]
fn a_subscription_that_the_server_has_ended_is_over_for_all() {
    let followed = FollowedResources::default();
    let (updates, _of_updates) = subscriber("a");
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
