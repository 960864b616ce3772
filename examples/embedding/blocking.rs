//! A program without async code, and one that has a tokio runtime already.

use cx::{Error, Executor, OptionName, Script};
use tokio::runtime::Handle;

/// Returns the sum that a script computes, as a Rust type.
pub(crate) fn example(runtime: &Handle) -> Result<u64, Box<dyn std::error::Error>> {
    // Timers, sockets and child processes of the tools live on the program's own runtime.
    let executor = Executor::builder().runtime(runtime.clone()).build()?;
    let script = Script::typescript("return input.reduce((sum, number) => sum + number, 0)");
    let result = executor.run_blocking(script.input(serde_json::json!([1, 2, 3])))?;
    let sum = result.value_as::<u64>()?;

    // The script's value has another type.
    assert!(result.value_as::<Vec<String>>().is_err());

    // A runtime that one blocked thread drives cannot be shared.
    let single = tokio::runtime::Builder::new_current_thread().build()?;
    let refused = Executor::builder().runtime(single.handle().clone()).build();
    assert!(matches!(refused, Err(Error::InvalidOptions { option: OptionName::Runtime, .. })));
    Ok(sum)
}
