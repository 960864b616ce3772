//! What a script's source does, as far as its text tells: both languages write it alike.

/// Maximum characters of a name that a hint shows.
pub(super) const MAX_NAME: usize = 64;

/// Maximum number of variables that are looked for in the whole source: each search takes linear time.
const MAX_VARIABLES: usize = 10;

/// Whether a letter can be a part of a name.
pub(super) fn is_part(letter: char) -> bool {
    letter == '_' || letter == '$' || letter.is_alphanumeric()
}

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

/// Whether `text` takes the text of a content block: `.content[0].text`, `?.content?.[0]?.text`,
/// `["content"][0]["text"]`.
pub(super) fn takes_block(text: &str) -> bool {
    text.match_indices("content").any(|(start, field)| {
        let after = text[start + field.len()..].trim_start_matches(['"', '\'', ']', '?', '.']);
        let Some(index) = after.strip_prefix('[') else { return false };
        let Some(after) = index.trim_start_matches(|digit: char| digit.is_ascii_digit()).strip_prefix(']')
        else {
            return false;
        };
        after.trim_start_matches(['?', '.', '[', '"', '\'']).starts_with("text")
    })
}

/// Whether `text` has `word` as a name of its own: not as a part of a name, and not as a field.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(|letter| letter == '.' || is_part(letter)) && !after.is_some_and(is_part)
    })
}

/// Whether `text` takes a member of a field of `object`, which ends in a point: `await mcp.files.` of `await mcp.`.
pub(super) fn takes_member_of(text: &str, object: &str) -> bool {
    text.match_indices(object).any(|(start, found)| {
        let field = &text[start + found.len()..];
        let member = field.trim_start_matches(is_part);
        member.len() < field.len() && member.starts_with('.')
    })
}

/// Whether a line in TypeScript reads a variable that another line gives a call of a tool, and that is not awaited
/// anywhere: `r` of `r = callMCPTool(…)` or of `r = tools.files.read(…)`.
pub(super) fn reads_call(line: &str, source: &str) -> bool {
    let awaits = |name: &str| {
        let awaited = |rest: &str| rest.strip_prefix(name).is_some_and(|after| !after.starts_with(is_part));
        source.split("await ").skip(1).any(awaited)
    };
    let others = source.lines().filter(|other| other.trim() != line.trim());
    let read = others.filter_map(call_variable).filter(|name| has_word(line, name));
    read.take(MAX_VARIABLES).any(|name| !awaits(name))
}

/// The variable that a line in TypeScript gives a call of a tool.
fn call_variable(line: &str) -> Option<&str> {
    let (before, call) = line.split_once("= callMCPTool").or_else(|| line.split_once("= tools."))?;
    // A server or a tool is no call of one.
    let is_call = call.trim_start_matches(|letter: char| letter == '.' || is_part(letter)).starts_with('(');
    let name = assigned(before)?;
    (is_call && !before.trim_start().starts_with("//")).then_some(name)
}

/// The variable of TypeScript that is assigned to after this text: `r` of `const r`, of `let r: Row[]` and of `r`.
pub(super) fn assigned(before: &str) -> Option<&str> {
    let before = before.trim_end();
    let statement = before.rsplit(['\n', ';']).next()?.trim_start();
    let words = ["const ", "let ", "var "];
    let declared = words.iter().find_map(|word| statement.strip_prefix(word));
    let typed = declared.and_then(|declared| declared.split_once(':')).map(|(name, _type)| name.trim());
    let name = match typed {
        Some(name) if name.chars().all(is_part) => name,
        _ => &before[before.trim_end_matches(is_part).len()..],
    };
    (!name.is_empty()).then_some(name)
}

/// Whether a line gives `asyncio.gather` one argument, which may be a list that is written out.
pub(super) fn gathers_one(line: &str) -> bool {
    line.split_once("gather(").is_some_and(|(_, rest)| {
        let is_last = |more: &str| more.trim_start().starts_with("return_exceptions");
        let has_no_other = || rest.split_once(',').is_none_or(|(_, more)| is_last(more));
        let is_one = rest.starts_with('[') || rest.contains(')') && has_no_other();
        is_one && !rest.starts_with('*')
    })
}

/// `split` of `dirs.split is not a function`.
pub(super) fn method(message: &str) -> Option<&str> {
    message.strip_suffix(" is not a function")?.rsplit(['.', ' ']).next()
}

/// The type and the name of `'dict' object has no attribute 'name'`, after which Python may suggest
/// other names.
pub(super) fn attribute(message: &str) -> Option<(&str, &str)> {
    let (kind, rest) = message.strip_prefix('\'')?.split_once("' object has no attribute '")?;
    Some((kind, rest.split('\'').next()?))
}
