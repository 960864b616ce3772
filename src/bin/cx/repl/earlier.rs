//! Names of earlier inputs, for the error of an input that expects one of them to be there still.

use std::collections::HashSet;

use cx::Language;

/// Maximum number of names that are remembered.
const MAX_NAMES: usize = 10_000;

/// Maximum bytes of a name that is remembered.
const MAX_NAME: usize = 100;

/// The words of the inputs before this one.
#[derive(Default)]
pub(super) struct EarlierNames(HashSet<String>);

impl EarlierNames {
    /// Remembers the words of an input.
    pub(super) fn add(&mut self, input: &str) {
        let words = input.split(|character| !is_of_name(character));
        for word in words.filter(|word| !word.is_empty() && word.len() <= MAX_NAME) {
            if self.0.len() == MAX_NAMES {
                return;
            }
            self.0.insert(word.to_owned());
        }
    }

    /// What explains an error with this message, if a name of an earlier input is not defined.
    pub(super) fn explain(&self, message: &str, language: Language) -> Option<String> {
        let name = undefined(message).filter(|name| self.0.contains(*name))?;
        let last = if language == Language::Python { "inputs" } else { "input" };
        Some(format!(
            "each input is a script of its own, and the `{name}` of an earlier one ended with it; `{last}` is the last \
             value, and `await state.set(\"{name}\", …)` keeps one for longer"
        ))
    }
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// The name in `NAME is not defined`, or in Python's `name 'NAME' is not defined`.
fn undefined(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(" is not defined")?;
    let name = before.strip_prefix("name '").and_then(|name| name.strip_suffix('\'')).unwrap_or(before);
    name.chars().all(is_of_name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_earlier_input_is_explained() {
        let mut earlier = EarlierNames::default();
        assert_eq!(earlier.explain("g is not defined", Language::TypeScript), None);
        earlier.add("const g = 1, $h = [2]");
        let said = earlier.explain("g is not defined", Language::TypeScript).unwrap();
        assert!(said.contains("the `g` of an earlier one") && said.contains("`input` is"), "{said}");
        let python = "name 'g' is not defined. Did you mean: 'gc'?";
        assert!(earlier.explain(python, Language::Python).unwrap().contains("`inputs` is"));
        assert!(earlier.explain("$h is not defined", Language::TypeScript).is_some());
        for other in ["other is not defined", "g is not a function", "the g is not defined"] {
            assert_eq!(earlier.explain(other, Language::TypeScript), None, "{other}");
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut earlier = EarlierNames::default();
        // Before there are as many as are remembered.
        earlier.add(&"a".repeat(MAX_NAME + 1));
        assert!(earlier.0.is_empty());
        let many: String = (0..2 * MAX_NAMES).map(|at| format!("name{at} ")).collect();
        earlier.add(&many);
        assert_eq!(earlier.0.len(), MAX_NAMES);
    }
}
