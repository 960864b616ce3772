use super::*;

/// Maximum bytes of a text here.
const MAX: usize = 32 << 10;

/// Threat 157: the kinds of secrets, in values, in texts, and in fields with a telling name.
#[test]
fn fd_157_secrets_are_masked_in_what_is_kept() {
    for (text, secret) in [
        (r#"{"header":"Authorization: Bearer abcdef"}"#, "abcdef"),
        (r#"{"password":"hunter2"}"#, "hunter2"),
        (r#"{"options":{"apiKey":["one","two"]}}"#, "two"),
        (r#"{"pin_token":1234}"#, "1234"),
        (r#"{"note":"use sk-abcdefghijklmnop please"}"#, "sk-abc"),
        (r#"{"note":"ghp_0123456789abcdefghij"}"#, "ghp_"),
        (r#"{"note":"AKIAIOSFODNN7EXAMPLE"}"#, "AKIA"),
        (r#"{"jwt":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk"}"#, "eyJ"),
        (r#"{"url":"https://example.com/?access_token=abc123&x=1"}"#, "abc123"),
        (r#"{"key":"-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----"}"#, "MIIE"),
        ("no JSON, password: hunter2", "hunter2"),
        (r#"{"command":"curl -H 'X-Token: hunter2'"}"#, "hunter2"),
        // As most tools answer: JSON in the text of a block.
        (r#"{"text":"{\"user\": 1, \"password\": \"correct horse battery\"}"}"#, "horse"),
        (r#"{"text":"{\"password\":\"hunter2\"}"}"#, "hunter2"),
        (r#"{"text":"{\"password\":\"a quote \\\" and more\"}"}"#, "more"),
    ] {
        let masked = json_text(text, MAX);
        assert!(!masked.contains(secret), "{masked}");
        assert!(masked.contains(MASK), "{masked}");
    }
    for text in [r#"{"city":"Oslo","count":3}"#, r#"{"note":"a sentence, with words: and 12 numbers"}"#] {
        assert_eq!(json_text(text, MAX), text);
    }
}

/// Threat 157: JSON that is too long to be parsed has secrets too.
#[test]
fn fd_157_secrets_are_masked_in_what_is_cut() {
    let long = format!(r#"{{"password":"correct horse","rest":"{}"}}"#, "x ".repeat(200_000));
    let masked = json_text(&long, MAX);
    assert!(!masked.contains("horse") && masked.contains(MASK), "{}", &masked[..80]);
    let long = format!(r#"{{"password":"ab\"correct horse","rest":"{}"}}"#, "x ".repeat(200_000));
    let masked = json_text(&long, MAX);
    assert!(!masked.contains("horse") && masked.contains(r#"","rest":"x"#), "{}", &masked[..80]);
    // A value may end with a backslash.
    let long = format!(r#"{{"password":"hunter2\\","rest":"{}"}}"#, "x ".repeat(200_000));
    assert!(json_text(&long, MAX).contains(r#"","rest":"x"#));
}

#[test]
fn long_texts_are_cut() {
    let long = format!("{{\"a\":\"{}\"}}", "x ".repeat(200_000));
    assert!(json_text(&long, MAX).len() < MAX + 8);
}

/// Threat 157: no part of a token that lies across the place where a text is cut.
#[test]
fn fd_157_half_a_token_is_not_shown() {
    for shift in 0..40 {
        let before = "x ".repeat(MAX / 2 - 20);
        let text = format!("{before}{} sk-abcdefghijklmnop {}", "y".repeat(shift), "z ".repeat(3 * MAX));
        let masked = json_text(&text, MAX);
        assert!(!masked.contains("sk-"), "{shift}: {}", &masked[masked.len() - 40..]);
    }
}
