//! Measures how the time to transpile grows, for each construct in a row and nested, up to 1 MB.
//!
//! ```sh
//! cargo run --release --example growth [row|nested] [FROM [TO]]
//! ```
//!
//! Prints each case that takes longer than [`MAX_SECONDS`], and ends with status 1 if there was one. It measures the
//! CPU time of one thread, so other work on the machine matters little.

#![allow(clippy::print_stdout, reason = "a command")]

use std::process::ExitCode;
use std::time::Duration;

use cx_fuzz::programs::constructs::{NESTS, PAYLOADS, SEQUENCES, TRIGGERS, nested, sequence};
use cx_fuzz::programs::transpile;

/// The promised maximum for a source of 1 MB.
const MAX_SECONDS: f64 = 1.0;

/// Sizes of a case. A case that takes [`MAX_SECONDS`] at one of them is not tried at the next, nor is one that is
/// refused: the largest that is accepted is the slowest.
const SIZES: [usize; 5] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];

/// Levels of nesting.
const LEVELS: [usize; 5] = [1_990, 990, 400, 160, 60];

/// As the product has it.
const STACK_BYTES: usize = 256 << 20;

/// Writes a case of about this many bytes.
type Source = Box<dyn Fn(usize) -> String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_nested = arguments.first().is_some_and(|mode| mode == "nested");
    let number =
        |index: usize, default| arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default);
    let range = number(1, 0)..number(2, usize::MAX);
    let mut cases: Vec<(String, Source)> = Vec::new();
    for trigger in TRIGGERS {
        if is_nested {
            for nest in NESTS {
                for payload in PAYLOADS {
                    let ends = [true, false].into_iter();
                    for (innermost, levels) in ends.flat_map(|end| LEVELS.map(|levels| (end, levels))) {
                        let make = move |bytes| nested(trigger, *nest, levels, payload, innermost, bytes);
                        let name =
                            format!("{trigger} {nest:?} {payload:?} innermost {innermost} levels {levels}");
                        cases.push((name, Box::new(make)));
                    }
                }
            }
        } else {
            for construct in SEQUENCES {
                let make = move |bytes| sequence(trigger, construct, bytes);
                cases.push((format!("{trigger} {construct:?}"), Box::new(make)));
            }
        }
    }
    let mut slow = 0;
    for (index, (name, make)) in cases.iter().enumerate().filter(|(index, _)| range.contains(index)) {
        let mut times = Vec::new();
        for size in SIZES {
            let (seconds, outcome) = measure(&make(size));
            let is_refused = outcome.contains("too deeply") || outcome.contains("too much work");
            times.push(format!("{seconds:.3} s {outcome}"));
            if seconds > MAX_SECONDS {
                println!("{index}: {name}: {}", times.join(", "));
                slow += 1;
            }
            if seconds > MAX_SECONDS || is_refused {
                break;
            }
        }
    }
    println!("{} cases, {slow} slower than {MAX_SECONDS} s", cases.len());
    if slow == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The CPU seconds, and the output.
fn measure(source: &str) -> (f64, String) {
    std::thread::scope(|scope| {
        let run = || {
            let before = cpu_time();
            let result = transpile(source);
            let seconds = (cpu_time() - before).as_secs_f64();
            let outcome = result.map_or_else(|error| error, |code| format!("{} bytes", code.len()));
            (seconds, outcome.chars().take(60).collect())
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        thread.expect("a thread starts").join().expect("no panic crosses `transpile`")
    })
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
}
