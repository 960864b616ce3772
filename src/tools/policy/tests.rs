use super::*;

fn policy(allow: Option<&[&str]>, deny: &[&str]) -> Policy {
    let owned = |patterns: &[&str]| patterns.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let allow = allow.map(owned);
    Policy::new(PolicyLists { allow: allow.as_deref(), deny: &owned(deny), ..PolicyLists::default() })
        .unwrap()
}

fn asking(ask: &[&str], read_only: &[&str]) -> Result<Policy, Error> {
    let owned = |patterns: &[&str]| patterns.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    Policy::new(PolicyLists { ask: &owned(ask), read_only: &owned(read_only), ..PolicyLists::default() })
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
        let allow = [text.to_owned()];
        let lists = PolicyLists { allow: Some(&allow), ..PolicyLists::default() };
        let error = Policy::new(lists).unwrap_err().to_string();
        assert!(error.contains("server.tool"), "{text}: {error}");
    }
}

#[test]
fn tl_143_a_servers_own_lists_narrow_its_tools_and_nobody_elses() {
    let strings = |patterns: &[&str]| patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut policy = Policy::default();
    let mut set = |server: &str, allow: Option<&[&str]>, deny: &[&str]| {
        let (allow, deny) = (allow.map(strings), strings(deny));
        policy.set_server(
            server,
            ServerLists { allow: allow.as_deref(), deny: &deny, ..ServerLists::default() },
        );
    };
    set("fs", Some(&["read_*", "list"]), &["*_secret"]);
    set("off", Some(&[]), &[]);
    set("shut", None, &["*"]);
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
    // Neither list extends the other layer.
    let mut narrow = self::policy(Some(&["fs.list"]), &[]);
    let all = strings(&["*"]);
    narrow.set_server("fs", ServerLists { allow: Some(&all), ..ServerLists::default() });
    assert!(narrow.permits("fs", "list") && !narrow.permits("fs", "read_file"));
}

#[test]
fn tl_142_names_with_separators_are_what_a_pattern_reads_as() {
    let denied = |pattern: &str, server: &str, tool: &str| {
        let policy = policy(None, &[pattern]);
        assert_eq!(policy.denies(server, tool), !policy.permits(server, tool));
        policy.denies(server, tool)
    };
    assert!(denied("my.server.delete", "my.server", "delete"));
    assert!(denied("my.server.*", "my.server", "delete"));
    assert!(denied("mcp__a__b__delete", "a__b", "delete"));
    assert!(denied("mcp__a__b__delete", "a", "b__delete"));
    assert!(!denied("my.server.delete", "server", "delete"));
    assert!(!denied("fs.*", "fs.evil", "x"));
    let deny = ["fs*".to_owned()];
    assert!(Policy::new(PolicyLists { deny: &deny, ..PolicyLists::default() }).is_err());
}

const READS: Effects = Effects { writes: false, destroys: false, reaches_out: true };

#[test]
fn ask_is_by_pattern_and_by_annotation() {
    let policy = asking(&["github.delete_*", "destructive"], &[]).unwrap();
    let pattern = |text: &str| Some(AskReason::Pattern(text.to_owned()));
    let word = |word| Some(AskReason::Annotation(word));
    // A pattern asks regardless of annotations; annotations can only add prompts.
    assert_eq!(policy.asks("github", "delete_repo", READS), pattern("github.delete_*"));
    assert_eq!(policy.asks("github", "list", READS), None);
    assert_eq!(policy.asks("github", "list", Effects::UNKNOWN), word(AskAnnotation::Destructive));
    let writes = Effects { destroys: false, ..Effects::UNKNOWN };
    assert_eq!(policy.asks("github", "list", writes), None);
    assert_eq!(asking(&["write"], &[]).unwrap().asks("a", "b", writes), word(AskAnnotation::Write));
    assert_eq!(asking(&["open-world"], &[]).unwrap().asks("a", "b", READS), word(AskAnnotation::OpenWorld));
    assert!(policy.may_ask() && !asking(&[], &["a.*"]).unwrap().may_ask());
    // An ask list neither allows nor denies.
    assert!(policy.permits("github", "delete_repo") && !policy.denies("github", "delete_repo"));
}

/// A keyword has no separator, so no pattern of the global list can equal one. In a server's own
/// list, where a tool can have any name, it is both.
#[test]
fn a_word_is_never_only_half_of_what_it_could_be() {
    for wrong in ["destroy", "Destructive", "destructive*", "read-only", "open_world", ""] {
        let error = asking(&[wrong], &[]).unwrap_err().to_string();
        assert!(error.contains("`ask`") && error.contains("`open-world`, `server.tool`"), "{wrong}: {error}");
    }
    // A server or a tool may have a keyword as its name.
    let policy = asking(&["write.destructive", "a.write"], &[]).unwrap();
    assert!(
        policy.asks("write", "destructive", READS).is_some() && policy.asks("a", "write", READS).is_some()
    );
    assert!(policy.asks("a", "other", Effects::UNKNOWN).is_none());
    let mut policy = Policy::default();
    let ask = ["write".to_owned()];
    policy.set_server("fs", ServerLists { ask: &ask, ..ServerLists::default() });
    assert_eq!(policy.asks("fs", "write", READS), Some(AskReason::Pattern("fs.write".to_owned())));
    assert!(
        policy.asks("fs", "other", Effects::UNKNOWN).is_some() && policy.asks("fs", "other", READS).is_none()
    );
    assert!(policy.asks("other", "write", Effects::UNKNOWN).is_none() && policy.may_ask());
}

#[test]
fn what_a_person_says_about_effects_wins_over_annotations() {
    let mut policy = asking(&["write"], &["*.list_*"]).unwrap();
    assert_eq!(policy.effects("a", "list_x", Effects::UNKNOWN), READS);
    assert_eq!(policy.effects("a", "get", READS), READS);
    assert_eq!(policy.effects("a", "get", Effects::UNKNOWN), Effects::UNKNOWN);
    // If a server has its own list, its annotations of other tools are ignored.
    let read_only = ["get*".to_owned()];
    policy.set_server("a", ServerLists { read_only: Some(&read_only), ..ServerLists::default() });
    assert_eq!(policy.effects("a", "get", Effects::UNKNOWN), READS);
    assert_eq!(policy.effects("a", "list_x", Effects::UNKNOWN), READS);
    assert_eq!(policy.effects("a", "find", READS), Effects::UNKNOWN);
    policy.set_server("a", ServerLists { read_only: Some(&[]), ..ServerLists::default() });
    assert_eq!(policy.effects("a", "get", READS), Effects::UNKNOWN);
    assert_eq!(policy.effects("b", "get", READS), READS);
}
