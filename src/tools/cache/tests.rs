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
    ToolList { tools: vec![tool], ttl, problem: None, with_elicitation: false }
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
