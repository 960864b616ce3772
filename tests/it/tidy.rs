//! The rules of the tree, checked by reading it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::source::product_tokens;

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `directory` with that ending, relative to the root.
pub(crate) fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
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
pub(crate) fn code(path: &Path) -> String {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_below(path: &Path, module: &str) -> bool {
    path.starts_with(module)
}

/// Whether a file of `src` has tests only.
fn is_of_tests(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// Items of the standard library, and macros that print, which only few files may use.
#[test]
fn the_system_is_used_by_few_modules() {
    let modules: &[(&[&str], &[&str])] = &[
        // The command prints with `writer.rs`, which reports what could not be written.
        (&["println!"], &[]),
        (
            &["Command::new("],
            // The last ones run `systemctl` and the like, the TypeScript compiler, and cx itself.
            &[
                "src/mcp/connect.rs",
                "src/mcp/connect/guardian.rs",
                "src/engine/process/workers/launch.rs",
                "src/bin/cx/sync/timer.rs",
                "src/bin/cx/typecheck.rs",
                "src/bin/cx/watch.rs",
            ],
        ),
        (
            &["std::env", "env::var"],
            // The model checker is a test: it asks for how long it may take.
            &[
                "src/config",
                "src/bin/cx",
                "src/mcp/connect.rs",
                "src/sync/model.rs",
                // The name of the architecture, and the argument that makes a program a worker.
                "src/engine/process/sandbox.rs",
                "src/executor/isolation.rs",
            ],
        ),
        (
            &["fs::read", "File::open"],
            &[
                "src/config",
                // `/proc` of child processes.
                "src/mcp/activity.rs",
                "src/storage/files.rs",
                // The names in a folder of scripts.
                "src/storage/scripts.rs",
                "src/engine/python/compiled/directory.rs",
                "src/engine/python/memory.rs",
                // The process itself: its memory, and when the kernel ends it.
                "src/engine/process/fork_server.rs",
                "src/engine/process/sandbox.rs",
                "src/engine/process/used_pages.rs",
                "src/engine/resident.rs",
                // The token for another machine.
                "src/executor/remote_worker.rs",
                // The key of a queue, and credentials for its server.
                "src/nats/seal.rs",
                "src/nats/server.rs",
                // `/proc` of worker processes, and their control groups.
                "src/engine/process/workers/start.rs",
                "src/engine/process/group.rs",
                "src/machine.rs",
                // The names in a directory.
                "src/telemetry/audit/read.rs",
                "src/bin/cx",
            ],
        ),
        // A container has fewer than the machine.
        (&["available_parallelism"], &["src/machine.rs", "src/bin/cx/allocator.rs"]),
        (
            &["geteuid", ".uid()", "0o022", "0o077", "0o002"],
            // Checks of owners and modes. The others use the user's number, as a name or in a record.
            &[
                "src/storage/ownership.rs",
                "src/telemetry/audit/trail.rs",
                "src/machine/sandbox.rs",
                "src/bin/cx/setup.rs",
                "src/bin/cx/sync/timer.rs",
            ],
        ),
        // Texts are truncated by `text::start`, `start_bytes` and `preview`.
        (&["chars().take("], &[]),
        (&["io::stdout"], &["src/bin/cx/output.rs", "src/bin/cx/terminal.rs", "src/bin/cx/writer.rs"]),
    ];
    let sources: Vec<(PathBuf, String)> = files("src", ".rs")
        .into_iter()
        .filter(|path| !is_of_tests(path))
        .map(|path| {
            let code = code(&path);
            (path, code)
        })
        .collect();
    for (names, allowed) in modules {
        let users: Vec<&Path> = sources
            .iter()
            .filter(|(_, code)| names.iter().any(|name| code.contains(name)))
            .map(|(path, _)| path.as_path())
            .collect();
        for path in &users {
            let is_allowed = allowed.iter().any(|module| is_below(path, module));
            assert!(is_allowed, "{} names one of {names:?}", path.display());
        }
        for module in *allowed {
            assert!(users.iter().any(|path| is_below(path, module)), "{module} names none of {names:?}");
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

/// A file has one job. Those that are longer are data, were written by others, or are one piece for who reads them.
#[test]
fn no_file_has_more_than_500_lines() {
    let longer = [
        // A list of constructs of the language.
        "fuzz/entries/constructs.rs",
        // The body of one function, which V8 compiles when a run has a network.
        "js/network/fetch.js",
        "js/temporal/global.js",
    ];
    let endings = ["rs", "js", "mjs", "ts", "py", "sh", "html", "css"];
    let folders =
        ["src", "tests", "benches", "examples", "fuzz/entries", "fuzz/targets", "js", "build", "python-wasm"];
    let (mut seen, mut found) = (0, BTreeSet::new());
    for path in folders.into_iter().flat_map(|folder| files(folder, "")) {
        let is_code = path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known));
        // What a package manager or a compiler has put there.
        if !is_code || path.iter().any(|part| part == "node_modules" || part == "target") {
            continue;
        }
        seen += 1;
        let text = fs::read(root().join(&path)).unwrap();
        if text.iter().filter(|byte| **byte == b'\n').count() > 500 {
            found.insert(path.to_string_lossy().into_owned());
        }
    }
    assert!(seen > 1_500, "only {seen} files were found");
    assert_eq!(found, BTreeSet::from(longer.map(str::to_owned)), "split a file by subject");
}

/// Words for which the field has others.
#[test]
fn words_that_were_replaced_do_not_come_back() {
    let words = [
        "MOST_",
        "LONGEST_",
        "LARGEST_",
        "SHORTEST_",
        "Nobodys",
        "rehears",
        "given up",
        "last words",
        "stubbed",
        "underway",
        "verdict",
    ];
    for (directory, ending) in [("src", ".rs"), ("tests/it", ".rs"), ("docs", ".md"), ("js", ".js")] {
        for path in files(directory, ending) {
            // This list; and the polyfill, which others wrote.
            if path.ends_with("tidy.rs") || path.starts_with("js/temporal") {
                continue;
            }
            let text = fs::read_to_string(root().join(&path)).unwrap();
            for word in words {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
        }
    }
}

/// Functions and types whose names have to say more: what a value is made of, whose state it is.
#[test]
fn names_say_which_one_is_meant() {
    let functions = ["attend", "narrow", "of", "settle", "shown"];
    let types =
        ["End", "Ended", "Ending", "Envelope", "Gate", "Known", "Place", "Problem", "Session", "State"];
    let mut seen = 0;
    for path in files("src", ".rs") {
        if is_of_tests(&path) {
            continue;
        }
        let tokens = product_tokens(&fs::read_to_string(root().join(&path)).unwrap());
        for pair in tokens.windows(2) {
            let (Some(kind), Some(name)) = (pair[0].word(), pair[1].word()) else { continue };
            let list = match kind {
                "fn" => &functions[..],
                "struct" | "enum" | "trait" | "type" => &types[..],
                _ => continue,
            };
            seen += 1;
            assert!(!list.contains(&name), "{} has `{kind} {name}`: which one?", path.display());
        }
    }
    assert!(seen > 5_000, "only {seen} names were found");
}

#[test]
fn every_script_has_its_snapshot_and_every_snapshot_its_script() {
    let typescript = names("tests/scripts", ".ts");
    let python = names("tests/scripts", ".py");
    let snapshots = names("tests/scripts", ".snap");
    let mut expected: Vec<String> =
        typescript.iter().chain(&python).map(|name| format!("snapshots@{name}.snap")).collect();
    expected.sort();
    assert_eq!(expected, snapshots);
    assert!(typescript.len() > 100 && python.len() > 100);
}

/// A script and its twin in the other language have the same outcome: value, output, calls and codes of errors. Texts
/// and locations of errors are each language's own.
#[test]
fn twins_have_the_same_outcome() {
    let python = names("tests/scripts", ".py");
    let mut pairs = 0;
    for typescript in names("tests/scripts", ".ts") {
        let twin = typescript.replace(".ts", ".py");
        if python.contains(&twin) {
            assert_eq!(outcome(&typescript), outcome(&twin), "{typescript} and {twin} differ");
            pairs += 1;
        }
    }
    assert!(pairs > 50, "{pairs} pairs");
}

/// The texts of errors that a script returned are its language's own.
fn remove_messages(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("code") {
                fields.remove("message");
            }
            fields.values_mut().for_each(remove_messages);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_messages),
        _ => {}
    }
}

/// The part of a script's snapshot that must be the same in both languages.
fn outcome(script: &str) -> Value {
    let path = root().join(format!("tests/scripts/snapshots@{script}.snap"));
    let text = fs::read_to_string(path).unwrap();
    let (_, json) = text.rsplit_once("\n---\n").unwrap();
    let report: Value = serde_json::from_str(json).unwrap();
    let kept = ["success", "value", "emitted", "toolCallSummary", "toolCallsMade", "toolCallsRefused"];
    let mut report = report;
    if let Some(value) = report.get_mut("value") {
        remove_messages(value);
    }
    let mut outcome: Map<String, Value> =
        kept.iter().filter_map(|&field| Some((field.to_owned(), report.get(field)?.clone()))).collect();
    if let Some(value) = outcome.get_mut("value") {
        replace_reasons(value);
    }
    if let Some(error) = report.get("error") {
        outcome.insert("codes".to_owned(), json!([error["code"], error["toolCode"]]));
    }
    Value::Object(outcome)
}

/// Replaces texts that say why JSON does not have some value: each language names its own values.
fn replace_reasons(value: &mut Value) {
    match value {
        Value::String(text) => {
            let reasons = ["which JSON does not have", "not valid JSON", "circular"];
            if reasons.iter().any(|reason| text.contains(reason)) {
                "no JSON".clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(replace_reasons),
        Value::Object(fields) => fields.values_mut().for_each(replace_reasons),
        _ => {}
    }
}

/// The names of the files with that ending, sorted.
fn names(directory: &str, ending: &str) -> Vec<String> {
    let paths = files(directory, ending);
    paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_test_file_is_a_module() {
    for path in files("tests/it", ".rs").into_iter().filter(|path| !path.ends_with("main.rs")) {
        // A folder is named where its parent is.
        let named = if path.ends_with("mod.rs") { path.parent().unwrap() } else { path.as_path() };
        let (module, folder) = (named.file_stem().unwrap().to_string_lossy(), named.parent().unwrap());
        let owners = [folder.join("main.rs"), folder.join("mod.rs"), folder.with_extension("rs")];
        let mut lists = owners.iter().filter_map(|owner| fs::read_to_string(root().join(owner)).ok());
        let list = lists.next().unwrap_or_else(|| panic!("nothing declares {}", path.display()));
        assert!(list.contains(&format!("mod {module};")), "{} is not listed", path.display());
    }
}

/// The names of all tests below `directory`.
fn tests_below(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(directory, ".rs") {
        let mut is_test = false;
        for line in code(&path).lines() {
            is_test |= ["#[test]", "#[tokio::test"].iter().any(|start| line.trim().starts_with(start));
            if let Some((_, rest)) = line.split_once("fn ") {
                let name = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_');
                if std::mem::take(&mut is_test) {
                    found.push(name.collect());
                }
            }
        }
    }
    found
}

/// Checks the names in the last column of a document's tables, and counts them: tests, all tests with a common prefix
/// (`v_260_*`), fuzz targets, scripts with snapshots.
fn tests_named_in(document: &str, known: &BTreeSet<String>) -> usize {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let mut count = 0;
    for row in text.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |")) {
        let tests = row.rsplit('|').nth(1).unwrap();
        for path in tests.split('`').skip(1).step_by(2) {
            let name = path.rsplit("::").next().unwrap();
            let exists = match name.strip_suffix('*') {
                Some(start) => known.iter().any(|function| function.starts_with(start)),
                None => known.contains(name),
            };
            assert!(exists, "{document} names `{path}`, which does not exist");
            count += 1;
        }
    }
    count
}

/// Prefixes of tests whose name has the number of a threat: `up_226_…`.
const GROUPS: [&str; 16] =
    ["jc", "jm", "je", "bv", "pc", "pm", "px", "tl", "di", "sa", "cf", "mp", "up", "fd", "ld", "v"];

/// The number of the threat that a test is about, if its name has one.
fn number_of_threat(test: &str) -> Option<u32> {
    let (group, rest) = test.split_once('_')?;
    let (number, _) = rest.split_once('_')?;
    GROUPS.contains(&group).then(|| number.parse().ok())?
}

/// In place of a figure for the share of the attack surface that is tested (promise 42): a list of all threats. A row
/// says which tests check it, or why none does; and each test of a threat is in the row of its number.
#[test]
fn every_threat_has_its_tests_and_every_test_its_threat() {
    let text = fs::read_to_string(root().join("docs/threats.md")).unwrap();
    let (mut numbers, mut named) = (BTreeSet::new(), BTreeSet::new());
    let mut rows_of_threats = BTreeSet::new();
    // Threats whose row names all tests of a module.
    let mut of_modules = BTreeSet::new();
    for row in text.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |")) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        // `JC 001`, `235a`, `v_295`, `541`.
        let first = cells.next().unwrap();
        let digits = first.trim_matches(|letter: char| !letter.is_ascii_digit());
        let Ok(number) = digits.parse::<u32>() else { continue };
        numbers.insert(number);
        let (_group, own) = first.split_at(first.find(digits).unwrap_or_default());
        assert!(rows_of_threats.insert(own.to_owned()), "two threats have the number {own}: {row}");
        let tests = cells.next_back().unwrap();
        assert!(tests.contains('`') || tests.starts_with("none: "), "no test, and no reason: {row}");
        for name in tests.split('`').skip(1).step_by(2) {
            let name = name.rsplit("::").next().unwrap();
            if name == "*" {
                of_modules.insert(number);
            } else {
                named.insert(name.to_owned());
            }
        }
    }
    assert!(numbers.len() > 500, "{} threats", numbers.len());
    let is_named = |test: &str| {
        named.contains(test)
            || named.iter().any(|name| name.strip_suffix('*').is_some_and(|start| test.starts_with(start)))
    };
    for test in ["src", "tests", "fuzz"].into_iter().flat_map(tests_below) {
        if let Some(number) = number_of_threat(&test) {
            assert!(
                numbers.contains(&number),
                "`{test}` is a test of threat {number}, which is not in the list"
            );
            let is_of_module = of_modules.contains(&number);
            assert!(is_named(&test) || is_of_module, "no row of docs/threats.md names `{test}`");
        }
    }
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut known: BTreeSet<String> = ["src", "tests", "fuzz"].into_iter().flat_map(tests_below).collect();
    known.extend(names("fuzz/targets", ".rs").iter().map(|name| name.trim_end_matches(".rs").to_owned()));
    known.extend(names("tests/scripts", ""));
    let threats = tests_named_in("docs/threats.md", &known);
    assert!(threats > 500, "{threats} names");
    let promises = tests_named_in("docs/promises.md", &known);
    assert!(promises > 120, "{promises} names");
    // A promise that holds has a test that fails when the code for it is cut out.
    let text = fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let holds = text.lines().filter(|row| row.split(" | ").nth(2) == Some("holds"));
    let holds: Vec<&str> = holds.collect();
    assert!(holds.len() > 120, "{} promises hold", holds.len());
    for row in holds {
        assert!(row.trim_end().ends_with("` |"), "no test: {row}");
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
