//! goose's configuration: `extensions`, some of which are MCP servers, with other names for keys.

use super::document::{Content, Member, Node};

/// goose's names of keys, and the names that other clients use.
const NAMES: [(&str, &str); 5] = [
    ("cmd", "command"),
    ("envs", "env"),
    ("env_keys", "env_vars"),
    ("uri", "url"),
    ("timeout", "tool_timeout_sec"),
];

/// The types of extensions that are MCP servers. The others are parts of goose.
const SERVERS: [&str; 3] = ["stdio", "sse", "streamable_http"];

/// Converts the extensions that are servers to the form that most clients use.
pub(super) fn servers(mut root: Node) -> Node {
    let Content::Object(members) = &mut root.content else { return root };
    let extensions = members.iter_mut().find(|member| member.name == "extensions");
    if let Some(Member { value: Node { content: Content::Object(extensions), .. }, .. }) = extensions {
        extensions.retain(|extension| {
            extension.value.get("type").and_then(Node::as_str).is_some_and(|kind| SERVERS.contains(&kind))
        });
        extensions.iter_mut().for_each(rename);
    }
    root
}

fn rename(extension: &mut Member) {
    let Content::Object(members) = &mut extension.value.content else { return };
    for member in members {
        if let Some((_, common)) = NAMES.iter().find(|(name, _)| *name == member.name) {
            (*common).clone_into(&mut member.name);
        }
    }
}
