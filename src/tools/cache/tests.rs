use serde_json::json;

use super::*;
use crate::tools::schema::Schema;

fn list(name: &str, ttl: Option<Duration>) -> ToolList {
    let tool = ToolDefinition {
        name: name.to_owned(),
        description: Some("does it".to_owned()),
        input_schema: Schema::from(json!({ "type": "object", "properties": { "a": { "type": "number" } } })),
        output_schema: Some(Schema::from(json!({ "type": "object" }))),
        annotations: Some(json!({ "readOnlyHint": true })),
        meta: None,
    };
    ToolList { tools: vec![tool], ttl, problem: None, with_elicitation: None }
}

fn cache() -> (tempfile::TempDir, ListCache) {
    let directory = tempfile::tempdir().unwrap();
    let cache = ListCache::new(Store::new(directory.path().join("cache")));
    (directory, cache)
}

#[test]
fn a_list_comes_back_whole_with_its_output_schemas() {
    let (_directory, cache) = cache();
    assert!(cache.load("id").is_none());
    let now = SystemTime::now();
    let kept = list("one", Some(Duration::from_millis(1500)));
    cache.save("id", "server", &kept, now);
    let loaded = cache.load("id").unwrap();
    assert_eq!(*loaded.list, kept);
    assert_eq!(cache.clear().unwrap(), 1);
    assert!(cache.load("id").is_none());
}

#[test]
fn lists_hold_for_a_day_or_as_long_as_the_server_says() {
    let now = SystemTime::now();
    let fresh = |ttl: Option<Duration>, age: Duration| {
        CachedList { list: Arc::new(list("a", ttl)), fetched_at: now - age }.is_fresh(now)
    };
    assert!(fresh(None, Duration::from_hours(23)));
    assert!(!fresh(None, Duration::from_hours(24)));
    assert!(fresh(Some(Duration::from_secs(2)), Duration::from_secs(1)));
    assert!(!fresh(Some(Duration::from_secs(2)), Duration::from_secs(2)));
    assert!(!fresh(Some(Duration::ZERO), Duration::ZERO));
    let future = CachedList { list: Arc::default(), fetched_at: now + Duration::from_secs(9) };
    assert!(!future.is_fresh(now));
}

#[test]
fn a_process_that_asked_earlier_does_not_overwrite_one_that_asked_later() {
    let (_directory, cache) = cache();
    let now = SystemTime::now();
    cache.save("id", "server", &list("new", None), now);
    cache.save("id", "server", &list("old", None), now - Duration::from_secs(1));
    assert_eq!(cache.load("id").unwrap().list.tools[0].name, "new");
}

/// As `cx run` without a terminal stores one, of a server that shows some tools only to clients with a user.
#[test]
fn a_list_of_a_client_that_may_not_be_asked_replaces_no_longer_one() {
    let (_directory, cache) = cache();
    let now = SystemTime::now();
    let of = |names: &[&str], asked: bool| ToolList {
        tools: names.iter().flat_map(|name| list(name, None).tools).collect(),
        with_elicitation: Some(asked),
        ..ToolList::default()
    };
    let stored = || {
        let loaded = cache.load("id").unwrap().list;
        loaded.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
    };
    cache.save("id", "server", &of(&["plain"], false), now);
    assert_eq!(stored(), ["plain"]);
    cache.save("id", "server", &of(&["plain", "asks"], true), now);
    cache.save("id", "server", &of(&["plain"], false), now);
    assert_eq!(stored(), ["plain", "asks"]);
    assert_eq!(cache.load("id").unwrap().list.with_elicitation, Some(true));
    // A tool that the longer list lacks, or has in another form, shows that it is out of date.
    cache.save("id", "server", &of(&["plain", "new"], false), now);
    assert_eq!(stored(), ["plain", "new"]);
    cache.save("id", "server", &of(&["plain", "asks"], true), now);
    let mut changed = of(&["plain"], false);
    changed.tools[0].description = Some("does another thing".to_owned());
    cache.save("id", "server", &changed, now);
    assert_eq!(stored(), ["plain"]);
    // One that holds no longer is replaced.
    cache.save("id", "server", &of(&["plain", "asks"], true), now - Duration::from_hours(25));
    assert_eq!(stored(), ["plain"]);
    let (_directory, cache) = self::cache();
    cache.save("id", "server", &of(&["plain", "asks"], true), now - Duration::from_hours(25));
    cache.save("id", "server", &of(&["plain"], false), now);
    assert_eq!(cache.load("id").unwrap().list.tools.len(), 1);
    // So is one that its server gave a longer life: a tool in it may be gone.
    let (_directory, cache) = self::cache();
    let lasting = ToolList { ttl: Some(Duration::MAX), ..of(&["plain", "asks"], true) };
    cache.save("id", "server", &lasting, now - Duration::from_hours(25));
    cache.save("id", "server", &of(&["plain"], false), now);
    assert_eq!(cache.load("id").unwrap().list.tools.len(), 1);
}

#[test]
fn a_list_of_a_process_whose_clock_was_wrong_is_replaced() {
    let (_directory, cache) = cache();
    let now = SystemTime::now();
    cache.save("id", "server", &list("2090", None), now + Duration::from_hours(24 * 365 * 64));
    cache.save("id", "server", &list("now", None), now);
    let loaded = cache.load("id").unwrap();
    assert_eq!(loaded.list.tools[0].name, "now");
    assert!(loaded.is_fresh(now));
    cache.save("id", "server", &list("1960", None), UNIX_EPOCH - Duration::from_hours(24 * 3_650));
    assert_eq!(cache.load("id").unwrap().list.tools[0].name, "now");
}
