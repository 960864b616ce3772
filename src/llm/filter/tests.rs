use super::{ContentFilter, JWT, PERSONAL_DATA, StreamFilter, Violations, patterns};
use crate::growth::assert_linear;
use crate::llm::options::FilterMode;

fn filter() -> ContentFilter {
    ContentFilter::new().unwrap()
}

/// Made of parts, so that no scanner of sources takes them for secrets that leaked.
fn hits() -> Vec<(&'static str, String)> {
    let long = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
    vec![
        (
            "private_key",
            format!("-----BEGIN {}PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----", "RSA "),
        ),
        ("private_key", format!("-----BEGIN {}PRIVATE KEY-----\nMIIE cut here", "OPENSSH ")),
        ("jwt", format!("eyJhbGciOiJIUzI1NiJ9.{}.dozjgNryP4J3jVmNHl0w5N", "eyJzdWIiOiIxMjM0In0")),
        ("jwt", format!("eyJhbGciOiJub25lIn0.{}.", "eyJzdWIiOiIxMjM0In0")),
        ("anthropic_key", format!("sk-ant-{}", "api03-abcdefghijklmnopqrst")),
        ("openai_key", format!("sk-{}", &long[..32])),
        ("openai_key", format!("sk-proj-{}", &long[..40])),
        ("stripe_key", format!("sk_live_{}", &long[..24])),
        ("github_token", format!("ghp_{}", &long[..36])),
        ("github_token", format!("github_pat_{long}{}", &long[..10])),
        ("gitlab_token", format!("glpat-{}", &long[..20])),
        ("aws_key_id", format!("AKIA{}", "IOSFODNN7EXAMPLE")),
        ("google_key", format!("AIza{}", &long[..35])),
        ("google_key", format!("GOCSPX-{}", &long[..28])),
        ("google_key", format!("ya29.{}", &long[..46])),
        ("slack_token", format!("xoxb-{}", "1234567890-abcdef")),
        (
            "slack_webhook",
            format!("https://hooks.slack.com/services/{}", "T00000000/B00000000/abcdefghijklmnopqrstuvwx"),
        ),
        ("npm_token", format!("npm_{}", &long[..36])),
        ("pypi_token", format!("pypi-{long}{}", &long[..10])),
        ("huggingface_token", format!("hf_{}", &long[..34])),
        ("sendgrid_key", format!("SG.{}.{}", &long[..22], &long[..43])),
        ("groq_key", format!("gsk_{}", &long[..46])),
        ("xai_key", format!("xai-{long}{}", &long[..34])),
        ("databricks_token", format!("dapi{}", "0123456789abcdef".repeat(2))),
        ("digitalocean_token", format!("dop_v1_{}", "0123456789abcdef".repeat(4))),
        ("docker_token", format!("dckr_pat_{}", &long[..27])),
        ("shopify_token", format!("shpat_{}", "0123456789abcdef".repeat(2))),
        ("vault_token", format!("hvs.{}", &long[..24])),
        ("bearer_token", format!("Bearer {}", &long[..30])),
        ("email", "jane.doe+x@mail.example.co.uk".to_owned()),
        ("email", "a@b.io".to_owned()),
        ("ssn", "123-45-6789".to_owned()),
        ("card", "4111 1111 1111 1111".to_owned()),
        ("card", "4111-1111-1111-1111".to_owned()),
        ("card", "5500005555555559".to_owned()),
        ("card", "378282246310005".to_owned()),
        ("card", "3782 822463 10005".to_owned()),
    ]
}

/// Texts that look like secrets or personal data and are not.
const MISSES: &[&str] = &[
    "sk-learn is a library; sk-short",
    "task-management-for-everybody-in-the-team",
    "the file disk-abcdefghijklmnopqrstuvwxyz.img",
    "ghp_tooshort",
    "AKIA is a prefix, AKIAlowercaseletters too",
    "eyJhbGciOiJIUzI1NiJ9 alone, eyJ.eyJ.x",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "user@localhost, @handle, a@b, foo@bar.",
    "npm install @scope/package@1.2.3",
    "000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000",
    "2026-11-22, 12-34-5678, 1234-56-7890",
    "4111 1111 1111 1112",
    "1234567890123456",
    "order 20261122221833 of 3000000000000",
    "Bearer of bad news, bearer token",
    "dapi is short, dapi-docs, shpat_none, hvs.short, xai-org, ya29.x, do_v1_x, dckr_pat_x",
    // A hash whose letters before it are part of a word.
    "updapi0123456789abcdef0123456789abcdef dapi0123456789abcdef0123456789abcdef0",
    "d41d8cd98f00b204e9800998ecf8427e",
    "550e8400-e29b-41d4-a716-446655440000",
    "π ≈ 3.14159265358979323846",
];

#[test]
fn the_table_of_true_hits() {
    let filter = filter();
    for (name, text) in hits() {
        for around in ["", " ", "\n", "\"", "(", "=", "né: "] {
            let whole = format!("x{around}{text}{}", if name == "private_key" { "" } else { " end" });
            let whole = if around.is_empty() { whole[1..].to_owned() } else { whole };
            let (redacted, violations) = filter.redact(&whole);
            assert_eq!(violations.found, [(name, 1)], "{whole}");
            let is_secret = PERSONAL_DATA.iter().all(|(known, _)| *known != name);
            let mark = if is_secret { "[REDACTED_SECRET]" } else { "[REDACTED_PII]" };
            assert!(redacted.contains(mark) && !redacted.contains(&text), "{redacted}");
        }
    }
    // Each pattern is in the table.
    for (name, _) in patterns().chain([&JWT]) {
        assert!(hits().iter().any(|(known, _)| known == name), "{name}");
    }
}

#[test]
fn the_table_of_false_hits() {
    let filter = filter();
    for text in MISSES {
        assert_eq!(filter.redact(text), ((*text).to_owned(), Violations::default()), "{text}");
    }
}

#[test]
fn what_follows_a_card_is_kept() {
    let (redacted, violations) = filter().redact("4111 1111 1111 1111 12/29, 4111-1111-1111-1111 123");
    assert_eq!(redacted, "[REDACTED_PII] 12/29, [REDACTED_PII] 123");
    assert_eq!(violations.found, [("card", 2)]);
}

/// A frame of another kind within a key's does not end it.
#[test]
fn a_key_that_holds_other_frames_is_hidden_to_its_end() {
    let key = format!(
        "-----BEGIN {}KEY-----\na\n-----END CERTIFICATE-----\nb c\n-----BEGIN {}KEY-----\nd",
        "PRIVATE ", "PRIVATE "
    );
    let (filter, mut stream) = (filter(), StreamFilter::default());
    let mut passed = String::new();
    for piece in key.split_inclusive('\n') {
        passed += &filter.redact(&stream.push(&filter, piece)).0;
    }
    passed += &filter.redact(&stream.finish()).0;
    assert_eq!(passed, "[REDACTED_SECRET]");
    assert_eq!(filter.redact(&key).0, passed);
}

/// Also in a header, and within a key.
#[test]
fn a_token_of_three_parts_is_found_in_what_is_around_it() {
    let token = format!("eyJhbGciOiJIUzI1NiJ9.{}.dozjgNryP4J3jVmNHl0w5N", "eyJzdWIiOiIxMjM0In0");
    let (redacted, violations) = filter().redact(&format!("Authorization: Bearer {token} 123-45-6789"));
    assert_eq!(redacted, "Authorization: Bearer [REDACTED_SECRET] [REDACTED_PII]");
    assert_eq!(violations.found, [("jwt", 1), ("ssn", 1)]);
    let key = format!("-----BEGIN {}KEY-----\n{token}\n-----END PRIVATE KEY-----.", "PRIVATE ");
    assert_eq!(filter().redact(&key).0, "[REDACTED_SECRET].");
}

#[test]
fn strict_mode_refuses() {
    let filter = filter();
    let text = "write to jane@example.com or joe@example.com";
    let refused = filter.apply(FilterMode::Refuse, text.to_owned()).unwrap_err();
    assert_eq!(refused.found, [("email", 2)]);
    assert_eq!(filter.apply(FilterMode::Off, text.to_owned()).unwrap().0, text);
    let (redacted, _) = filter.apply(FilterMode::Redact, text.to_owned()).unwrap();
    assert_eq!(redacted, "write to [REDACTED_PII] or [REDACTED_PII]");
}

/// What is filtered in pieces of any size is what is filtered as a whole, and no piece shows the
/// beginning of a hit.
#[test]
fn pieces_are_filtered_as_the_whole_is() {
    let filter = filter();
    let texts: Vec<String> =
        hits().into_iter().map(|(_, text)| text).chain(MISSES.iter().map(|&text| text.to_owned())).collect();
    let mut wholes: Vec<String> =
        texts.iter().map(|text| format!("before {text} after it\nand more")).collect();
    wholes.push(texts.join(" ; "));
    for whole in wholes {
        let (expected, _) = filter.redact(&whole);
        let characters: Vec<char> = whole.chars().collect();
        for size in [1, 2, 3, 7, 20, 64, 1_000] {
            let mut stream = StreamFilter::default();
            let mut passed = String::new();
            for piece in characters.chunks(size) {
                let piece: String = piece.iter().collect();
                passed += &filter.redact(&stream.push(&filter, &piece)).0;
                assert!(expected.starts_with(&passed), "{whole}\n{passed}");
            }
            passed += &filter.redact(&stream.finish()).0;
            assert_eq!(passed, expected, "pieces of {size}");
        }
    }
}

#[test]
fn plain_text_is_passed_on_word_by_word() {
    let (filter, mut stream) = (filter(), StreamFilter::default());
    assert_eq!(stream.push(&filter, "one two"), "one ");
    assert_eq!(stream.push(&filter, " three "), "two three ");
    assert_eq!(stream.finish(), "");
}

/// Texts that make backtracking engines and careless loops take hours.
#[test]
fn hostile_texts_take_linear_time() {
    let filter = filter();
    for unit in
        ["a@", "1 ", "eyJ", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "a.", "4-", "Bearer ", "x", "sk-"]
    {
        let text = |bytes: usize| unit.repeat(bytes / unit.len());
        assert_linear(unit, 20_000, text, |text| {
            filter.redact(text);
            let mut stream = StreamFilter::default();
            for piece in text.as_bytes().chunks(16) {
                stream.push(&filter, std::str::from_utf8(piece).unwrap());
            }
            stream.finish();
        });
    }
}

/// Threat 832: what could be the first part of a token has thousands of other hits in it.
#[test]
fn v_832_hits_within_a_token_without_an_end_take_linear_time() {
    let filter = filter();
    for unit in ["eyJ-123-45-6789-", "eyJ-4111-1111-1111-1111-", "SG.-123-45-6789-"] {
        let text = |bytes: usize| unit.repeat(bytes / unit.len());
        assert_linear(unit, 20_000, text, |text| {
            let (_, violations) = filter.redact(text);
            assert!(!violations.is_empty());
        });
    }
}
