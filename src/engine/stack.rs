//! Stacks of uncaught errors as a reply shows them: without what the error's message says anyway.
//!
//! V8 and Python repeat the whole message in the stack, once for each error of a chain of causes
//! that quotes it. A message can be long: that of a server that does not start ends with what the
//! server wrote to stderr.

use crate::text;

/// Maximum characters of a message's first line that a stack repeats.
const MAX_REPEATED: usize = 200;

/// Characters at the end of a message's first line by which a repetition is recognized. Less than
/// the line, because the error that caused this one may have the same lines after another
/// beginning.
const RECOGNIZED: usize = 24;

/// Maximum number of lines that are compared. The script may have made both texts.
const MAX_COMPARED: usize = 100_000;

/// `stack` with only the beginning of `message` in it, wherever it repeats more of that.
pub(crate) fn without_message(stack: &str, message: &str) -> String {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default().trim_end();
    let rest: Vec<&str> = lines.collect();
    let (beginning, ending) = (beginning(first), ending(first));
    let mut compared = 0;
    let mut kept = String::with_capacity(stack.len());
    let mut ahead = stack.lines();
    while let Some(line) = ahead.next() {
        if !kept.is_empty() {
            kept.push('\n');
        }
        let cut = beginning.and_then(|beginning| Some(line.find(beginning)? + beginning.len()));
        let is_message = cut.is_some() || !ending.is_empty() && line.trim_end().ends_with(ending);
        let repeated = if is_message && compared < MAX_COMPARED {
            repeated(ahead.clone(), &rest, &mut compared)
        } else {
            0
        };
        kept.push_str(&line[..cut.unwrap_or(line.len())]);
        if cut.is_some() || repeated > 0 {
            kept.push_str(" […]");
        }
        for _ in 0..repeated {
            ahead.next();
        }
    }
    kept
}

/// The part of a message's first line that is repeated, if the line is longer.
fn beginning(first: &str) -> Option<&str> {
    let start = text::start(first, MAX_REPEATED);
    (start.len() < first.len()).then_some(start)
}

/// The end of a message's first line: of another error's message, if there is one at its end.
fn ending(first: &str) -> &str {
    let first = first.rsplit("; ").next().unwrap_or_default();
    let skipped = first.chars().count().saturating_sub(RECOGNIZED);
    first.char_indices().nth(skipped).map_or("", |(start, _)| &first[start..])
}

/// How many of the lines ahead are the lines of a message after its first one. The stack may end
/// before the message does, the last line of either may be cut off, and the message may go on with
/// that of another error.
fn repeated<'a>(mut ahead: impl Iterator<Item = &'a str>, rest: &[&str], compared: &mut usize) -> usize {
    let mut count = 0;
    for line in rest {
        let Some(next) = ahead.next() else { break };
        *compared += 1;
        // The margin is that of exception groups.
        let [next, line] = [next, *line].map(|line| line.trim_start_matches([' ', '|', '+']).trim_end());
        let goes_on = line.strip_prefix(next).is_some_and(|after| after.starts_with("; "));
        if goes_on || is_cut_off(next, line) || is_cut_off(line, next) {
            return count + 1;
        }
        if next != line {
            return 0;
        }
        count += 1;
    }
    count
}

/// Whether `line` is the beginning of `whole` with the sign of what was cut off.
fn is_cut_off(line: &str, whole: &str) -> bool {
    line.strip_suffix('…').is_some_and(|beginning| whole.starts_with(beginning))
}

#[cfg(test)]
mod tests;
