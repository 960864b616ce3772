//! The scripts of `tests/scripts`, and their outcomes.

use std::fs;
use std::path::{Path, PathBuf};

use cx::{ExecuteResult, Language};
use serde_json::Value;

/// All scripts, in the order of their names.
pub(crate) fn scripts() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ts" || extension == "py"));
    paths.sort();
    paths
}

/// The language of a script, by its extension.
pub(crate) fn language_of(path: &Path) -> Language {
    match path.extension().is_some_and(|extension| extension == "py") {
        true => Language::Python,
        false => Language::TypeScript,
    }
}

/// The outcome of the script in this process, without a recording.
pub(crate) fn snapshot(path: &Path) -> Value {
    let name = path.file_name().unwrap().to_string_lossy();
    let text = fs::read_to_string(path.with_file_name(format!("snapshots@{name}.snap"))).unwrap();
    serde_json::from_str(text.splitn(3, "---").nth(2).unwrap()).unwrap()
}

/// A result as JSON without times: nothing else may differ from run to run.
pub(crate) fn without_times(result: &ExecuteResult) -> Value {
    let mut report = result.to_json();
    report.as_object_mut().unwrap().remove("executionTimeMs");
    for summary in report.get_mut("toolCallSummary").and_then(Value::as_array_mut).into_iter().flatten() {
        summary.as_object_mut().unwrap().remove("totalMs");
    }
    report
}
