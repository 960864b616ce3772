//! Variables of the user's shell that a server may have relied on. Clients pass on all variables; cx passes on only
//! those that its configuration names.

use crate::config::entry::{ServerEntry, Target};
use crate::config::environment::Environment;

/// Words in the name of a variable that tell what it contains, but not for which service.
const KINDS: [&str; 28] = [
    "token",
    "key",
    "secret",
    "password",
    "pat",
    "credentials",
    "auth",
    "dsn",
    "url",
    "uri",
    "id",
    "team",
    "org",
    "account",
    "workspace",
    "project",
    "host",
    "endpoint",
    "site",
    "domain",
    "user",
    "username",
    "email",
    "region",
    "pgpassword",
    "pghost",
    "pguser",
    "pgdatabase",
];

/// Words that tell neither.
const FILLERS: [&str; 4] = ["api", "access", "personal", "app"];

/// Words in variables for services with other names.
const ALIASES: [(&str, &[&str]); 8] = [
    ("gh", &["github"]),
    ("gl", &["gitlab"]),
    ("database", &["postgres", "postgresql", "mysql", "mariadb"]),
    ("postgres", &["postgresql"]),
    ("pgpassword", &["postgres", "postgresql"]),
    ("pghost", &["postgres", "postgresql"]),
    ("pguser", &["postgres", "postgresql"]),
    ("pgdatabase", &["postgres", "postgresql"]),
];

/// The environment variables that are named after the server or its program and that its entry does not pass on:
/// `GITHUB_TOKEN` for `@modelcontextprotocol/server-github`. This is a guess, because it is unknown which variables a
/// program reads.
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
        let is_of_kind = words.iter().any(|word| KINDS.contains(&word.as_str()));
        let also =
            |word: &str| ALIASES.iter().find(|(short, _)| *short == word).map_or(&[][..], |(_, names)| names);
        let is_named = |name: &str| about.iter().any(|text| has_word(text, name));
        let subject = words.iter().find(|word| {
            let is_short =
                word.len() <= 2 || KINDS.contains(&word.as_str()) || FILLERS.contains(&word.as_str());
            !is_short || !also(word).is_empty()
        });
        is_of_kind
            && subject.is_some_and(|word| is_named(word) || also(word).iter().any(|name| is_named(name)))
    };
    environment.names().filter(|variable| is_about(variable) && !has(variable)).collect()
}

/// Whether a text contains the word, not surrounded by letters or digits.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|character: char| !character.is_alphanumeric()).any(|part| part == word)
}
