use super::*;

/// The entries that wait, as lines and numbers.
fn rest(reader: &mut EventReader<&'static str>) -> Vec<String> {
    std::iter::from_fn(|| reader.next_remaining()).map(shown).collect()
}

fn shown(queued: Queued<&'static str>) -> String {
    match queued {
        Queued::Event(line) => line.to_owned(),
        Queued::Report(report) => report.progress.to_string(),
    }
}

/// A report has its place among the other events, and replaces the one before it.
#[tokio::test]
async fn a_report_comes_after_what_was_printed_before_it() {
    let (queue, mut reader) = event_queue();
    assert!(queue.push("one", 3));
    queue.push_report(Progress::new(1.0));
    assert!(queue.push("two", 3));
    queue.push_report(Progress::new(2.0));
    assert!(queue.push("three", 5));
    assert_eq!(rest(&mut reader), ["one", "two", "2", "three"]);
}

/// Reports that nothing follows have an interval, and no earlier one is sent instead of the last. What follows a report
/// does not wait for that.
#[tokio::test(start_paused = true)]
async fn only_a_report_that_nothing_follows_waits() {
    let (queue, mut reader) = event_queue();
    let began = Instant::now();
    queue.push_report(Progress::new(1.0));
    assert_eq!(shown(reader.next().await), "1");
    queue.push_report(Progress::new(2.0));
    assert!(queue.push("line", 4));
    assert_eq!([shown(reader.next().await), shown(reader.next().await)], ["2", "line"]);
    assert_eq!(began.elapsed(), Duration::ZERO);
    queue.push_report(Progress::new(3.0));
    queue.push_report(Progress::new(4.0));
    assert_eq!(shown(reader.next().await), "4");
    assert!(began.elapsed() >= REPORT_INTERVAL);
}

/// A client that does not read costs a bounded number of events, and still learns the last report.
#[tokio::test]
async fn a_full_queue_takes_the_last_report_and_nothing_else() {
    let (queue, mut reader) = event_queue();
    let pushed = (0..MAX_WAITING + 3).filter(|_| {
        let is_pushed = queue.push("line", 4);
        queue.push_report(Progress::new(1.0));
        is_pushed
    });
    assert_eq!(pushed.count(), MAX_WAITING - 1);
    queue.push_report(Progress::new(2.0));
    let rest = rest(&mut reader);
    assert_eq!((rest.len(), rest.last().map(String::as_str)), (MAX_WAITING, Some("2")));
}

/// Threat 843. Lines can have kilobytes, or be of names that a server has chosen.
#[tokio::test]
async fn v_843_events_that_wait_are_bounded_in_bytes() {
    let (queue, mut reader) = event_queue();
    let pushed = (0..MAX_WAITING).filter(|_| queue.push("line", 100_000)).count();
    assert!((1..20).contains(&pushed), "{pushed}");
    queue.push_report(Progress::new(1.0));
    assert_eq!(shown(reader.next().await), "line");
    assert!(queue.push("line", 100_000), "what was sent makes room");
    assert_eq!(rest(&mut reader).len(), pushed + 1);
}

/// A run whose client reads no events, or has gone, keeps none in memory.
#[tokio::test]
async fn nothing_is_kept_for_a_reader_that_is_gone() {
    let (queue, reader) = event_queue();
    let event = Arc::new(());
    assert!(queue.push(Arc::clone(&event), 0));
    drop(reader);
    assert!(!queue.push(Arc::clone(&event), 0));
    assert_eq!(Arc::strong_count(&event), 1);
}
