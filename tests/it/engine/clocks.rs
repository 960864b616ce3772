//! The resolution of the clocks that scripts read.

use std::time::Duration;

use cx::{Error, Executor, Language, OptionName, Script};
use serde_json::{Value, json};

use crate::support::python_executor;

/// Reads each clock until it has changed five times, and returns whether each reading is a multiple of `input`
/// microseconds.
const TYPESCRIPT: &str = "
    const isMultiple = (ms) => Math.abs(ms * 1000 / input - Math.round(ms * 1000 / input)) < 1e-4;
    const samples = (read) => {
        const times = new Set();
        while (times.size < 5) times.add(read());
        return [...times].every(isMultiple);
    };
    return [samples(() => performance.now()), samples(() => performance.mark('a').startTime)]";

const PYTHON: &str = "
import time
def samples(read):
    times = set()
    while len(times) < 5: times.add(read())
    return all(ns % (inputs * 1000) == 0 for ns in times)
return [samples(read) for read in (time.perf_counter_ns, time.monotonic_ns, time.time_ns)]";

async fn check(executor: &Executor, script: Script, microseconds: u32, expected: Value) {
    let result = executor.run(script.input(json!(microseconds))).await.unwrap();
    assert_eq!(result.value(), Some(&expected), "{microseconds}: {}", result.to_json());
}

#[tokio::test]
async fn clocks_are_coarse_unless_the_operator_says_otherwise() {
    let (coarse, _) = python_executor::executor().await;
    check(&coarse, Script::typescript(TYPESCRIPT), 100, json!([true, true])).await;
    check(&coarse, Script::python(PYTHON), 100, json!([true, true, true])).await;
    let said =
        coarse.run(Script::python("import time\nreturn time.get_clock_info('monotonic').resolution")).await;
    assert_eq!(said.unwrap().value(), Some(&json!(0.0001)));
    let (builder, _) = python_executor::builder();
    let coarser = builder.clock_resolution(Duration::from_millis(4)).build().unwrap();
    check(&coarser, Script::typescript(TYPESCRIPT), 4_000, json!([true, true])).await;
    check(&coarser, Script::python(PYTHON), 4_000, json!([true, true, true])).await;
    let (builder, _) = python_executor::builder();
    let fine = builder.clock_resolution(Duration::ZERO).build().unwrap();
    check(&fine, Script::typescript(TYPESCRIPT), 100, json!([false, false])).await;
    check(&fine, Script::python(PYTHON), 100, json!([false, false, false])).await;
}

/// Timers and timeouts end on time, and no loop waits for ever for a clock that does not advance.
#[tokio::test]
async fn waiting_works_with_a_coarse_clock() {
    let (builder, _) = python_executor::builder();
    let executor = builder.clock_resolution(Duration::from_millis(50)).build().unwrap();
    executor.warm(Language::Python).await.unwrap();
    let python = "
import asyncio, time
await asyncio.gather(*(asyncio.sleep(0.001 * i) for i in range(20)))
time.sleep(0.01)
try:
    async with asyncio.timeout(0.01): await asyncio.sleep(10)
except TimeoutError: return 'late'";
    let result = executor.run(Script::python(python)).await.unwrap();
    assert_eq!(result.value(), Some(&json!("late")), "{}", result.to_json());
    let typescript =
        "await new Promise((done) => setTimeout(done, 5)); return AbortSignal.timeout(1).aborted";
    let result = executor.run(Script::typescript(typescript)).await.unwrap();
    assert_eq!(result.value(), Some(&json!(false)), "{}", result.to_json());
}

#[test]
fn a_resolution_beyond_a_second_is_refused() {
    let built = Executor::builder().clock_resolution(Duration::from_secs(2)).build();
    assert!(
        matches!(built, Err(Error::InvalidOptions { option: OptionName::ClockResolution, .. })),
        "{built:?}"
    );
}
