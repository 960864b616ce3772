use serde_json::json;

use super::*;

fn line(text: &str) -> RunEvent {
    RunEvent { name: "output", data: json!({ "text": text }) }
}

fn is_line(queued: Option<Queued>, text: &str) -> bool {
    queued == Some(Queued::Event(line(text)))
}

/// A report has its place among the other events, and replaces the one before it.
#[test]
fn a_report_comes_after_what_was_printed_before_it() {
    let queue = EventQueue::default();
    queue.push(line("one"));
    queue.push_report(Progress::new(1.0));
    queue.push(line("two"));
    queue.push_report(Progress::new(2.0));
    queue.push(line("three"));
    assert!(is_line(queue.pop(true), "one"));
    assert!(is_line(queue.pop(true), "two"));
    assert_eq!(queue.pop(true), Some(Queued::Report(Progress::new(2.0))));
    assert!(is_line(queue.pop(true), "three"));
    assert_eq!(queue.pop(true), None);
}

/// What follows a report does not wait until a report may be sent again.
#[test]
fn only_a_report_that_nothing_follows_waits() {
    let queue = EventQueue::default();
    queue.push_report(Progress::new(1.0));
    assert_eq!(queue.pop(false), None);
    assert!(!queue.is_empty());
    queue.push(line("one"));
    assert_eq!(queue.pop(false), Some(Queued::Report(Progress::new(1.0))));
    assert!(is_line(queue.pop(false), "one"));
    assert!(queue.is_empty());
}

/// A client that does not read costs a bounded number of events, and still learns the last report.
#[test]
fn a_full_queue_takes_the_last_report_and_nothing_else() {
    let queue = EventQueue::default();
    for number in 0..MAX_WAITING + 3 {
        queue.push(line(&number.to_string()));
        queue.push_report(Progress::new(1.0));
    }
    queue.push_report(Progress::new(2.0));
    assert_eq!(queue.take_dropped(), 4);
    assert_eq!(queue.take_dropped(), 0);
    let mut popped = Vec::new();
    while let Some(queued) = queue.pop(true) {
        popped.push(queued);
    }
    assert_eq!(popped.len(), MAX_WAITING);
    assert_eq!(popped.last(), Some(&Queued::Report(Progress::new(2.0))));
}
