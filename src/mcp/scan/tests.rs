use super::IdScan;

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
        assert_eq!(IdScan::of_line(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn gets_past_any_depth() {
    let line = format!(r#"{{"result":{}{},"id":19}}"#, "[".repeat(1000), "]".repeat(1000));
    assert_eq!(IdScan::of_line(line.as_bytes()), Some(19));
}

#[test]
fn reads_a_line_in_any_pieces() {
    let line = br#"{"result":{"content":[{"text":"id"}]},"id":4711}"#;
    for size in 1..line.len() {
        let mut scan = IdScan::default();
        for piece in line.chunks(size) {
            scan.feed(piece);
        }
        assert_eq!(scan.found(), Some(4711), "pieces of {size}");
    }
}
