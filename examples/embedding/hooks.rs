//! Hooks: an audit trail, a rule that patterns cannot express, and a result without secrets.

use std::sync::{Arc, Mutex, PoisonError};

use cx::{BoxFuture, CallHook, Error, Executor, HookedCall, Json, ToolError, ToolErrorCode};
use serde_json::{Value, json};

/// Records every call and its outcome.
#[derive(Clone, Default)]
struct AuditTrail(Arc<Mutex<Vec<String>>>);

impl AuditTrail {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl CallHook for AuditTrail {
    fn after<'a>(
        &'a self,
        call: &'a HookedCall,
        result: &'a mut Result<Json, ToolError>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let outcome = result.as_ref().map_or_else(|error| error.code.as_str(), |_value| "ok");
            let line =
                format!("{}.{} {}: {outcome}", call.server, call.tool, Value::from(call.arguments.clone()));
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        })
    }
}

/// Keeps amounts below what the company allows, and takes card numbers out of what scripts see.
struct Rules;

impl CallHook for Rules {
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            if call.arguments.get("amount").and_then(Value::as_f64) > Some(1_000.0) {
                return Err(ToolError::new(ToolErrorCode::ToolDenied, "more than 1,000 needs a person"));
            }
            call.arguments.insert("currency".to_owned(), json!("EUR"));
            Ok(())
        })
    }

    fn after<'a>(
        &'a self,
        _call: &'a HookedCall,
        result: &'a mut Result<Json, ToolError>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(value) = result
                && let Some(mut fields) = value.value().and_then(Value::as_object).cloned()
                && fields.remove("card").is_some()
            {
                *value = Json::from(Value::Object(fields));
            }
        })
    }
}

/// Returns the results of two payments as the script saw them, and the audit trail.
pub(crate) async fn example() -> Result<(Value, Vec<String>), Error> {
    let trail = AuditTrail::default();
    let executor = Executor::builder()
        .tool("bank.pay", Value::Null, |payment: Value| async move {
            Ok::<_, String>(
                json!({ "paid": payment["amount"], "in": payment["currency"], "card": "4111 1111" }),
            )
        })
        // Called in this order before a call, and in the reverse order after it.
        .hook(trail.clone())
        .hook(Rules)
        .build()?;
    let result = executor
        .run_ts(
            r#"
            const paid = await tools.bank.pay({ amount: 10 });
            const refused = await call_tool("bank", "pay", { amount: 5000 });
            return { paid, refused: refused.error.message };
            "#,
        )
        .await?;
    Ok((result.value().cloned().unwrap_or_default(), trail.lines()))
}
