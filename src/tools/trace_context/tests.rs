use serde_json::{Value, json};

use super::TraceContext;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn of(value: &Value) -> Option<TraceContext> {
    TraceContext::from_meta(value.as_object().unwrap())
}

#[test]
fn what_comes_in_goes_out() {
    let meta = json!({
        "traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        "baggage": "userId=alice,serverNode=DF%2028;p=1",
    });
    let context = of(&meta).unwrap();
    assert_eq!(Value::Object(context.to_meta()), meta);
    assert_eq!(context.span_id, 0x00f0_67aa_0ba9_02b7);
    assert!(!format!("{context:?}").contains("alice"));
    // Of a later version what is known.
    let later = format!("cc{}-what the future will be like", &PARENT[2..]);
    assert_eq!(of(&json!({ "traceparent": later })).unwrap().traceparent(), PARENT);
    assert_eq!(of(&json!({ "traceparent": PARENT.replace("-01", "-ff") })).unwrap().flags, 3);
}

#[test]
fn what_is_not_valid_is_dropped() {
    let long = "a".repeat(1_000_000);
    let long_parent = format!("cc{}-{}", &PARENT[2..], "x".repeat(201));
    assert!(of(&json!({ "traceparent": &long_parent[..256] })).is_some());
    for parent in [
        "",
        "00",
        &long,
        &long_parent,
        &PARENT[..54],
        &format!("{PARENT}-"),
        &format!("{PARENT}-00"),
        &PARENT.to_uppercase(),
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e47-3600f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        "+0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473\u{e9}-0f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
    ] {
        assert_eq!(of(&json!({ "traceparent": parent })), None, "{}", &parent[..parent.len().min(60)]);
    }
    for parent in [json!(1), json!(null), json!([PARENT]), json!({ "traceparent": PARENT })] {
        assert_eq!(of(&json!({ "traceparent": parent })), None);
    }
    let members = vec!["a=b"; 33].join(",");
    let long_state = format!("a={0},b={0}", "c".repeat(254));
    let states =
        ["", "a", "=b", "a=", "A=b", "a=b,c", "a=b\n", "a=\u{e9}", "a=b=c", &long, &members, &long_state];
    for state in states {
        let context = of(&json!({ "traceparent": PARENT, "tracestate": state })).unwrap();
        assert_eq!(context.state, None, "{}", &state[..state.len().min(60)]);
    }
    for state in ["a=b", "a=b, c=d", "a=b,,c=d", "1a@b=c d", &long_state[..512]] {
        let context = of(&json!({ "traceparent": PARENT, "tracestate": state })).unwrap();
        assert_eq!(context.state.as_deref(), Some(state));
    }
    let bags = ["", "a", "a=\u{e9}", "a=b\r\nX: y", "a=\0", &format!("a={long}")].map(str::to_owned);
    for baggage in &bags {
        let context = of(&json!({ "traceparent": PARENT, "baggage": baggage })).unwrap();
        assert_eq!(context.baggage, None, "{}", &baggage[..baggage.len().min(60)]);
    }
}

/// The fields are written into requests as text: what others have written stays within its quotes.
#[test]
fn v_495_baggage_adds_no_fields_to_a_request() {
    for baggage in ["userId=alice", "a=\"b\",\\", "a=\",\"traceparent\":\"x", "a=\"},\"name\":\"other"] {
        let context =
            of(&json!({ "traceparent": PARENT, "tracestate": "a=\"", "baggage": baggage })).unwrap();
        let text = format!("{{{}}}", context.to_meta_fields());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Value::Object(context.to_meta()));
        assert_eq!(context.to_meta()["baggage"], baggage);
    }
}
