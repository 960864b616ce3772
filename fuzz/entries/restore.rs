//! Target of restoring a memory to its image: whatever was written, however the memory grew, and whether the idle trim
//! came in between, the next run finds every byte of the image, and zeros where it grows.

use arbitrary::{Result, Unstructured};

use super::{Image, Mapping, give_back};

/// Bytes of a page of WebAssembly.
const PAGE: usize = 64 << 10;

/// Pages by which a memory can grow, beyond its image.
const ROOM: usize = 16;

/// Pages of a large image: more than may stay written.
const MANY: usize = super::MAX_KEPT / PAGE + 32;

pub(crate) fn restore(data: &[u8]) {
    // An input may end early.
    let _ended = session(&mut Unstructured::new(data));
}

/// A memory, and what its bytes must be.
struct Session {
    image: Image,
    initial: Vec<u8>,
    mapping: Mapping,
    expected: Vec<u8>,
}

fn session(input: &mut Unstructured<'_>) -> Result<()> {
    let mut session = Session::new(input)?;
    while !input.is_empty() {
        match input.int_in_range(0..=7_u8)? {
            0..=3 => session.write(input)?,
            4 => session.grow(input)?,
            5 => session.trim(),
            6 => session.restore(),
            _ => session.compare(),
        }
    }
    session.restore();
    session.open(ROOM);
    session.compare();
    Ok(())
}

impl Session {
    /// An image out of `input`, at some offset of its file, as in the file of the compiled component.
    fn new(input: &mut Unstructured<'_>) -> Result<Self> {
        let pages = match input.int_in_range(0..=31_usize)? {
            31 => MANY,
            small => 1 + small % 8,
        };
        let before = PAGE * input.int_in_range(0..=2_usize)?;
        let pattern_bytes = input.int_in_range(0..=31_usize)?;
        let pattern = input.bytes(pattern_bytes)?;
        let length = pages * PAGE;
        let pattern = if pattern.is_empty() { &[0] } else { pattern };
        // Pages of zeros are in most images.
        let zeros = PAGE.min(length / 2);
        let content = pattern.iter().copied().cycle().take(length - zeros);
        let initial: Vec<u8> = std::iter::repeat_n(0, zeros).chain(content).collect();
        let file = [vec![0xa5; before], initial.clone()].concat();
        let image = Image { offset: before as u64, length, ..Image::in_memory(&file).expect("a file") };
        let mut mapping = Mapping::new(length + ROOM * PAGE, PAGE).expect("address space");
        mapping.map(&image).expect("the image is mapped");
        Ok(Self { image, expected: initial.clone(), initial, mapping })
    }

    #[expect(unsafe_code, reason = "what a guest does")]
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: as many bytes as `expected` has can be accessed, and the mapping is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.base(), self.expected.len()) }
    }

    fn write(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let size = self.expected.len();
        let (high, low): (u16, u8) = (input.arbitrary()?, input.arbitrary()?);
        let start = (usize::from(high) * size / (1 << 16) + usize::from(low)).min(size - 1);
        let count = (1_usize << input.int_in_range(0..=23_u32)?).min(size - start);
        let value: u8 = input.arbitrary()?;
        self.bytes()[start..start + count].fill(value);
        self.expected[start..start + count].fill(value);
        Ok(())
    }

    fn grow(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        self.open(input.int_in_range(1..=ROOM)?);
        self.compare();
        Ok(())
    }

    /// Makes up to this many more pages accessible, within the maximum.
    fn open(&mut self, pages: usize) {
        let size = self.expected.len();
        let larger = (size + pages * PAGE).min(self.image.length + ROOM * PAGE);
        self.mapping.open(size, larger).expect("memory is made accessible");
        self.expected.resize(larger, 0);
    }

    /// The idle trim, after which a guest finds what it wrote.
    fn trim(&mut self) {
        give_back(self.mapping.base(), self.image.length).expect("the kernel says what was written");
        self.compare();
    }

    /// The end of a run, and the beginning of the next.
    fn restore(&mut self) {
        let size = self.expected.len();
        self.mapping.restore(&self.image, size).expect("the image is read again");
        self.expected.clone_from(&self.initial);
        self.compare();
    }

    #[expect(unsafe_code, reason = "what a guest does")]
    fn compare(&self) {
        // SAFETY: as many bytes as `expected` has can be accessed, and the mapping is borrowed.
        let found = unsafe { std::slice::from_raw_parts(self.mapping.base(), self.expected.len()) };
        if found != self.expected {
            let differs = found.iter().zip(&self.expected).position(|(found, expected)| found != expected);
            panic!("byte {differs:?} of {} is another", self.expected.len());
        }
    }
}

#[cfg(test)]
#[test]
fn px_130_every_byte_of_a_memory_is_restored() {
    crate::fuzzing::smoke("restore", 500, restore);
}
