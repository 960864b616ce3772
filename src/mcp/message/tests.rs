use super::*;

/// Threat 160, for servers: a code of this client that a server sends is treated as an error of
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
    let text = br#"{"id":1,"result":{"x":NaN}}"#;
    let mut mended = None;
    let message = IncomingMessage::parse(text, &mut mended).unwrap();
    assert!(message.is_mended);
    assert_eq!(message.result.unwrap().get(), r#"{"x":null}"#);
    assert_eq!(message.marked_result(text).unwrap().get(), r#"{"x":0E-7001}"#);
    assert!(IncomingMessage::parse(b"{NaN", &mut None).is_err());
}

/// Found by the fuzzer: a number that no tree can hold has the form of an id.
#[test]
fn v_653_a_request_whose_id_cannot_be_repeated_is_not_answered() {
    let answer = |id: &str| answer_to("ping", &RawValue::from_string(id.to_owned()).unwrap());
    for id in ["1e999", "-1e400", "null", "[1]"] {
        assert_eq!(answer(id), None, "{id}");
    }
    for id in ["7", "-1", "\"a\""] {
        assert_eq!(answer(id).map(|answer| answer["id"].to_string()), Some(id.to_owned()));
    }
}
