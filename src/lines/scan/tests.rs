use super::{FoundId, IdScan};

fn number_in(line: &str) -> Option<i64> {
    IdScan::of_line(line.as_bytes()).as_ref().and_then(FoundId::as_number)
}

#[test]
fn finds_the_top_level_id_of_damaged_lines() {
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"cut"#, Some(7)),
        (r#"{"result":{"content":[],"id":3},"jsonrpc":"2.0","id":8}"#, Some(8)),
        (r#"{"result":{"text":"a \" \"id\":5 {"},"id" : 9 }"#, Some(9)),
        (r#"{"result":NaN,"id":10}"#, Some(10)),
        (r#"{"id":"11","result":1e400}"#, Some(11)),
        (r#"{"result":"\ud800","id":12}"#, Some(12)),
        (r#"{"result":{"content":[},"id":17}"#, Some(17)),
        (r#"{"result":{"content":]],"x":1},"id":18}"#, Some(18)),
        (r#"{"id":null,"x":13}"#, None),
        (r#"{"result":{"id":14}}"#, None),
        (r#"{"a":"id","b":15}"#, None),
        ("id: 16", None),
        ("", None),
        (r#"{"id":99999999999999999999,"x":1}"#, None),
    ] {
        assert_eq!(number_in(line), expected, "{line}");
    }
}

#[test]
fn gets_past_any_depth() {
    let line = format!(r#"{{"result":{}{},"id":19}}"#, "[".repeat(1000), "]".repeat(1000));
    assert_eq!(number_in(&line), Some(19));
}

#[test]
fn reads_a_line_in_any_pieces() {
    let line = br#"{"result":{"content":[{"text":"id"}]},"id":4711}"#;
    for size in 1..line.len() {
        let mut scan = IdScan::default();
        for piece in line.chunks(size) {
            scan.feed(piece);
        }
        assert_eq!(scan.found().and_then(FoundId::as_number), Some(4711), "pieces of {size}");
    }
}

#[test]
fn echoes_ids_as_they_came() {
    for (line, expected) in [
        (r#"{"id":7,"method":"x"}"#, Some("7")),
        (r#"{"method":"x","params":{"id":1},"id":"a-7"}"#, Some(r#""a-7""#)),
        (r#"{"id":"","x":1}"#, Some(r#""""#)),
        (r#"{"id":18446744073709551616,"x":1}"#, Some("18446744073709551616")),
        (r#"{"id":null,"x":1}"#, None),
    ] {
        let found = IdScan::of_line(line.as_bytes()).and_then(|id| id.to_json());
        assert_eq!(found.as_deref().map(serde_json::value::RawValue::get), expected, "{line}");
    }
    let line = format!(r#"{{"id":"{}"}}"#, "x".repeat(100));
    assert_eq!(IdScan::of_line(line.as_bytes()), None, "it may have been cut");
}

/// Such an id is of no request, and the one that it begins with may be of another.
#[test]
fn v_649_what_only_begins_as_an_id_is_none() {
    for line in [
        r#"{"id":1.5,"method":"x"}"#,
        r#"{"id":1e400,"method":"x"}"#,
        r#"{"id":12a,"method":"x"}"#,
        r#"{"id":1"2","method":"x"}"#,
        r#"{"id":"\u0031","x":NaN}"#,
        r#"{"id":"\n7","x":NaN}"#,
    ] {
        assert_eq!(IdScan::of_line(line.as_bytes()), None, "{line}");
    }
    let line = r#"{"id":"a\/\"b","x":NaN}"#;
    let found = IdScan::of_line(line.as_bytes()).and_then(|id| id.to_json());
    assert_eq!(found.as_deref().map(serde_json::value::RawValue::get), Some(r#""a/\"b""#));
    assert_eq!(number_in("{\n\"id\":\n7\n, \"x\": NaN}"), Some(7));
}
