//! Scripts that scripts save, in both languages.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cx::{
    Approval, ApprovalRequest, Backend, BackendRun, BoxFuture, ErrorCode, Isolation, Limits, Outcome, Script,
    ScriptError, WorkerProcesses,
};
use parking_lot::Mutex;
use serde_json::json;

use super::saved_scripts::{Saved, value};
use crate::support::stopwatch::{LATE, Stopwatch};
use crate::support::wait_until;

fn asked()
-> (Arc<Mutex<Vec<ApprovalRequest>>>, impl Fn(ApprovalRequest) -> std::future::Ready<Approval> + Send + Sync)
{
    let asked = Arc::<Mutex<Vec<ApprovalRequest>>>::default();
    let listener = Arc::clone(&asked);
    (asked, move |request: ApprovalRequest| {
        listener.lock().push(request);
        std::future::ready(Approval::Approve)
    })
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_script_is_saved_only_with_an_approval_that_shows_the_code() {
    for (script, file, call) in [
        (
            Script::typescript(
                "await scripts.save({ name: 'mine', code: 'return 6 * 7 // \\u202e', description: 'Says 42' }); \
                    return await scripts.mine()",
            ),
            "mine.ts",
            "return 6 * 7 // \\u{202e}",
        ),
        (
            Script::python(
                "await scripts.save(name='mine', code='6 * 7', description='Says 42')\nawait scripts.mine()",
            ),
            "mine.py",
            "6 * 7",
        ),
    ] {
        let saved = Saved::new(&[]);
        // No user can be asked.
        let result = saved.executor().run(script.clone()).await.unwrap();
        let error = result.error().unwrap();
        assert!(
            error.message.contains("needs a person's approval") && error.message.contains("cx scripts save"),
            "{}",
            error.message
        );
        assert!(files(&saved.folder()).is_empty());
        // Declaring it read-only does not help.
        let executor = saved.builder().read_only(["scripts.*"]).build().unwrap();
        assert!(executor.run(script.clone()).await.unwrap().error().is_some());
        assert!(files(&saved.folder()).is_empty());
        // A dry run records it.
        let result = saved.executor().run(script.clone().dry_run()).await.unwrap();
        let planned = result.planned_calls.clone().unwrap();
        assert_eq!((&*planned[0].server, &*planned[0].tool), ("scripts", "save"));
        assert!(files(&saved.folder()).is_empty());
        let (asked, approve) = asked();
        let executor = saved.builder().approver(approve).build().unwrap();
        let result = executor.run(script).await.unwrap();
        assert_eq!(asked.lock().len(), 1);
        assert_eq!(asked.lock()[0].code_lines(), Some(vec![call.to_owned()]));
        assert_eq!(files(&saved.folder()), [file]);
        assert_eq!(*value(&result), 42);
    }
}

#[tokio::test]
async fn a_script_in_a_script_asks_its_caller_s_person_and_stops_both_clocks() {
    let saved = Saved::new(&[("saver.ts", "return await scripts.save({ name: 'other', code: 'return 1' })")]);
    let slow = |_request: ApprovalRequest| async {
        tokio::time::sleep(Duration::from_secs(11)).await;
        Approval::Approve
    };
    let executor = saved.builder().approver(slow).build().unwrap();
    // Enough for what both scripts do beside waiting, also on a busy machine.
    let limits = Limits { wall_time: Duration::from_secs(10), ..Limits::default() };
    let result =
        executor.run(Script::typescript("return await scripts.saver()").limits(limits)).await.unwrap();
    assert!(result.error().is_none(), "{}", result.to_json());
    assert_eq!(files(&saved.folder()), ["other.ts", "saver.ts"]);
}

#[tokio::test]
async fn bad_saves_are_refused_before_anybody_is_asked() {
    let saved = Saved::new(&[("there.ts", "return 1")]);
    let (asked, approve) = asked();
    let executor = saved.builder().approver(approve).build().unwrap();
    for (arguments, part) in [
        ("{ name: '../x', code: 'return 1' }", "name"),
        ("{ name: '__proto__', code: 'return 1' }", "name"),
        ("{ name: 'save', code: 'return 1' }", "is not a name"),
        ("{ name: 'there', code: 'return 2' }", "replace: true"),
        ("{ name: 'a', code: '' }", "empty"),
        ("{ name: 'a', code: 'return 1', input: { type: 'array' } }", "type: object"),
        ("{ name: 'a' }", "code"),
        ("{ name: 'a', code: 'return 1', folder: '/tmp' }", "folder"),
    ] {
        let code = format!(
            "try {{ await scripts.save({arguments}) }} catch (error) {{ return [error.code, error.message] }}"
        );
        let result = executor.run(code).await.unwrap();
        let error = value(&result);
        assert_eq!(error[0], "INVALID_ARGUMENTS", "{arguments}: {error}");
        assert!(error[1].as_str().unwrap().contains(part), "{arguments}: {error}");
    }
    assert!(asked.lock().is_empty(), "{:?}", asked.lock());
    assert_eq!(files(&saved.folder()), ["there.ts"]);
}

/// Sources with two mistakes, and the beginnings of the lines about them.
const BROKEN: [(&str, &str, [&str; 2]); 2] = [
    (
        "typescript",
        "const a = ;\nconst b = 1;\nconst c = );\nreturn b",
        ["line 1, column 11: SYNTAX_ERROR: ", "line 3, column 12: SYNTAX_ERROR: "],
    ),
    (
        "python",
        "x = 1\nreturn = 3\ny = 2\nz = = 4\nx",
        ["line 2, column 8: SYNTAX_ERROR: ", "line 4, column 5: SYNTAX_ERROR: "],
    ),
];

/// Scripts of both languages that save what is in their input, and return the error of that.
fn savers(input: &serde_json::Value) -> [Script; 2] {
    let typescript =
        "try { return await scripts.save(inputs) } catch (error) { return [error.code, error.message] }";
    let python = "try:\n    result = await scripts.save(inputs)\nexcept McpToolError as error:\n    \
                  result = [error.code, error.message]\nresult";
    [Script::typescript(typescript), Script::python(python)].map(|script| script.input(input.clone()))
}

/// Checks that sources with mistakes are refused with all of them, and that nobody was asked.
async fn check_that_mistakes_are_refused(saved: &Saved, builder: cx::ExecutorBuilder) {
    let (asked, approve) = asked();
    let executor = builder.approver(approve).build().unwrap();
    for (language, code, expected) in BROKEN {
        // With a description the file begins with a front matter; the lines are those of the code.
        for description in [json!(null), json!("Does nothing")] {
            let mut input = json!({ "name": "mine", "language": language, "code": code });
            if !description.is_null() {
                input["description"] = description;
            }
            for script in savers(&input) {
                let result = executor.run(script).await.unwrap();
                let error = value(&result);
                assert_eq!(error[0], "INVALID_ARGUMENTS", "{error}");
                let message = error[1].as_str().unwrap();
                let lines: Vec<&str> = message.lines().collect();
                assert_eq!(lines.len(), 3, "{message}");
                assert!(lines[0].starts_with("`mine` cannot be compiled; nobody was asked"), "{message}");
                for (line, expected) in lines[1..].iter().zip(expected) {
                    assert!(line.starts_with(expected), "{message}");
                }
                // The check is no run of a script, and no call.
                assert_eq!((result.usage.tool_calls, result.usage.tool_calls_refused), (0, 1), "{result:?}");
            }
        }
    }
    assert!(asked.lock().is_empty(), "{:?}", asked.lock());
    assert!(files(&saved.folder()).is_empty());
    assert_eq!(executor.run_stats().running, 0);
    let input = json!({ "name": "mine", "language": "typescript", "code": "return 1" });
    for (count, script) in savers(&input).into_iter().enumerate() {
        let saves = executor.run(script).await.unwrap();
        // The second save does not replace the first.
        assert_eq!(value(&saves).is_object(), count == 0, "{saves:?}");
    }
    assert_eq!((asked.lock().len(), files(&saved.folder())), (1, vec!["mine.ts".to_owned()]));
}

#[tokio::test]
async fn v_680_source_that_cannot_be_run_is_shown_to_nobody() {
    let saved = Saved::new(&[]);
    check_that_mistakes_are_refused(&saved, saved.builder()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v_680_source_that_cannot_be_run_is_shown_to_nobody_with_worker_processes() {
    let saved = Saved::new(&[]);
    let program = Some(env!("CARGO_BIN_EXE_cx").into());
    let isolation = Isolation::Process(WorkerProcesses { program, runs_per_worker: 1, require: false });
    check_that_mistakes_are_refused(&saved, saved.builder().isolation(isolation)).await;
}

/// In a dry run the call is not planned either.
#[tokio::test]
async fn a_dry_run_says_that_a_script_cannot_be_saved() {
    let saved = Saved::new(&[]);
    let (language, code, _) = BROKEN[0];
    for script in savers(&json!({ "name": "mine", "language": language, "code": code })) {
        let result = saved.executor().run(script.dry_run()).await.unwrap();
        assert_eq!(value(&result)[0], "INVALID_ARGUMENTS");
        assert!(result.planned_calls.as_ref().unwrap().is_empty(), "{result:?}");
    }
}

/// The file has a front matter that the code does not have, and a program may be in a fence.
#[tokio::test]
async fn v_681_the_file_that_is_saved_is_what_is_compiled() {
    let saved = Saved::new(&[]);
    let (asked, approve) = asked();
    let executor = saved.builder().approver(approve).build().unwrap();
    for (language, code, expected) in [
        ("typescript", "```ts\nreturn 1;\nconst a = ;\n```", "line 3, column 11: SYNTAX_ERROR"),
        ("python", "```python\na = 1\nb = = 2\n```", "line 3, column 5: SYNTAX_ERROR"),
    ] {
        let input = json!({ "name": "mine", "language": language, "code": code, "description": "Does it" });
        for script in savers(&input) {
            let result = executor.run(script).await.unwrap();
            let message = value(&result)[1].as_str().unwrap().to_owned();
            assert!(message.contains(expected), "{code}: {message}");
        }
    }
    assert!(asked.lock().is_empty(), "{:?}", asked.lock());
    // A fence without mistakes is saved with its front matter, and runs.
    let input = json!({ "name": "mine", "code": "```ts\nreturn 7\n```", "description": "Says 7" });
    let [typescript, _] = savers(&input);
    assert!(value(&executor.run(typescript).await.unwrap()).is_object());
    assert_eq!(asked.lock().len(), 1);
    assert_eq!(*value(&executor.run("return await scripts.mine()").await.unwrap()), 7);
}

/// A check has what is left of the time of the run that saves. What a back end finds is the error of the call.
#[tokio::test]
async fn a_back_end_compiles_what_is_saved() {
    let saved = Saved::new(&[]);
    let (asked, approve) = asked();
    let executor = saved.builder().backend(Saver).approver(approve).build().unwrap();
    let result = executor.run_ts("save broken").await.unwrap();
    let message = &result.error().unwrap().message;
    assert!(message.contains("line 3, column 1: SYNTAX_ERROR: no such word"), "{message}");
    let limits = Limits { wall_time: Duration::from_millis(500), ..Limits::default() };
    let stopwatch = Stopwatch::start();
    let result = executor.run(Script::typescript("save endless").limits(limits)).await.unwrap();
    stopwatch.promise(limits.wall_time + LATE, "a check that does not end");
    assert!(result.to_json().to_string().contains("TIMEOUT"), "{result:?}");
    assert!(asked.lock().is_empty(), "{:?}", asked.lock());
    let result = executor.run_ts("save good").await.unwrap();
    assert!(result.error().is_none(), "{result:?}");
    assert_eq!((asked.lock().len(), files(&saved.folder())), (1, vec!["mine.ts".to_owned()]));
    wait_until(|| executor.run_stats().running == 0).await;
}

#[tokio::test]
async fn v_682_a_script_that_is_only_checked_makes_no_calls() {
    let saved = Saved::new(&[]);
    let (asked, approve) = asked();
    let executor = saved.builder().backend(Saver).approver(approve).build().unwrap();
    let checked = executor.check("disobedient").await.unwrap();
    let [finding] = &checked.findings[..] else { panic!("{checked:?}") };
    assert!(finding.message.contains("TOOL_DENIED: the script is only checked"), "{finding}");
    let result = executor.run_ts("save disobedient").await.unwrap();
    let message = &result.error().unwrap().message;
    assert!(message.contains("could not be checked") && message.contains("TOOL_DENIED"), "{message}");
    assert_eq!((saved.calls(), asked.lock().len()), (0, 0));
    assert!(files(&saved.folder()).is_empty());
}

/// A back end whose scripts save others: `save WORD`. To compile `broken` it finds a mistake, and `endless` has no end.
/// `disobedient` it executes, whatever it is told.
struct Saver;

impl Backend for Saver {
    fn execute(&self, run: BackendRun) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let source = run.source().to_owned();
            match (run.is_check(), source.strip_prefix("save ")) {
                (false, Some(code)) => {
                    let arguments = json!({ "name": "mine", "code": code }).to_string();
                    match run.call("scripts.save", &arguments).await {
                        Ok(answer) => Outcome::Returned(answer),
                        Err(error) => run.failed_by(&error),
                    }
                }
                _ => match &*source {
                    "broken" => {
                        let mut error = ScriptError::default();
                        (error.code, error.message) = (ErrorCode::SyntaxError, "no such word".to_owned());
                        (error.line, error.column) = (Some(3), Some(1));
                        Outcome::Failed(error)
                    }
                    "disobedient" => match run.call("notes.add", "{}").await {
                        Ok(answer) => Outcome::Returned(answer),
                        Err(error) => run.failed(error.to_string()),
                    },
                    "endless" => std::future::pending().await,
                    _ => Outcome::Returned(json!(null).into()),
                },
            }
        })
    }
}
