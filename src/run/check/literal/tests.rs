use serde_json::json;

use super::*;
use crate::run::check::survey::{Field, Object};

const UNKNOWN: Literal = Literal::Unknown { may_be_absent: true };

fn object(fields: Vec<(&str, Literal)>, is_open: bool) -> Literal {
    let field =
        |(name, value): (&str, Literal)| Field { name: name.to_owned(), at: 0..0, value, value_at: 0..0 };
    Literal::Object(Object { fields: fields.into_iter().map(field).collect(), is_open })
}

#[test]
fn values_that_are_not_known_have_pointers() {
    let inner = object(vec![("x/y", UNKNOWN), ("z~", Literal::Null)], true);
    let list = Literal::List(vec![Literal::Bool(true), Literal::Unknown { may_be_absent: false }, inner]);
    let (value, unknowns) = to_json(&object(vec![("a", list), ("b", UNKNOWN)], false)).unwrap();
    assert_eq!(value, json!({ "a": [true, null, { "x/y": null, "z~": null }], "b": null }));
    let sorted = |set: &std::collections::HashSet<String>| {
        let mut all: Vec<_> = set.iter().cloned().collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&unknowns.values), ["/a/1", "/a/2/x~1y", "/b"]);
    assert_eq!(sorted(&unknowns.optional), ["/a/2/x~1y", "/b"]);
    assert_eq!(sorted(&unknowns.open), ["/a/2"]);
}

/// One long name and many values in it.
#[test]
fn v_482_arguments_whose_pointers_would_be_long_are_not_judged() {
    let long = "x".repeat(10_000);
    for (count, is_judged) in [(100, true), (110, false), (5_000, false)] {
        for item in [UNKNOWN, Literal::Null, object(Vec::new(), true)] {
            let arguments = object(vec![(&long, Literal::List(vec![item; count]))], false);
            assert_eq!(to_json(&arguments).is_some(), is_judged, "{count}");
        }
    }
}
