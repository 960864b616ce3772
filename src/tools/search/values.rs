//! The kinds of values in a query: a query with `notes.txt` asks for a tool that takes a file.

/// Common file name extensions.
const FILE_ENDINGS: [&str; 19] = [
    "csv", "doc", "docx", "gif", "html", "jpeg", "jpg", "json", "log", "md", "pdf", "png", "pptx", "txt",
    "xls", "xlsx", "xml", "yaml", "yml",
];

/// The words that tools use for the kinds of a query's values, each once.
pub(crate) fn kinds(query: &str) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let is_between = |character: char| character.is_whitespace() || "'\"`“”()<>,;".contains(character);
    for value in query.split(is_between) {
        let value = value.trim_end_matches(['.', ':', '!', '?']);
        if let Some(kind) = kind(value).filter(|kind| !kinds.contains(kind)) {
            kinds.push(kind);
        }
    }
    kinds
}

fn kind(value: &str) -> Option<&'static str> {
    if ["http://", "https://", "www."].iter().any(|start| value.starts_with(start)) {
        return Some("url");
    }
    if let Some((user, host)) = value.split_once('@') {
        return (!user.is_empty() && host.contains('.')).then_some("email");
    }
    let (stem, ending) = value.rsplit_once('.')?;
    (!stem.is_empty() && FILE_ENDINGS.contains(&ending)).then_some("file")
}

#[cfg(test)]
mod tests;
