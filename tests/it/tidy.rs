//! The rules of the tree, kept by reading it.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `directory` with that ending, relative to the root.
fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The code of a file without its comments, so that prose may name what code may not.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_below(path: &Path, room: &str) -> bool {
    path.starts_with(room)
}

#[test]
fn foreign_names_stay_in_their_rooms() {
    let rooms: &[(&[&str], &[&str])] = &[
        (&["wasmtime", "ruzstd"], &["src/python"]),
        (&["deno_core", "deno_error", "deno_web", "v8::", "swc_"], &["src/js"]),
        (&["rmcp", "reqwest", "axum", "keyring::", "governor", "backon"], &["src/mcp"]),
        (&["jsonschema"], &["src/tools"]),
        (&["toml::", "jsonc_parser"], &["src/config.rs", "src/config"]),
        (&["clap::", "anyhow", "annotate_snippets", "humantime", "bytesize", "println!"], &["src/bin/cx"]),
        (&["tracing_subscriber"], &["src/bin/cx"]),
        (&["process::Command"], &["src/mcp/connect.rs"]),
        (&["std::env", "env::var"], &["src/config.rs", "src/config", "src/bin/cx", "src/mcp/connect.rs"]),
        (
            &["fs::read", "File::open"],
            &["src/config.rs", "src/config", "src/store.rs", "src/python/compiled.rs", "src/bin/cx"],
        ),
        (&["io::stdout"], &["src/bin/cx/output.rs", "src/bin/cx/exit.rs"]),
        (&["libc::"], &["src/js", "src/watchdog.rs", "src/python/compiled.rs", "src/bin/cx/exit.rs"]),
    ];
    for path in files("src", ".rs") {
        if path.ends_with("tests.rs") {
            continue;
        }
        let code = code(&path);
        for (names, allowed) in rooms {
            for name in *names {
                let at_home = allowed.iter().any(|room| is_below(&path, room));
                assert!(at_home || !code.contains(name), "{} names {name}", path.display());
            }
        }
    }
}

#[test]
fn arrows_point_inwards() {
    let arrows: &[(&str, &[&str])] = &[
        ("src/js", &["executor", "engines", "python", "mcp", "config"]),
        ("src/python", &["executor", "engines", "js", "mcp", "config"]),
        ("src/pool.rs", &["executor", "engines", "js", "python", "mcp", "config"]),
        ("src/watchdog.rs", &["executor", "engines", "js", "python", "mcp", "config", "pool"]),
        ("src/door.rs", &["executor", "engines", "js", "python", "mcp", "config", "pool"]),
        ("src/failure.rs", &["executor", "engines", "js", "python", "mcp", "config", "pool"]),
        ("src/executor.rs", &["js"]),
        ("src/mcp", &["executor", "engines", "js", "python", "config"]),
        ("src/tools", &["executor", "engines", "js", "python", "mcp", "config", "context"]),
        ("src/store.rs", &["executor", "engines", "js", "python", "mcp", "config", "context", "tools"]),
        ("src/context.rs", &["executor", "engines", "js", "python", "mcp", "config", "pool"]),
        ("src/limits.rs", &["executor", "engines", "js", "python", "mcp", "config", "context", "tools"]),
        ("src/execution.rs", &["executor", "engines", "js", "python", "mcp", "config", "context"]),
        ("src/error.rs", &["executor", "engines", "js", "python", "mcp", "context", "tools"]),
        ("src/report.rs", &["executor", "engines", "js", "python", "mcp", "config", "context"]),
    ];
    for path in files("src", ".rs") {
        let code = code(&path);
        for (room, forbidden) in arrows {
            for outer in *forbidden {
                let arrow = format!("crate::{outer}::");
                assert!(
                    !is_below(&path, room) || !code.contains(&arrow),
                    "{} must not know {outer}",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn nothing_is_left_open() {
    for directory in ["src", "tests", "benches", "examples", "js"] {
        for path in files(directory, "s") {
            if path.ends_with("tidy.rs") || path.components().any(|part| part.as_os_str() == "node_modules") {
                continue;
            }
            let Ok(text) = fs::read_to_string(root().join(&path)) else {
                continue;
            };
            for word in
                ["todo!", "unimplemented!", "dbg!(", "FIXME", "TODO", concat!("#[", "ignore"), "should_panic"]
            {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

#[test]
fn every_script_has_its_snapshot_and_every_snapshot_its_script() {
    let scripts: Vec<String> = names("tests/scripts", ".ts");
    let snapshots: Vec<String> = names("tests/scripts", ".snap");
    assert_eq!(scripts, snapshots);
    assert!(scripts.len() > 100);
}

fn names(directory: &str, ending: &str) -> Vec<String> {
    let paths = files(directory, ending);
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().replace("snapshots@", "");
    let mut names: Vec<String> =
        paths.iter().map(name).map(|name| name.replace(".snap", "").replace(".ts", "")).collect();
    names.sort();
    names
}

#[test]
fn every_test_file_is_a_module() {
    let main = fs::read_to_string(root().join("tests/it/main.rs")).unwrap();
    for path in files("tests/it", ".rs") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(name == "main" || main.contains(&format!("mod {name};")), "{} is not listed", path.display());
    }
}

#[test]
fn every_dependency_says_why_it_is_there() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut in_dependencies = false;
    let mut explained = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies]");
            explained = false;
        } else if line.starts_with('#') {
            explained = true;
        } else if line.trim().is_empty() {
            explained = false;
        } else if in_dependencies {
            assert!(explained, "no reason given: {line}");
        }
    }
}
