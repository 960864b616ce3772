use super::*;

/// The messages of a stream that arrives in chunks of `size` bytes.
fn read(mut framing: Framing, stream: &[u8], size: usize) -> Result<Vec<(String, String)>, ReadFailure> {
    let mut found = Vec::new();
    for chunk in stream.chunks(size) {
        let mut rest = chunk;
        loop {
            let (used, message) = framing.feed(rest)?;
            rest = &rest[used..];
            let Some(message) = message else { break };
            found.push((message.name, String::from_utf8(message.data).unwrap()));
        }
        assert!(rest.is_empty());
    }
    Ok(found)
}

fn message(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

/// A chunk may end anywhere, also within a letter or the end of a line.
#[test]
fn messages_are_the_same_however_the_stream_is_cut() {
    let events = ": comment\r\n\r\nevent: a\r\ndata: é\r\ndata:ü\r\n\r\nretry: 1\ndata: 𝄞\n\ndata: cut";
    let lines = "{\"é\":1}\n\n \r\n{\"ü\":2}\r\n{\"𝄞\":3}\n{\"cut\":";
    for size in 1..=events.len() {
        let found = read(Framing::events(), events.as_bytes(), size).unwrap();
        assert_eq!(found, [message("a", "é\nü"), message("", "𝄞")], "{size}");
        let found = read(Framing::lines(), lines.as_bytes(), size).unwrap();
        let expected = [message("", "{\"é\":1}"), message("", "{\"ü\":2}\r"), message("", "{\"𝄞\":3}")];
        assert_eq!(found, expected, "{size}");
    }
}

/// A message that does not end is not kept beyond its bound, in pairs: obeyed and exceeded.
#[test]
fn v_767_a_message_has_a_bound() {
    for framing in [Framing::events, Framing::lines] {
        let largest = format!("data:{}\n\n", "a".repeat(MAX_MESSAGE - "data:".len()));
        assert_eq!(read(framing(), largest.as_bytes(), 1 << 16).unwrap().len(), 1);
        let endless = "a".repeat(MAX_MESSAGE + 1);
        let refused = Err(ReadFailure::TooLarge(MAX_MESSAGE));
        assert_eq!(read(framing(), endless.as_bytes(), 1 << 16), refused);
        // The bound holds for each message, not for all of them.
        assert_eq!(read(framing(), largest.repeat(3).as_bytes(), 1 << 16).unwrap().len(), 3);
    }
    let comments = ": comment\n\n".repeat(MAX_MESSAGE / 4);
    let refused = Err(ReadFailure::TooLarge(2 * MAX_MESSAGE));
    assert_eq!(read(Framing::events(), comments.as_bytes(), 1 << 16), refused);
}

/// Whoever waits for a message is asked again before each chunk, also if all of them have arrived. The feature `fetch`
/// is what a response in memory takes.
#[cfg(feature = "fetch")]
#[test]
fn v_854_a_stream_without_messages_leaves_turns_to_other_tasks() {
    use futures::FutureExt as _;

    let blank = Response::from(http::Response::new("\n".repeat(1_000)));
    let mut incoming = Incoming::new(blank, Framing::lines(), 1);
    let mut next = std::pin::pin!(incoming.next());
    // One step before the chunk, one before the end.
    for _step in 0..2 {
        assert!(next.as_mut().now_or_never().is_none());
    }
    assert_eq!(next.as_mut().now_or_never(), Some(Ok(None)));
}
