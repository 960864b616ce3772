//! Dry runs.

use super::*;

#[tokio::test]
async fn a_dry_run_makes_no_call_that_is_not_read_only() {
    let scripts = both(
        "const listed = await notes.list({ id: 1 });
         const added = await notes.add({ id: 2, text: 'ü' });
         const removed = call_tool('notes', 'delete', { id: added.deleted.id });
         return [listed.left, added, removed]",
        "listed = await notes.list(id=1)
added = await notes.add(id=2, text='ü')
removed = call_tool('notes', 'delete', {'id': added['deleted']['id']})
return [listed['left'], added, removed]",
    );
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor =
            notes.builder().ask(["*"]).approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
        let result = run(&executor, script.clone().dry_run()).await;
        let added = json!({ "deleted": { "id": 5 }, "left": 1, "when": "2000-01-01" });
        let removed = json!({ "ok": true, "result": { "dry run": true } });
        assert_eq!(value(&result), &json!([3, added, removed]));
        assert_eq!(*notes.calls.lock(), [("list", r#"{"id":1}"#.to_owned())]);
        // A call that is made still needs approval, and simulated ones do not.
        assert_eq!(person.count(), 1);
        let calls: Vec<_> =
            planned(&result).iter().map(|call| (&*call.server, &*call.tool, &call.arguments)).collect();
        let arguments = [json!({ "id": 2, "text": "ü" }), json!({ "id": 5 })].map(cx::Json::from);
        assert_eq!(calls, [("notes", "add", &arguments[0]), ("notes", "delete", &arguments[1])]);
        let report = result.to_json();
        assert_eq!(
            report["plannedCalls"],
            json!([
                { "tool": "mcp__notes__add", "arguments": arguments[0] },
                { "tool": "mcp__notes__delete", "arguments": arguments[1] },
            ])
        );
        let simulated = ToolCallStatus::Simulated;
        assert_eq!(statuses(&result), [ToolCallStatus::Ok, simulated, simulated]);
        let of_add = &report["toolCallSummary"][0];
        assert_eq!(
            (&of_add["tool"], &of_add["simulated"]),
            (&json!("mcp__notes__add"), &json!(1)),
            "{report:#}"
        );
        assert_eq!(report["toolCallsMade"], 1, "{report:#}");
        assert!(report.get("toolCallsRefused").is_none(), "{report:#}");
        // The next dry run returns a sample of what the tool was seen to return.
        let real = run(&executor, script.clone()).await;
        assert!(real.planned_calls.is_none() && real.to_json().get("plannedCalls").is_none());
        assert_eq!(notes.count(), 4);
        let again = run(&executor, script.dry_run()).await;
        assert_eq!(value(&again)[2]["result"], json!({ "deleted": { "id": 1 }, "left": 1 }));
        assert_eq!(notes.count(), 5, "only `list` again");
    }
}

/// Everything else about the run is the same.
#[tokio::test]
async fn a_dry_run_obeys_policy_schemas_and_limits() {
    let notes = Notes::default();
    let executor = notes.builder().deny(["notes.add"]).read_only(["notes.nothing"]).build().unwrap();
    let source = "const codes = [];
        for (const call of [() => notes.add({}), () => notes.delete({ id: 'x' }), () => notes.remove({})])
            codes.push(await call().catch((error) => error.code));
        return codes";
    let result = run(&executor, Script::typescript(source).dry_run()).await;
    assert_eq!(value(&result), &json!(["TOOL_DENIED", "INVALID_ARGUMENTS", "TOOL_NOT_FOUND"]));
    assert!(planned(&result).is_empty() && result.to_json()["plannedCalls"] == json!([]));
    let limits = Limits { tool_calls: 2, ..Limits::default() };
    let result =
        run(&executor, Script::typescript("for (;;) await notes.delete({})").limits(limits).dry_run()).await;
    assert_eq!(code(&result), Some(ErrorCode::MaxToolCallsExceeded));
    assert_eq!(planned(&result).len(), 2, "a run that fails still says what it would have called");
    // A person declares tools as read-only, in general and for one server.
    let executor = notes.builder().read_only(["notes.delete"]).build().unwrap();
    let result = run(&executor, Script::python("await notes.delete(id=1)").dry_run()).await;
    assert_eq!((planned(&result).len(), notes.count()), (0, 1));
}

#[tokio::test]
async fn planned_calls_have_bounds() {
    let notes = Notes::default();
    let executor = notes.builder().build().unwrap();
    let limits = Limits { tool_calls: 0, ..Limits::default() };
    let source = "for (let id = 0; id < 1_100; id++) await notes.delete({ id })";
    let result = run(&executor, Script::typescript(source).limits(limits).dry_run()).await;
    assert_eq!((planned(&result).len(), result.usage.planned_calls_dropped), (PlannedCall::KEPT, 100));
    assert_eq!(result.to_json()["plannedCallsDropped"], 100);
    let source = "for (let id = 0; id < 5; id++) await notes.delete({ id, text: 'x'.repeat(300_000) })";
    let result = run(&executor, Script::typescript(source).dry_run()).await;
    assert_eq!((planned(&result).len(), result.usage.planned_calls_dropped), (3, 2));
    assert_eq!(notes.count(), 0);
    // Arguments may be secrets.
    assert!(!format!("{result:?}").contains("xxx"));
}
