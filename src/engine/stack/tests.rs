use super::*;

const MESSAGE: &str = "server `files` exited with status 1; the end of its stderr:\nError: no such directory\n    at main (index.js:3:9)\n\nNode.js v24";

#[test]
fn a_stack_repeats_the_first_line_of_a_message_only() {
    let stack = format!("McpToolError: {MESSAGE}\n    at async script.ts:2:3");
    let expected = "McpToolError: server `files` exited with status 1; the end of its stderr: […]\n    at async script.ts:2:3";
    assert_eq!(without_message(&stack, MESSAGE), expected);
    let python = format!(
        "Traceback (most recent call last):\n  File \"script.py\", line 2\n    x()\nMcpToolError: {MESSAGE}"
    );
    let expected = "Traceback (most recent call last):\n  File \"script.py\", line 2\n    x()\n\
        McpToolError: server `files` exited with status 1; the end of its stderr: […]";
    assert_eq!(without_message(&python, MESSAGE), expected);
}

#[test]
fn nor_do_the_errors_that_caused_it() {
    let outer = format!("the report failed: {MESSAGE}");
    let stack = format!(
        "Error: {outer}\n    at script.ts:4:9\nCaused by: McpToolError: {MESSAGE}\n    at script.ts:2:3"
    );
    let expected = "Error: the report failed: server `files` exited with status 1; the end of its stderr: […]\n    \
        at script.ts:4:9\nCaused by: McpToolError: server `files` exited with status 1; the end of its stderr: […]\n    \
        at script.ts:2:3";
    assert_eq!(without_message(&stack, &outer), expected);
    // In an exception group each line has a margin.
    let group: String =
        format!("McpToolError: {MESSAGE}").lines().map(|line| format!("    | {line}\n")).collect();
    let group = format!("  + Exception Group Traceback:\n{group}    +------");
    let expected = "  + Exception Group Traceback:\n    | McpToolError: server `files` exited with status 1; \
        the end of its stderr: […]\n    +------";
    assert_eq!(without_message(&group, MESSAGE), expected);
}

#[test]
fn what_was_cut_off_is_recognized() {
    let stack = "E: a message\nsecond line\nthird li…";
    assert_eq!(without_message(stack, "a message\nsecond line\nthird line\nfourth"), "E: a message […]");
    assert_eq!(without_message("E: a message\nsecond line", "a message\nsec…"), "E: a message […]");
}

/// The message of an exception group names its first members.
#[test]
fn a_message_may_go_on_with_another_one() {
    let message = "unhandled errors (2 sub-exceptions); it failed:\none\ntwo; no luck";
    let stack = "  + E: unhandled errors (2 sub-exceptions)\n    | T: it failed:\n    | one\n    | two\n    | T: no luck";
    let expected = "  + E: unhandled errors (2 sub-exceptions)\n    | T: it failed: […]\n    | T: no luck";
    assert_eq!(without_message(stack, message), expected);
}

#[test]
fn a_long_first_line_is_shortened() {
    let message = format!("{{\"error\":\"{}\"}}", "ü".repeat(5_000));
    let shown = without_message(&format!("McpToolError: {message}\n    at script.ts:1:1"), &message);
    assert!(
        shown.starts_with("McpToolError: {\"error\":\"üü") && shown.ends_with("ü […]\n    at script.ts:1:1")
    );
    assert!(shown.chars().count() < 300, "{shown}");
}

#[test]
fn other_stacks_stay_as_they_are() {
    for (stack, message) in [
        ("Error: short\n    at script.ts:1:1", "short"),
        ("", ""),
        ("Error\n    at script.ts:1:1", ""),
        ("a stack of the script's own\nwith lines", "other\nlines"),
        ("Error: one\ntwo\nother", "one\ntwo\nthree"),
    ] {
        assert_eq!(without_message(stack, message), stack);
    }
}
