use super::*;
use crate::mcp::errors::tool_error;

#[test]
fn dates_are_those_of_the_calendar() {
    for (text, expected) in [
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0.0)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777.0)),
        ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000.0)),
        ("Fri, 31 Dec 2100 23:59:59 GMT", Some(4_133_980_799.0)),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", None),
        ("nonsense", None),
    ] {
        assert_eq!(http_date(text), expected, "{text}");
    }
}

#[test]
fn a_failure_survives_its_way_through_rmcp() {
    let mut error = ToolError::new(ToolErrorCode::RateLimited, "too much");
    error.retry_after = Some(Duration::from_millis(1500));
    assert_eq!(tool_error(&Problem::Failed(error.clone()).into_error_data("s")), Some(error));
}
