use super::*;
use crate::run::result::{ErrorCode, Outcome, ToolCallRecord, Usage};

fn call(duration: Duration) -> ToolCallRecord {
    ToolCallRecord {
        server: "files".to_owned(),
        tool: "read".to_owned(),
        status: ToolCallStatus::Ok,
        approved: false,
        duration,
        argument_bytes: 2,
        result_bytes: 4,
    }
}

/// Calls that are made at the same time take hours together, and a server can suggest a delay of hours.
#[test]
fn times_of_hours_are_reported_in_full() {
    let hour = Duration::from_hours(1);
    let later = ScriptError::new(ErrorCode::RuntimeError, "later");
    let result = ExecuteResult {
        outcome: Outcome::Failed(ScriptError { retry_after: Some(hour * 24), ..later }),
        logs: Vec::new(),
        tool_calls: vec![call(hour), call(hour), call(Duration::from_micros(1_500))],
        returned: Vec::new(),
        planned_calls: None,
        sampling: None,
        usage: Usage::default(),
    };
    let report = result.to_json();
    assert_eq!(report["toolCallSummary"][0]["totalMs"], json!(7_200_001.5));
    assert_eq!(report["error"]["retryAfterMs"], json!(86_400_000.0));
}

/// Threat 731.
#[test]
fn v_731_the_numbers_of_a_recording_overflow_no_sum() {
    let large = ToolCallRecord { result_bytes: usize::MAX, ..call(Duration::MAX) };
    let result = ExecuteResult {
        outcome: Outcome::Returned(Value::Null.into()),
        logs: Vec::new(),
        tool_calls: vec![large.clone(), large],
        returned: Vec::new(),
        planned_calls: None,
        sampling: None,
        usage: Usage::default(),
    };
    assert_eq!(result.to_json()["toolCallSummary"][0]["resultBytes"], json!(usize::MAX));
}
