//! Target of server-sent events: the same events, however the stream is cut.

use super::{Event, EventParser};
use crate::lines::MAX_LINE;

pub(crate) fn events(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    for size in [1, 2, 7] {
        assert_eq!(read(data, size), whole, "chunks of {size}");
    }
}

/// The events, the last id and the pause after them.
fn read(data: &[u8], size: usize) -> (Vec<Event>, Option<String>, Option<std::time::Duration>) {
    let mut parser = EventParser::new(MAX_LINE);
    let mut found = Vec::new();
    for chunk in data.chunks(size) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let Ok((used, event)) = parser.feed(rest) else { return (found, None, None) };
            assert!(used > 0 || event.is_some(), "it goes on");
            rest = &rest[used..];
            found.extend(event);
        }
    }
    (found, parser.last_id, parser.retry)
}

#[cfg(test)]
#[test]
fn v_304_events() {
    crate::fuzzing::smoke("events", 5_000, events);
}
