use super::*;
use crate::growth::assert_linear;

fn field(name: String) -> Field {
    Field { name, at: 0..0, value: Literal::Null, value_at: 0..0 }
}

#[test]
fn the_last_field_of_a_name_counts_and_what_is_spread_hides_those_before() {
    let mut object = ObjectBuilder::default();
    for name in ["a", "b", "a"] {
        object.set(Field { value: Literal::Text(name.to_owned()), ..field(name.to_owned()) });
    }
    object.spread(true);
    object.set(field("a".to_owned()));
    let object = object.build();
    let unknown = Literal::Unknown { may_be_absent: true };
    let fields: Vec<_> = object.fields.iter().map(|field| (&*field.name, field.value.clone())).collect();
    assert_eq!(fields, [("a", Literal::Null), ("b", unknown)]);
    assert!(object.is_open);
}

/// Few fields are searched, and many have a map.
#[test]
fn a_name_is_found_among_few_fields_and_among_many() {
    for count in 1..3 * FEW_FIELDS {
        let mut object = ObjectBuilder::default();
        for name in (0..count).chain([0, count - 1]) {
            object.set(Field { value: Literal::Bool(true), ..field(name.to_string()) });
        }
        object.set(Field { value: Literal::Bool(false), ..field((count / 2).to_string()) });
        let object = object.build();
        let names: Vec<String> = (0..count).map(|name| name.to_string()).collect();
        assert!(object.fields.iter().map(|field| &field.name).eq(&names), "{object:?}");
        let changed = object.fields.iter().filter(|field| field.value == Literal::Bool(false));
        assert!(changed.map(|field| &field.name).eq([&(count / 2).to_string()]), "{object:?}");
    }
}

/// Fields times fields, and fields times what is spread.
#[test]
fn v_525_a_literal_object_is_read_in_linear_time() {
    let names = |count: usize| (0..count).map(|number| format!("{number:07}")).collect::<Vec<_>>();
    let build = |names: &Vec<String>, spreads: bool| {
        let mut object = ObjectBuilder::default();
        for name in names {
            object.set(field(name.clone()));
            if spreads {
                object.spread(true);
            }
        }
        object.build()
    };
    assert_linear("fields", 10_000, names, |names| build(names, false));
    assert_linear("fields and spreads", 10_000, names, |names| build(names, true));
}

/// Mistakes times bytes of their line.
#[test]
fn v_525_mistakes_in_one_line_are_sorted_in_linear_time() {
    let make = |count: usize| {
        let mistake = |at: usize| Mistake { message: String::new(), hint: None, at: 100 * at..100 * at + 1 };
        ((0..count).map(mistake).collect::<Vec<_>>(), ")".repeat(100 * count))
    };
    assert_linear("mistakes", 5_000, make, |(mistakes, program)| {
        let mut survey = Survey::default();
        survey.add_mistakes(mistakes.iter().cloned(), program);
        assert_eq!(survey.mistakes.len(), 1);
    });
}
