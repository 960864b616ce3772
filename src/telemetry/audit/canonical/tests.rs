use serde_json::json;

use super::*;

/// The numbers of RFC 8785, appendix B.
#[test]
fn numbers_are_those_of_the_rfc() {
    for (bits, expected) in [
        (0x0000_0000_0000_0001_u64, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x8000_0000_0000_0000, "0"),
    ] {
        assert_eq!(float(f64::from_bits(bits)), expected);
    }
}

#[test]
fn equal_values_have_equal_text() {
    let written = json!({ "\u{20ac}": 1, "\r": 2, "1": [4.5, 1e30, 0.002, -0.0], "\u{1f600}": "a\u{f}\n\"\\/", "\u{fb33}": null });
    let expected = "{\"\\r\":2,\"1\":[4.5,1e+30,0.002,0],\"\u{20ac}\":1,\"\u{1f600}\":\"a\\u000f\\n\\\"\\\\/\",\"\u{fb33}\":null}";
    assert_eq!(value(&written), expected.as_bytes());
    assert_eq!(value(&json!(9_007_199_254_740_993_u64)), b"9007199254740992");
    assert_eq!(value(&json!(-3)), b"-3");
}

#[test]
fn a_member_is_added_where_it_belongs() {
    for (fields, expected) in [
        (vec![("z", json!(2)), ("n", Value::Null), ("a", json!(1))], r#"{"a":1,"hash":"x","z":2}"#),
        (vec![("z", json!({ "b": 1, "a": 2 }))], r#"{"hash":"x","z":{"a":2,"b":1}}"#),
        (vec![("z", json!(1)), ("a", json!("\u{20ac}\n"))], "{\"a\":\"\u{20ac}\\n\",\"hash\":\"x\",\"z\":1}"),
    ] {
        let mut text = b"before".to_vec();
        let [offset] = write_record(&mut text, &fields, ["hash"]);
        let text = String::from_utf8(text).unwrap();
        let (before, after) = text.split_at(offset);
        assert_eq!(format!("{before}\"hash\":\"x\",{after}"), format!("before{expected}"));
    }
}

#[test]
fn members_are_added_where_they_belong() {
    for (fields, expected) in [
        (
            vec![("z", json!(2)), ("i", json!(1)), ("a", json!(0))],
            r#"{"a":0,"hash":,"i":1,"prev":,"seq":,"z":2}"#,
        ),
        (vec![("z", json!(2))], r#"{"hash":,"prev":,"seq":,"z":2}"#),
        (
            vec![("t", Value::Null), ("q", json!(1)), ("z", json!(2))],
            r#"{"hash":,"prev":,"q":1,"seq":,"z":2}"#,
        ),
    ] {
        let (mut text, names) = (b"before".to_vec(), ["hash", "prev", "seq"]);
        let offsets = write_record(&mut text, &fields, names);
        let mut text = String::from_utf8(text).unwrap();
        for (offset, name) in offsets.into_iter().zip(names).rev() {
            text.insert_str(offset, &format!("\"{name}\":,"));
        }
        assert_eq!(text, format!("before{expected}"));
    }
}
