//! Fuel: the limit of Python that does not depend on a clock.

use cx::{ErrorCode, Executor, Language, Limits, Script};
use serde_json::{Value, json};

use crate::support::python_executor;

/// Counts, and prints each step, so that the output shows how far it came.
const COUNTS: &str = "
number = 0
while True:
    number += len(str(number).split('1'))
    print(number)";

const SUMS: &str = "return sum(i * i for i in range(100_000))";

/// An executor whose code that counts fuel is compiled.
async fn counting() -> Executor {
    let (builder, _) = python_executor::builder();
    let limits = Limits { fuel: Some(20_000_000), ..python_executor::small() };
    let executor = builder.limits(limits).build().unwrap();
    executor.warm(Language::Python).await.unwrap();
    executor
}

fn limited(source: &str, fuel: u64) -> Script {
    Script::python(source).limits(Limits { fuel: Some(fuel), ..python_executor::small() })
}

async fn run(executor: &Executor, script: Script) -> cx::ExecuteResult {
    executor.run(script).await.unwrap()
}

#[tokio::test]
async fn a_script_ends_at_the_same_instruction_each_time() {
    let executor = counting().await;
    let first = run(&executor, limited(COUNTS, 20_000_000)).await;
    assert_eq!(first.error().map(|error| error.code), Some(ErrorCode::FuelLimit), "{}", first.to_json());
    assert_eq!(first.usage.fuel, Some(20_000_000));
    let printed = first.printed();
    assert!(printed.lines().count() > 100, "{printed}");
    // The result is the same under load, and in another executor.
    let (other, _) = python_executor::executor().await;
    let again = futures::future::join_all((0..4).map(|_| run(&other, limited(COUNTS, 20_000_000)))).await;
    for result in again.iter().chain([&run(&executor, Script::python(COUNTS)).await]) {
        assert_eq!(result.printed(), printed);
    }
    // With a little more fuel the script gets a little further.
    let further = run(&executor, limited(COUNTS, 20_200_000)).await.printed();
    assert!(further.len() > printed.len() && further.starts_with(&printed), "{}", further.len());
}

#[tokio::test]
async fn what_a_script_uses_is_counted_exactly() {
    let executor = counting().await;
    let first = run(&executor, limited(SUMS, 1_000_000_000)).await;
    assert_eq!(first.value(), Some(&json!(333_328_333_350_000_u64)), "{}", first.to_json());
    let used = first.usage.fuel.unwrap();
    assert!((1_000_000..1_000_000_000).contains(&used), "{used}");
    assert_eq!(first.to_json()["fuelUsed"], used);
    // With the fuel that it used, the script ends as before; with a hundredth less it does not.
    let enough = run(&executor, limited(SUMS, used + 1)).await;
    assert_eq!((enough.value(), enough.usage.fuel), (first.value(), Some(used)), "{}", enough.to_json());
    let result = run(&executor, limited(SUMS, used - used / 100)).await;
    assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::FuelLimit), "{}", result.to_json());
    // A script cannot catch the end of its fuel, and waiting costs nothing.
    let catches = "
while True:
    try:
        while True: pass
    except BaseException: pass";
    let result = run(&executor, limited(catches, 5_000_000)).await;
    assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::FuelLimit), "{}", result.to_json());
    let waits = "import asyncio\nawait asyncio.sleep(0.3)\nreturn 1";
    assert_eq!(run(&executor, limited(waits, 5_000_000)).await.value(), Some(&json!(1)));
}

#[tokio::test]
async fn runs_without_a_limit_of_fuel_have_none() {
    let (executor, _) = python_executor::executor().await;
    for script in [
        Script::python("return 1"),
        // In TypeScript no instructions are counted.
        Script::typescript("return 1").limits(Limits { fuel: Some(1), ..Limits::default() }),
    ] {
        let result = run(&executor, script).await;
        assert_eq!(
            (result.value(), result.usage.fuel),
            (Some(&Value::from(1)), None),
            "{}",
            result.to_json()
        );
    }
}
