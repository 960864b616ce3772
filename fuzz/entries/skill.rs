//! Target of the front matter of a server's skills. The first line is what its list says, the rest is the file.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::check;

pub(crate) fn skill(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, rest) = data.split_at(end);
    let file = rest.get(1..).unwrap_or_default();
    let Ok(listed) = serde_json::from_slice::<Map<String, Value>>(line) else { return };
    let fits = |listed: &Map<String, Value>| {
        let listed: Box<RawValue> = to_raw_value(listed).expect("an object");
        check(file, &listed).is_ok()
    };
    if !fits(&listed) {
        return;
    }
    // A list that says something else does not fit.
    for name in listed.keys() {
        let mut other = listed.clone();
        if let Some(Value::String(text)) = other.get_mut(name) {
            text.push('x');
            assert!(!fits(&other), "{name}: {listed:?}");
        }
    }
}

#[test]
fn v_563_front_matter_of_skills_fits_one_list() {
    crate::fuzzing::smoke("skill", 2_000, skill);
}
