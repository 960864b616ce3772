use super::*;

#[test]
fn camel_case_forms() {
    let check = |name: &str, expected: &str| assert_eq!(camel_case(name), expected);
    check("read_file", "readFile");
    check("create-issue", "createIssue");
    check("a.b_c-d", "aBCD");
    check("readFile", "readFile");
    check("get-URL", "getURL");
    check("_private", "private");
    check("trailing_", "trailing");
    check("a__b", "aB");
    check("2fa", "2fa");
    check("", "");
}

#[test]
fn full_names_split_in_every_way() {
    let check = |name: &str, expected: &[(&str, &str)]| {
        assert_eq!(split_full_name(name).collect::<Vec<_>>(), expected);
    };
    check("mcp__fs__read_file", &[("fs", "read_file")]);
    check("mcp__a__b__c", &[("a", "b__c"), ("a__b", "c")]);
    check("mcp____x", &[]);
    check("mcp__fs", &[]);
    check("fs__read", &[]);
    check("", &[]);
    assert_eq!(full_name("fs", "read_file"), "mcp__fs__read_file");
}

#[test]
fn nearest_names() {
    let names = ["read_file", "write_file", "list_directory", "search"];
    let check = |wrong: &str, expected: &[&str]| {
        assert_eq!(nearest(wrong, names.iter().copied()), expected, "{wrong}");
    };
    check("readFile", &["read_file"]);
    check("reed_file", &["read_file"]);
    check("searchFiles", &["search"]);
    check("zzz", &[]);
    check(&"x".repeat(10_000_000), &[]);
}

#[test]
fn suggestions_say_what_there_is() {
    assert_eq!(suggestion("zzz", "servers", [].into_iter()), "; there are no servers");
    assert_eq!(suggestion("zzz", "servers", ["fs", "git"].into_iter()), "; the servers are `fs`, `git`");
    let many: Vec<String> = (0..20).map(|index| format!("tool{index}")).collect();
    assert!(suggestion("zzz", "tools", many.iter().map(String::as_str)).contains("there are 20 tools"));
}
