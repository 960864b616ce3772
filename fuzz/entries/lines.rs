//! Targets of lines: what frames messages, and the id of one that cannot be read.

use futures::FutureExt as _;

use crate::lines::{IdScan, LineReader, Piece, trimmed};

/// Lines are those that a whole reading finds, however the stream is cut; an id that the scan finds is the one that
/// JSON has, if it is JSON.
pub(crate) fn lines(data: &[u8]) {
    let mut reader = LineReader::new(data);
    let mut found = Vec::new();
    while let Some(Ok(Some(piece))) = reader.next().now_or_never() {
        if let Piece::Line(line) = piece {
            found.push(line);
        }
    }
    let mut expected: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    // The text after the last newline is an incomplete line.
    expected.pop();
    assert_eq!(found, expected);
    for line in expected {
        let line = trimmed(line);
        let whole = IdScan::of_line(line);
        let mut pieces = IdScan::default();
        line.chunks(3).for_each(|piece| pieces.feed(piece));
        assert_eq!(pieces.found(), whole.as_ref(), "{:?}", String::from_utf8_lossy(line));
        if let Some(id) = &whole {
            let _ = id.to_json();
            let _ = id.as_number();
        }
        let Ok(serde_json::Value::Object(message)) = serde_json::from_slice(line) else { continue };
        // Keys with escapes are not recognized, and of two ids the first counts here.
        let is_plain =
            !line.contains(&b'\\') && line.windows(4).filter(|window| window == b"\"id\"").count() == 1;
        if let (Some(id), Some(number), true) =
            (&whole, message.get("id").and_then(serde_json::Value::as_u64), is_plain)
        {
            assert_eq!(id.to_json().map(|id| id.get().to_owned()), Some(number.to_string()));
        }
    }
}

#[cfg(test)]
#[test]
fn v_304_lines() {
    super::smoke("lines", 5_000, lines);
}
