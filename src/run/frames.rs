//! The stack of an error without what its message and its location say already.

/// What ends the first line of a message that `src/engine/stack.rs` has shortened.
const CUT: &str = " […]";

/// What the stack of an error says beyond its name, its message and its location: other frames, causes, notes.
/// `None` if that is nothing.
///
/// A script writes the stack. So a text that is not understood is kept whole.
pub(crate) fn beyond_message(
    stack: &str,
    name: Option<&str>,
    message: &str,
    at: Option<(u32, u32)>,
) -> Option<String> {
    let (rest, is_location) = if stack.lines().any(is_python) {
        let rest = without_last_lines(stack, name.unwrap_or_default(), message);
        let is_location = at.is_some() && is_one_frame(&rest);
        (rest, is_location)
    } else {
        let rest = without_first_lines(stack, name, message);
        let is_location = at.is_some_and(|(line, column)| is_only(rest, line, column));
        (without_repeated_cause(rest, message), is_location)
    };
    (!rest.is_empty() && !is_location).then_some(rest)
}

/// Whether a line of a traceback of Python names a location, also one of a group's.
fn is_python(line: &str) -> bool {
    line.trim_start_matches([' ', '|', '+']).starts_with("File \"")
}

/// A stack of V8 without its beginning, if that is the error's name and message.
fn without_first_lines<'a>(stack: &'a str, name: Option<&str>, message: &str) -> &'a str {
    let ends = ["\n    at ", "\nCaused by: "].into_iter().filter_map(|sign| stack.find(sign));
    let (head, rest) = stack.split_at(ends.min().unwrap_or(stack.len()));
    // A name that a constructor sets is not in the stack, which V8 writes before.
    let is_said = match head.split_once(": ") {
        Some((kind, said)) => {
            !kind.contains(char::is_whitespace) && message.starts_with(said.trim_end_matches(CUT))
        }
        None => name == Some(head) || message == head || message.is_empty(),
    };
    if is_said { rest.trim_start_matches('\n') } else { stack }
}

/// A stack of V8 whose last cause does not repeat the end of the message, as in `load failed: no such file`. The frames
/// of the cause stay.
fn without_repeated_cause(stack: &str, message: &str) -> String {
    const CAUSE: &str = "Caused by: ";
    let Some(at) = stack.rfind(CAUSE).filter(|&at| at == 0 || stack[..at].ends_with('\n')) else {
        return stack.to_owned();
    };
    let (before, cause) = stack.split_at(at + CAUSE.len());
    let (head, frames) = cause.split_at(cause.find("\n    at ").unwrap_or(cause.len()));
    match head.split_once(": ") {
        Some((kind, said)) if !said.is_empty() && message.ends_with(said) => {
            format!("{before}{kind}{frames}")
        }
        _ => stack.to_owned(),
    }
}

/// Whether this is one frame, at the location.
fn is_only(stack: &str, line: u32, column: u32) -> bool {
    let frame = stack.trim();
    !frame.contains('\n')
        && frame.starts_with("at ")
        && frame.trim_end_matches(')').ends_with(&format!(":{line}:{column}"))
}

/// A traceback of Python without the line that has the error's name and message. Notes after it stay.
fn without_last_lines(stack: &str, name: &str, message: &str) -> String {
    let starts = stack.match_indices('\n').map(|(at, _)| at + 1).rev();
    for start in starts {
        let line = &stack[start..];
        // `module.Name: message`. Of the first line only: there may be thousands of lines.
        let first = line.lines().next().unwrap_or_default();
        let (kind, said) = match first.split_once(": ") {
            Some((kind, _)) => (kind, &line[kind.len() + 2..]),
            None => (first, &line[first.len()..]),
        };
        let is_kind = kind == name || kind.strip_suffix(name).is_some_and(|module| module.ends_with('.'));
        if !is_kind || kind.contains(char::is_whitespace) {
            continue;
        }
        let before = stack[..start].trim_end();
        if kind == first {
            // Without a message the name is the message.
            if message == name || message.is_empty() {
                return format!("{before}{}", said.trim_end());
            }
            continue;
        }
        let (head, notes) = said.split_at(first.len() - kind.len() - 2);
        let is_said = message.starts_with(head.trim_end().trim_end_matches(CUT));
        if is_said && (!message.contains('\n') || head.ends_with(CUT)) {
            return format!("{before}{}", notes.trim_end());
        }
        if message.starts_with(said.trim_end()) {
            return before.to_owned();
        }
        if let Some(notes) = said.strip_prefix(message).filter(|notes| notes.starts_with('\n')) {
            return format!("{before}{notes}");
        }
    }
    stack.to_owned()
}

/// Whether a traceback has one frame and nothing else.
fn is_one_frame(stack: &str) -> bool {
    stack.lines().filter(|line| is_python(line)).count() == 1
        && stack.lines().skip(1).all(|line| line.starts_with("  ") && !line.contains('|'))
}

#[cfg(test)]
mod tests;
