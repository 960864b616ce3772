use super::*;
use crate::run::result::LogLevel;

/// A report is sent neither before what the script printed earlier nor after what it printed later.
#[tokio::test]
async fn events_have_the_order_of_the_script() {
    let (script, mut events) = RunEvents::attach(Script::typescript(""), None);
    let (print, report) = (script.on_kept_output.unwrap(), script.on_report.unwrap());
    let line = |text: &str| Output::Log { level: LogLevel::Info, text: text.to_owned() };
    for number in 0..40 {
        print(&line(&number.to_string()));
    }
    report(&Progress::new(1.0));
    print(&line("end"));
    for number in 0..40 {
        let event = events.next().await;
        assert_eq!((event.name, &event.data["text"]), ("output", &json!(number.to_string())));
    }
    let event = events.next().await;
    assert_eq!((event.name, &event.data), ("progress", &json!({ "progress": 1.0 })));
    // What is left when the run has ended has the same order.
    report(&Progress::new(2.0));
    print(&line("after"));
    let mut rest = Vec::new();
    while let Some(event) = events.next_remaining() {
        rest.push((event.name, event.data));
    }
    let printed = |text: &str| ("output", json!({ "level": "info", "text": text }));
    assert_eq!(rest, [printed("end"), ("progress", json!({ "progress": 2.0 })), printed("after")]);
}
