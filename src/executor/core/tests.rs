use std::sync::mpsc;

use super::*;

/// As a save to a file system of a network that does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn closing_does_not_wait_forever_for_files() {
    let (answer, answered) = mpsc::channel::<()>();
    let hangs = move || {
        let _ended = answered.recv();
    };
    let waited = timeout(Duration::from_secs(60), last_work(&Handle::current(), hangs)).await;
    let refused = waited.expect("it has a deadline").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
    // The thread ends.
    drop(answer);
    last_work(&Handle::current(), || ()).await.unwrap();
}
