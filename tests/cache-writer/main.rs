//! Writes to a cache and a state directory until it is killed: lists of tools whose descriptions all
//! carry the same number, which grows by two, and shapes of results. Prints each number once it is written.
//!
//! Arguments: the cache directory, the state directory, the first number.
#![expect(clippy::print_stdout, reason = "a test's program: it says how far it is")]

#[path = "../it/numbered.rs"]
mod numbered;

use cx::Executor;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let cache = arguments.next().expect("a cache directory");
    let state = arguments.next().expect("a state directory");
    let first: u64 = arguments.next().and_then(|text| text.parse().ok()).expect("a number");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for number in (first..).step_by(2) {
        let executor = Executor::builder()
            .warm_isolates(0)
            .cache_directory(&cache)
            .state_directory(&state)
            .dispatcher(numbered::Numbered { number: Some(number) })
            .build()
            .expect("an executor");
        runtime.block_on(async {
            executor.refresh_tools().await;
            executor.close().await;
        });
        println!("{number}");
    }
}
