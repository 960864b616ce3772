//! Hints for scripts that only sloppy code could run, as the engines of other programs have it: scripts are strict.

use super::source::{MAX_NAME, has_word, is_part};
use crate::tools::names::is_identifier;

const CALLEE: &str =
    "scripts are strict code, which has no `arguments.callee`: give the function a name, and call it by that";

/// The hint for an error of this name and message, which the line has raised.
pub(super) fn hint(name: &str, message: &str, line: &str) -> Option<String> {
    match name {
        "ReferenceError" => {
            let variable = message.strip_suffix(" is not defined")?;
            let is_known = variable.len() <= MAX_NAME && is_identifier(variable) && sets(line, variable);
            is_known.then(|| {
                format!("scripts are strict code, where each variable is declared: `let {variable} = …`")
            })
        }
        "TypeError"
            if message.starts_with("'caller', 'callee', and 'arguments' properties may not be accessed")
                && has_word(line, "arguments") =>
        {
            Some(CALLEE.to_owned())
        }
        _ => None,
    }
}

/// Whether the line gives a variable a value: `name = 1`, `name += 1`, `name++`, `for (name of list)`. An argument is
/// none, which Python writes as `f(name=1)`.
fn sets(line: &str, name: &str) -> bool {
    const OPERATORS: [&str; 6] = ["+=", "-=", "*=", "/=", "++", "--"];
    line.match_indices(name).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + name.len()..]);
        let continues = |letter: char| letter == '.' || is_part(letter);
        if before.ends_with(continues) || after.starts_with(continues) {
            return false;
        }
        let next = after.trim_start();
        let is_assigned = next.starts_with('=')
            && !next.starts_with("==")
            && !next.starts_with("=>")
            && !is_argument(before);
        let loops = |head: &str| ["for", "await"].iter().any(|word| head.trim_end().ends_with(word));
        let is_of_loop = before.trim_end().strip_suffix('(').is_some_and(loops)
            && ["of ", "in "].iter().any(|word| next.starts_with(word));
        is_assigned || is_of_loop || OPERATORS.iter().any(|operator| next.starts_with(operator))
    })
}

/// Whether what follows `before` is an argument: of a call, and not what stands between the brackets of a statement.
fn is_argument(before: &str) -> bool {
    const STATEMENTS: [&str; 5] = ["for", "if", "return", "switch", "while"];
    let before = before.trim_end();
    let Some(callee) = before.strip_suffix('(') else { return before.ends_with(',') };
    let word = callee.trim_end().rsplit(|letter: char| !is_part(letter)).next().unwrap_or_default();
    !word.is_empty() && !STATEMENTS.contains(&word)
}
