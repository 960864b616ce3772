//! Bounds on patterns of regular expressions that are written as such. `js/19_text.js` has the same bounds for those
//! that are made of a text, and says why; a test compares them.

use swc_common::Span;
use swc_ecma_ast::{Module, Regex};
use swc_ecma_visit::{Visit, VisitWith};

const MAX_PROPERTIES: usize = 200;
const MAX_CLASSES: usize = 1_000;
const MAX_SETS_PATTERN: usize = 1 << 12;
const MAX_TEXT_PROPERTIES: usize = 30;
const MAX_NAMED_GROUPS: usize = 4_000;
const MAX_BRACKETS: usize = 10_000;
const MAX_PATTERN: usize = 1 << 19;

/// A pattern of no more bytes passes no bound.
const MIN_REFUSED: usize = 2 * MAX_PROPERTIES;

/// Where the first regular expression of a module is that V8 would compile for too long.
pub(super) fn find_heavy(text: &str, module: &Module) -> Option<Span> {
    let mut finder = Finder { found: None };
    if text.len() > MIN_REFUSED {
        module.visit_with(&mut finder);
    }
    finder.found
}

struct Finder {
    found: Option<Span>,
}

impl Visit for Finder {
    fn visit_regex(&mut self, regex: &Regex) {
        if is_heavy(&regex.exp, &regex.flags) {
            self.found.get_or_insert(regex.span);
        }
    }
}

fn is_heavy(pattern: &str, flags: &str) -> bool {
    if pattern.len() <= MIN_REFUSED {
        return false;
    }
    let has_more = |starts: &str, max: usize| {
        let escapes = pattern.as_bytes().windows(2).filter(|pair| pair[0] == b'\\');
        escapes.filter(|pair| starts.as_bytes().contains(&pair[1])).count() > max
    };
    let text_properties = || pattern.matches(r"\p{RGI_").count() + pattern.matches(r"\p{Basic_Emoji").count();
    let (has_sets, length) = (flags.contains('v'), pattern.encode_utf16().count());
    length > MAX_PATTERN
        || pattern.matches("(?<").count() > MAX_NAMED_GROUPS
        || pattern.matches('[').count() > MAX_BRACKETS
        || has_sets && (length > MAX_SETS_PATTERN || text_properties() > MAX_TEXT_PROPERTIES)
        || (has_sets || flags.contains('u'))
            && (has_more("pP", MAX_PROPERTIES) || has_more("wWdDsS", MAX_CLASSES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a constant in `js/19_text.js`.
    fn bound_of_text(name: &str) -> usize {
        let prefix = format!("const {name} = ");
        let mut lines = include_str!("../../../../js/19_text.js").lines();
        let value =
            lines.find_map(|line| line.trim_start_matches("export ").strip_prefix(&prefix)).expect(name);
        let number =
            |text: &str| text.trim_matches([' ', ';']).replace('_', "").parse::<usize>().expect(name);
        match value.split_once("**") {
            Some((base, exponent)) => number(base).pow(u32::try_from(number(exponent)).expect(name)),
            None => number(value),
        }
    }

    #[test]
    fn v_750_literals_have_the_bounds_of_other_patterns() {
        for (name, bound) in [
            ("MAX_PROPERTIES", MAX_PROPERTIES),
            ("MAX_CLASSES", MAX_CLASSES),
            ("MAX_SETS_PATTERN", MAX_SETS_PATTERN),
            ("MAX_TEXT_PROPERTIES", MAX_TEXT_PROPERTIES),
            ("MAX_NAMED_GROUPS", MAX_NAMED_GROUPS),
            ("MAX_BRACKETS", MAX_BRACKETS),
            ("MAX_PATTERN", MAX_PATTERN),
        ] {
            assert_eq!(bound_of_text(name), bound, "{name}");
        }
    }

    #[test]
    fn v_750_each_bound_counts_what_v8_takes_long_for() {
        for (part, count, flags) in [
            (r"\p{L}", 200, "u"),
            (r"\P{L}", 200, "iu"),
            (r"\w", 1_000, "u"),
            (r"\S", 1_000, "vi"),
            ("(?<a>x)|", 4_000, ""),
            ("ab", 2_048, "v"),
            ("\u{e9}b", 2_048, "v"),
            (r"\p{RGI_Emoji}", 30, "v"),
            (r"\p{Basic_Emoji}", 30, "iv"),
            (r"[\0-\uffff]", 10_000, "i"),
            ("ab", 1 << 18, ""),
        ] {
            assert!(!is_heavy(&part.repeat(count), flags), "{part} {flags}");
            assert!(is_heavy(&part.repeat(count + 1), flags), "{part} {flags}");
        }
        // Without the flags `\p` is a letter, and a class is short.
        assert!(!is_heavy(&r"\p{L}\w".repeat(10_000), "gi"));
    }
}
