use super::*;
use crate::tools::unmatched::NamedServer;

fn policy(allow: Option<&[&str]>, deny: &[&str]) -> Policy {
    let rules = ToolRules::new().deny(deny.iter().copied());
    Policy::new(&match allow {
        Some(patterns) => rules.allow(patterns.iter().copied()),
        None => rules,
    })
    .unwrap()
}

fn asking(ask: &[&str], read_only: &[&str]) -> Result<Policy, Error> {
    let rules = ToolRules::new().ask(ask.iter().copied());
    Policy::new(&match read_only {
        [] => rules,
        patterns => rules.read_only(patterns.iter().copied()),
    })
}

/// Threats 143 and 141.
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
    check(Some(&["mcp__*"]), &[], ("fs", "read"), true);
    check(Some(&["mcp__*"]), &["mcp__*"], ("fs", "read"), false);
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
fn combined_rules_only_restrict() {
    let first = ToolRules::new().allow(["fs.*"]).deny(["fs.delete"]).ask(["fs.read"]);
    let second = ToolRules::new().allow(["fs.read*", "git.*", "fs.delete"]).ask(["git.*"]);
    for rules in [first.clone().and(second.clone()), second.clone().and(first.clone())] {
        let policy = Policy::new(&rules).unwrap();
        assert!(policy.permits("fs", "read_all"));
        for (server, tool) in [("fs", "write"), ("git", "log"), ("fs", "delete")] {
            assert!(!policy.permits(server, tool), "{server}.{tool}");
        }
        assert!(policy.may_permit_server("fs") && !policy.may_permit_server("git"));
        assert!(policy.asks("fs", "read", READS).is_some() && policy.asks("git", "log", READS).is_some());
    }
    let none = Policy::new(&first.and(second).allow(Vec::<String>::new())).unwrap();
    assert!(!none.permits("fs", "read") && !none.may_permit_server("fs"));
    // A tool counts as read-only if every list names it.
    let rules = ToolRules::new().read_only(["a.*", "b.*"]).read_only(["b.*", "c.*"]);
    let policy = Policy::new(&rules).unwrap();
    for (server, expected) in [("a", Effects::UNKNOWN), ("b", READS), ("c", Effects::UNKNOWN)] {
        assert_eq!(policy.effects(server, "any", Effects::UNKNOWN), expected, "{server}");
    }
}

#[test]
fn a_server_that_no_pattern_can_reach() {
    assert!(policy(None, &[]).may_permit_server("fs"));
    assert!(!policy(None, &["fs.*"]).may_permit_server("fs"));
    assert!(policy(None, &["fs.read"]).may_permit_server("fs"));
    assert!(!policy(Some(&["git.*"]), &[]).may_permit_server("fs"));
    assert!(!policy(Some(&[]), &[]).may_permit_server("fs"));
    assert!(policy(Some(&["mcp__*"]), &[]).may_permit_server("fs"));
    assert!(!policy(None, &["mcp__*"]).may_permit_server("fs"));
}

#[test]
fn a_pattern_that_could_mean_two_things_is_refused() {
    for text in ["fs*", "fs", "", ".read", "fs.", "mcp__fs", "mcp__fs*", "mcp__"] {
        let error = Policy::new(&ToolRules::new().allow([text])).unwrap_err().to_string();
        assert!(error.contains("server.tool"), "{text}: {error}");
    }
}

#[test]
fn tl_143_a_servers_own_lists_restrict_its_tools_only() {
    let mut policy = Policy::default();
    let mut set = |server: &str, allow: Option<&[&str]>, deny: &[&str]| {
        let rules = ToolRules::new().deny(deny.iter().copied());
        policy.set_server(
            server,
            &match allow {
                Some(patterns) => rules.allow(patterns.iter().copied()),
                None => rules,
            },
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
    let mut restricted = self::policy(Some(&["fs.list"]), &[]);
    restricted.set_server("fs", &ToolRules::new().allow(["*"]));
    assert!(restricted.permits("fs", "list") && !restricted.permits("fs", "read_file"));
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
    assert!(Policy::new(&ToolRules::new().deny(["fs*"])).is_err());
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
    policy.set_server("fs", &ToolRules::new().ask(["write"]));
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
    policy.set_server("a", &ToolRules::new().read_only(["get*"]));
    assert_eq!(policy.effects("a", "get", Effects::UNKNOWN), READS);
    assert_eq!(policy.effects("a", "list_x", Effects::UNKNOWN), READS);
    assert_eq!(policy.effects("a", "find", READS), Effects::UNKNOWN);
    policy.set_server("a", &ToolRules::new().read_only(Vec::<String>::new()));
    assert_eq!(policy.effects("a", "get", READS), Effects::UNKNOWN);
    assert_eq!(policy.effects("b", "get", READS), READS);
}

#[test]
fn patterns_that_match_nothing_that_is_known_are_reported() {
    let names = |names: &[&str]| Some(names.iter().map(|&name| name.into()).collect());
    let known = KnownNames {
        servers: vec![
            NamedServer { name: "git".into(), tools: names(&["push", "log_all"]) },
            NamedServer { name: "files".into(), tools: None },
        ],
        skipped: vec!["off".to_owned()],
    };
    // Whether a pattern matches nothing: because there is no such server, or no such tool.
    let cases = [
        ("git.push", None),
        ("git.log_*", None),
        ("git.*", None),
        ("mcp__git__push", None),
        ("git.resources/read", None),
        ("*.delete_*", None),
        ("g*.nothing", None),
        ("files.anything", None),
        ("off.anything", None),
        ("*", None),
        ("git.psuh", Some(true)),
        ("git.delete_*", Some(true)),
        ("mcp__git__psuh", Some(true)),
        ("gti.push", Some(false)),
        ("mcp__gti__push", Some(false)),
        // Either `a` and `b.c`, or `a.b` and `c`.
        ("a.b.c", Some(false)),
    ];
    for (pattern, expected) in cases {
        for list in [ToolRules::allow, ToolRules::deny, ToolRules::ask, ToolRules::read_only] {
            let policy = Policy::new(&list(ToolRules::new(), [pattern])).unwrap();
            let reported = policy.unmatched(&known);
            assert_eq!(reported.first().map(|report| report.has_server), expected, "{pattern}: {reported:?}");
        }
    }
    // Hosts of requests, about which `allow` and `readOnly` say nothing, and saved scripts.
    let unmatched = |rules: ToolRules| Policy::new(&rules).unwrap().unmatched(&known).len();
    for pattern in ["fetch.internal.example.com", "fetch.*", "mcp__fetch__localhost"] {
        assert_eq!(unmatched(ToolRules::new().deny([pattern]).ask([pattern])), 0, "{pattern}");
        assert_eq!(unmatched(ToolRules::new().allow([pattern]).read_only([pattern])), 2, "{pattern}");
    }
    assert_eq!(unmatched(ToolRules::new().deny(["scripts.save"]).allow(["scripts.*", "scripts.report"])), 0);
    // Of a server's own rules; a word needs no tool.
    let mut policy = policy(None, &[]);
    let rules = ToolRules::new().ask(["write", "psuh"]).deny(["push"]).allow(["*"]).deny(["write"]);
    policy.set_server("git", &rules);
    policy.set_server("files", &rules);
    let reported: Vec<String> = policy.unmatched(&known).iter().map(ToString::to_string).collect();
    let expected = [
        "`git.write` of `deny` matches no tool that server `git` lists",
        "`git.psuh` of `ask` matches no tool that server `git` lists; did you mean `git.push`?",
    ];
    assert_eq!(reported, expected);
    // The nearest server, also one whose tools are not known; of a pattern with `*` there is no nearest tool.
    let rules = ToolRules::new().deny(["file.read", "gti.push", "git.psu*", "nothing.like"]);
    let reported = Policy::new(&rules).unwrap().unmatched(&known);
    let nearest: Vec<_> = reported.iter().map(|report| report.nearest.as_deref()).collect();
    assert_eq!(nearest, [Some("files"), Some("git"), None, None]);
    let many: Vec<String> = (0..1_000).map(|number| format!("none.tool{number}")).collect();
    assert_eq!(Policy::new(&ToolRules::new().deny(many)).unwrap().unmatched(&known).len(), MAX_UNMATCHED);
}

#[test]
fn the_strictest_of_all_layers_counts_for_private_addresses() {
    use PrivateAddresses::{Allow, Ask, Deny};
    let of = |treatment| ToolRules { private_addresses: treatment, ..ToolRules::new() };
    for (all, own, expected) in
        [(Allow, Allow, Allow), (Allow, Ask, Ask), (Ask, Allow, Ask), (Ask, Deny, Deny), (Deny, Ask, Deny)]
    {
        let mut policy = Policy::new(&of(all)).unwrap();
        policy.set_server("fs", &of(own));
        assert_eq!(policy.private_addresses("fs"), expected, "{all}, {own}");
        assert_eq!(policy.private_addresses("other"), all);
        assert_eq!(policy.may_ask(), [all, own].contains(&Ask));
        assert_eq!(of(all).and(of(own)).private_addresses, expected);
    }
}
