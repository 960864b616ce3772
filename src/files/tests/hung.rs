//! File systems that do not answer.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ThreadId;

use tokio::runtime::Handle;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{advance, sleep};

use super::super::operations::{
    MAX_OPERATIONS, MAX_OPERATIONS_OF_DIRECTORY, MAX_WAIT, Operation, System, permits_of,
};
use super::super::quota::QuotaUse;
use super::*;

/// The granted directories of a run.
fn system() -> System {
    System::new(Arc::new(QuotaUse::new(Box::new(|| QUOTA))), Handle::current())
}

/// An operation of a run of its own, which a file system answers when the sender is dropped.
fn unanswered(root: &Path) -> (Sender<()>, Operation<()>) {
    let (sender, answer) = channel::<()>();
    let operation = system().blocking(permits_of(root), move || {
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

/// Says on which thread it was dropped.
struct Told(Sender<ThreadId>);

impl Drop for Told {
    fn drop(&mut self) {
        let _is_over = self.0.send(thread::current().id());
    }
}

/// Threat 846. A file system can hang after a file was read, so that closing it does not end.
#[tokio::test]
async fn v_846_a_file_is_closed_on_a_thread_that_may_block() {
    let place = tempfile::tempdir().unwrap();
    let permits = permits_of(place.path());
    let (sender, closed) = channel();
    let system = system();
    let close = || drop(system.dropped_blocking(Told(sender.clone()), Arc::clone(&permits)));
    close();
    let thread = closed.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_ne!(thread, thread::current().id());

    // As many operations as may wait for the file system: what closes another file has no thread yet.
    let all = u32::try_from(MAX_OPERATIONS_OF_DIRECTORY).unwrap();
    let waiting = Arc::clone(&permits).acquire_many_owned(all).await.unwrap();
    close();
    for _ in 0..100 {
        yield_now().await;
    }
    assert!(closed.try_recv().is_err());
    drop(waiting);
    let thread = loop {
        match closed.try_recv() {
            Ok(thread) => break thread,
            Err(_not_yet) => sleep(Duration::from_millis(1)).await,
        }
    };
    assert_ne!(thread, thread::current().id());
}

/// Is dropped when the sender is.
struct Unanswered(Receiver<()>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        let _is_dropped = self.0.recv();
    }
}

/// As long as a file is open on a network, its directory cannot be removed.
#[tokio::test]
async fn the_next_operation_of_a_run_waits_until_a_file_is_closed() {
    let place = tempfile::tempdir().unwrap();
    let (permits, system, other) = (permits_of(place.path()), system(), system());
    let (sender, answer) = channel();
    drop(system.dropped_blocking(Unanswered(answer), Arc::clone(&permits)));
    let next = tokio::spawn(system.blocking(Arc::clone(&permits), || Ok(())));
    // Those of other runs do not wait.
    for _ in 0..10 {
        other.blocking(Arc::clone(&permits), || Ok(())).await.unwrap();
    }
    assert!(!next.is_finished());
    drop(sender);
    next.await.unwrap().unwrap();
}
