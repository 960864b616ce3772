use std::time::Duration;

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
