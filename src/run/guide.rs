//! The guide to writing scripts, for models: a prompt and a resource of the server, and the text of
//! `help()`.

use crate::run::script::Language;

/// The complete guide. A test runs every example in it.
pub(crate) const GUIDE: &str = include_str!("guide.md");

/// The section about language models, for runs that may ask one.
const LANGUAGE_MODELS: &str = include_str!("guide_llm.md");

/// Names in the guide's sentences that are others in Python.
const PYTHON_NAMES: [(&str, &str); 3] = [
    ("`searchTools(", "`search_tools("),
    ("`getToolSchema(", "`get_tool_schema("),
    ("`retryAfterMs`", "`retry_after_ms`"),
];

/// The guide without the other language's examples.
pub(crate) fn whole(language: Language, has_models: bool) -> String {
    let mut text = for_language(GUIDE, language);
    if has_models {
        text += "\n\n";
        text += &for_language(LANGUAGE_MODELS, language);
    }
    text
}

/// The section about language models.
pub(crate) fn language_models(language: Language) -> String {
    for_language(LANGUAGE_MODELS.trim_start_matches("## "), language)
}

/// Returns the section about `topic`: the first one whose heading contains the words, or else the
/// first one that contains them anywhere. The other language's examples are left out.
pub(crate) fn section(topic: &str, language: Language) -> Option<String> {
    let topic = topic.trim().to_lowercase();
    if topic.is_empty() {
        return None;
    }
    let has = |text: &str| {
        let text = text.to_lowercase();
        let is_word = |position: usize| {
            let before = text[..position].chars().next_back();
            let after = text[position + topic.len()..].chars().next();
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        };
        text.match_indices(&topic).any(|(position, _)| is_word(position))
    };
    let in_heading = sections().find(|section| has(heading(section)));
    let found = in_heading.or_else(|| sections().find(|section| has(section)))?;
    Some(for_language(found, language))
}

/// The headings of the sections.
pub(crate) fn headings() -> impl Iterator<Item = &'static str> {
    sections().map(heading)
}

fn sections() -> impl Iterator<Item = &'static str> {
    GUIDE.split("\n## ").skip(1)
}

fn heading(section: &str) -> &str {
    section.lines().next().unwrap_or_default()
}

fn for_language(text: &str, language: Language) -> String {
    let other = match language {
        Language::TypeScript => "```py",
        Language::Python => "```ts",
    };
    let mut kept = String::with_capacity(text.len());
    let mut is_left_out = false;
    for line in text.lines() {
        is_left_out |= line == other;
        // The empty line after a removed example is removed too.
        let is_second_empty = line.is_empty() && kept.ends_with("\n\n");
        if !is_left_out && !is_second_empty {
            kept.push_str(line);
            kept.push('\n');
        }
        is_left_out &= line != "```";
    }
    kept.truncate(kept.trim_end().len());
    match language {
        Language::TypeScript => kept,
        Language::Python => {
            PYTHON_NAMES.iter().fold(kept, |text, (name, python_name)| text.replace(name, python_name))
        }
    }
}

#[cfg(test)]
mod tests;
