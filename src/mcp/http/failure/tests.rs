use std::time::UNIX_EPOCH;

use super::*;
use crate::mcp::errors::tool_error;

#[test]
fn dates_are_those_of_the_calendar() {
    let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
    for (value, expected) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
        ("Sun, 06 Nov 1994 08:49:50 GMT", Some(13)),
        ("Sunday, 06-Nov-94 08:49:50 GMT", Some(13)),
        ("Sun Nov  6 08:49:50 1994", Some(13)),
        ("Sun, 06 Nov 1994 08:51:00 GMT", Some(60)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
        ("Fri, 31 Dec 2100 23:59:59 GMT", Some(60)),
        ("Sun, 06 Nov 1994 08:49:50 CET", None),
        ("Sun, 99 Nov 1994 08:49:50 GMT", None),
        ("Sun, 06 Nov 99999999999999999999 08:49:50 GMT", None),
        ("inf", None),
        ("nonsense", None),
    ] {
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]);
        assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{value}");
    }
}

#[test]
fn a_failure_survives_its_way_through_rmcp() {
    let mut error = ToolError::new(ToolErrorCode::RateLimited, "too much");
    error.retry_after = Some(Duration::from_millis(1500));
    assert_eq!(tool_error(&RequestFailure::Failed(error.clone()).into_error_data("s")), Some(error));
}
