//! The modules that the interpreter has, so that an import of any other is found before a script runs.

use std::sync::LazyLock;

use crate::tools::names::{SuggestionBudget, nearest};

/// The names that an `import` finds at the top level, sorted, one a line, without those that begin with an underscore.
/// Made by `python-wasm/modules.py`; a test compares them with the interpreter.
///
/// Modules within packages are not here: a package may add some when it is imported, as `xml.parsers.expat` does.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| include_str!("modules.txt").lines().collect());

/// Those that cx adds.
const OWN: [&str; 8] = [
    "app",
    "componentize_py_async_support",
    "componentize_py_types",
    "cx_guest",
    "mcp",
    "mcp_tools",
    "poll_loop",
    "wit_world",
];

/// Modules that others need; a script has little use for them.
const NOT_SUGGESTED: [&str; 6] =
    ["attr", "componentize_py_runtime", "pyrsistent", "soupsieve", "typing_extensions", "tzdata"];

/// Whether an import of this name at the top level may succeed. Of CPython's own modules, which begin with an
/// underscore, that is not known.
pub(super) fn may_exist(name: &str) -> bool {
    name.starts_with('_') || OWN.contains(&name) || NAMES.binary_search(&name).is_ok()
}

/// The module that is nearest to a name that is not there.
pub(super) fn nearest_to(wrong: &str, budget: &SuggestionBudget) -> Option<&'static str> {
    let names = NAMES.iter().copied().filter(|name| !NOT_SUGGESTED.contains(name));
    nearest(wrong, names, budget).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted_by(|name, next| name < next), "a search needs sorted names");
        for name in NAMES.iter().copied().chain(OWN).chain(["_ssl", "__main__"]) {
            assert!(may_exist(name), "{name}");
        }
        for name in ["jsn", "tools", "Json", ""] {
            assert!(!may_exist(name), "{name}");
        }
    }

    #[test]
    fn a_near_module_is_suggested() {
        let budget = SuggestionBudget::of_message();
        for (wrong, expected) in [
            ("jsn", Some("json")),
            ("datetimes", Some("datetime")),
            ("colections", Some("collections")),
            ("left_pad", None),
            ("runtime", Some("time")),
        ] {
            assert_eq!(nearest_to(wrong, &budget), expected, "{wrong}");
        }
    }

    /// Each name takes about two thousand steps.
    #[test]
    fn v_625_modules_are_suggested_until_the_budget_is_spent() {
        let budget = SuggestionBudget::of_message();
        let suggested = (0..10_000).map_while(|_| nearest_to("colections_", &budget)).count();
        assert!((1..10_000).contains(&suggested), "{suggested}");
        assert_eq!(budget.left(), 0);
        assert_eq!(nearest_to("jsn", &budget), None);
    }
}
