use super::*;

/// The events of `text`. They are the same for every chunk size.
fn events(text: &[u8]) -> Vec<(String, String)> {
    let whole = events_in(text, text.len().max(1));
    for size in 1..4 {
        assert_eq!(events_in(text, size), whole, "chunks of {size}");
    }
    whole
}

fn events_in(text: &[u8], size: usize) -> Vec<(String, String)> {
    let mut parser = EventParser::new(crate::lines::MAX_LINE);
    let mut found = Vec::new();
    for chunk in text.chunks(size) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let (used, event) = parser.feed(rest).unwrap();
            rest = &rest[used..];
            found.extend(event.map(|event| (event.name, String::from_utf8(event.data).unwrap())));
        }
    }
    found
}

fn pair(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

#[test]
fn reads_events_with_all_line_endings() {
    let expected = vec![pair("", "a\nb"), pair("endpoint", "/x")];
    for end in ["\n", "\r\n", "\r"] {
        let text = [
            "\u{feff}: hello",
            "data: a",
            "data:b",
            "",
            "event: endpoint",
            "data: /x",
            "",
            "data: unfinished",
        ];
        // A carriage return at the end of a chunk may be half of a line ending, so the last one
        // counts.
        assert_eq!(events(text.join(end).as_bytes()), expected, "{end:?}");
    }
}

#[test]
fn ignores_what_the_standard_ignores() {
    assert_eq!(
        events(b"nonsense\nevent\nretry: 1e12\nid: a\0b\ndata: x\n\n\n\nevent: empty\n\n"),
        [pair("", "x")]
    );
}

#[test]
fn pauses_and_ids_are_bounded() {
    let read = |text: &str| {
        let mut parser = EventParser::new(crate::lines::MAX_LINE);
        parser.feed(text.as_bytes()).unwrap();
        (parser.retry, parser.last_id)
    };
    assert_eq!(read("retry: 0\n").0, Some(MIN_RETRY));
    assert_eq!(read("retry: 2000\n").0, Some(Duration::from_secs(2)));
    assert_eq!(read("retry: 1000000000000\n").0, Some(MAX_RETRY));
    assert_eq!(read(&format!("retry: {}\n", "9".repeat(40))).0, Some(MAX_RETRY));
    assert_eq!(read("retry: -1\n").0, None);
    assert_eq!(read("id: a\nid: b\n").1.as_deref(), Some("b"));
    assert_eq!(read(&format!("id: a\nid: {}\n", "x".repeat(1025))).1.as_deref(), Some("a"));
    assert_eq!(read("id: \u{1}\n").1, None);
}
