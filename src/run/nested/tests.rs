//! Whose run a stored script's is.

use super::*;
use crate::run::context::RunEnvironment;
use crate::run::script::{Language, Script};

/// A worker process that served it would otherwise be kept for all clients without a session as if they were one.
#[tokio::test]
async fn v_518_a_stored_script_runs_for_the_client_of_its_caller() {
    let limits = Limits::default();
    let mut script = Script::typescript("").client("alice/all clients without a session");
    script.client_is_many = true;
    script.tenant = Some("alice".into());
    script.is_dry_run = true;
    let environment = RunEnvironment::empty(limits, tokio::runtime::Handle::current());
    let context = Arc::new(ExecutionContext::new(script, environment));
    let stored = StoredScript::new("stored", Language::Python, "1", Json::from(serde_json::Value::Null));
    let nested = context.nested_script("stored", stored, limits);
    assert_eq!(nested.client.as_deref(), Some("alice/all clients without a session"));
    assert_eq!(nested.tenant.as_deref(), Some("alice"));
    assert!(nested.client_is_many && nested.is_dry_run);
}

/// What a panic says is for the log, and not for a script.
#[tokio::test]
async fn v_635_a_called_script_that_is_lost_says_nothing_of_the_program() {
    let runner: NestedRunner = Arc::new(|_script, _purpose, _caller| {
        let message = "a secret of the program".to_owned();
        futures::future::ready(Err(Error::WorkerLost { message })).boxed()
    });
    let environment = RunEnvironment {
        nested: Some(runner),
        ..RunEnvironment::empty(Limits::default(), tokio::runtime::Handle::current())
    };
    let context = Arc::new(ExecutionContext::new(Script::typescript(""), environment));
    let stored = StoredScript::new("stored", Language::TypeScript, "1", Json::from(serde_json::Value::Null));
    let error = context.run_stored(stored, None).await.unwrap_err();
    let expected = (ToolErrorCode::ToolError, "`stored` was lost; the log has the reason");
    assert_eq!((error.code, &*error.message), expected);
}
