//! Variables of the user's shell that a server may have relied on. Clients pass all of them on; cx
//! passes on only those that its configuration names.

use crate::config::entry::{ServerEntry, Target};
use crate::config::environment::Environment;

/// Words in the name of a variable that say that it is a credential, and not whose.
const CREDENTIALS: [&str; 8] = ["token", "key", "secret", "password", "pat", "credentials", "auth", "dsn"];

/// Words that say neither.
const FILLERS: [&str; 6] = ["api", "access", "personal", "url", "id", "app"];

/// The credentials in the environment that are named after the server or its program, and that its entry
/// does not pass on: `GITHUB_TOKEN` for `@modelcontextprotocol/server-github`.
pub(super) fn inherited<'a>(name: &str, entry: &ServerEntry, environment: &'a Environment) -> Vec<&'a str> {
    let Some(Target::Stdio(target)) = &entry.target else { return Vec::new() };
    let mut about = vec![name.to_lowercase(), target.command.raw.to_lowercase()];
    about.extend(target.args.iter().map(|text| text.raw.to_lowercase()));
    let has = |variable: &str| {
        let mut texts =
            target.env.iter().map(|(_, text)| &text.raw).chain(target.args.iter().map(|t| &t.raw));
        target.env.iter().any(|(name, _)| name == variable) || texts.any(|text| text.contains(variable))
    };
    let is_about = |variable: &str| {
        let words: Vec<String> = variable.split('_').map(str::to_lowercase).collect();
        let subject = words.iter().find(|word| {
            word.len() > 2 && !CREDENTIALS.contains(&word.as_str()) && !FILLERS.contains(&word.as_str())
        });
        words.iter().any(|word| CREDENTIALS.contains(&word.as_str()))
            && subject.is_some_and(|subject| about.iter().any(|text| has_word(text, subject)))
    };
    environment.names().filter(|variable| is_about(variable) && !has(variable)).collect()
}

/// Whether a text has the word between characters that are no letters and digits.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|character: char| !character.is_alphanumeric()).any(|part| part == word)
}
