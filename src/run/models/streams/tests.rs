use super::{Entry, Streams, UnsentQuestion};
use crate::llm::ModelRequest;
use crate::tools::ToolErrorCode;

fn unsent(bytes: usize) -> Entry {
    let request = ModelRequest { model: None, system_prompt: None, messages: Vec::new(), max_tokens: 1 };
    Entry::Unsent(Box::new(UnsentQuestion { candidates: Vec::new(), request, may_shrink: false, bytes }))
}

/// A guest can open answers and read none of them: what they keep is bounded in number and in bytes.
#[test]
fn v_570_questions_that_are_never_sent_are_bounded() {
    let mut streams = Streams::default();
    let first = streams.add(unsent(60), 100).unwrap();
    assert_eq!(streams.add(unsent(41), 100).unwrap_err().code, ToolErrorCode::QueueFull);
    streams.add(unsent(40), 100).unwrap();
    drop(streams.close(first));
    streams.add(unsent(60), 100).unwrap();
    for _ in 2..super::MAX_STREAMS {
        streams.add(unsent(0), 100).unwrap();
    }
    assert_eq!(streams.add(unsent(0), 100).unwrap_err().code, ToolErrorCode::QueueFull);
}

/// An answer that is closed while a piece of it is on its way is not read on.
#[test]
fn closing_ends_the_reading_of_a_piece() {
    let mut streams = Streams::default();
    let number = streams.add(unsent(1), 100).unwrap();
    let (entry, closed) = streams.take(number).unwrap();
    assert!(matches!(entry, Entry::Unsent(_)));
    // A second reader is refused, and does not end the first one's reading.
    let (second, _) = streams.take(number).unwrap();
    assert!(matches!(second, Entry::Busy(_)));
    assert!(!closed.is_cancelled());
    drop(streams.close(number));
    assert!(closed.is_cancelled());
    drop(streams.put(number, Entry::Ended));
    assert!(streams.take(number).is_none());
}
