//! Sizes, as given on the command line.

use bytesize::ByteSize;
use cx::Limits;

/// The fewest bytes that an option which takes a size can mean.
const MIN: u64 = Limits::MIN_MEMORY_BYTES as u64;

/// More than the memory of any machine.
const MAX_TOTAL: u64 = 1 << 50;

/// Parses the memory of one script, into bytes.
pub(super) fn parse_memory(text: &str) -> Result<usize, String> {
    parse(text, Limits::CEILING.memory_bytes as u64)
}

/// Parses the memory of all scripts together, into bytes.
pub(super) fn parse_total_memory(text: &str) -> Result<usize, String> {
    parse(text, MAX_TOTAL)
}

/// A number without a unit is bytes, and one that is too small for that was meant in another unit. What else is out of
/// bounds the library says, because the configuration has a part in them.
fn parse(text: &str, max: u64) -> Result<usize, String> {
    let size: ByteSize = text
        .parse()
        .map_err(|_invalid| "expected a number with a unit, such as 128MiB or 1GiB".to_owned())?;
    match text.parse::<u64>() {
        Ok(number) if number < MIN => Err(without_unit(number, max)),
        _ => Ok(usize::try_from(size.as_u64()).unwrap_or(usize::MAX)),
    }
}

fn without_unit(number: u64, max: u64) -> String {
    let is_meant = |factor: u64| number.checked_mul(factor).is_some_and(|size| (MIN..=max).contains(&size));
    let hint = match [("MiB", 1 << 20), ("GiB", 1 << 30)].into_iter().find(|(_, factor)| is_meant(*factor)) {
        Some((unit, _)) => format!("did you mean {number}{unit}?"),
        None => "write the unit too, such as 128MiB.".to_owned(),
    };
    format!("{number} is bytes; {hint} A script needs at least {}MiB", MIN >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_without_a_unit_is_bytes() {
        assert_eq!(parse_memory("134217728"), Ok(128 << 20));
        assert_eq!(parse_memory("128MB"), Ok(128_000_000));
        // The library says that it is too little, with the bounds.
        assert_eq!(parse_memory("1KB"), Ok(1_000));
        let error = |text: &str| parse_memory(text).unwrap_err();
        assert_eq!(error("128"), "128 is bytes; did you mean 128MiB? A script needs at least 8MiB");
        assert_eq!(error("1"), "1 is bytes; did you mean 1GiB? A script needs at least 8MiB");
        let without = "write the unit too, such as 128MiB. A script needs at least 8MiB";
        assert_eq!(error("0"), format!("0 is bytes; {without}"));
        assert_eq!(error("4096"), format!("4096 is bytes; {without}"));
        let total = parse_total_memory("4096").unwrap_err();
        assert_eq!(total, "4096 is bytes; did you mean 4096MiB? A script needs at least 8MiB");
        for text in ["", "MB", "128QB", "-5", "1 2"] {
            assert_eq!(error(text), "expected a number with a unit, such as 128MiB or 1GiB", "{text}");
        }
    }
}
