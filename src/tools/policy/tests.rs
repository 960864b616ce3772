use super::*;

fn policy(allow: Option<&[&str]>, deny: &[&str]) -> Policy {
    let owned = |patterns: &[&str]| patterns.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    Policy::new(allow.map(owned).as_deref(), &owned(deny)).unwrap()
}

/// THREATS 143 and 141.
#[test]
fn allow_and_deny_table() {
    let check = |allow: Option<&[&str]>, deny: &[&str], name: (&str, &str), expected: bool| {
        assert_eq!(
            policy(allow, deny).permits(name.0, name.1),
            expected,
            "allow {allow:?} deny {deny:?} name {name:?}"
        );
    };
    check(None, &[], ("fs", "read"), true);
    check(Some(&[]), &[], ("fs", "read"), false);
    check(Some(&["*"]), &[], ("fs", "read"), true);
    check(Some(&["fs.*"]), &[], ("fs", "read"), true);
    check(Some(&["fs.*"]), &[], ("fsx", "read"), false);
    check(Some(&["fs.read"]), &[], ("fs", "read_all"), false);
    check(Some(&["fs.read*"]), &[], ("fs", "read_all"), true);
    check(Some(&["mcp__fs__read"]), &[], ("fs", "read"), true);
    check(Some(&["*.read"]), &[], ("git", "read"), true);
    check(Some(&["*"]), &["fs.delete"], ("fs", "delete"), false);
    check(Some(&["fs.delete"]), &["fs.*"], ("fs", "delete"), false);
    check(None, &["*"], ("fs", "read"), false);
    for name in ["FS", "fs ", "fs\0", "fs%2e", "ｆs", "", "fs."] {
        check(Some(&["fs.delete"]), &[], (name, "delete"), false);
    }
}

#[test]
fn narrowing_never_widens() {
    let mut policy = policy(Some(&["fs.*"]), &["fs.delete"]);
    policy.narrow(&["fs.read*".to_owned(), "git.*".to_owned(), "fs.delete".to_owned()]).unwrap();
    assert!(policy.permits("fs", "read_all"));
    assert!(
        !policy.permits("fs", "write") && !policy.permits("git", "log") && !policy.permits("fs", "delete")
    );
    assert!(policy.may_permit_server("fs") && !policy.may_permit_server("git"));
    policy.narrow(&[]).unwrap();
    assert!(!policy.permits("fs", "read") && !policy.may_permit_server("fs"));
}

#[test]
fn a_server_that_no_pattern_can_reach() {
    assert!(policy(None, &[]).may_permit_server("fs"));
    assert!(!policy(None, &["fs.*"]).may_permit_server("fs"));
    assert!(policy(None, &["fs.read"]).may_permit_server("fs"));
    assert!(!policy(Some(&["git.*"]), &[]).may_permit_server("fs"));
    assert!(!policy(Some(&[]), &[]).may_permit_server("fs"));
}

#[test]
fn a_pattern_that_could_mean_two_things_is_refused() {
    for text in ["fs*", "fs", "", ".read", "fs.", "mcp__fs"] {
        let error = Policy::new(Some(&[text.to_owned()]), &[]).unwrap_err().to_string();
        assert!(error.contains("server.tool"), "{text}: {error}");
    }
}

#[test]
fn tl_143_a_servers_own_lists_narrow_its_tools_and_nobody_elses() {
    let strings = |patterns: &[&str]| patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut policy = Policy::new(None, &[]).unwrap();
    policy.set_server("fs", Some(&strings(&["read_*", "list"])), &strings(&["*_secret"]));
    policy.set_server("off", Some(&[]), &[]);
    policy.set_server("shut", None, &strings(&["*"]));
    for (server, tool, permitted) in [
        ("fs", "read_file", true),
        ("fs", "list", true),
        ("fs", "read_secret", false),
        ("fs", "write_file", false),
        ("fsx", "write_file", true),
        ("off", "any", false),
        ("shut", "any", false),
    ] {
        assert_eq!(policy.permits(server, tool), permitted, "{server}.{tool}");
    }
    assert!(policy.may_permit_server("fs") && policy.may_permit_server("fsx"));
    assert!(!policy.may_permit_server("off") && !policy.may_permit_server("shut"));
    // Neither list widens the other layer.
    let mut narrow = Policy::new(Some(&strings(&["fs.list"])), &[]).unwrap();
    narrow.set_server("fs", Some(&strings(&["*"])), &[]);
    assert!(narrow.permits("fs", "list") && !narrow.permits("fs", "read_file"));
}

#[test]
fn tl_142_names_with_separators_are_what_a_pattern_reads_as() {
    let denied = |pattern: &str, server: &str, tool: &str| {
        let policy = Policy::new(None, &[pattern.to_owned()]).unwrap();
        assert_eq!(policy.denies(server, tool), !policy.permits(server, tool));
        policy.denies(server, tool)
    };
    assert!(denied("my.server.delete", "my.server", "delete"));
    assert!(denied("my.server.*", "my.server", "delete"));
    assert!(denied("mcp__a__b__delete", "a__b", "delete"));
    assert!(denied("mcp__a__b__delete", "a", "b__delete"));
    assert!(!denied("my.server.delete", "server", "delete"));
    assert!(!denied("fs.*", "fs.evil", "x"));
    assert!(Policy::new(None, &["fs*".to_owned()]).is_err());
}
