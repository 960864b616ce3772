use super::{beyond_message, without_marks};

#[track_caller]
fn check(stack: &str, name: &str, message: &str, expected: Option<&str>) {
    assert_eq!(beyond_message(stack, Some(name), message, Some((3, 7))).as_deref(), expected, "{stack}");
}

#[test]
fn a_stack_of_v8_does_not_repeat_the_message() {
    let frames = "    at f (script.ts:3:7)\n    at script.ts:9:1";
    check(&format!("TypeError: no\n{frames}"), "TypeError", "no", Some(frames));
    check(&format!("Error: two\nlines\n{frames}"), "Error", "two\nlines", Some(frames));
    // A name that was set later, an error without a message, and one whose members are in its message.
    check(&format!("Error: no\n{frames}"), "Mine", "no", Some(frames));
    check(&format!("Error\n{frames}"), "Error", "", Some(frames));
    check(&format!("AggregateError: all\n{frames}"), "AggregateError", "all; one; two", Some(frames));
    check(
        "Error: no\n    at script.ts:3:7\nCaused by: Error: why\n    at script.ts:1:1",
        "Error",
        "no",
        Some("    at script.ts:3:7\nCaused by: Error: why\n    at script.ts:1:1"),
    );
    check("Error: no\nCaused by: why", "Error", "no", Some("Caused by: why"));
    check(
        "TypeError: load failed: no file\n    at script.ts:3:7\nCaused by: Error: no file\n    at script.ts:1:1",
        "TypeError",
        "load failed: no file",
        Some("    at script.ts:3:7\nCaused by: Error\n    at script.ts:1:1"),
    );
}

/// `fetch` throws a `TypeError` whose cause is the failed call.
#[test]
fn a_call_of_the_same_line_is_no_cause_of_its_own() {
    let stack = |line: u32, why: &str| {
        format!(
            "TypeError: fetch failed: not granted\n    at async script.ts:3:9\nCaused by: McpToolError: {why}\n    \
             at async script.ts:{line}:9"
        )
    };
    let message = "fetch failed: not granted";
    check(&stack(3, "not granted"), "TypeError", message, None);
    let kept = "    at async script.ts:3:9\nCaused by: McpToolError\n    at async script.ts:2:9";
    check(&stack(2, "not granted"), "TypeError", message, Some(kept));
    let kept = "    at async script.ts:3:9\nCaused by: McpToolError: other\n    at async script.ts:3:9";
    check(&stack(3, "other"), "TypeError", message, Some(kept));
}

#[test]
fn the_only_frame_is_the_location() {
    check("TypeError: no\n    at script.ts:3:7", "TypeError", "no", None);
    check("TypeError: no\n    at f (script.ts:3:7)", "TypeError", "no", None);
    check("TypeError: no", "TypeError", "no", None);
    check("TypeError: no\n    at script.ts:30:7", "TypeError", "no", Some("    at script.ts:30:7"));
    let traceback = "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\n    f()";
    check(&format!("{traceback}\nKeyError: 'x'"), "KeyError", "'x'; the keys are 'y'", None);
    check(&format!("{traceback}\nValueError"), "ValueError", "ValueError", None);
    check(&format!("{traceback}\njson.decoder.JSONDecodeError: no"), "JSONDecodeError", "no", None);
}

/// The source of the line is shown beside the stack.
#[test]
fn frames_of_the_same_line_are_the_location() {
    let frames = "    at script.ts:3:43\n    at Array.some (<anonymous>)\n    at async f (script.ts:3:7)";
    check(&format!("TypeError: no\n{frames}"), "TypeError", "no", None);
    for more in [
        "    at script.ts:13:7",
        "    at async Promise.all (index 1)",
        "Caused by: Error",
        "    at script.ts:x:3",
    ] {
        let stack = format!("{frames}\n{more}");
        check(&format!("TypeError: no\n{stack}"), "TypeError", "no", Some(&stack));
    }
    let traceback = "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\n    f(g() for x)\n    \
                     ~^^^\n  File \"/python/json/__init__.py\", line 339, in loads\n  File \"<frozen os>\", line 7, in \
                     get\n  File \"script.py\", line 3, in <genexpr>\n    f(g() for x)";
    check(&format!("{traceback}\nValueError: no"), "ValueError", "no", None);
    for more in [
        "  File \"script.py\", line 30, in f\n    g()",
        "  File \"other.py\", line 3, in f\n    g()",
        "a note",
    ] {
        let stack = format!("{traceback}\n{more}");
        let whole = if more == "a note" {
            format!("{traceback}\nValueError: no\n{more}")
        } else {
            format!("{stack}\nValueError: no")
        };
        check(&whole, "ValueError", "no", Some(&stack));
    }
}

#[test]
fn a_traceback_does_not_repeat_the_message() {
    let traceback = "Traceback (most recent call last):\n  File \"script.py\", line 9, in <module>\n    f()\n  \
                     File \"script.py\", line 3, in f\n    g()";
    check(&format!("{traceback}\nValueError: no"), "ValueError", "no", Some(traceback));
    check(&format!("{traceback}\nValueError: two\nlines"), "ValueError", "two\nlines", Some(traceback));
    let noted = format!("{traceback}\na note");
    check(&format!("{traceback}\nValueError: no\na note"), "ValueError", "no", Some(&noted));
    // A note of the only frame stays too.
    let traceback = "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\n    f()";
    let noted = format!("{traceback}\na note");
    check(&format!("{traceback}\nValueError: no\na note"), "ValueError", "no", Some(&noted));
    // Also of an error without a message, and of one whose message has more than the stack.
    check(&format!("{traceback}\nValueError\na note"), "ValueError", "ValueError", Some(&noted));
    check(&format!("{traceback}\nKeyError: 'x'\na note"), "KeyError", "'x'; the keys are 'y'", Some(&noted));
    check(&format!("{traceback}\nValueError: two\nlines\na note"), "ValueError", "two\nlines", Some(&noted));
    let named = format!("{traceback}\nValueError");
    check(&format!("{traceback}\nValueError: no\nValueError"), "ValueError", "no", Some(&named));
    let empty = format!("{traceback}\nValueError{}", "\n".repeat(32 << 10));
    check(&empty, "ValueError", "ValueError", None);
}

/// `src/engine/stack.rs` shortens a message that the stack repeats.
#[test]
fn a_shortened_message_is_not_repeated() {
    let long = "x".repeat(300);
    let short = format!("{} […]", &long[..200]);
    let frames = "    at f (script.ts:3:7)\n    at script.ts:9:1";
    check(&format!("Error: {short}\n{frames}"), "Error", &long, Some(frames));
    let traceback = "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\n    f()";
    let noted = format!("{traceback}\na note");
    for message in [long.clone(), format!("{long}\nmore")] {
        check(&format!("{traceback}\nValueError: {short}"), "ValueError", &message, None);
        check(&format!("{traceback}\nValueError: {short}\na note"), "ValueError", &message, Some(&noted));
    }
}

#[test]
fn marks_below_lines_are_left_out() {
    let marked = "Traceback (most recent call last):\n  File \"script.py\", line 9, in <module>\n    f(1)\n    ~^^^\n  | \
                  ^^^^\n  File \"script.py\", line 3, in f\n    return 2 ^ ~x\na note";
    let expected = "Traceback (most recent call last):\n  File \"script.py\", line 9, in <module>\n    f(1)\n  File \
                    \"script.py\", line 3, in f\n    return 2 ^ ~x\na note";
    assert_eq!(without_marks(marked), expected);
    let other = "    at f (script.ts:3:7)\n    ^^^";
    assert_eq!(without_marks(other), other);
}

#[test]
fn what_is_not_understood_stays() {
    for stack in [
        "something else",
        "Error: other\n    at script.ts:3:7",
        "Error (of mine): no\n    at script.ts:3:7",
        "Traceback (most recent call last):\n  File \"script.py\", line 3, in <module>\nOther: no",
        "  + Exception Group Traceback (most recent call last):\n  |   File \"script.py\", line 3, in <module>\n  | \
         ExceptionGroup: no (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | ValueError: a\n    \
         +------------------------------------",
    ] {
        check(stack, "Error", "no", Some(stack));
    }
}
