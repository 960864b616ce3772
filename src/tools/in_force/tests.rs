use super::*;
use crate::tools::rules::ToolRules;

fn set(version: u64, rules: &ToolRules) -> ToolSet {
    let catalog = Catalog::new(&[], &crate::tools::catalog::CatalogOptions::default());
    ToolSet {
        version,
        catalog: Arc::new(catalog),
        policy: Arc::new(Policy::new(rules).unwrap()),
        configured: Arc::default(),
    }
}

/// A run that started with `before`, after the rules have become `after`.
fn changed(before: &ToolRules, after: &ToolRules) -> Arc<ToolsInForce> {
    let current = watch::Sender::new(set(1, before));
    let tools = RunTools::new(set(1, before), Policy::default(), current.subscribe());
    let first = tools.now();
    assert!(first.is_same_as(&tools.now()));
    current.send_replace(set(2, after));
    assert!(!first.is_same_as(&tools.now()));
    tools.now()
}

const READS: Effects = Effects { writes: false, destroys: false, reaches_out: true };

#[test]
fn a_run_is_restricted_by_both_and_gains_nothing() {
    let rules = ToolRules::new;
    let cases = [
        (rules(), rules().deny(["s.t"]), false),
        (rules().deny(["s.t"]), rules(), false),
        (rules(), rules().allow(["s.other"]), false),
        (rules().allow(["s.other"]), rules().allow(["s.*"]), false),
        (rules().allow(["s.*"]), rules().allow(["s.t"]), true),
        (rules(), rules(), true),
    ];
    for (before, after, expected) in cases {
        assert_eq!(changed(&before, &after).permits("s", "t"), expected, "{before:?} {after:?}");
    }
    assert!(changed(&rules(), &rules().deny(["s.t"])).denies("s", "t"));
    assert!(!changed(&rules(), &rules().deny(["s.*"])).may_permit_server("s"));
    assert!(!changed(&rules().deny(["s.*"]), &rules()).may_permit_server("s"));
}

#[test]
fn approval_is_needed_if_either_says_so() {
    let (none, ask) = (ToolRules::new(), ToolRules::new().ask(["s.t"]));
    for (before, after) in [(&none, &ask), (&ask, &none), (&ask, &ask)] {
        let tools = changed(before, after);
        assert!(tools.may_ask());
        assert!(tools.asks("s", "t", READS).is_some(), "{before:?} {after:?}");
    }
    assert!(changed(&none, &none).asks("s", "t", READS).is_none());
}

#[test]
fn a_tool_is_read_only_if_both_say_so() {
    let (none, read_only) = (ToolRules::new(), ToolRules::new().read_only(["s.t"]));
    let effects = |before, after| changed(before, after).effects("s", "t", Effects::UNKNOWN);
    for (before, after) in [(&none, &read_only), (&read_only, &none), (&none, &none)] {
        assert_eq!(effects(before, after), Effects::UNKNOWN, "{before:?} {after:?}");
    }
    assert_eq!(effects(&read_only, &read_only), READS);
}
