//! The component matches its documents: its hash, its table of modules, its parts in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use cx::Script;
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

/// What scripts run on must not come from a checkout with other sources.
#[test]
fn versions_are_the_ones_that_are_written() {
    let requirements = fs::read_to_string(root().join("python-wasm/requirements.txt")).unwrap();
    assert!(requirements.contains("componentize-py==0.25.1"));
    let manifest = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    assert!(manifest.contains("name = \"wasmtime\"\nversion = \"48."));
    assert!(Path::new(&root().join("python-wasm/LICENSES")).exists());
}
