//! Scripts that scripts save, in both languages.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cx::{Approval, ApprovalRequest, Limits, Script};
use parking_lot::Mutex;

use super::saved_scripts::{Saved, value};

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
                "await scripts.save({ name: 'mine', code: 'return 6 *\\u202e 7', description: 'Says 42' }); \
                    return await scripts.mine()",
            ),
            "mine.ts",
            "return 6 *\\u{202e} 7",
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
        if file == "mine.py" {
            assert_eq!(*value(&result), 42);
        }
    }
}

#[tokio::test]
async fn a_script_in_a_script_asks_its_caller_s_person_and_stops_both_clocks() {
    let saved = Saved::new(&[("saver.ts", "return await scripts.save({ name: 'other', code: 'return 1' })")]);
    let slow = |_request: ApprovalRequest| async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        Approval::Approve
    };
    let executor = saved.builder().approver(slow).build().unwrap();
    let limits = Limits { wall_time: Duration::from_millis(1_000), ..Limits::default() };
    let result =
        executor.run(Script::typescript("return await scripts.saver()").limits(limits)).await.unwrap();
    assert!(result.error().is_none(), "{}", result.to_json());
    assert_eq!(files(&saved.folder()), ["other.ts", "saver.ts"]);
}

#[tokio::test]
async fn bad_saves_are_refused_after_the_approval_too() {
    let saved = Saved::new(&[("there.ts", "return 1")]);
    let (_asked, approve) = asked();
    let executor = saved.builder().approver(approve).build().unwrap();
    for (arguments, part) in [
        ("{ name: '../x', code: 'return 1' }", "name"),
        ("{ name: '__proto__', code: 'return 1' }", "name"),
        ("{ name: 'save', code: 'return 1' }", "no name"),
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
    assert_eq!(files(&saved.folder()), ["there.ts"]);
}
