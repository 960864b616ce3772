use opentelemetry::{StringValue, Value};

use super::{any_value, message};

#[test]
fn values_have_the_bytes_of_protobuf() {
    let encoded = |value: Value| {
        let mut out = Vec::new();
        any_value(&mut out, &value);
        out
    };
    assert_eq!(encoded("".into()), [0x0a, 0]);
    assert_eq!(encoded("ab".into()), [0x0a, 2, b'a', b'b']);
    assert_eq!(encoded(Value::Bool(false)), [0x10, 0]);
    assert_eq!(encoded(Value::I64(300)), [0x18, 0xac, 0x02]);
    assert_eq!(encoded(Value::I64(-1)), [&[0x18_u8][..], &[0xff; 9][..], &[0x01][..]].concat());
    assert_eq!(encoded(Value::F64(1.0)), [0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    let texts = Value::Array(vec![StringValue::from("a"), StringValue::from("")].into());
    assert_eq!(encoded(texts), [0x2a, 9, 0x0a, 3, 0x0a, 1, b'a', 0x0a, 2, 0x0a, 0]);
}

/// A length of more than 127 takes more than one byte, which comes before what is already written.
#[test]
fn the_length_of_a_message_is_before_it() {
    let cases: [(usize, &[u8]); 4] = [
        (0, &[0x0a, 0]),
        (127, &[0x0a, 0x7f]),
        (300, &[0x0a, 0xac, 0x02]),
        (20_000, &[0x0a, 0xa0, 0x9c, 0x01]),
    ];
    for (length, prefix) in cases {
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let mut out = vec![7_u8];
        message(&mut out, 1, |out| out.extend_from_slice(&content));
        assert_eq!(out, [&[7][..], prefix, &content[..]].concat(), "{length}");
    }
}
