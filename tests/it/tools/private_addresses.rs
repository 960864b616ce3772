//! Private addresses in the arguments of tools. THREATS 556.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cx::{
    Approval, ApprovalRequest, AskReason, Executor, ExecutorBuilder, PrivateAddresses, Script, ToolCall,
    ToolErrorCode, ToolRules,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::support::mock::Mock;
use crate::support::python_cache;

/// The same call in both languages. Returns the error's code and message, or `sent`.
fn calls() -> [Script; 2] {
    [
        Script::typescript(
            "try { await mock.echo({ list: [{ url: 'http://169.254.169.254/latest' }] }); return ['sent'] }
             catch (error) { return [error.code, error.message] }",
        ),
        Script::python(
            "try:
    await mock.echo(list=[{'url': 'http://169.254.169.254/latest'}])
    return ['sent']
except McpToolError as error:
    return [error.code, str(error)]",
        ),
    ]
}

fn builder(treatment: PrivateAddresses) -> (ExecutorBuilder, Mock) {
    let mock = Mock::default();
    let builder = Executor::builder().cache_directory(python_cache()).dispatcher(mock.clone());
    (builder.rules(ToolRules::new().private_addresses(treatment)), mock)
}

#[tokio::test]
async fn v_556_a_call_with_a_private_address_is_refused_where_the_operator_says_so() {
    for script in calls() {
        let (builder, mock) = builder(PrivateAddresses::Deny);
        let executor = builder.build().unwrap();
        let result = executor.run(script.clone()).await.unwrap();
        let said = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
        assert_eq!(said[0], "TOOL_DENIED", "{said}");
        for part in ["`mock.echo`", "`169.254.169.254`", "`privateAddresses` is `deny`"] {
            assert!(said[1].as_str().unwrap().contains(part), "{part}: {said}");
        }
        // Not even as a plan.
        let planned = executor.run(script.dry_run()).await.unwrap();
        assert_eq!(planned.value().unwrap()[0], "TOOL_DENIED", "{}", planned.to_json());
        assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
        let public =
            executor.run_ts("return await mock.echo({ url: 'https://example.com/' })").await.unwrap();
        assert_eq!(public.value(), Some(&json!({ "url": "https://example.com/" })), "{}", public.to_json());
    }
}

#[tokio::test]
async fn v_556_a_person_decides_where_the_operator_says_so() {
    for script in calls() {
        let (builder, mock) = builder(PrivateAddresses::Ask);
        let asked = Arc::<Mutex<Vec<AskReason>>>::default();
        let heard = Arc::clone(&asked);
        let executor = builder
            .approver(move |request: ApprovalRequest| {
                heard.lock().push(request.reason);
                async { Approval::Approve }
            })
            .build()
            .unwrap();
        let result = executor.run(script).await.unwrap();
        assert_eq!(result.value(), Some(&json!(["sent"])), "{}", result.to_json());
        let found = "the private address `169.254.169.254`".to_owned();
        assert_eq!(*asked.lock(), [AskReason::PrivateAddress(found)]);
        assert_eq!(mock.calls.load(Ordering::SeqCst), 1);
        executor.run_ts("await mock.echo({ url: 'https://example.com/' })").await.unwrap();
        assert_eq!(asked.lock().len(), 1, "nobody is asked about other calls");
    }
    // Where no user can be asked, it is refused.
    let (builder, mock) = builder(PrivateAddresses::Ask);
    let [script, _] = calls();
    let result = builder.build().unwrap().run(script).await.unwrap();
    let said = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
    assert_eq!(said[0], "TOOL_DENIED", "{said}");
    assert!(said[1].as_str().unwrap().contains("sets `privateAddresses` to `allow`"), "{said}");
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn without_the_setting_nothing_is_looked_for() {
    let (builder, mock) = builder(PrivateAddresses::Allow);
    let executor = builder.build().unwrap();
    let [script, _] = calls();
    // A script can only make it stricter.
    let result = executor.run(script.clone()).await.unwrap();
    assert_eq!(result.value(), Some(&json!(["sent"])), "{}", result.to_json());
    let stricter = ToolRules::new().private_addresses(PrivateAddresses::Deny);
    let result = executor.run(script.rules(stricter)).await.unwrap();
    assert_eq!(result.value().unwrap()[0], "TOOL_DENIED", "{}", result.to_json());
    assert_eq!(mock.calls.load(Ordering::SeqCst), 1);
}

/// Calls without a script, and requests for resources and prompts.
#[tokio::test]
async fn v_556_other_requests_are_looked_at_too() {
    let (builder, mock) = builder(PrivateAddresses::Deny);
    let executor = builder.build().unwrap();
    let call = ToolCall::new("mock", "echo").arguments(json!({ "host": "localhost:8080" }));
    let error = executor.call(call).await.unwrap().result.unwrap_err();
    assert_eq!(error.code, ToolErrorCode::ToolDenied, "{error}");
    let read = "return await mcp.readResource('mock', 'http://10.0.0.1/').catch((error) => error.code)";
    let result = executor.run_ts(read).await.unwrap();
    assert_eq!(result.value(), Some(&json!("TOOL_DENIED")), "{}", result.to_json());
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}
