//! Decompresses the parts of the program file: the component, and its machine code.

use std::error::Error;
use std::io::{self, Read};
use std::thread;

use flate2::bufread::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

/// Maximum size in bytes of what is decompressed: the real component has 41 MB, its code 20 MB. A
/// longer stream does not belong to cx.
const MAX_LENGTH: u64 = 128 * 1024 * 1024;

/// Decompresses a component.
///
/// # Errors
///
/// If it is damaged or too long.
pub(super) fn component(compressed: &[u8]) -> io::Result<Vec<u8>> {
    let decoder = StreamingDecoder::new(compressed).map_err(damaged)?;
    let length = decoder.decoder.content_size();
    read_all(decoder, length)
}

/// Decompresses a component and its machine code, on two threads: each takes a part of the second
/// that the first Python script of a machine waits for.
///
/// # Errors
///
/// If either is damaged or too long.
pub(super) fn component_and_code(
    compressed_component: &[u8],
    compressed_code: &[u8],
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    thread::scope(|scope| {
        let second = thread::Builder::new().name("cx-unpack".to_owned());
        let code = second.spawn_scoped(scope, || code(compressed_code));
        let component = component(compressed_component);
        let code = match code {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(damaged("the decoder panicked"))),
            // The system refuses a thread.
            Err(_) => self::code(compressed_code),
        };
        Ok((component?, code?))
    })
}

fn code(compressed: &[u8]) -> io::Result<Vec<u8>> {
    // Zlib does not store the length. Machine code is about three times as long.
    read_all(ZlibDecoder::new(compressed), 4 * compressed.len() as u64)
}

fn damaged(problem: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Reads to the end, into a vector that need not grow if the result has at most `expected` bytes.
fn read_all(decoder: impl Read, expected: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(expected.min(MAX_LENGTH)).unwrap_or(0));
    decoder.take(MAX_LENGTH + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LENGTH {
        return Err(damaged(format!("it has more than {MAX_LENGTH} bytes")));
    }
    Ok(bytes)
}
