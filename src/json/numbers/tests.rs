use serde_json::{Value, json};

use super::super::Json;
use super::*;
use crate::growth::assert_linear;

const BIG_INTEGER: &str = "123456789012345678901234567890";

#[test]
fn numbers_are_found_outside_of_strings() {
    let text = r#"{"1":"2 \" 3","a":[-4,5.5e+6],"b":7}"#;
    let found: Vec<&str> = Numbers::new(text).map(|(_, token)| token).collect();
    assert_eq!(found, ["-4", "5.5e+6", "7"]);
    assert_eq!(Numbers::new("\"\\").count(), 0, "the end of the text is the end");
}

#[test]
fn numbers_that_json_does_not_have_are_null_and_keep_what_they_were() {
    let nulled = |text: &str| nulled(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
    let text = r#"{"a":NaN,"b":[Infinity,-Infinity],"c":"NaN \" Infinity","d":-1}"#;
    let expected = r#"{"a":null,"b":[null,null],"c":"NaN \" Infinity","d":-1}"#;
    assert_eq!(nulled(text).as_deref(), Some(expected));
    assert_eq!(nulled(r#"{"a":"NaN"}"#), None);
    assert_eq!(nulled("\"\\"), None);
    let json = Json::parse_marked(&marked_text(text).unwrap()).unwrap();
    assert_eq!(json.text(), expected);
    assert_eq!(json.value(), Some(&serde_json::from_str::<Value>(expected).unwrap()));
    assert_eq!(json.field("b").unwrap().into_python_text(), "[Infinity,-Infinity]");
    assert_eq!(json.clone().into_python_text(), text);
    assert_eq!(json.into_text(), expected);
    // A text without them is the same for both languages, and has no second copy.
    assert_eq!(Json::parse_marked("[0]").unwrap().into_python_text(), "[0]");
}

#[test]
fn integers_beyond_64_bits_keep_their_digits() {
    let text =
        format!(r#"[{BIG_INTEGER}, -{BIG_INTEGER}, 18446744073709551615, 1.5, "{BIG_INTEGER}", 1e300]"#);
    let expected =
        format!(r#"[{BIG_INTEGER},-{BIG_INTEGER},18446744073709551615,1.5,"{BIG_INTEGER}",1e+300]"#);
    let json = Json::parse(&text).unwrap();
    assert_eq!(json.text(), expected);
    assert_eq!(json[0], json!(1.234_567_890_123_456_8e29));
    assert!(Json::parse(&"9".repeat(400)).is_err(), "no f64 is near");
}

#[test]
fn arguments_get_their_digits_back() {
    let restore = |before: &str, after: &str| {
        let tree: Value = serde_json::from_str(after).unwrap();
        with_exact_numbers(tree.to_string(), &exact_numbers(before))
    };
    let text = format!(r#"{{"a":1e29,"b":{BIG_INTEGER},"c":[-{BIG_INTEGER},1],"d":"{BIG_INTEGER}"}}"#);
    assert_eq!(restore(&text, &text), text);
    // Of two integers that look the same in a tree each gets its own, and so does a float.
    let text = r#"{"a":1e25,"b":10000000000000000905969664,"c":10000000000000000905969665}"#;
    assert_eq!(restore(text, text), text);
    // What a check leaves out or a hook changes does not matter.
    let before = format!(r#"{{"n":null,"b":{BIG_INTEGER},"c":{BIG_INTEGER}0}}"#);
    let after = format!(r#"{{"c":{BIG_INTEGER}0,"e":1e+40}}"#);
    assert_eq!(restore(&before, &after), after);
    assert!(exact_numbers(r#"{"a":1e25,"b":12}"#).is_empty());
    // The largest integer that a tree has with all its digits.
    let text = r#"{"a":18446744073709551615}"#;
    assert_eq!(restore(text, text), text);
}

/// Threat 529: numbers that are no longer in the order of the text, because a name is there twice.
#[test]
fn v_529_digits_are_restored_in_linear_time() {
    let big = |number: usize| format!("{}{}", 1_000_000 + number, "0".repeat(20));
    let make = |count: usize| {
        let field = |name: &str, number: usize| format!(r#","{name}{number}":{}"#, big(number));
        let early: String = (0..count).map(|number| field("z", number)).collect();
        let late: String = (count..2 * count).map(|number| field("w", number)).collect();
        let text = format!(r#"{{"y":1{early},"y":{}{late}}}"#, big(2 * count));
        let tree: Value = serde_json::from_str(&text).unwrap();
        (tree.to_string(), exact_numbers(&text))
    };
    let (text, exact) = make(2);
    // The fields before the second `y` have lost their digits, those behind it have not.
    let restored = with_exact_numbers(text, &exact);
    assert!(restored.starts_with(&format!(r#"{{"y":{},"z0":1"#, big(4))), "{restored}");
    assert!(restored.ends_with(&format!(r#""w2":{},"w3":{}}}"#, big(2), big(3))), "{restored}");
    assert!(!restored.contains(&big(0)), "{restored}");
    assert_linear("numbers", 4_000, make, |(text, exact)| with_exact_numbers(text.clone(), exact));
}
