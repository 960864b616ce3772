//! The size of a value as JSON, whose text is not kept.

use std::io::{self, Write};

use serde::Serialize;

/// The bytes of a value as JSON.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    measure(value, 0)
}

/// The bytes of a value as JSON, where each piece of its text counts as `piece_bytes` more. There are some two pieces
/// for each value in it, so this is about the memory that it takes.
pub(crate) fn measure(value: &impl Serialize, piece_bytes: usize) -> usize {
    let mut size = Size { bytes: 0, piece_bytes };
    // What has no JSON is neither kept nor sent.
    let _no_json = serde_json::to_writer(&mut size, value);
    size.bytes
}

struct Size {
    bytes: usize,
    piece_bytes: usize,
}

impl Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes = self.bytes.saturating_add(bytes.len() + self.piece_bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
