use super::*;

#[test]
fn the_stderr_tail_is_bounded_and_clean() {
    let mut tail = Tail::default();
    assert_eq!(tail.render(), "");
    tail.push(b"\x1b[1;31mred\x1b[0m\x07\r\n\ttab \xff\x1b[");
    assert_eq!(tail.render(), "red\n\ttab \u{fffd}");
    for number in 0..100_000 {
        tail.push(format!("line {number}\n").as_bytes());
    }
    assert!(tail.bytes.len() <= MAX_TAIL_BYTES);
    let shown = tail.render();
    assert!(shown.len() <= MAX_RENDERED_BYTES && shown.starts_with("line ") && shown.ends_with("line 99999"));
    tail.push(&vec![b'x'; 3 * MAX_TAIL_BYTES]);
    assert_eq!(tail.bytes.len(), MAX_TAIL_BYTES);
}

#[test]
fn stack_frames_are_counted_and_noise_is_left_out() {
    for (written, expected) in [
        (
            "npm warn deprecated x\nnode:internal/modules\n  throw err;\n\nError: Cannot find module './x'\n    at a (m.js:1:2)\n    at b (m.js:3:4) {\n  code: 'MODULE_NOT_FOUND'\n}\n\nNode.js v24.0.0\n",
            "node:internal/modules\n  throw err;\nError: Cannot find module './x'\n    [2 stack frames]\n  code: 'MODULE_NOT_FOUND'\n}\nNode.js v24.0.0",
        ),
        (
            "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n    connect()\n    ~~~~~~~^^\n  File \"main.py\", line 1, in connect\n    raise ValueError(\"no host\")\nValueError: no host",
            "Traceback (most recent call last):\n    [2 stack frames]\nValueError: no host",
        ),
        (
            "thread 'main' panicked:\nboom\n   0: core::panic\n             at lib.rs:1\n   1: main",
            "thread 'main' panicked:\nboom\n    [3 stack frames]",
        ),
        // What is indented and no frame helps.
        (
            "error: missing arguments:\n  <DIRECTORY>\n\nUsage: server <DIRECTORY>",
            "error: missing arguments:\n  <DIRECTORY>\nUsage: server <DIRECTORY>",
        ),
        ("at the end\n12: not indented", "at the end\n12: not indented"),
    ] {
        let mut tail = Tail::default();
        tail.push(written.as_bytes());
        assert_eq!(tail.render(), expected);
    }
}

#[test]
fn few_lines_are_shown_and_none_is_long() {
    let mut tail = Tail::default();
    for number in 0..100 {
        tail.push(format!("line {number} {}\n", "ü".repeat(number)).as_bytes());
    }
    tail.push("x".repeat(1_000).as_bytes());
    let shown = tail.render();
    assert_eq!(shown.lines().count(), MAX_LINES);
    assert!(shown.starts_with("line 89 ") && shown.ends_with("x…"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= MAX_LINE_CHARACTERS + 1));
}
