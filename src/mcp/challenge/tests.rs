use super::*;
use crate::growth::assert_linear;

fn read(value: &str) -> Vec<(&str, Vec<(&str, String)>)> {
    challenges(value).into_iter().map(|challenge| (challenge.scheme, challenge.parameters)).collect()
}

fn pair(name: &'static str, value: &str) -> (&'static str, String) {
    (name, value.to_owned())
}

#[test]
fn reads_all_challenges_of_a_header() {
    assert_eq!(
        read(
            r#"Negotiate YWJj==, Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#
        ),
        [
            ("Negotiate", vec![]),
            ("Basic", vec![pair("realm", "simple")]),
            ("Newauth", vec![pair("realm", "apps"), pair("type", "1"), pair("title", "Login to \"apps\"")]),
        ]
    );
    assert_eq!(read("Basic,Bearer"), [("Basic", vec![]), ("Bearer", vec![])]);
    assert_eq!(
        read("Bearer a = 1 ,\t,b=\"é, c=d\""),
        [("Bearer", vec![pair("a", "1"), pair("b", "é, c=d")])]
    );
    let found = challenges("bearer ERROR=x, error=y");
    assert_eq!((found[0].parameter("error"), found[0].parameter("scope")), (Some("x"), None));
}

#[test]
fn text_in_quotes_is_no_parameter() {
    let value = r#"Bearer error_description="not error=\"insufficient_scope\"", error="invalid_token""#;
    assert_eq!(challenges(value)[0].parameter("error"), Some("invalid_token"));
}

#[test]
fn parameters_without_commas_are_read() {
    assert_eq!(read(r#"Bearer a="1" b=2"#), [("Bearer", vec![pair("a", "1"), pair("b", "2")])]);
}

#[test]
fn skips_what_is_not_well_formed() {
    assert_eq!(
        read(r#"error="no scheme", =, "x", /, Bearer a=, b="c", d="open, e=f"#),
        [("Bearer", vec![pair("b", "c")])]
    );
    assert!(read("").is_empty());
}

#[test]
fn long_headers_take_linear_time() {
    for piece in ["a", "a=", "a=b,", "a=\"", "\"\\", ",", " ", "a a=b c=\"d\" "] {
        assert_linear(
            piece,
            1 << 14,
            |bytes| piece.repeat(bytes / piece.len()),
            |header| challenges(header).len(),
        );
    }
}
