//! The component matches its documents: its hash, its table of modules, its parts in the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cx::{Script, Severity};
use sha2::{Digest as _, Sha256};

use crate::support::python;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The compiled code's name in the cache comes from this hash, which is not computed at run time.
#[test]
fn the_component_has_the_hash_that_is_beside_it() {
    let component = fs::read(root().join("python-wasm/python.wasm.zst")).unwrap();
    let written = fs::read_to_string(root().join("python-wasm/python.wasm.zst.sha256")).unwrap();
    let hash: String = Sha256::digest(component).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written.split_whitespace().next(), Some(hash.as_str()));
}

/// Every module of the standard library and of the packages, in a real interpreter, against the table of the docs.
#[tokio::test]
async fn every_module_is_as_the_table_says() {
    let source = fs::read_to_string(root().join("python-wasm/table.py")).unwrap();
    let limits = cx::Limits {
        wall_time: std::time::Duration::from_secs(120),
        cpu_time: std::time::Duration::from_secs(120),
        memory_bytes: 512 << 20,
        ..cx::Limits::default()
    };
    let result = python().await.0.run(Script::python(source).limits(limits)).await.unwrap();
    let found = result.value().and_then(serde_json::Value::as_object);
    let found = found.unwrap_or_else(|| panic!("{}", result.to_json()));
    let table = fs::read_to_string(root().join("docs/python-modules.md")).unwrap();
    let mut rows = 0;
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.trim_matches('|').split(" | ");
        let name = cells.next().unwrap().trim().trim_matches('`');
        let text = cells.next().unwrap().trim().replace("&#124;", "|");
        let expected = found.get(name).and_then(serde_json::Value::as_str);
        assert_eq!(expected.map(str::trim), Some(text.as_str()), "{name}: run python-wasm/table.py again");
        rows += 1;
    }
    assert_eq!(rows, found.len(), "the table has other modules than the interpreter");
    let working = found.values().filter(|text| text.as_str().is_some_and(|text| text == "works")).count();
    assert!(rows > 300 && working > 230, "{working} of {rows} modules work");
}

/// The message for each module that the interpreter refuses, or patches because scripts cannot use it.
const SAID: &str = r#"
import http.client, socket, subprocess, urllib.request, webbrowser
from cx_guest import refusals

def said(use):
    try:
        use()
    except Exception as error:
        return str(error)
    return "works"

names = [name for name in [*refusals.MODULES, *refusals.PACKAGES] if "." not in name]
result = {
    "absent": {name: said(lambda: __import__(name)) for name in names},
    "in use": {
        "http.client": said(lambda: http.client.HTTPConnection("localhost").connect()),
        "socket": said(lambda: socket.socket()),
        "subprocess": said(lambda: subprocess.run(["true"])),
        "urllib.request": said(lambda: urllib.request.urlopen("http://localhost")),
        "webbrowser": said(lambda: webbrowser.open("http://localhost")),
    },
}
result
"#;

/// The check before a run has its own table, which finds the modules that the interpreter refuses, with the same words.
#[tokio::test]
async fn the_check_of_imports_says_what_the_interpreter_says() {
    let executor = python().await.0;
    let said = executor.run(Script::python(SAID)).await.unwrap();
    let said = said.value().unwrap_or_else(|| panic!("{}", said.to_json()));
    let texts = |part: &str| -> BTreeMap<String, String> {
        let texts = said[part].as_object().unwrap().iter();
        texts.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect()
    };
    let (absent, in_use) = (texts("absent"), texts("in use"));

    // Both tables have the same names.
    let table = fs::read_to_string(root().join("src/engine/python/survey/unavailable.rs")).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("    (\"")?.split('"').next());
    let rows: BTreeSet<&str> = rows.collect();
    let names: BTreeSet<&str> = absent.keys().chain(in_use.keys()).map(String::as_str).collect();
    assert_eq!(rows, names);

    // Fewer than one check reports.
    let all: Vec<(&String, &String)> = absent.iter().chain(&in_use).collect();
    for some in all.chunks(40) {
        let source: String = some.iter().map(|(name, _)| format!("import {name}\n")).collect();
        let found = executor.check(Script::python(source)).await.unwrap().findings;
        let mut has_named_packages = false;
        let expected = some.iter().map(|(name, text)| {
            let severity = if in_use.contains_key(*name) { Severity::Warning } else { Severity::Error };
            // The list of packages is in one message of a check only.
            let short = text.split("; besides the standard library").next().unwrap();
            let is_said = short != text.as_str() && std::mem::replace(&mut has_named_packages, true);
            (severity, if is_said { short.to_owned() } else { (*text).clone() })
        });
        let expected: Vec<(Severity, String)> = expected.collect();
        let found: Vec<(Severity, String)> =
            found.into_iter().map(|finding| (finding.severity, finding.message)).collect();
        assert_eq!(found, expected);
    }
}

/// The check before a run has a table of the existing modules, and finds imports of others.
#[tokio::test]
async fn the_check_knows_every_module_that_the_interpreter_has() {
    let executor = python().await.0;
    let source = fs::read_to_string(root().join("python-wasm/modules.py")).unwrap();
    let said = executor.run(Script::python(source)).await.unwrap();
    let said = said.value().unwrap_or_else(|| panic!("{}", said.to_json()));
    let names = |part: &str| -> BTreeSet<String> {
        let names = said[part].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let table = fs::read_to_string(root().join("src/engine/python/survey/modules.txt")).unwrap();
    let table: BTreeSet<String> = table.lines().map(str::to_owned).collect();
    let found = names("found");
    let differing: Vec<&String> = table.symmetric_difference(&found).collect();
    assert!(differing.is_empty(), "run python-wasm/modules.py again: {differing:?}");

    let all: BTreeSet<String> = found.union(&names("loaded")).cloned().collect();
    let source: String = all.iter().map(|name| format!("import {name}\n")).collect();
    let found = executor.check(Script::python(source)).await.unwrap().findings;
    let wrong: Vec<_> =
        found.iter().filter(|finding| finding.message.starts_with("No module named")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Names that neither the interpreter nor its table of packages knows.
#[tokio::test]
async fn imports_of_unknown_modules_are_found_at_once_and_fail_in_the_interpreter_too() {
    let executor = python().await.0;
    let source = "import jsn\nfrom helpers.text import words\nimport left_pad\n1";
    let found = executor.check(Script::python(source)).await.unwrap().findings;
    let found: Vec<(Severity, Option<u32>)> = found.iter().map(|one| (one.severity, one.line)).collect();
    assert_eq!(found, [1, 2, 3].map(|line| (Severity::Error, Some(line))));
    for (module, expected) in [
        ("jsn", "No module named 'jsn': did you mean 'json'? besides the standard library"),
        ("helpers.text", "No module named 'helpers': besides the standard library"),
        ("left_pad", "No module named 'left_pad': besides the standard library"),
    ] {
        let source =
            format!("try:\n    import {module}\nexcept ImportError as error:\n    said = str(error)\nsaid");
        let said = executor.run(Script::python(source)).await.unwrap();
        let said = said.value().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        assert!(said.starts_with(expected), "{module}: {said}");
        let checked = executor.check(Script::python(format!("import {module}\n1"))).await.unwrap().findings;
        assert_eq!(checked.iter().map(|one| one.message.as_str()).collect::<Vec<_>>(), [said.as_str()]);
    }
}

/// The component must not come from a checkout with other sources.
#[test]
fn versions_are_the_ones_that_are_written() {
    let requirements = fs::read_to_string(root().join("python-wasm/requirements.txt")).unwrap();
    assert!(requirements.contains("componentize-py==0.25.1"));
    let manifest = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    assert!(manifest.contains("name = \"wasmtime\"\nversion = \"48."));
    assert!(Path::new(&root().join("python-wasm/LICENSES")).exists());
}
