//! What a script's source does, as far as its text tells: both languages write it alike.

/// Whether `text` takes a field of something: `.content`, `["content"]`, `.get("content")`.
pub(super) fn takes_field(text: &str, field: &str) -> bool {
    text.match_indices(field).any(|(start, _)| {
        let (before, after) = (text[..start].chars().next_back(), text[start + field.len()..].chars().next());
        match before {
            Some('.') => !after.is_some_and(|next| next == '_' || next == '(' || next.is_alphanumeric()),
            Some(quote @ ('"' | '\'')) => {
                let mut outside = text[..start].chars().rev().skip(1);
                after == Some(quote) && matches!(outside.next(), Some('[' | '('))
            }
            _ => false,
        }
    })
}

/// Whether TypeScript keeps what a call of a tool gives without an `await`: `= callMCPTool(…)`,
/// `= tools.files.read(…)`.
pub(super) fn keeps_call(source: &str) -> bool {
    source.lines().any(|line| {
        let call = line.split_once("= callMCPTool(").or_else(|| line.split_once("= tools."));
        call.is_some_and(|(before, _)| !before.ends_with(['=', '!']))
    })
}
