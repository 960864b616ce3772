//! The names that every script has.

/// Python's own functions, and those that every script has, so that they are no servers. Sorted.
const BUILTINS: &[&str] = &[
    "McpToolError",
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "asyncio",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "call_mcp_tool",
    "call_mcp_tool_sync",
    "call_tool",
    "call_tools",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "copyright",
    "credits",
    "delattr",
    "dict",
    "dir",
    "discover_mcp_tools",
    "discover_mcp_tools_sync",
    "divmod",
    "emit",
    "enumerate",
    "eval",
    "exec",
    "exit",
    "filter",
    "float",
    "format",
    "frozenset",
    "get_tool_schema",
    "get_tool_schema_sync",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "inputs",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "license",
    "list",
    "llm",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "progress",
    "property",
    "quit",
    "range",
    "repr",
    "reversed",
    "round",
    "search_tools",
    "search_tools_sync",
    "set",
    "setattr",
    "slice",
    "sorted",
    "state",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];

/// Whether it is a name that every script has.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.binary_search(&name).is_ok() || name.starts_with(|first: char| first.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        assert!(BUILTINS.is_sorted_by(|name, next| name < next), "a search needs sorted names");
        for name in BUILTINS {
            assert!(is_builtin(name), "{name}");
        }
        for name in ["github", "tools", "prints", ""] {
            assert!(!is_builtin(name), "{name}");
        }
    }
}
