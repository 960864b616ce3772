//! Writes programs of the grammar and what they compile to, one JSON object a line, for `differential/compare.mjs`.
//!
//! ```sh
//! cargo run --release --example generate COUNT [SEED]
//! ```

#![allow(clippy::print_stdout, reason = "a command")]

use cx_fuzz::programs::{generate, transpile};

/// Bytes that one program is made of.
const BYTES: usize = 2_000;

/// As the product has it.
const STACK_BYTES: usize = 256 << 20;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let (count, seed) = (numbers.first().copied().unwrap_or(1_000), numbers.get(1).copied().unwrap_or(1));
    let run = move || {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..count {
            let bytes: Vec<u8> = (0..BYTES)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 24) as u8
                })
                .collect();
            let Some(source) = generate(&bytes) else { continue };
            let line = match transpile(&format!("{source}\nreturn out;\n")) {
                Ok(code) => serde_json::json!({ "source": source, "code": code }),
                Err(error) => serde_json::json!({ "source": source, "error": error }),
            };
            println!("{line}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    thread.expect("a thread starts").join().expect("no panic crosses `transpile`");
}
