use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::timeout;

use super::*;
use crate::run::result::{LogLevel, Output};
use crate::server::yielded::Printed;

fn print(printed: &Printed, text: &str) {
    printed.add(&Output::Log { level: LogLevel::Info, text: text.to_owned() });
}

/// Tells of the changes of a part of a run, and counts the notifications.
fn follow(printed: &Printed, at_end: bool) -> (Arc<AtomicUsize>, tokio::task::JoinHandle<()>) {
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    let changes = Changes::Run { progress: printed.follow(), at_end, is_over: false };
    let send = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok::<(), Infallible>(()))
    };
    (told, tokio::spawn(tell(changes, send)))
}

/// Threat 669.
#[tokio::test(start_paused = true)]
async fn v_669_changes_that_follow_each_other_are_told_once_in_a_second() {
    let printed = Printed::default();
    let (output, of_output) = follow(&printed, false);
    let (value, of_value) = follow(&printed, true);
    // It prints 9,500 lines in nine and a half seconds: one notification at once, and one in each second.
    for _ in 0..95 {
        for _ in 0..100 {
            print(&printed, "line");
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(output.load(Ordering::SeqCst), 10);
    assert_eq!(value.load(Ordering::SeqCst), 0, "there is no value yet");
    printed.note_end();
    of_output.await.unwrap();
    of_value.await.unwrap();
    assert_eq!(value.load(Ordering::SeqCst), 1);
    assert_eq!(output.load(Ordering::SeqCst), 11, "the last change is told");
    // What was printed meanwhile can be read.
    assert_eq!(printed.so_far().unwrap().lines().count(), 9_500);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_has_ended() {
    let printed = Printed::default();
    let (told, following) = follow(&printed, true);
    drop(printed);
    following.await.unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_file_of_a_skill_is_told_of_when_it_differs() {
    let (sender, digests) = watch::channel(SkillDigests::default());
    let uri = "skill://cx/sum/script.py".to_owned();
    let mut changes = Changes::Skill { digests, uri: uri.clone(), last: Some(1) };
    let publish = |files: &[(&str, u64)]| {
        let files = files.iter().map(|(file, digest)| ((*file).to_owned(), *digest)).collect();
        sender.send_replace(Arc::new(files));
    };
    publish(&[(uri.as_str(), 1), ("skill://cx/other/script.py", 1)]);
    assert!(timeout(Duration::from_secs(60), changes.next()).await.is_err(), "another file is new");
    publish(&[(uri.as_str(), 2)]);
    assert!(changes.next().await);
    publish(&[]);
    assert!(changes.next().await, "the file is gone");
    drop(sender);
    assert!(!changes.next().await);
}

#[test]
fn what_is_delivered_and_what_can_be_read_are_separate() {
    let printed = Printed::default();
    print(&printed, "one");
    print(&printed, "two");
    assert_eq!(printed.deliver(), "one\ntwo");
    assert_eq!(printed.deliver(), "");
    print(&printed, "three");
    assert_eq!(printed.so_far().unwrap(), "one\ntwo\nthree");
    assert_eq!(printed.deliver(), "three");
    assert_eq!(printed.close(), "one\ntwo\nthree".len());
    assert_eq!(printed.so_far(), None);
}
