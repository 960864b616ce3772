//! What an agent is told about servers that are not used until the user trusts their file.

use std::path::PathBuf;
use std::sync::Arc;

use crate::text::{one_line, shell_word};

/// What to do about the files; `None` if there are none.
pub(super) fn hint(files: &[PathBuf]) -> Option<Arc<str>> {
    let paths = files.iter().map(|file| file.display().to_string());
    let (names, commands): (Vec<String>, Vec<String>) = paths
        .map(|path| (format!("`{}`", one_line(&path)), format!("`cx trust {}`", shell_word(&path))))
        .unzip();
    (!files.is_empty()).then(|| {
        let hint = format!(
            "servers in {} are not used until the user has looked at the file and trusts it: {}",
            names.join(" and "),
            commands.join(", ")
        );
        hint.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat 840.
    #[test]
    fn v_840_the_command_that_trusts_a_file_names_only_the_file() {
        let hint = hint(&[PathBuf::from("$(touch y)/servers.json")]).unwrap();
        assert!(hint.ends_with("trusts it: `cx trust '$(touch y)/servers.json'`"), "{hint}");
    }
}
