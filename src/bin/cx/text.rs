//! Text for a terminal.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use cx::ToolError;
use cx::text::one_line;

/// Escapes control characters, which could move a terminal's cursor or change its title. Lines may end with CR LF, as
/// in CSV.
///
/// Unlike the library's `visible`, this keeps zero-width characters: a script's output may have
/// emoji and scripts that need them, and no decision depends on it.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        // Bidirectional overrides change the order in which text is displayed.
        let hidden = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let ends_line = character == '\r' && characters.peek() == Some(&'\n');
        let is_plain = matches!(character, '\n' | '\t') || ends_line;
        if (character.is_control() && !is_plain) || hidden {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Text in lines by which a person decides, as about a definition that has changed or a script: all hidden characters
/// are escaped, also zero-width ones, which [`printable`] keeps.
pub(crate) fn revealed(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(one_line).collect::<Vec<_>>().join("\t");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A number of things, in the singular or the plural.
pub(crate) fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// A time such as `1h 2m 3s`, without the part of a second.
pub(crate) fn whole_seconds(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(time.as_secs()))
}

/// The number of tools of a server, and how many of its tools the rules hide from scripts.
pub(crate) fn number_of_tools(tools: usize, hidden: usize) -> String {
    let hidden = match hidden {
        0 => String::new(),
        hidden => format!(", {hidden} more hidden by the rules `allow` and `deny`"),
    };
    format!("{}{hidden}", counted(tools, "tool"))
}

/// Why a server failed, on one line, with the last line that it wrote to its stderr.
pub(crate) fn failure(error: &ToolError) -> String {
    let (problem, stderr_tail) = match &error.server_failure {
        Some(failure) => (&failure.problem, failure.stderr_tail.as_str()),
        None => (&error.message, ""),
    };
    let is_empty = |line: &&str| line.trim().is_empty();
    let first = problem.lines().find(|line| !is_empty(line)).unwrap_or_default();
    match stderr_tail.lines().rfind(|line| !is_empty(line)) {
        Some(last) => format!("{first}: {}", last.trim()),
        None => first.to_owned(),
    }
}

/// A path on one line, with hidden characters escaped.
pub(crate) fn shown_path(path: &Path) -> String {
    one_line(&path.display().to_string())
}

/// Text in lines of at most `columns`, where all but the first begin with `indent` blanks; so many columns are used
/// before the first. A word that is longer than a line stays whole.
pub(crate) fn wrapped(text: &str, indent: usize, columns: usize) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut used = indent;
    for (index, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if index > 0 && used + 1 + width > columns {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if index > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += width;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_end_with_a_word() {
        assert_eq!(wrapped("one two three", 2, 9), "one two\n  three");
        assert_eq!(wrapped("one two three", 2, 8), "one\n  two\n  three");
        assert_eq!(wrapped("a longer-than-a-line b", 1, 6), "a\n longer-than-a-line\n b");
        assert_eq!(wrapped("fits", 2, 80), "fits");
        assert_eq!(wrapped("", 2, 80), "");
    }
}
