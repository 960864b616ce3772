//! Hints for scripts that only sloppy code could run, as the engines of other programs have it: scripts are strict.

use super::source::{MAX_NAME, has_word};
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

/// Whether the line gives a variable a value: `name = 1`, `name += 1`, `name++`, `for (name of list)`.
fn sets(line: &str, name: &str) -> bool {
    const OPERATORS: [&str; 6] = ["+=", "-=", "*=", "/=", "++", "--"];
    line.match_indices(name).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + name.len()..]);
        let is_part =
            |letter: char| letter == '.' || letter == '_' || letter == '$' || letter.is_alphanumeric();
        if before.ends_with(is_part) || after.starts_with(is_part) {
            return false;
        }
        let next = after.trim_start();
        let is_assigned = next.starts_with('=') && !next.starts_with("==") && !next.starts_with("=>");
        let loops = |head: &str| ["for", "await"].iter().any(|word| head.trim_end().ends_with(word));
        let is_of_loop = before.trim_end().strip_suffix('(').is_some_and(loops)
            && ["of ", "in "].iter().any(|word| next.starts_with(word));
        is_assigned || is_of_loop || OPERATORS.iter().any(|operator| next.starts_with(operator))
    })
}
