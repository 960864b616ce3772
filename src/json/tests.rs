use serde_json::{Value, json};

use super::{Json, TreeError, budget, check, each_field, each_item, items, tree};

/// The counted cost is never below the measured memory, for the shapes that take most.
#[test]
fn v_280_a_text_that_grows_too_much_is_no_tree() {
    for piece in [r#"{"":0}"#, "[0]", "[[]]", r#"{"a":{"b":[{}]}}"#, "0", r#""""#] {
        let text = format!("[{}]", vec![piece; 400_000].join(","));
        let error = tree(&text, budget(text.len())).unwrap_err();
        let TreeError::TooMany { values } = error else { panic!("{piece}: {error}") };
        assert!((1_000..400_000).contains(&values), "{piece}: {values}");
        let json = Json::parse(&text).unwrap();
        assert_eq!(json.text(), text);
        assert!(json.value().is_none() && json[0].is_null());
    }
    // Typical texts are accepted.
    let rows =
        vec![r#"{"id":1234567,"name":"a name of some length","tags":["one","two"],"note":null}"#; 2_500];
    assert!(tree(&format!("[{}]", rows.join(",")), budget(200_000)).is_ok());
    let text = serde_json::to_string(&"x".repeat(10 << 20)).unwrap();
    assert!(tree(&text, budget(text.len())).is_ok());
}

#[test]
fn texts_are_what_trees_would_print() {
    for text in [
        " [ 1 , 2.50, -0, -0.0, 1e3, 1E+21, 18446744073709551615, -9223372036854775808, 1.7976931348623157e308 ] ",
        r#"{ "a" : { } , "b" : [ ] , "" : [ [ ] , { } ] , "\u00e9\n" : "\ud83d\ude00\u0000\/" }"#,
        "\n\"a\\tb\"\r\n",
        " null",
        "true",
        "\"\u{2028}é\"",
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        let json = Json::parse(text).unwrap();
        assert_eq!(json.text(), value.to_string());
        assert_eq!(json.value(), Some(&value));
        assert_eq!(Json::from(value), json);
    }
}

#[test]
fn what_is_no_tree_is_no_text_either() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for text in ["", "{", "[1,]", "[1] 2", r#""\ud800""#, r#"{"a":1"#, "{1:2}", "nul", &deep(128)] {
        assert!(serde_json::from_str::<Value>(text).is_err());
        assert!(Json::parse(text).is_err(), "{text}");
        assert!(matches!(check(text, usize::MAX), Err(TreeError::Invalid(_))), "{text}");
    }
    assert_eq!(Json::parse(&deep(127)).unwrap().text(), deep(127));
}

#[test]
fn numbers_beyond_an_f64_are_told_from_what_is_no_json() {
    for text in ["1e999", "[-1e400]", r#"{"a":1e309}"#] {
        let error = check(text, usize::MAX).unwrap_err();
        assert!(matches!(error, TreeError::NumberOutOfRange(_)), "{text}: {error}");
        assert!(error.to_string().starts_with("number out of range"), "{error}");
        assert!(Json::parse(text).is_err(), "{text}");
    }
    for text in ["[1e999", "1e999]", r#"["1e999",]"#, "[1e]"] {
        assert!(matches!(check(text, usize::MAX), Err(TreeError::Invalid(_))), "{text}");
    }
    assert!(check(r#"[1e308, "1e999", 1e-999]"#, usize::MAX).is_ok());
}

#[test]
fn parts_are_found_without_a_tree() {
    let json = Json::parse(r#"{"type":"text","text":"a\nb","x":[{}],"text":"last"}"#).unwrap();
    assert_eq!(json.string_field("text").as_deref(), Some("last"));
    assert_eq!(json.string_field("x"), None);
    assert_eq!(json.string_field("y"), None);
    assert_eq!(Json::parse("[1]").unwrap().string_field("y"), None);
    assert_eq!(Json::from("a\"b".to_owned()).as_string().as_deref(), Some("a\"b"));
    assert_eq!(json["type"], "text");
    let found = items("[1, {}, [2]]", 2).unwrap();
    assert_eq!(found.iter().map(|item| item.get()).collect::<Vec<_>>(), ["1", "{}"]);
    assert!(items("{}", 2).is_err() && items("[1] 2", 2).is_err());
    let mut seen = String::new();
    each_field(r#"{"a":1,"b":[2]}"#, |key, value| seen += &format!("{key}={value};")).unwrap();
    each_item("[3,4]", |item| {
        seen += item.get();
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, "a=1;b=[2];34");
    assert_eq!(json!({ "inside": json }).to_string(), json!({ "inside": json.value() }).to_string());
}
