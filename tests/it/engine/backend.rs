//! An embedder's back end: the back end executes, and the executor decides.

use std::time::Duration;

use cx::{
    Backend, BackendRun, BoxFuture, ErrorCode, Executor, Json, Language, Limits, LogLevel, Outcome, Script,
};
use serde_json::json;

use crate::support::mock::Mock;
use crate::support::stopwatch::{LATE, Stopwatch};

/// Its language has lines: `call TOOL ARGUMENTS`, `print TEXT`, `return JSON`, `throw TEXT`, `wait`.
struct Lines;

impl Backend for Lines {
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let source = run.source().to_owned();
            for line in source.lines() {
                let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
                match word {
                    "call" => {
                        let (tool, arguments) = rest.split_once(' ').unwrap();
                        if let Err(error) = run.call(tool, arguments).await {
                            return run.failed(error.to_string());
                        }
                    }
                    "print" => run.print(LogLevel::Info, rest),
                    "return" => return Outcome::Returned(Json::parse(rest).unwrap()),
                    "throw" => return run.failed(rest),
                    _ => std::future::pending::<()>().await,
                }
            }
            Outcome::Returned(json!(null).into())
        })
    }
}

fn executor() -> Executor {
    Executor::builder().dispatcher(Mock::default()).deny(["mock.fail"]).backend(Lines).build().unwrap()
}

fn code(outcome: &Outcome) -> Option<ErrorCode> {
    match outcome {
        Outcome::Failed(error) => Some(error.code),
        _ => None,
    }
}

#[tokio::test]
async fn a_back_end_executes_and_the_executor_decides() {
    let executor = executor();
    let result = executor.run_ts("print hello\ncall mock.echo {\"a\":1}\nreturn [2]").await.unwrap();
    assert_eq!(result.outcome, Outcome::Returned(json!([2]).into()));
    assert_eq!(result.printed(), "hello");
    assert_eq!(result.tool_calls.len(), 1);
    // Calls that the rules forbid are refused to it, and counted.
    let result = executor.run_ts("call mock.fail {}").await.unwrap();
    assert!(format!("{:?}", result.outcome).contains("TOOL_DENIED"), "{result:?}");
    assert_eq!(result.usage.tool_calls_refused, 1);
    let result = executor.run_ts("throw no").await.unwrap();
    assert_eq!(code(&result.outcome), Some(ErrorCode::RuntimeError));
}

#[tokio::test]
async fn limits_hold_for_a_back_end() {
    let executor = executor();
    let stopwatch = Stopwatch::start();
    let limits = Limits { wall_time: Duration::from_millis(200), ..Limits::default() };
    let result = executor.run(Script::typescript("wait").limits(limits)).await.unwrap();
    assert_eq!(code(&result.outcome), Some(ErrorCode::Timeout), "{result:?}");
    stopwatch.promise(Duration::from_millis(200) + LATE, "the limit of a back end");
    let limits = Limits { result_bytes: 100, ..Limits::default() };
    let long = format!("return \"{}\"", "x".repeat(200));
    let result = executor.run(Script::typescript(long).limits(limits)).await.unwrap();
    assert_eq!(code(&result.outcome), Some(ErrorCode::ResultTooLarge), "{result:?}");
    let limits = Limits { tool_calls: 1, ..Limits::default() };
    let calls = "call mock.echo {}\ncall mock.echo {}";
    let result = executor.run(Script::typescript(calls).limits(limits)).await.unwrap();
    assert!(format!("{:?}", result.outcome).contains("MAX_TOOL_CALLS_EXCEEDED"), "{result:?}");
}

/// A back end that only prints that it executes a script. In one language its scripts are those of cx.
struct Saying(Language);

impl Backend for Saying {
    fn is_checked(&self, language: Language) -> bool {
        language == self.0
    }

    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            run.print(LogLevel::Info, "executed");
            Outcome::Returned(json!(null).into())
        })
    }
}

#[tokio::test]
async fn scripts_in_languages_of_cx_are_checked_before_a_back_end_has_them() {
    for own in [Language::TypeScript, Language::Python] {
        let two = |_: serde_json::Value| async { Ok::<_, String>(2) };
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
        let executor =
            Executor::builder().tool("math.two", schema, two).backend(Saying(own)).build().unwrap();
        let mut cases = vec![
            ("await tools.math.two({ a: 1 })", Language::TypeScript, None),
            ("await tools.math.twoo({ a: 1 })", Language::TypeScript, Some(ErrorCode::CheckFailed)),
            ("await tools.math.two({ b: 1 })", Language::TypeScript, Some(ErrorCode::CheckFailed)),
            ("const = 1", Language::TypeScript, Some(ErrorCode::SyntaxError)),
            ("await tools.math.two(a=1)", Language::Python, None),
            ("await tools.math.twoo(a=1)", Language::Python, Some(ErrorCode::CheckFailed)),
            ("await tools.math.two()", Language::Python, Some(ErrorCode::CheckFailed)),
            // Only the back end knows which modules there are.
            ("import numpy", Language::Python, None),
        ];
        // cx does not know the other language, so all of its scripts are executed.
        cases
            .iter_mut()
            .filter(|(_, language, _)| *language != own)
            .for_each(|(_, _, failure)| *failure = None);
        for (source, language, failure) in cases {
            let is_python = language == Language::Python;
            let script = if is_python { Script::python(source) } else { Script::typescript(source) };
            let result = executor.run(script).await.unwrap();
            assert_eq!(code(&result.outcome), failure, "{own:?} {source}: {result:?}");
            let printed = if failure.is_none() { "executed" } else { "" };
            assert_eq!(result.printed(), printed, "{own:?} {source}");
        }
    }
}
