//! Target of `WWW-Authenticate`: no panic for any text, and generated challenges are read as they were generated.

use arbitrary::{Arbitrary as _, Result, Unstructured};

/// A scheme with its parameters, as it was generated.
type Generated = (String, Vec<(String, String)>);

pub(crate) fn challenges(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let found = read(&text);
    let names = found.iter().flat_map(|(scheme, parameters)| {
        std::iter::once(scheme).chain(parameters.iter().map(|(name, _)| name))
    });
    for name in names {
        assert!(!name.is_empty() && name.chars().all(super::is_token), "{name:?} in {text:?} is no token");
    }
    let bytes: usize = found.iter().map(bytes).sum();
    assert!(bytes <= text.len(), "{bytes} bytes in {text:?}");

    if let Ok((header, expected)) = generate(&mut Unstructured::new(data)) {
        assert_eq!(read(&header), expected, "{header:?}");
    }
}

fn read(value: &str) -> Vec<Generated> {
    let owned = |challenge: super::Challenge<'_>| {
        let parameters = challenge.parameters.into_iter().map(|(name, value)| (name.to_owned(), value));
        (challenge.scheme.to_owned(), parameters.collect())
    };
    super::challenges(value).into_iter().map(owned).collect()
}

fn bytes((scheme, parameters): &Generated) -> usize {
    scheme.len() + parameters.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
}

/// A header by the grammar of RFC 9110, section 11.6.1, and what it says.
fn generate(input: &mut Unstructured<'_>) -> Result<(String, Vec<Generated>)> {
    let mut header = (*input.choose(&["", " ", ",", "\t, ,"])?).to_owned();
    let mut expected = Vec::new();
    for number in 0..input.int_in_range(1..=5)? {
        if number > 0 {
            separate(input, &mut header)?;
        }
        let scheme = token(input)?;
        header.push_str(&scheme);
        let mut parameters = Vec::new();
        if bool::arbitrary(input)? {
            header.push(' ');
            for number in 0..input.int_in_range(0..=4)? {
                if number > 0 {
                    separate(input, &mut header)?;
                }
                parameters.push(parameter(input, &mut header)?);
            }
        } else if bool::arbitrary(input)? {
            header.push_str("  ");
            header.push_str(&text(input, "abYZ09-._~+/", 1)?);
            header.push_str(input.choose(&["", "=", "=="])?);
        }
        expected.push((scheme, parameters));
    }
    Ok((header, expected))
}

/// Adds a comma, and what may stand beside one.
fn separate(input: &mut Unstructured<'_>, header: &mut String) -> Result<()> {
    header.push_str(input.choose(&[",", ", ", " ,\t", ",, ", " , ,"])?);
    Ok(())
}

fn parameter(input: &mut Unstructured<'_>, header: &mut String) -> Result<(String, String)> {
    let name = token(input)?;
    header.push_str(&name);
    header.push_str(input.choose(&["=", " = ", "=\t", " ="])?);
    if bool::arbitrary(input)? {
        let value = token(input)?;
        header.push_str(&value);
        return Ok((name, value));
    }
    let value = text(input, "ab= ,\t\"\\;é/", 0)?;
    header.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') || bool::arbitrary(input)? {
            header.push('\\');
        }
        header.push(character);
    }
    header.push('"');
    Ok((name, value))
}

fn token(input: &mut Unstructured<'_>) -> Result<String> {
    text(input, "abYZ09!#$%&'*+-.^_`|~", 1)
}

/// Up to eight of these characters, and at least `min`.
fn text(input: &mut Unstructured<'_>, characters: &str, min: usize) -> Result<String> {
    let characters: Vec<char> = characters.chars().collect();
    (0..input.int_in_range(min..=8)?).map(|_| input.choose(&characters).copied()).collect()
}

#[cfg(test)]
#[test]
fn v_304_challenges() {
    crate::fuzzing::smoke("challenges", 5_000, challenges);
}
