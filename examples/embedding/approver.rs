//! Approval: which calls need a person, who is asked, and what a script sees of the answer.

use cx::{Approval, ApprovalRequest, Error, Executor, Script};
use serde_json::{Value, json};

/// Asks a person. A program opens a dialog or sends a message here, and awaits the answer; this person is a function.
async fn ask(request: ApprovalRequest) -> Approval {
    // What a script wrote is shown with these two, which write out every character that a person would not see.
    let (call, arguments) = (request.call_text(), request.arguments_text());
    if arguments.contains(r#""/srv/tmp/"#) {
        return Approval::Approve;
    }
    Approval::Deny { reason: Some(format!("{call} is for temporary files")) }
}

/// Returns what a script saw of two calls, and how many calls its dry run would have made.
pub(crate) async fn example() -> Result<(Value, usize), Error> {
    let delete = |input: Value| async move { Ok::<_, String>(input["path"].clone()) };
    let executor = Executor::builder()
        .tool("files.delete", json!({ "type": "object" }), delete)
        .ask(["files.delete"])
        .approver(ask)
        .build()?;
    let script = Script::typescript(
        r#"
        const seen = [];
        for (const path of ["/srv/tmp/a", "/home/b"]) {
            // A refusal is an error like any other.
            try { seen.push(await tools.files.delete({ path })) } catch (error) { seen.push(error.message) }
        }
        return seen;
        "#,
    );
    // Makes none of the calls, and shows no prompt.
    let planned = executor.run(script.clone().dry_run()).await?.planned_calls.unwrap_or_default();
    let result = executor.run(script).await?;
    Ok((result.value().cloned().unwrap_or_default(), planned.len()))
}
