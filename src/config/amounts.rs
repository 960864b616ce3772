//! What a person may have meant by an amount that is not in the unit of its key: `128` bytes of memory, or `"30s"` for
//! a number of milliseconds.

use bytesize::ByteSize;

use super::document::Content;

/// Maximum length of a text that is read as an amount.
const MAX_TEXT: usize = 32;

/// The hint about a value that is no whole number of `unit` from `min` to `max`. `None` if nothing better is known.
pub(super) fn hint(content: &Content, min: u64, max: u64, unit: &str) -> Option<String> {
    let is_allowed = |value: &u64| (min..=max).contains(value);
    match content {
        // A number of megabytes, as in the options of the command.
        Content::Number(written) if unit == "bytes" => {
            let number = written.parse::<u64>().ok().filter(|number| *number < min)?;
            let meant = |(name, bytes): (&'static str, u64)| {
                Some((name, number.checked_mul(bytes).filter(is_allowed)?))
            };
            let (name, bytes) = [("MiB", 1 << 20), ("GiB", 1 << 30)].into_iter().find_map(meant)?;
            Some(format!("{number} is bytes; did you mean {bytes}, which is {number}{name}?"))
        }
        Content::String(text) => {
            let number = in_unit(text, unit).filter(is_allowed)?;
            Some(format!("write {number}, a number of {unit}"))
        }
        _ => None,
    }
}

/// The number of `unit` that a text with a unit of its own says.
fn in_unit(text: &str, unit: &str) -> Option<u64> {
    let text = text.trim();
    if text.len() > MAX_TEXT {
        return None;
    }
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    match unit {
        "bytes" => text.parse::<ByteSize>().ok().map(|size| size.as_u64()),
        "milliseconds" => u64::try_from(humantime::parse_duration(text).ok()?.as_millis()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Content {
        Content::String(text.to_owned())
    }

    fn number(text: &str) -> Content {
        Content::Number(text.to_owned())
    }

    #[test]
    fn a_size_in_another_unit_is_said_in_bytes() {
        let hint = |content: Content| hint(&content, 8 << 20, 1 << 30, "bytes");
        let meant = |text: &str| Some(format!("{text}?"));
        assert_eq!(hint(number("128")), meant("128 is bytes; did you mean 134217728, which is 128MiB"));
        assert_eq!(hint(number("1")), meant("1 is bytes; did you mean 1073741824, which is 1GiB"));
        assert_eq!(hint(text("64 MB")), Some("write 64000000, a number of bytes".to_owned()));
        assert_eq!(hint(text("64MiB")), Some("write 67108864, a number of bytes".to_owned()));
        assert_eq!(hint(text("1Gi")), Some("write 1073741824, a number of bytes".to_owned()));
        assert_eq!(hint(text("0.5 GiB")), Some("write 536870912, a number of bytes".to_owned()));
        assert_eq!(hint(text("134217728")), Some("write 134217728, a number of bytes".to_owned()));
        for nothing in [number("0"), number("5000000"), number("1.5"), number("18446744073709551615")] {
            assert_eq!(hint(nothing), None);
        }
        for nothing in ["", "MB", "1KB", "64 bushels", "99999999999999999999GB", "18446744073709551615GB"] {
            assert_eq!(hint(text(nothing)), None, "{nothing}");
        }
    }

    #[test]
    fn a_time_with_a_unit_is_said_in_milliseconds() {
        let hint = |content: &Content| hint(content, 1, 600_000, "milliseconds");
        assert_eq!(hint(&text("1m30s")), Some("write 90000, a number of milliseconds".to_owned()));
        for nothing in [text("soon"), text("0s"), text("20m"), number("0"), number("700000")] {
            assert_eq!(hint(&nothing), None, "{nothing:?}");
        }
        // A count has no unit that could be written.
        assert_eq!(super::hint(&text("5s"), 1, 100, "calls"), None);
        assert_eq!(super::hint(&text("5"), 1, 100, "calls"), Some("write 5, a number of calls".to_owned()));
    }
}
