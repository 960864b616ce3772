use std::time::Duration;

use futures::FutureExt as _;

use super::{CallTerms, EndableCalls, TermsInForce};
use crate::tools::ToolErrorCode;

#[test]
fn v_599_a_guest_cannot_choose_terms_without_bounds() {
    assert_eq!(CallTerms::from_guest(0, 0.0), CallTerms::default());
    for timeout_ms in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(CallTerms::from_guest(0, timeout_ms), CallTerms::default());
    }
    let terms = CallTerms::from_guest(7, 1_500.0);
    assert_eq!(terms, CallTerms { id: Some(7), timeout: Some(Duration::from_millis(1_500)) });
    let day = Some(Duration::from_secs(86_400));
    for timeout_ms in [f64::MAX, f64::INFINITY] {
        assert_eq!(CallTerms::from_guest(0, timeout_ms).timeout, day);
    }
}

#[test]
fn v_599_two_unfinished_calls_have_two_numbers() {
    let calls = EndableCalls::default();
    let terms = CallTerms { id: Some(1), timeout: None };
    assert!(TermsInForce::begin(terms, &calls).is_ok());
    let second = TermsInForce::begin(terms, &calls);
    assert!(second.is_err_and(|error| error.code == ToolErrorCode::InvalidArguments));
    calls.remove(1);
    assert!(TermsInForce::begin(terms, &calls).is_ok());
    // Numbers of calls that are over, or that never were.
    assert!(calls.end(2).is_none());
    calls.remove(2);
}

/// The time that a guest gives a call after it has begun is bounded as that of other calls, the first one counts, and
/// numbers of other calls change nothing.
#[tokio::test(start_paused = true)]
async fn v_683_a_call_is_given_one_time_with_bounds() {
    let calls = EndableCalls::default();
    let call = TermsInForce::begin(CallTerms { id: Some(1), timeout: None }, &calls).ok().unwrap();
    let is_limited = || call.end.deadline.lock().is_some();
    for timeout_ms in [0.0, -1.0, f64::NAN] {
        calls.limit(1, timeout_ms);
    }
    calls.limit(2, 5.0);
    assert!(!is_limited());
    let mut too_late = Box::pin(call.too_late());
    assert!((&mut too_late).now_or_never().is_none());
    calls.limit(1, f64::INFINITY);
    calls.limit(1, 5.0);
    assert_eq!(call.end.deadline.lock().unwrap().1, Duration::from_secs(86_400));
    let error = too_late.await;
    assert_eq!(error.code, ToolErrorCode::ToolTimeout);
    assert_eq!(error.message, "no answer within the 86400000 ms that the script gave the call");
}
