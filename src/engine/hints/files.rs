//! Hints about files: why a write has failed, and where granted directories are.

use crate::run::context::ExecutionContext;
use crate::run::script::Language;
use crate::text::visible_preview;

/// Maximum number of directories that a hint names.
const MAX_DIRECTORIES: usize = 3;

/// Maximum characters of the path of one.
const MAX_PATH: usize = 200;

/// Why a write of Python has failed. WASI's streams say only that it has.
pub(super) fn failed_write(message: &str, context: &ExecutionContext) -> Option<String> {
    if context.script.language != Language::Python || !message.contains("[Errno 29]") {
        return None;
    }
    context.files().last_failure().map(|failure| format!("the write failed: {failure}"))
}

/// The paths of granted directories, for a script that has opened a file where none is. A path that is relative to one
/// of them is the usual mistake.
pub(super) fn granted(name: &str, message: &str, context: &ExecutionContext) -> Option<String> {
    let is_missing = match context.script.language {
        Language::Python => name == "FileNotFoundError" && message.starts_with("[Errno 44] "),
        // With what `js/56_files.js` says: the path is relative, or in no granted directory.
        Language::TypeScript => {
            message.starts_with("ENOENT: ")
                && ["(a relative path starts in /tmp", "(scripts have /tmp"]
                    .iter()
                    .any(|words| message.contains(words))
        }
    };
    if !is_missing {
        return None;
    }
    let mut paths: Vec<String> = context.files().granted_directories().map(|(path, _)| path).collect();
    // A script that names one of them knows it. Python says of a file in it the same as of any other.
    if paths.iter().any(|path| message.contains(path.as_str())) {
        return None;
    }
    // One that is granted for reading and writing is there twice.
    paths.sort_unstable();
    paths.dedup();
    let shown: Vec<String> = paths
        .iter()
        .take(MAX_DIRECTORIES)
        .map(|path| format!("`{}`", visible_preview(path, MAX_PATH)))
        .collect();
    let more = if paths.len() > MAX_DIRECTORIES { ", …" } else { "" };
    (!shown.is_empty()).then(|| {
        format!("a granted directory has the path that it has on the machine: {}{more}", shown.join(", "))
    })
}
