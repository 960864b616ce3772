//! Follow a run while it runs, and cancel it.

use cx::{Error, ErrorCode, Executor, Output, RunEvent};
use serde_json::json;

/// Returns the events of a run that is cancelled as soon as it prints that it has enough.
pub(crate) async fn example() -> Result<Vec<String>, Error> {
    let schema = json!({ "type": "object", "properties": { "number": { "type": "number" } } });
    let executor = Executor::builder()
        .tool("pages.read", schema, |page: serde_json::Value| async move {
            Ok::<_, String>(json!({ "text": format!("page {}", page["number"]) }))
        })
        .build()?;

    // The run starts here, and goes on whether or not its events are read.
    let mut run = executor.start(
        r#"
        for (let number = 1; ; number++) {
            const { text } = await tools.pages.read({ number });
            console.log(text);
            if (number === 2) console.log("enough");
        }
        "#,
    );

    let mut heard = Vec::new();
    let mut events = run.events().expect("the events are taken once");
    while let Some(event) = events.next().await {
        match event {
            RunEvent::Call(call) => {
                heard.push(format!("{}.{} {}", call.server, call.tool, call.status.as_str()));
            }
            RunEvent::Output(Output::Log { text, .. }) if text == "enough" => {
                run.cancel();
                break;
            }
            RunEvent::Output(Output::Log { text, .. }) => heard.push(text),
            _ => {}
        }
    }

    // A cancelled run has a result like any other: what it printed, and the calls that it made.
    let result = run.await?;
    assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Cancelled));
    assert!(result.tool_calls.len() >= 2);
    Ok(heard)
}
