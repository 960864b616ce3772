use super::*;

#[test]
fn it_matches_as_wildmatch_does() {
    let patterns = [
        "", "a", "ab", "*", "**", "a*", "*a", "*a*", "a*a", "a*b", "*ab", "ab*", "*a*b*", "a**b", "aab*aab",
        "*aab", "a*ba*b", "?", "a?", "?*", "*?b", "é*", "*é",
    ];
    let names =
        ["", "a", "b", "ab", "aa", "aab", "abab", "aaab", "aabaab", "aabxaab", "baab", "éa", "aé", "é"];
    for pattern in patterns {
        for name in names {
            let expected = WildMatch::new(pattern).matches(name);
            assert_eq!(Glob::new(pattern).matches(name), expected, "`{pattern}` and `{name}`");
        }
    }
}

#[test]
fn only_several_wildcards_are_work() {
    for (pattern, work) in [("read", 0), ("*", 0), ("get_*", 0), ("*_x*", 1), ("*a*b*", 2), ("a?", 16)] {
        assert_eq!(Glob::new(pattern).work(), work, "{pattern}");
    }
}
