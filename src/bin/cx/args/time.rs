//! Times, as given on the command line.

use std::time::Duration;

/// Parses a time with its unit, such as `1h 30m`.
pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_invalid| "expected a number with a unit, such as 500ms, 30s or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("1h 30m"), Ok(Duration::from_secs(5_400)));
        for wrong in ["", "abc", "10", "s", "10 bananas", "99999999999999999999s"] {
            let error = parse_time(wrong).unwrap_err();
            assert_eq!(error, "expected a number with a unit, such as 500ms, 30s or 2h", "{wrong}");
        }
    }
}
