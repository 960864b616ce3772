//! The stack of an error without what its message and its location say already.

/// What ends the first line of a message that `src/engine/stack.rs` has shortened.
const CUT: &str = " […]";

/// What the stack of an error says beyond its name, its message and its location: frames of other lines, causes,
/// notes. `None` if that is nothing.
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
        let is_location =
            at.is_some_and(|(line, _)| is_one_frame(&rest) || is_of_line_of_python(&rest, line));
        (rest, is_location)
    } else {
        let line = at.map(|(line, _)| line);
        let rest = without_repeated_cause(without_first_lines(stack, name, message), message, line);
        let is_location = line.is_some_and(|line| is_of_line(&rest, line));
        (rest, is_location)
    };
    (!rest.is_empty() && !is_location).then_some(rest)
}

/// A traceback of Python without the lines that only mark a part of the line above, as `~~~^^^`. A model reads the
/// column of the error from its location. Other stacks stay as they are.
pub(crate) fn without_marks(stack: &str) -> String {
    if !stack.lines().any(is_python) {
        return stack.to_owned();
    }
    stack.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

fn is_mark(line: &str) -> bool {
    let mark = line.trim_start_matches([' ', '|']);
    !mark.is_empty() && mark.chars().all(|letter| matches!(letter, '~' | '^' | ' '))
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

/// A stack of V8 whose last cause does not repeat the end of the message, as in `load failed: no such file`. The kind
/// and the frames of the cause stay, unless it is a failed call of the line that the error is of, as with `fetch`.
fn without_repeated_cause(stack: &str, message: &str, line: Option<u32>) -> String {
    const CAUSE: &str = "Caused by: ";
    const CALL: &str = "McpToolError";
    let Some(at) = stack.rfind(CAUSE).filter(|&at| at == 0 || stack[..at].ends_with('\n')) else {
        return stack.to_owned();
    };
    let (before, cause) = stack.split_at(at + CAUSE.len());
    let (head, frames) = cause.split_at(cause.find("\n    at ").unwrap_or(cause.len()));
    match head.split_once(": ") {
        Some((kind, said)) if !said.is_empty() && message.ends_with(said) => {
            let frames_of_call = frames.trim_start_matches('\n');
            if kind == CALL && line.is_some_and(|line| is_of_line(frames_of_call, line)) {
                return stack[..at].trim_end().to_owned();
            }
            format!("{before}{kind}{frames}")
        }
        _ => stack.to_owned(),
    }
}

/// Whether these are frames of one line, and of built-in functions that it calls, and nothing else. A frame that says
/// which promise of a list has failed says more.
fn is_of_line(stack: &str, line: u32) -> bool {
    stack.lines().all(|frame| {
        let Some(place) = frame.trim().strip_prefix("at ") else { return false };
        if place.ends_with(" (<anonymous>)") {
            return true;
        }
        let mut parts = place.trim_end_matches(')').rsplitn(3, ':');
        let (column, at) = (parts.next(), parts.next());
        column.is_some_and(is_number) && at.and_then(|at| at.parse().ok()) == Some(line)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether all frames of a traceback are of one line of one file, or of Python's library, whose source is not shown,
/// and whether there is nothing else.
fn is_of_line_of_python(stack: &str, line: u32) -> bool {
    let frames: Vec<&str> = stack.lines().filter(|line| is_python(line)).map(str::trim_start).collect();
    let Some((file, _)) = frames.first().and_then(|frame| frame.split_once(", line ")) else { return false };
    let is_of_library =
        |frame: &str| frame.starts_with("File \"/python/") || frame.starts_with("File \"<frozen ");
    let is_of_line = |frame: &str| {
        let at = frame.strip_prefix(file).and_then(|rest| rest.strip_prefix(", line "));
        at.and_then(|at| at.split(',').next()?.parse().ok()) == Some(line)
    };
    frames.iter().all(|frame| is_of_line(frame) || is_of_library(frame)) && is_frames(stack)
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
    stack.lines().filter(|line| is_python(line)).count() == 1 && is_frames(stack)
}

/// Whether a traceback has frames and nothing else: no group, no cause and no note.
fn is_frames(stack: &str) -> bool {
    stack.lines().skip(1).all(|line| line.starts_with("  ") && !line.contains('|'))
}

#[cfg(test)]
mod tests;
