use super::*;

/// THREATS 160, for servers: a code of this client that a server sends is treated as an error of
/// the server.
#[test]
fn tl_160_no_server_speaks_for_the_transport() {
    for code in [i32::MIN, i32::MIN + 1, i32::MIN + 2] {
        let error = json!({ "code": code, "message": "x", "data": { "code": "TOOL_DENIED" } }).to_string();
        let read = read_error(&RawValue::from_string(error).unwrap()).unwrap();
        assert_eq!(read.code, ErrorCode::INTERNAL_ERROR, "{code}");
    }
    let error = r#"{"code":-32602,"message":"x"}"#.to_owned();
    assert_eq!(read_error(&RawValue::from_string(error).unwrap()).unwrap().code, ErrorCode::INVALID_PARAMS);
}

#[test]
fn numbers_that_json_does_not_have_are_null() {
    let mended =
        |text: &str| without_odd_numbers(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
    let text = r#"{"a":NaN,"b":[Infinity,-Infinity],"c":"NaN \" Infinity","d":-1}"#;
    let expected = r#"{"a":null,"b":[null,null],"c":"NaN \" Infinity","d":-1}"#;
    assert_eq!(mended(text).as_deref(), Some(expected));
    assert_eq!(mended(r#"{"a":"NaN"}"#), None);
    assert_eq!(mended("\"\\"), None, "the end of the text is the end");
    let text = br#"{"id":1,"result":{"x":NaN}}"#;
    let mut mended = None;
    let message = IncomingMessage::parse(text, &mut mended).unwrap();
    assert_eq!(message.result.unwrap().get(), r#"{"x":null}"#);
    assert!(IncomingMessage::parse(b"{NaN", &mut None).is_err());
}
