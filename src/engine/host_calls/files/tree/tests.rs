use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::Handle;

use super::*;
use crate::files::{Clock, FileOptions};
use crate::run::limits::Limits;

/// The files of a run, with this many directories in one of the scratch directory.
async fn many(count: usize) -> RunFiles {
    let files = RunFiles::new(FileOptions {
        directories: Vec::new(),
        memory_bytes: 64 << 20,
        quota: Box::new(|| Limits::default().file_quota()),
        caller: None,
        clock: Clock::Real(Duration::ZERO),
        runtime: Handle::current(),
        is_dry_run: false,
    });
    let at = |name: String| GuestPath::parse(&format!("/tmp/d{name}")).unwrap();
    files.create_directory(&at(String::new())).await.unwrap();
    for number in 0..count {
        files.create_directory(&at(format!("/{number}"))).await.unwrap();
    }
    files
}

fn directory() -> GuestPath {
    GuestPath::parse("/tmp/d").unwrap()
}

/// Threat 812: what never waits cannot be stopped.
#[tokio::test]
async fn v_812_a_walk_in_memory_stops_after_each_directory() {
    let files = many(STEP + 2).await;
    let mut polls = 0;
    let path = directory();
    let mut listing = std::pin::pin!(list(&files, &path));
    let found = loop {
        match listing.as_mut().now_or_never() {
            Some(found) => break found.unwrap(),
            None => polls += 1,
        }
    };
    assert_eq!((found.len(), polls), (STEP + 2, STEP + 3));
    let mut polls = 0;
    let mut removing = std::pin::pin!(remove(&files, &path, true));
    while removing.as_mut().now_or_never().is_none() {
        polls += 1;
    }
    // As often as the walk, and twice while it removes.
    assert_eq!(polls, STEP + 3 + 2);
    assert!(files.metadata(&path, true).await.is_err());
}

/// Threat 813: each holds the names that it has found until it ends.
#[tokio::test]
async fn v_813_whole_directories_are_walked_one_after_the_other() {
    let files = many(2).await;
    let path = directory();
    let first = files.budget().wait_to_walk().await;
    let mut listing = std::pin::pin!(list(&files, &path));
    let mut removing = std::pin::pin!(remove(&files, &path, true));
    for _ in 0..100 {
        assert!(listing.as_mut().now_or_never().is_none());
        assert!(removing.as_mut().now_or_never().is_none());
    }
    drop(first);
    assert_eq!(listing.await.unwrap().len(), 2);
    removing.await.unwrap();
}
