use std::time::{Duration, Instant};

use serde_json::Value;

use super::*;
use crate::tools::ToolError;
use crate::tools::catalog::{Catalog, CatalogOptions};
use crate::tools::native::{NativeTools, definition, erase};

/// The addresses of the indexes that are kept, the latest first.
fn kept(catalog: &Catalog) -> Vec<usize> {
    catalog.search.last.lock().iter().map(|indexed| Arc::as_ptr(&indexed.index).addr()).collect()
}

#[tokio::test]
async fn searches_of_all_servers_and_of_one_in_turn_build_two_indexes() {
    let mut tools = NativeTools::default();
    for name in ["a.first", "b.second", "c.third"] {
        let function = erase(|value: Value| async move { Ok::<_, ToolError>(value) });
        tools.add(name, definition(Value::Null), function);
    }
    let catalog = Catalog::new(&[Arc::new(tools)], &CatalogOptions::default());
    let search = async |only: &str| {
        let wanted = |server: &str| only.is_empty() || server == only;
        let deadline = Instant::now() + Duration::from_secs(60);
        catalog.search("first", 5, false, wanted, |_, _| true, deadline).await;
        kept(&catalog)
    };
    let of_all = search("").await[0];
    let of_one = search("a").await[0];
    assert_ne!(of_one, of_all);
    assert_eq!(search("").await, [of_all, of_one]);
    assert_eq!(search("a").await, [of_one, of_all]);
    assert_eq!(search("").await, [of_all, of_one]);
    // Another server takes the place of the first one.
    let with_another = search("b").await;
    assert_eq!((with_another.len(), with_another[1]), (MAX_INDEXES, of_all));
}
