//! Times as text.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999, which is the last that RFC 3339 can represent.
const MAX_SECONDS: u64 = 253_402_300_799;

/// A time in the form of RFC 3339, in UTC and with milliseconds: `2026-11-22T10:00:00.000Z`.
///
/// A time that the form or the formatter cannot represent becomes the nearest one that it can: a machine
/// whose clock was never set may be before 1970.
pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(representable(time)).to_string()
}

/// The same without milliseconds.
pub fn rfc3339_seconds(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(representable(time)).to_string()
}

/// The start of a day such as `2026-11-22`, in UTC. `None` if it is no day from 1970 on.
#[cfg(feature = "audit")]
pub fn start_of_day(day: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(&format!("{day}T00:00:00Z")).ok()
}

fn representable(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + since.min(Duration::from_secs(MAX_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_text() {
        for (time, text) in [
            (UNIX_EPOCH, "1970-01-01T00:00:00Z"),
            (UNIX_EPOCH - Duration::from_secs(1), "1970-01-01T00:00:00Z"),
            (UNIX_EPOCH - Duration::from_secs(100_000_000_000), "1970-01-01T00:00:00Z"),
            (UNIX_EPOCH + Duration::from_secs(1_700_000_000), "2023-11-14T22:13:20Z"),
            (UNIX_EPOCH + Duration::from_secs(u64::MAX / 4), "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339_seconds(time), text);
            assert_eq!(rfc3339(time), text.replace('Z', ".000Z"));
        }
    }

    #[cfg(feature = "audit")]
    #[test]
    fn a_day_begins_in_utc() {
        for (day, seconds) in [("1970-01-02", 86_400), ("2024-02-29", 1_709_164_800)] {
            assert_eq!(start_of_day(day), Some(UNIX_EPOCH + Duration::from_secs(seconds)));
        }
        for day in ["2026-00-00", "2026-02-30", "9999-99-99", "0001-01-01", ""] {
            assert_eq!(start_of_day(day), None, "{day}");
        }
    }
}
