//! Code blocks of documents. The text of a fence decides what is done with its block:
//!
//! - `ts`, `py`: it runs, with the servers of [`servers`], and succeeds.
//! - `ts,check`, `py,check`: it compiles.
//! - `ts,recipe`, `py,recipe`: a file of `examples`, which `recipes.rs` runs and compares.
//! - `json`, `jsonc`: it parses; with keys of cx's configuration it is valid.
//! - `sh`: the commands of cx take these arguments, those of make are targets; `commands.rs` runs them, unless the
//!   fence says why not.
//! - `toml`: it parses.
//! - `rust`: the page is among the documentation of `src/lib.rs`, whose examples cargo compiles.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use cx::{Executor, FindingCode, McpServer, ProviderKind, Script};
use serde::Deserialize;
use serde_json::{Value, json};

use super::commands::marks;
use super::{Block, blocks, in_backticks, pages, prose, read};
use crate::support::provider::{FakeProvider, Reply};
use crate::support::python_cache;

/// Blocks of other languages, and why nothing is done with them.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("", "what a program prints, or a drawing"),
    ("ini", "part of a unit, which systemd does not verify alone"),
    (
        "nats",
        "the configuration of `nats-server`: `the_permissions_of_the_page_are_enough` starts one with it",
    ),
    ("nginx", "the configuration of another program, which the tests do not install"),
    (
        "yaml",
        "of Prometheus, whose rules `alert_rules_are_valid_and_name_metrics_that_exist` has, and of goose: \
         `every_snippet_is_an_entry_that_starts_cx` reads it",
    ),
];

/// The programs that a `sh` block may call besides cx, make and cargo.
const OTHER_COMMANDS: &[&str] =
    &["claude", "cp", "curl", "echo", "install", "kubectl", "nats", "openssl", "podman", "systemctl"];

#[derive(Deserialize)]
struct Anything {
    #[serde(flatten)]
    _fields: serde_json::Map<String, Value>,
}

/// The servers that the pages are about.
fn servers(provider: &FakeProvider) -> Executor {
    let library = std::env::current_exe().unwrap();
    let library = library.parent().unwrap().parent().unwrap().join("examples/library-server");
    assert!(library.exists(), "cargo builds the examples with the tests: {}", library.display());
    let anything = || json!({ "type": "object", "additionalProperties": true });
    Executor::builder()
        .cache_directory(python_cache())
        .mcp_server(McpServer::stdio("library", library.to_str().unwrap()))
        .tool("github.list_issues", anything(), |_: Anything| async {
            Ok::<_, String>(json!([{ "title": "it is slow" }, { "title": "it is fast" }]))
        })
        .tool("github.create_issue", anything(), |_: Anything| async {
            Ok::<_, String>(json!({ "number": 1 }))
        })
        .tool("jira.search_issues", anything(), |_: Anything| async {
            Ok::<_, String>(json!([{ "title": "an issue" }]))
        })
        .llm(provider.options())
        .build()
        .unwrap()
}

/// A block in TypeScript or Python, as a script.
fn script(block: &Block) -> Script {
    let script = match block.language() {
        "ts" => Script::typescript(block.text.as_str()),
        _ => Script::python(block.text.as_str()),
    };
    script.named(block.location.as_str())
}

fn all() -> Vec<Block> {
    let pages = pages();
    let found: Vec<Block> = pages.iter().flat_map(|page| blocks(page)).collect();
    assert!(found.len() > 60, "{} blocks", found.len());
    found
}

fn of(languages: &[&str]) -> Vec<Block> {
    all().into_iter().filter(|block| languages.contains(&block.language())).collect()
}

/// A block of a kind that no other test of this file knows would not be tested.
#[test]
fn every_block_has_a_language_that_is_tested() {
    let tested = ["ts", "py", "python", "json", "jsonc", "sh", "toml", "rust"];
    let known: Vec<&str> = ["check", "recipe"].into_iter().chain(marks()).collect();
    for block in all() {
        let language = block.language();
        let is_known = tested.contains(&language) || EXCEPTIONS.iter().any(|(name, _)| *name == language);
        assert!(is_known, "{}: `{language}` is neither tested nor an exception", block.location);
        let mut attributes = block.info.split(',').skip(1);
        assert!(attributes.all(|name| known.contains(&name)), "{}: {}", block.location, block.info);
    }
}

#[tokio::test]
async fn every_script_of_a_page_runs() {
    crate::support::python().await;
    let provider =
        FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text(r#"{ "kind": "bug" }"#.to_owned()));
    let executor = servers(&provider);
    let (mut run, mut checked) = (0, 0);
    for block in of(&["ts", "py", "python"]) {
        if block.has("recipe") {
            assert_eq!(block.location.split(':').next(), Some("docs/recipes.md"), "{}", block.location);
        } else if block.has("check") {
            let mut findings = executor.check(script(&block)).await.unwrap().findings;
            // Its servers need not be there.
            findings
                .retain(|finding| !matches!(finding.code, FindingCode::Call(_) | FindingCode::ToolsUnknown));
            // Stubs import a module that only editors have.
            findings.retain(|finding| !finding.message.starts_with("No module named 'cx_tools'"));
            assert_eq!(findings, [], "{}", block.location);
            checked += 1;
        } else {
            let result = executor.run(script(&block)).await.unwrap();
            assert!(result.value_json().is_some(), "{}: {:#}", block.location, result.to_json());
            run += 1;
        }
    }
    assert!(run >= 4 && checked >= 2, "{run} ran, {checked} were checked");
    executor.close().await;
}

/// Its blocks are files of other programs, with their own keys: `command/setup.rs` checks them key by key.
const CLIENTS: &str = "docs/clients.md:";

/// A configuration without its comments, which begin with ` // `.
fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| line.split(" // ").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_json_is_json_and_every_configuration_is_valid() {
    let schema: Value = serde_json::from_str(&read(Path::new("config.schema.json"))).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let keys = schema["properties"].as_object().unwrap();
    let mut configurations = 0;
    for block in of(&["json", "jsonc"]) {
        let value: Value = serde_json::from_str(&without_comments(&block.text))
            .unwrap_or_else(|error| panic!("{}: {error}", block.location));
        let is_configuration =
            value.as_object().is_some_and(|fields| fields.keys().all(|key| keys.contains_key(key)));
        if is_configuration && !block.location.starts_with(CLIENTS) {
            let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{}: {errors:?}", block.location);
            configurations += 1;
        }
    }
    assert!(configurations >= 8, "{configurations} configurations");
}

#[test]
fn every_toml_is_toml() {
    for block in of(&["toml"]) {
        let parsed = block.text.parse::<toml::Table>();
        assert!(parsed.is_ok(), "{}: {parsed:?}", block.location);
    }
}

#[test]
fn every_page_with_rust_is_compiled() {
    let library = read(Path::new("src/lib.rs"));
    for block in of(&["rust"]) {
        let page = block.location.split(':').next().unwrap();
        assert!(
            library.contains(&format!("include_str!(\"../{page}\")")),
            "{}: no test compiles it",
            block.location
        );
    }
}

/// The commands of a `sh` block, as words: without comments, variables in front, redirections and connectors.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for line in text.replace("\\\n", " ").lines() {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for letter in line.chars().chain([' ']) {
            match (quote, letter) {
                (Some(end), _) if letter == end => quote = None,
                (Some(_), _) => word.get_or_insert_default().push(letter),
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    word.get_or_insert_default();
                }
                (None, '#') if word.is_none() => break,
                (None, '|' | ';' | '&') => {
                    words.extend(word.take());
                    commands.push(std::mem::take(&mut words));
                }
                (None, ' ') => words.extend(word.take()),
                (None, _) => word.get_or_insert_default().push(letter),
            }
        }
        assert!(quote.is_none(), "a quotation has no end: {line}");
        commands.push(words);
    }
    for words in &mut commands {
        while words.first().is_some_and(|word| word.contains('=') && !word.starts_with('-')) {
            words.remove(0);
        }
        if let Some(redirection) = words.iter().position(|word| word.starts_with(['>', '<'])) {
            words.truncate(redirection);
        }
    }
    commands.retain(|words| !words.is_empty());
    commands
}

/// With `--help` at the end clap parses everything before it, and nothing is executed.
#[test]
fn every_command_of_a_page_is_one() {
    let makefile = read(Path::new("Makefile"));
    let is_target = |name: &str| makefile.lines().any(|line| line.starts_with(&format!("{name}:")));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for block in of(&["sh"]) {
        for words in commands(&block.text) {
            let (program, arguments) = words.split_first().unwrap();
            *seen.entry(program.clone()).or_default() += 1;
            match program.as_str() {
                "cx" => {
                    let is_help = arguments.first().is_some_and(|word| word == "help");
                    let output = Command::new(env!("CARGO_BIN_EXE_cx"))
                        .args(arguments)
                        .args((!is_help).then_some("--help"))
                        .output()
                        .unwrap();
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(
                        output.status.success(),
                        "{}: cx {}: {said}",
                        block.location,
                        arguments.join(" ")
                    );
                }
                "make" => {
                    for target in arguments {
                        assert!(is_target(target), "{}: make has no {target}", block.location);
                    }
                }
                "cargo" => assert!(
                    ["build", "doc", "install", "run", "test"].contains(&arguments[0].as_str()),
                    "{}: cargo {}",
                    block.location,
                    arguments.join(" ")
                ),
                program => assert!(OTHER_COMMANDS.contains(&program), "{}: {program}", block.location),
            }
        }
    }
    assert!(seen["cx"] >= 30 && seen["make"] >= 5, "{seen:?}");
}

/// What `cx WORDS --help` prints; `None` if there is no such command.
fn help(words: &[String]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_cx")).args(words).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// `cx tools show NAME` in a sentence: the command exists, and has the options that are named. Values are placeholders.
#[test]
fn every_command_in_a_sentence_is_one() {
    // A message that begins with the name.
    let message = "cx was started by a server that cx started";
    let mut known: BTreeMap<Vec<String>, Option<String>> = BTreeMap::new();
    let mut help = |words: &[String]| known.entry(words.to_vec()).or_insert_with(|| help(words)).clone();
    let mut checked = 0;
    for page in pages().into_iter().filter(|page| !page.ends_with("CHANGELOG.md")) {
        for (number, line) in prose(&page) {
            let of_cx = in_backticks(&line).filter(|code| code.starts_with("cx ") && *code != message);
            for words in of_cx.flat_map(commands).filter(|words| words[0] == "cx") {
                let at = format!("{}:{number}: {}", page.display(), words.join(" "));
                let mut path: Vec<String> = Vec::new();
                for word in &words[1..] {
                    let has_commands = help(&path).is_some_and(|text| text.contains("Commands:"));
                    let is_word = word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
                    if !has_commands || !is_word || word.starts_with('-') {
                        break;
                    }
                    path.push(word.clone());
                }
                let text =
                    if path.first().is_some_and(|word| word == "help") { help(&[]) } else { help(&path) };
                let text = text.unwrap_or_else(|| panic!("{at}: there is no such command"));
                for option in words.iter().filter(|word| word.starts_with("--")) {
                    let option = option.split('=').next().unwrap();
                    assert!(text.contains(option), "{at}: {option} is not among its options");
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 150, "{checked} commands");
}

#[test]
fn commands_are_split_as_a_shell_splits_them() {
    let text = "A=1 cx run -e 'return \"a b\"' --json # why\necho 'x | y' | cx run - > out.txt\n# nothing\n";
    let expected =
        [vec!["cx", "run", "-e", "return \"a b\"", "--json"], vec!["echo", "x | y"], vec!["cx", "run", "-"]];
    assert_eq!(commands(text), expected);
}
