//! Shared by the fuzz targets and their short form in the test suite.
//!
//! Each target is one function that takes bytes and panics if a promise is broken. It stands beside this file and is a
//! module of the code that it looks into (`cfg(any(test, fuzzing))`), so that it reaches what is private there.

#[cfg_attr(test, expect(unreachable_pub, reason = "the measurements in `fuzz/examples` use them"))]
pub mod constructs;
mod grammar;
pub(crate) mod lines;
pub(crate) mod nestings;

/// Runs `target` over its seeds and over `mutations` of them, the same ones each time, or over as many as
/// `CX_FUZZ_MUTATIONS` says.
#[cfg(test)]
pub(crate) fn smoke(name: &str, mutations: usize, target: impl Fn(&[u8])) {
    let wanted = crate::sync::model::number("CX_FUZZ_MUTATIONS");
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let files =
        std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<_> = files.map(|file| file.expect("a seed").path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a seed")).collect();
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let run = |bytes: &[u8]| {
        // The panic itself has printed what is wrong.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(bytes)));
        assert!(result.is_ok(), "{name} fails for {:?}", String::from_utf8_lossy(bytes));
    };
    seeds.iter().for_each(|seed| run(seed));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..wanted.unwrap_or(mutations as u64) {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            random.mutate(&mut bytes, &seeds);
        }
        bytes.truncate(MAX_MUTANT_BYTES);
        run(&bytes);
    }
}

/// Longest input of the short form, so that a test takes seconds.
#[cfg(test)]
const MAX_MUTANT_BYTES: usize = 4 << 10;

/// Pseudo-random numbers, the same each time: xorshift.
#[cfg(test)]
struct Random(u64);

#[cfg(test)]
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 11).unwrap_or(0) % end.max(1)
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let (one, other) = (self.below(length + 1), self.below(length + 1));
        one.min(other)..one.max(other)
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(bytes.len() + 1);
        match self.below(6) {
            0 => bytes.insert(at, u8::try_from(self.below(256)).unwrap_or(0)),
            1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            2 => drop(bytes.drain(self.range(bytes.len()))),
            3 => {
                let range = self.range(bytes.len());
                let copy = bytes[range].to_vec();
                let times = 1 + self.below(8);
                drop(bytes.splice(at..at, copy.repeat(times)));
            }
            4 => {
                let other = &seeds[self.below(seeds.len())];
                let part = other[self.range(other.len())].to_vec();
                drop(bytes.splice(at..at, part));
            }
            _ => {
                let signs = b"(){}[]<>,.;:=+-*/!?@#`'\"\\$%&|^~\n\r\t 019eE_aAtruefalsnl\0\xff\xe2\x80\xa8";
                bytes.insert(at, signs[self.below(signs.len())]);
            }
        }
    }
}
