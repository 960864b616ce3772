//! Random bytes from a seed: the same for a recording and its replays.
//!
//! The standard generator of `rand` may give other bytes in another version, and a recording is
//! replayed by later versions of cx. SHA-256 is here anyway, and a script draws few bytes.

use sha2::{Digest as _, Sha256};

/// SHA-256 of the seed and a counter, block by block: its bytes do not reveal one another.
pub(super) struct SeededBytes {
    seed: [u8; 32],
    counter: u64,
    block: [u8; 32],
    /// Number of bytes of the block that were used.
    used: usize,
}

impl SeededBytes {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self { seed, counter: 0, block: [0; 32], used: 32 }
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.used == self.block.len() {
                let hash = Sha256::new().chain_update(self.seed).chain_update(self.counter.to_le_bytes());
                self.block = hash.finalize().into();
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }
}
