use super::clock::{Cursor, Readings};
use super::mask::{Masker, TextKind};
use super::{Request, is_same_text, looks_equal};
use crate::growth::assert_linear;

fn mask(text: &str, kind: TextKind) -> String {
    Masker::default().mask(text, kind).unwrap_or_else(|| text.to_owned())
}

#[test]
fn readings_come_back_from_their_text() {
    let mut readings = Readings::default();
    let values = [5, 5, 5, 7, 3, u64::MAX, 0, 0];
    let steps = values.iter().filter(|value| readings.add(**value)).count();
    assert_eq!(steps, 5);
    let text = readings.to_text(&mut 1);
    assert_eq!(text, "4*3 2 -4 -4 1*2");
    let read = Readings::from_text(&text, &mut 1, 5).unwrap();
    assert_eq!(read, readings);
    let mut cursor = Cursor::default();
    let again: Vec<u64> = std::iter::from_fn(|| read.at(&mut cursor)).collect();
    assert_eq!(again, values);
}

#[test]
fn untrusted_readings_are_bounded() {
    for wrong in ["x", "1*", "1*0", "1*-1", "99999999999999999999", "1 2 3 4"] {
        assert_eq!(Readings::from_text(wrong, &mut 0, 3), None, "{wrong}");
    }
    assert!(Readings::from_text("", &mut 0, 0).is_some());
}

#[test]
fn secrets_are_masked_by_number() {
    let token = "ghp_0123456789abcdefghij";
    let other = "sk-live-abcdefghijklmnop";
    let masked = mask(&format!(r#"{{"a":"{token}","b":["{other}","Bearer {token}"]}}"#), TextKind::Data);
    assert_eq!(masked, r#"{"a":"***1","b":["***2","Bearer ***1"]}"#);
}

#[test]
fn values_of_secret_fields_are_masked_whole() {
    for (text, masked) in [
        (r#"{"password":"my long pass phrase","n":1}"#, r#"{"password":"***1","n":1}"#),
        (r#"{"text":"{\"apiKey\":\"abcdef\"}"}"#, r#"{"text":"{\"apiKey\":\"***1\"}"}"#),
        (r#"{"totalTokens":12345,"token":null}"#, r#"{"totalTokens":12345,"token":null}"#),
        ("password=hunter22 user=me", "password=***1 user=me"),
        (r#"[["x-api-key","a b,c"],["accept","text/x"]]"#, r#"[["x-api-key","***1"],["accept","text/x"]]"#),
        (r#"{"text":"[[\"cookie\", \"id=abcdef\"]]"}"#, r#"{"text":"[[\"cookie\", \"***1\"]]"}"#),
        (r#"["password","token","user"]"#, r#"["password","token","user"]"#),
        ("Authorization: Bearer abcdefghij", "Authorization: Bearer ***1"),
        ("the token is here", "the token is here"),
    ] {
        assert_eq!(mask(text, TextKind::Data), masked);
    }
}

#[test]
fn a_private_key_is_masked_to_its_end() {
    let text = "a -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- b";
    assert_eq!(mask(text, TextKind::Data), "a ***1 b");
}

#[test]
fn a_source_stays_a_script() {
    let source = "const token = await next(); const config = { password: input.secret, key: `a` };";
    assert_eq!(mask(source, TextKind::Source), source);
    // What follows the text that the name is in is code.
    for source in [
        "body='client_secret=' + inputs['password'])",
        "f(\"a=b&token=\"+ token + \"&c\")",
        "'password: %s' % word",
        "if 'password:' in line and 'token=' not in line:",
        "say(\"it's\", 'secret=' + value)",
        "const t = `\n  client_secret=` + value",
        "x = 'it\\'s'; f('token=' + value)",
    ] {
        assert_eq!(mask(source, TextKind::Source), source);
    }
    assert_eq!(mask("const apiKey = \"abcd1234\";", TextKind::Source), "const apiKey = \"***1\";");
    // What is in quotes is a value, whatever it begins with.
    for (source, masked) in [
        ("login({ password: '+plus+' })", "login({ password: '***1' })"),
        (r#"login({"password": "+plus+"})"#, r#"login({"password": "***1"})"#),
        ("a('b', {'token': '%2babc'})", "a('b', {'token': '***1'})"),
        ("password = 'in the garden'", "password = '***1'"),
        ("// don't\npassword = '.hidden'", "// don't\npassword = '***1'"),
        (r#"f("{\"token\":\"+abc+\"}")"#, r#"f("{\"token\":\"***1\"}")"#),
    ] {
        assert_eq!(mask(source, TextKind::Source), masked);
    }
}

#[test]
fn masks_stand_for_secrets_in_comparisons() {
    let digest = "0123456789abcdef0123456789abcdef";
    assert!(is_same_text(&format!("id {digest} end"), "id ***7 end"));
    assert!(is_same_text("id ***1 end", "id ***7 end"));
    assert!(!is_same_text("id none end", "id ***7 end"));
    assert!(!is_same_text(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#));
    assert!(looks_equal(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#));
    assert!(!looks_equal(r#"{"a":1}"#, r#"{"a":2}"#));
}

#[test]
fn masking_twice_changes_nothing() {
    let once = mask(r#"{"token":"ghp_0123456789abcdefghij","password":"hunter22"}"#, TextKind::Data);
    assert_eq!(mask(&once, TextKind::Data), once);
    // A number of another recording stays too.
    let other = r#"{"password":"***2"}"#;
    assert_eq!(mask(other, TextKind::Data), other);
}

/// Words times text: a private key, a pair or a text in quotes that does not end.
#[test]
fn v_529_secrets_are_searched_in_linear_time() {
    for part in ["-----BEGIN ", "[token,x ", "'a token:'+x ", "token=\"x "] {
        let make = |count: usize| part.repeat(count);
        for kind in [TextKind::Source, TextKind::Data] {
            assert_linear(part, 10_000, make, |text| Masker::default().mask(text, kind));
        }
    }
    assert_eq!(mask(r#"[["token","12345"], ["x","y"]]"#, TextKind::Data), r#"[["token","***1"], ["x","y"]]"#);
    assert_eq!(
        mask(r#"x [token,12345"] [token,x "67890","#, TextKind::Data),
        r#"x [token,***1"] [token,x "67890","#
    );
}

#[test]
fn queries_are_shown_as_scripts_make_them() {
    for (text, expected) in [
        (
            r#"{"kind":"state","call":{"set":{"key":"a","value":"1"}}}"#,
            r#"state.set with {"key":"a","value":"1"}"#,
        ),
        (r#"{"kind":"file","call":{"op":"stat","path":"/tmp/x"}}"#, r#"file.stat with {"path":"/tmp/x"}"#),
        (r#"{"kind":"llm","call":{"ask":"{\"prompt\":\"hi\"}"}}"#, r#"llm.ask with {"prompt":"hi"}"#),
        (r#"{"kind":"llm","call":{"next":1}}"#, "llm.next with 1"),
        (r#"{"kind":"search","query":"words","limit":10}"#, r#"search with {"query":"words","limit":10}"#),
        (r#"{"kind":"servers"}"#, "servers"),
        // What no guest sends.
        ("", "the query "),
        ("[1]", "the query [1]"),
        (r#"{"kind":5}"#, r#"the query {"kind":5}"#),
        (r#"{"kind":"state","call":{}}"#, r#"the query {"kind":"state","call":{}}"#),
        (r#"{"kind":"state","call":5}"#, r#"the query {"kind":"state","call":5}"#),
    ] {
        assert_eq!(Request::Query { text: text.to_owned() }.to_string(), expected);
    }
    // As a tree it would take ninety times as much.
    let hostile = format!(r#"{{"kind":"x","many":[{}]}}"#, vec![r#"{"":0}"#; 200_000].join(","));
    assert!(Request::Query { text: hostile }.to_string().starts_with("the query "));
}
