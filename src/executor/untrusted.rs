//! What an agent is told about servers that are not used until the user trusts their file.

use std::path::PathBuf;
use std::sync::Arc;

use crate::text::one_line;

/// What to do about the files; `None` if there are none.
pub(super) fn hint(files: &[PathBuf]) -> Option<Arc<str>> {
    let shown = |path: &PathBuf| one_line(&path.display().to_string());
    let names: Vec<String> = files.iter().map(|file| format!("`{}`", shown(file))).collect();
    let commands: Vec<String> = files.iter().map(|file| format!("`cx trust {}`", shown(file))).collect();
    (!files.is_empty()).then(|| {
        let hint = format!(
            "servers in {} are not used until the user has looked at the file and trusts it: {}",
            names.join(" and "),
            commands.join(", ")
        );
        hint.into()
    })
}
