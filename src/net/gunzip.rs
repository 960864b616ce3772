//! Decompresses the body of a response in steps of bounded size.
//!
//! reqwest can do that too, but it goes on until there is output: a host that sends blocks without any would keep the
//! script's thread for as long as it likes. This is given what has arrived, and returns after a part of it.

use std::io::{self, ErrorKind};

use flate2::{Crc, Decompress, FlushDecompress, Status};
use tokio_util::bytes::{Buf as _, Bytes};

/// Maximum compressed bytes of one step. A block without output can have eleven bytes, and takes some microseconds.
const MAX_INPUT: usize = 4 << 10;

/// Maximum decompressed bytes of one step.
const MAX_OUTPUT: usize = 16 << 10;

/// Maximum bytes of a member's header, which may have the name of a file and a comment.
const MAX_HEADER: usize = 4 << 10;

/// What a member begins with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Bytes of a header without its optional parts, and of what follows the data: a checksum and a length.
const HEADER: usize = 10;
const TRAILER: usize = 8;

/// Whether this is gzip, as a `Content-Encoding` names it (RFC 9110, section 8.4.1): case does not matter, and old
/// servers write `x-gzip`.
pub(super) fn is_gzip(coding: &[u8]) -> bool {
    let coding = coding.trim_ascii();
    coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")
}

/// A body that is compressed with gzip (RFC 1952).
#[derive(Debug)]
pub(super) struct Gunzip {
    /// What has arrived and was not read yet.
    input: Bytes,
    /// Whether nothing follows it.
    is_over: bool,
    next: Part,
    /// Whether a whole member was read.
    has_member: bool,
    /// The beginning of a header or a trailer of which more has to arrive.
    begun: Vec<u8>,
    inflate: Decompress,
    crc: Crc,
    output: Vec<u8>,
}

/// The parts of a member. A body has any number of members, one after the other, and what follows them is ignored.
#[derive(Clone, Copy, Debug)]
enum Part {
    Header,
    Data,
    Trailer,
}

/// What a step has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Output(Bytes),
    /// No output yet; the next step goes on.
    Nothing,
    /// Nothing can be done before more has arrived.
    Wanted,
    End,
}

impl Gunzip {
    pub(super) fn new() -> Self {
        Self {
            input: Bytes::new(),
            is_over: false,
            next: Part::Header,
            has_member: false,
            begun: Vec::new(),
            inflate: Decompress::new(false),
            crc: Crc::new(),
            output: vec![0; MAX_OUTPUT],
        }
    }

    /// Adds what has arrived, after [`Step::Wanted`].
    pub(super) fn put(&mut self, arrived: Bytes) {
        self.input = arrived;
    }

    /// Says that nothing more will arrive, after [`Step::Wanted`].
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Reads a part of what has arrived.
    ///
    /// # Errors
    ///
    /// If that is not gzip, or ends within a member.
    pub(super) fn step(&mut self) -> io::Result<Step> {
        match self.next {
            Part::Header => self.read_header(),
            Part::Data => self.read_data(),
            Part::Trailer => self.read_trailer(),
        }
    }

    fn read_header(&mut self) -> io::Result<Step> {
        if self.is_over && self.begun.is_empty() && self.input.is_empty() {
            return Ok(Step::End);
        }
        let before = self.begun.len();
        let more = self.input.len().min(MAX_HEADER - before);
        self.begun.extend_from_slice(&self.input[..more]);
        if self.has_member && self.begun.iter().zip(MAGIC).any(|(byte, expected)| *byte != expected) {
            // Some servers pad a body. Other clients ignore that, too.
            return Ok(Step::End);
        }
        let Some(length) = header_length(&self.begun)? else {
            if self.begun.len() == MAX_HEADER {
                return Err(invalid("its header is too long"));
            }
            self.input.advance(more);
            return self.want();
        };
        // What was there before was not a whole header.
        self.input.advance(length - before);
        self.begun.clear();
        self.inflate.reset(false);
        self.crc.reset();
        self.next = Part::Data;
        Ok(Step::Nothing)
    }

    fn read_data(&mut self) -> io::Result<Step> {
        let (read_before, written_before) = (self.inflate.total_in(), self.inflate.total_out());
        let input = &self.input[..self.input.len().min(MAX_INPUT)];
        let status = self.inflate.decompress(input, &mut self.output, FlushDecompress::None);
        let status = status.map_err(|_| invalid("its data is damaged"))?;
        let count = |total: u64, before| usize::try_from(total - before).unwrap_or(usize::MAX);
        let read = count(self.inflate.total_in(), read_before);
        let written = count(self.inflate.total_out(), written_before);
        self.input.advance(read);
        if status == Status::StreamEnd {
            self.next = Part::Trailer;
        }
        if written > 0 {
            let output = &self.output[..written];
            self.crc.update(output);
            return Ok(Step::Output(Bytes::copy_from_slice(output)));
        }
        if read > 0 || status == Status::StreamEnd {
            return Ok(Step::Nothing);
        }
        self.want()
    }

    fn read_trailer(&mut self) -> io::Result<Step> {
        let more = self.input.len().min(TRAILER - self.begun.len());
        self.begun.extend_from_slice(&self.input[..more]);
        self.input.advance(more);
        let Some((&[a, b, c, d, length @ ..], [])) = self.begun.split_first_chunk::<TRAILER>() else {
            return self.want();
        };
        let is_whole = u32::from_le_bytes([a, b, c, d]) == self.crc.sum()
            && u32::from_le_bytes(length) == self.crc.amount();
        if !is_whole {
            return Err(invalid("its checksum is wrong"));
        }
        self.begun.clear();
        self.has_member = true;
        self.next = Part::Header;
        Ok(Step::Nothing)
    }

    fn want(&self) -> io::Result<Step> {
        if self.is_over {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "it ends too early"));
        }
        if !self.input.is_empty() {
            return Err(invalid("its data is damaged"));
        }
        Ok(Step::Wanted)
    }
}

/// The length of the header at the beginning of `bytes`; `None` if they do not have all of it.
fn header_length(bytes: &[u8]) -> io::Result<Option<usize>> {
    // The bits of the optional parts, in the order of these except for the first one, which comes last.
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let Some((fixed, _)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
    let [0x1f, 0x8b, 8, flags, ..] = *fixed else { return Err(invalid("it has no header of gzip")) };
    let mut length = HEADER;
    if flags & EXTRA != 0 {
        let Some(size) = bytes[length..].first_chunk::<2>() else { return Ok(None) };
        length += 2 + usize::from(u16::from_le_bytes(*size));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let rest = bytes.get(length..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| *byte == 0) else { return Ok(None) };
            length += end + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        length += 2;
    }
    Ok((length <= bytes.len()).then_some(length))
}

fn invalid(problem: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests;
