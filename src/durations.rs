//! Durations in formats that have none: as whole numbers, of which one that does not fit is the largest, and as
//! `Retry-After`.

use std::time::{Duration, SystemTime};

/// Whole milliseconds, rounded down.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whole microseconds, rounded down.
pub(crate) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Nanoseconds, up to 584 years of them.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The pause that the value of `Retry-After` asks for, in seconds or as a date, from zero to `max`. `None` if it is
/// neither.
#[cfg(any(feature = "mcp", feature = "llm"))]
pub(crate) fn retry_after(value: &str, now: SystemTime, max: Duration) -> Option<Duration> {
    let value = value.trim();
    match value.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => {
            Some(Duration::from_secs_f64(seconds.clamp(0.0, max.as_secs_f64())))
        }
        // Infinite or NaN, for example because of too many digits.
        Ok(_) => None,
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            Some(date.duration_since(now).unwrap_or_default().min(max))
        }
    }
}
