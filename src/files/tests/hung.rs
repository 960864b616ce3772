//! File systems that do not answer.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};

use tokio::runtime::Handle;
use tokio::task::{JoinSet, yield_now};
use tokio::time::advance;

use super::super::operations::{
    MAX_OPERATIONS, MAX_OPERATIONS_OF_DIRECTORY, MAX_WAIT, Operation, System, permits_of,
};
use super::super::quota::QuotaUse;
use super::*;

/// An operation of a run of its own, which a file system answers when the sender is dropped.
fn unanswered(root: &Path) -> (Sender<()>, Operation<()>) {
    let (sender, answer) = channel::<()>();
    let system = System::new(Arc::new(QuotaUse::new(Box::new(|| QUOTA))), Handle::current());
    let operation = system.blocking(permits_of(root), move || {
        let _is_dropped = answer.recv();
        Ok(())
    });
    (sender, operation)
}

/// Threat 842. As many operations wait for one file system as there may be in all.
#[tokio::test(start_paused = true)]
async fn v_842_a_file_system_that_hangs_leaves_threads_for_the_others() {
    let place = tempfile::tempdir().unwrap();
    let [hung, other]: [PathBuf; 2] = ["hung", "other"].map(|name| place.path().join(name));
    for directory in [&hung, &other] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("a"), "hello").unwrap();
    }
    // Dropped before the runtime, which waits for its threads.
    let mut answers = Vec::new();
    let mut waiting = JoinSet::new();
    for _ in 0..MAX_OPERATIONS {
        let (sender, operation) = unanswered(&hung);
        answers.push(sender);
        waiting.spawn(operation);
    }
    // Each has its permit, or waits for one.
    for _ in 0..2 * MAX_OPERATIONS {
        yield_now().await;
    }
    assert_eq!(permits_of(&hung).available_permits(), 0);
    // The time is over for whatever waits for a permit.
    let later = || advance(MAX_WAIT + Duration::from_secs(1));
    let others = files(&[(&other, Access::Read)]);
    let (text, ()) = tokio::join!(read(&others, other.join("a")), later());
    assert_eq!(text.unwrap(), "hello");

    // One run more, which is told what it has waited for.
    let late = files(&[(&hung, Access::Read)]);
    let directory = path(&hung);
    let (listed, ()) = tokio::join!(late.entries(&directory), later());
    let error = listed.unwrap_err();
    assert_eq!(error.code, FileErrorCode::Busy);
    assert!(error.to_string().contains("does not answer"), "{error}");

    drop(answers);
    let mut answered = 0;
    while let Some(ended) = waiting.join_next().await {
        match ended.unwrap() {
            Ok(()) => answered += 1,
            Err(error) => assert_eq!(error.code, FileErrorCode::Busy),
        }
    }
    assert_eq!(answered, MAX_OPERATIONS_OF_DIRECTORY);
    assert_eq!(late.entries(&directory).await.unwrap().len(), 1);
}
