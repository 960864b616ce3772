use super::{STDERR_KEPT, STDERR_SHOWN, Tail, inherited};

#[test]
fn only_listed_variables_are_inherited() {
    let variables =
        ["PATH", "LC_ALL", "XDG_CACHE_HOME", "GITHUB_TOKEN", "LD_PRELOAD", "NODE_OPTIONS", "path", ""];
    let passed: Vec<_> = inherited(variables.iter().map(|name| (name.into(), "x".into())))
        .map(|(name, _)| name.into_string().unwrap())
        .collect();
    assert_eq!(passed, ["PATH", "LC_ALL", "XDG_CACHE_HOME"]);
}

#[test]
fn the_last_words_are_bounded_and_clean() {
    let mut tail = Tail::default();
    assert_eq!(tail.shown(), "");
    tail.push(b"\x1b[1;31mred\x1b[0m\x07\r\n\ttab \xff\x1b[");
    assert_eq!(tail.shown(), "red\n\ttab \u{fffd}");
    for number in 0..100_000 {
        tail.push(format!("line {number}\n").as_bytes());
    }
    assert!(tail.bytes.len() <= STDERR_KEPT);
    let shown = tail.shown();
    assert!(shown.len() <= STDERR_SHOWN && shown.starts_with("line ") && shown.ends_with("line 99999"));
    tail.push(&vec![b'x'; 3 * STDERR_KEPT]);
    assert_eq!(tail.bytes.len(), STDERR_KEPT);
}
