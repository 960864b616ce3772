use super::*;

fn call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
    )
}

fn detached(message: &str) -> (String, Option<String>) {
    let incoming = detach(message.as_bytes()).unwrap();
    let kept = String::from_utf8(incoming.message.into_owned()).unwrap();
    (kept, incoming.input.map(|DetachedInput(input)| input.into_text()))
}

#[test]
fn an_input_is_taken_out_of_its_message() {
    for (arguments, kept, input) in [
        (r#"{"code":"1","input":{ "a" : [1] }}"#, r#"{"code":"1","input":null}"#, Some(r#"{"a":[1]}"#)),
        (r#"{"input":"x","code":"1"}"#, r#"{"input":null,"code":"1"}"#, Some(r#""x""#)),
        (
            r#"{"input":1,"code":"1","\u0069nput":2}"#,
            r#"{"input":null,"code":"1","\u0069nput":null}"#,
            Some("2"),
        ),
        (r#"{"input":null}"#, r#"{"input":null}"#, Some("null")),
        (r#"{"code":{"input":1}}"#, r#"{"code":{"input":1}}"#, None),
        (r#"{"input":"\ud800"}"#, r#"{"input":"\ud800"}"#, None),
        ("[1]", "[1]", None),
    ] {
        assert_eq!(detached(&call(arguments)), (call(kept), input.map(str::to_owned)), "{arguments}");
    }
    let other = call(r#"{"input":1}"#).replace("tools/call", "tools/other");
    assert_eq!(detached(&other), (other.clone(), None));
    let escaped = call(r#"{"input":1}"#).replace("tools/call", r"tools\/call");
    assert_eq!(detached(&escaped).1.as_deref(), Some("1"));
    for odd in ["", "{", "null", "[]", r#"{"method":1}"#, r#"{"method":"tools/call","params":[]}"#] {
        assert_eq!(detached(odd), (odd.to_owned(), None));
    }
}

/// Threat 657. Whatever a client calls its requests is repeated in answers and notifications.
#[test]
fn v_657_what_is_kept_of_a_request_is_small() {
    let request = |id: usize, meta: usize| {
        let (id, meta) = ("i".repeat(id), "m".repeat(meta));
        format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"tools/call","params":{{"name":"t","_meta":{{"x":"{meta}"}},"arguments":{{"code":"1"}}}}}}"#
        )
    };
    // With the quotes, and the rest of `_meta`.
    let (id, meta) = (MAX_ID_BYTES - 2, MAX_META_BYTES - r#"{"x":""}"#.len());
    assert_eq!(detached(&request(id, meta)), (request(id, meta), None));
    for (message, expected) in [(request(id + 1, meta), "id"), (request(id, meta + 1), "_meta")] {
        let error = detach(message.as_bytes()).unwrap_err();
        assert!(matches!(error, TooLarge::Part { part, .. } if part == expected), "{error}");
    }
    // The last one of two would count.
    let twice = request(1, MAX_META_BYTES).replace(r#","arguments""#, r#","_meta":{},"arguments""#);
    detach(twice.as_bytes()).unwrap_err();
    // Other parts are not kept, or are counted.
    detach(call(&format!(r#"{{"code":"{}"}}"#, "x".repeat(2 * MAX_META_BYTES))).as_bytes()).unwrap();
}

/// Threat 823. Each of hundreds of notifications that wait for a client has the token.
#[test]
fn v_823_progress_tokens_are_as_long_as_ids() {
    let request = |token: usize| {
        let token = "t".repeat(token);
        format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"t","_meta":{{"x":{{}},"progressToken":"{token}"}}}}}}"#
        )
    };
    detach(request(MAX_ID_BYTES - 2).as_bytes()).unwrap();
    let error = detach(request(MAX_ID_BYTES - 1).as_bytes()).unwrap_err();
    assert!(matches!(error, TooLarge::Part { part: "progressToken", .. }), "{error}");
}

/// Threat 820. What a client says of itself is kept as long as its session.
#[test]
fn v_820_what_is_kept_of_a_session_is_small() {
    let handshake = |method: &str, capabilities: &str, name: usize| {
        let name = "n".repeat(name);
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"{method}","params":{{"capabilities":{capabilities},"clientInfo":{{"name":"{name}"}}}}}}"#
        )
    };
    let name = MAX_HANDSHAKE_BYTES - r#"{"capabilities":{},"clientInfo":{"name":""}}"#.len();
    for method in ["initialize", r"in\u0069tialize"] {
        let longest = handshake(method, "{}", name);
        assert_eq!(detached(&longest), (longest.clone(), None));
        let error = detach(handshake(method, "{}", name + 1).as_bytes()).unwrap_err();
        assert!(matches!(error, TooLarge::Part { part: "params", .. }), "{error}");
        // A text of 7 KB that would take more than half a megabyte.
        let many = format!(r#"{{"experimental":{{"x":{{"y":[{}]}}}}}}"#, vec![r#"{"":0}"#; 1_000].join(","));
        let error = detach(handshake(method, &many, 1).as_bytes()).unwrap_err();
        assert!(matches!(error, TooLarge::HandshakeValues(_)), "{error}");
        // One of two would count, whichever it is.
        let long = handshake(method, "{}", name + 1);
        let last = long.replace(r#""id":0"#, r#""params":{},"id":0"#);
        let first = format!(r#"{},"params":{{}}}}"#, long.strip_suffix('}').unwrap());
        for twice in [first, last] {
            detach(twice.as_bytes()).unwrap_err();
        }
    }
    // Other methods have no session that keeps them.
    detach(handshake("tools/call", "{}", name + 1).as_bytes()).unwrap();
}

#[test]
fn v_281_a_message_is_small_beside_its_input() {
    let many = format!("[{}]", vec![r#"{"":0}"#; 500_000].join(","));
    let (kept, input) = detached(&call(&format!(r#"{{"code":"1","input":{many}}}"#)));
    assert_eq!((kept, input), (call(r#"{"code":"1","input":null}"#), Some(many.clone())));
    for elsewhere in [
        call(&format!(r#"{{"code":{many}}}"#)),
        call(&format!(r#"{{"code":"1","input":1,"x":{many}}}"#)),
        format!(r#"{{"id":1,"method":"ping","params":{many}}}"#),
        format!(r#"{{"id":1,"result":{many}}}"#),
    ] {
        let error = detach(elsewhere.as_bytes()).unwrap_err();
        assert!(matches!(error, TooLarge::Values(_)), "{error}");
    }
    let source = serde_json::to_string(&"x".repeat(MAX_MESSAGE_BYTES - 200)).unwrap();
    assert_eq!(detached(&call(&format!(r#"{{"code":{source},"input":7}}"#))).1.as_deref(), Some("7"));
    let source = serde_json::to_string(&"x".repeat(MAX_MESSAGE_BYTES)).unwrap();
    let error = detach(call(&format!(r#"{{"code":{source}}}"#)).as_bytes()).unwrap_err();
    assert!(matches!(error, TooLarge::Bytes { .. }), "{error}");
    // Not JSON, and too long to be passed on to the parser.
    assert!(detach(&vec![b'{'; MAX_MESSAGE_BYTES + 1]).is_err());
}
