//! Intersection of lists of `server.tool` patterns.

use wildmatch::WildMatch;

/// Both halves of a pattern; `None` if it is not valid.
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

/// Patterns that match only what both lists match. If two patterns overlap and neither contains the
/// other, their intersection is omitted: the result may be too strict, never too permissive.
pub(super) fn intersection(left: &[String], right: &[String]) -> Vec<String> {
    let mut common = Vec::new();
    for left in left {
        for right in right {
            let (Some(left), Some(right)) = (normal(left), normal(right)) else { continue };
            if let (Some(server), Some(tool)) = (stricter(left.0, right.0), stricter(left.1, right.1)) {
                // Written so that it is parsed as the same server and tool again.
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

/// The same for patterns of tool names without a server.
pub(super) fn intersection_of_names(left: &[String], right: &[String]) -> Vec<String> {
    let mut common: Vec<String> = Vec::new();
    for left in left {
        for right in right {
            if let Some(name) = stricter(left, right)
                && !common.iter().any(|known| known == name)
            {
                common.push(name.to_owned());
            }
        }
    }
    common
}

fn stricter<'a>(left: &'a str, right: &'a str) -> Option<&'a str> {
    if contains(left, right) {
        Some(right)
    } else if contains(right, left) {
        Some(left)
    } else {
        None
    }
}

/// Whether `outer` matches everything that `inner` matches. A `*` in `inner` can only be matched by
/// a `*` in `outer`. With `?` in `outer` this cannot be determined, so the answer is no.
fn contains(outer: &str, inner: &str) -> bool {
    outer == inner || (!outer.contains('?') && WildMatch::new(outer).matches(inner))
}
