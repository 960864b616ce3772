//! Names of tools in scripts, and the tools that they mean.

use super::*;

#[test]
fn names_resolve_exactly_and_in_camel_case() {
    let catalog = catalog(&["my-server.read_file", "fs.readFile", "fs.read_file", "fs.a-b", "fs.a_b"]);
    let check = |server: &str, tool: &str, expected: Result<(&str, &str), &str>| {
        let resolved = block_on(catalog.resolve(server, tool, soon(), &budget()));
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

/// Threat 840.
#[tokio::test]
async fn v_840_the_command_that_accepts_a_tool_names_only_the_tool() {
    let disk = Disk::new();
    let fake = Fake::offering(&["x; touch y"]);
    names(&disk.strict_process(&fake)).await;
    fake.offer(&["x; touch y"], "does it, and more", None);
    let changed =
        disk.strict_process(&fake).resolve("s", "x; touch y", soon(), &budget()).await.err().unwrap();
    assert!(changed.message.ends_with("with `cx tools accept 's.x; touch y'`"), "{changed}");
}

/// What stands after `tools.fs.` in a list is copied into a script of either language.
#[test]
fn lists_have_names_that_both_languages_can_write() {
    let catalog = catalog(&["fs.readFile", "fs.a-b", "fs.c-d", "fs.c_d", "fs.class"]);
    let tool = |name: &str| block_on(catalog.resolve("fs", name, soon(), &budget())).ok().unwrap();
    for (name, listed) in [
        ("readFile", "readFile"),
        ("a-b", "a_b"),
        ("class", "class_"),
        ("c_d", "c_d"),
        // Its identifier is another tool's name.
        ("c-d", r#"["c-d"]"#),
    ] {
        assert_eq!(tool(name).names().name, listed);
        if !listed.starts_with('[') {
            assert_eq!(&*tool(listed).tool, name);
        }
    }
}

/// Threat 521.
#[test]
fn v_521_an_identifier_of_thousands_of_tools_names_few_of_them() {
    let separator = |bits: usize, place: usize| if (bits >> place) & 1 == 1 { '-' } else { '_' };
    let separators = |bits: usize| (0..12).map(|place| separator(bits, place)).collect::<String>();
    let names: Vec<String> = (0..3_000).map(|bits| format!("fs.a{}b", separators(bits))).collect();
    let catalog = catalog(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let error = block_on(catalog.resolve("fs", "aB", soon(), &budget())).err().unwrap();
    assert_eq!(error.message.matches("`a_").count() + error.message.matches("`a-").count(), 10, "{error}");
    assert!(error.message.contains(" or 2990 more; use the exact name"), "{error}");
    assert!(block_on(catalog.resolve("fs", "a____________b", soon(), &budget())).is_ok());
}

/// Threat 142.
#[test]
fn full_names_that_mean_two_tools_are_refused() {
    let ambiguous = catalog(&["a.b__c", "a__b.c", "a__b.d"]);
    let resolve = |name: &str| block_on(ambiguous.resolve_full_name(name, |_, _| false, soon(), &budget()));
    assert!(resolve("mcp__a__b__c").err().unwrap().message.contains("more than one tool"));
    assert_eq!(&*resolve("mcp__a__b__d").ok().unwrap().server, "a__b");
    assert!(resolve("mcp__z__d").err().unwrap().message.contains("no server `z`"));
    assert!(resolve("read_file").err().unwrap().message.contains("mcp__server__tool"));
}

#[test]
fn schemas_have_the_promised_shape() {
    let catalog = catalog(&["fs.read"]);
    let tool = block_on(catalog.resolve("fs", "read", soon(), &budget())).ok().unwrap();
    assert_eq!(
        tool.schema(None),
        json!({
            "name": "mcp__fs__read",
            "server": "fs",
            "description": "",
            "parameters": { "type": "object" },
        })
    );
}
