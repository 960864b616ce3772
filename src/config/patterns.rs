//! Lists of `server.tool` patterns, and what two of them have in common.

use wildmatch::WildMatch;

/// Both halves of a pattern, or `None` if it is none.
pub(super) fn normal(pattern: &str) -> Option<(&str, &str)> {
    let halves = if pattern == "*" {
        Some(("*", "*"))
    } else if let Some(full_name) = pattern.strip_prefix("mcp__") {
        full_name.split_once("__")
    } else {
        pattern.split_once('.')
    };
    halves.filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// Patterns that match only what both lists match. Where two patterns overlap and neither contains
/// the other, what they have in common is left out: the result may be too narrow, never too wide.
pub(super) fn intersection(left: &[String], right: &[String]) -> Vec<String> {
    let mut common = Vec::new();
    for left in left {
        for right in right {
            let (Some(left), Some(right)) = (normal(left), normal(right)) else { continue };
            if let (Some(server), Some(tool)) = (narrower(left.0, right.0), narrower(left.1, right.1)) {
                // So that it reads as one server and one tool again.
                let pattern = if server.contains('.') {
                    format!("mcp__{server}__{tool}")
                } else {
                    format!("{server}.{tool}")
                };
                if !common.contains(&pattern) {
                    common.push(pattern);
                }
            }
        }
    }
    common
}

/// The same for patterns of names without a server.
pub(super) fn intersection_of_names(left: &[String], right: &[String]) -> Vec<String> {
    let mut common: Vec<String> = Vec::new();
    for left in left {
        for right in right {
            if let Some(name) = narrower(left, right)
                && !common.iter().any(|known| known == name)
            {
                common.push(name.to_owned());
            }
        }
    }
    common
}

fn narrower<'a>(left: &'a str, right: &'a str) -> Option<&'a str> {
    if contains(left, right) {
        Some(right)
    } else if contains(right, left) {
        Some(left)
    } else {
        None
    }
}

/// Whether everything that `inner` matches is matched by `outer`. A `*` in `inner` can only be
/// matched by one in `outer`; with `?` that cannot be said.
fn contains(outer: &str, inner: &str) -> bool {
    outer == inner || (!outer.contains('?') && WildMatch::new(outer).matches(inner))
}
