use std::time::Duration;

use futures::executor::block_on;

use super::*;
use crate::tools::native::{NativeTools, definition, erase};

fn catalog(names: &[&str]) -> Catalog {
    let mut tools = NativeTools::default();
    for name in names {
        tools.add(
            name,
            definition(Value::Null),
            erase(|value: Value| async move { Ok::<_, ToolError>(value) }),
        );
    }
    Catalog::new(&[Arc::new(tools)])
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

#[test]
fn names_resolve_exactly_and_in_camel_case() {
    let catalog = catalog(&["my-server.read_file", "fs.readFile", "fs.read_file", "fs.a-b", "fs.a_b"]);
    let check = |server: &str, tool: &str, expected: Result<(&str, &str), &str>| {
        let resolved = block_on(catalog.resolve(server, tool, soon()));
        match (resolved, expected) {
            (Ok(resolved), Ok(expected)) => {
                assert_eq!((&*resolved.server, &*resolved.tool), expected);
            }
            (Err(error), Err(part)) => {
                assert_eq!(error.code, ToolErrorCode::ToolNotFound);
                assert!(error.message.contains(part), "{error}");
            }
            (resolved, expected) => panic!("{:?} {expected:?}", resolved.map(|tool| tool.tool)),
        }
    };
    check("my-server", "read_file", Ok(("my-server", "read_file")));
    check("myServer", "readFile", Ok(("my-server", "read_file")));
    check("fs", "readFile", Ok(("fs", "readFile")));
    check("fs", "read_file", Ok(("fs", "read_file")));
    check("fs", "aB", Err("could be `a-b`, `a_b`; use the exact name"));
    check("fs", "a_b", Ok(("fs", "a_b")));
    check("fs", "red_file", Err("did you mean `readFile`, `read_file`?"));
    check("fz", "x", Err("no server `fz`; the servers are `fs`, `my-server`"));
    check("fs", &"x".repeat(10_000_000), Err("…` on server `fs`"));
}

/// THREATS 142.
#[test]
fn full_names_that_mean_two_tools_are_refused() {
    let ambiguous = catalog(&["a.b__c", "a__b.c", "a__b.d"]);
    let resolve = |name: &str| block_on(ambiguous.resolve_full_name(name, soon()));
    assert!(resolve("mcp__a__b__c").err().unwrap().message.contains("more than one tool"));
    assert_eq!(&*resolve("mcp__a__b__d").ok().unwrap().server, "a__b");
    assert!(resolve("mcp__z__d").err().unwrap().message.contains("no server `z`"));
    assert!(resolve("read_file").err().unwrap().message.contains("mcp__server__tool"));
}

#[test]
fn schemas_have_the_promised_shape() {
    let catalog = catalog(&["fs.read"]);
    let tool = block_on(catalog.resolve("fs", "read", soon())).ok().unwrap();
    assert_eq!(
        tool.schema(),
        json!({
            "name": "mcp__fs__read",
            "server": "fs",
            "description": "",
            "parameters": { "type": "object" },
        })
    );
}
