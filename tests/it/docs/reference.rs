//! Tables of names, keys, limits and codes: they have the same entries as the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use cx::ToolErrorCode;
use serde_json::Value;

use super::{blocks, check_block, check_page, in_backticks, prose, read, rows};
use crate::support::python;
use crate::tidy::{files, root};

const GLOBALS: &str = "docs/globals.md";

fn schema() -> Value {
    serde_json::from_str(&read(Path::new("config.schema.json"))).unwrap()
}

/// The lines below a heading, up to the next one of its level or above.
fn section(page: &str, heading: &str) -> String {
    let level = heading.chars().take_while(|letter| *letter == '#').count();
    let is_end = |line: &str| {
        let found = line.chars().take_while(|letter| *letter == '#').count();
        (1..=level).contains(&found) && line[found..].starts_with(' ')
    };
    let lines = prose(Path::new(page)).into_iter().map(|(_, line)| line);
    let mut lines = lines.skip_while(|line| line != heading);
    assert!(lines.next().is_some(), "{page} has no heading {heading}");
    lines.take_while(|line| !is_end(line)).collect::<Vec<_>>().join("\n")
}

/// The names in the first column of the tables of a section.
fn names(section: &str) -> BTreeSet<String> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    cells.flat_map(|cell| in_backticks(cell).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Compares the names of a page with those that exist.
#[track_caller]
fn check_names(page: &str, written: &BTreeSet<String>, found: &BTreeSet<String>) {
    let missing: Vec<&String> = found.difference(written).collect();
    let unknown: Vec<&String> = written.difference(found).collect();
    assert!(missing.is_empty(), "{page} has no {missing:?}");
    assert!(unknown.is_empty(), "{page} has {unknown:?}, which there is not");
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// `js/globals.txt` is what an isolate has: a test of the engine compares them.
#[test]
fn the_names_of_typescript_are_those_of_an_isolate() {
    let mut written = names(&section(GLOBALS, "### Of cx"));
    written.extend(names(&section(GLOBALS, "### Of the web")));
    let language = section(GLOBALS, "### Of the language");
    let list = language.trim().split("\n\n").next().unwrap();
    written.extend(in_backticks(list).map(str::to_owned));
    let globals = read(Path::new("js/globals.txt"));
    check_names(GLOBALS, &written, &set(globals.lines()));
}

#[tokio::test]
async fn the_names_of_python_are_those_of_an_interpreter() {
    let (executor, _) = python().await;
    let source = "return sorted(name for name in list(globals()) if not name.startswith('__'))";
    let result = executor.run_py(source).await.unwrap();
    let found: Vec<String> = result.value_as().unwrap();
    let mut found: BTreeSet<String> = found.into_iter().collect();
    // The mock's servers, each under both of its names.
    for server in ["mock", "mcp_mock", "other_server", "mcp_other_server"] {
        assert!(found.remove(server), "{server}: {found:?}");
    }
    check_names(GLOBALS, &names(&section(GLOBALS, "## Python")), &found);
}

/// The declarations for editors name what exists.
#[test]
fn every_name_of_cx_is_declared() {
    let (typescript, python) = (declarations("globals.d.ts"), declarations("globals.pyi"));
    for name in names(&section(GLOBALS, "### Of cx")) {
        // `tools` is declared with the servers, `console` by the library of TypeScript.
        let is_elsewhere = name == "tools" || name == "console";
        let forms = ["const", "function", "class"].map(|kind| format!("declare {kind} {name}"));
        let is_declared = forms.iter().any(|form| {
            typescript.match_indices(form.as_str()).any(|(at, _)| {
                !typescript[at + form.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
            })
        });
        assert!(is_elsewhere || is_declared, "globals.d.ts does not declare {name}");
    }
    for name in names(&section(GLOBALS, "## Python")) {
        // Python's own library declares it, and a stub of built-in names cannot declare it again.
        if name == "help" {
            continue;
        }
        let forms =
            [format!("def {name}("), format!("\n{name}: "), format!("class {name}("), format!("as {name}\n")];
        assert!(forms.iter().any(|form| python.contains(form)), "globals.pyi does not declare {name}");
    }
}

fn declarations(name: &str) -> String {
    read(&Path::new("src/tools/declarations").join(name))
}

#[test]
fn the_declarations_are_those_of_cx_types() {
    for (language, name) in [("ts", "globals.d.ts"), ("py", "globals.pyi")] {
        let blocks = blocks(Path::new(GLOBALS));
        let block = blocks.iter().find(|block| block.language() == language).unwrap();
        check_block(GLOBALS, block, declarations(name).trim(), name);
    }
}

#[test]
fn the_codes_are_those_of_the_code() {
    let calls = names(&section("docs/results.md", "## Failed calls"));
    check_names("docs/results.md", &calls, &set(ToolErrorCode::ALL.iter().map(|code| code.as_str())));
    let source = read(Path::new("src/run/result.rs"));
    let (_, codes) = source.split_once("impl ErrorCode {").unwrap();
    let (codes, _) = codes.split_once("pub const fn is_limit").unwrap();
    let codes: BTreeSet<String> =
        codes.split("=> \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    assert!(codes.len() >= 12, "{codes:?}");
    check_names("docs/results.md", &names(&section("docs/results.md", "### Codes of runs")), &codes);
}

/// A table of `config.md` has all keys, in any order, several in a row.
#[test]
fn the_tables_of_the_configuration_have_every_key() {
    let schema = schema();
    let keys = |pointer: &str| -> BTreeSet<String> {
        schema.pointer(pointer).and_then(Value::as_object).unwrap().keys().cloned().collect()
    };
    let file = names(&section("docs/config.md", "## A file"));
    let mut expected = keys("/properties");
    expected.extend(keys("/$defs/server/properties"));
    check_names("docs/config.md", &file, &expected);
    let models = names(&section("docs/llm.md", "## Who answers"));
    check_names("docs/llm.md", &models, &keys("/properties/llm/properties"));
    // The keys within a key are in its row.
    let page = read(Path::new("docs/config.md"));
    for (key, pointer) in [
        ("limits", "/properties/limits/properties"),
        ("cache", "/properties/cache/properties"),
        ("audit", "/properties/audit/properties"),
        ("openTelemetry", "/properties/openTelemetry/properties"),
        ("oauth", "/$defs/server/properties/oauth/properties"),
    ] {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |"))).unwrap();
        for inner in keys(pointer) {
            assert!(row.contains(&format!("`{inner}`")), "docs/config.md: the row of {key} has no {inner}");
        }
    }
}

/// A quantity of the table: `30 s`, `128 MiB`, `1,000`. The table says MB for 2^20 bytes, as the messages do.
fn number(cell: &str) -> u64 {
    let (digits, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let factor = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "MB" | "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => panic!("no unit: {cell}"),
    };
    let digits = digits.replace(',', "");
    digits.parse::<u64>().unwrap_or_else(|_| panic!("no number: {cell}")) * factor
}

/// The keys, defaults and maxima of the schema are those of the code: a test of `src/config` compares them.
#[test]
fn the_table_of_limits_is_that_of_the_schema() {
    let schema = schema();
    let limits = schema.pointer("/properties/limits/properties").unwrap().as_object().unwrap();
    let mut expected: BTreeMap<String, Value> = limits.clone().into_iter().collect();
    for row in rows(Path::new("docs/limits.md")).iter().filter(|row| row.len() == 4) {
        let Some(limit) = in_backticks(&row[1]).next().and_then(|key| expected.remove(key)) else {
            continue;
        };
        for (cell, field) in [(&row[2], "default"), (&row[3], "maximum")] {
            let value = limit[field].as_u64().unwrap();
            let written = match (cell.as_str(), field) {
                ("none", "default") => 0,
                // The largest value of the type.
                ("none", _) => u64::from(u32::MAX),
                ("2^53 - 1", _) => (1 << 53) - 1,
                (cell, _) => number(cell),
            };
            assert_eq!(written, value, "docs/limits.md: {}: {field} {cell}", row[1]);
        }
    }
    assert!(expected.is_empty(), "docs/limits.md has no {:?}", expected.keys());
}

fn figures(name: &str) -> Value {
    serde_json::from_str(&read(&Path::new("benches/agents/figures").join(name))).unwrap()
}

/// The measured tables of the documentation. `make bench-agents` writes them together with the figures.
#[test]
fn the_tables_of_agents_are_those_of_the_measurement() {
    let directory = tempfile::tempdir().unwrap();
    let script = root().join("benches/agents/tables.py");
    let written = Command::new("python3").arg(script).arg(directory.path()).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    for name in ["docs/agents.md", "docs/when-not.md", "README.md"] {
        let new = fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(new == read(Path::new(name)), "{name} is not what benches/agents/tables.py writes");
    }
}

/// What is not right through cx is the one mistake of a benchmark that docs/agents.md names.
#[test]
fn the_measured_entries_are_right_but_for_one_mistake_of_the_benchmark() {
    let mut measured = 0;
    for file in fs::read_dir(root().join("benches/agents/figures")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let summary = &figures(&name)["summary"];
        let problems = |way: &str| -> Vec<String> {
            let problems =
                if way == "direct" { &summary["direct, problems"] } else { &summary[way]["problems"] };
            serde_json::from_value(problems.clone()).unwrap()
        };
        assert_eq!(problems("direct"), [""; 0], "{name}");
        for language in ["typescript", "python"] {
            for way in ["none", "search", "help"] {
                let problems = problems(&format!("{language}, discovery {way}"));
                let is_bfcl = ["base.json", "long_context.json", "miss_func.json", "miss_param.json"]
                    .contains(&name.as_str());
                assert_eq!(problems.len(), usize::from(is_bfcl), "{name}, {language}, {way}: {problems:?}");
                let is_known =
                    |problem: &String| problem.contains("_173: ") && problem.contains("`ticket_id`");
                assert!(problems.iter().all(is_known), "{name}, {language}, {way}: {problems:?}");
            }
        }
        measured += 1;
    }
    assert_eq!(measured, 7, "benchmarks");
}

/// Up to how many tokens of definitions `"mode": "auto"` shows all tools.
#[test]
fn the_bound_of_the_mode_auto_is_the_measured_break_even() {
    let figures = figures("base.json");
    let size = |entry: &Value| {
        let of = |name: &str| entry["definitions"][name].as_f64().unwrap();
        of("involved") / of("involvedTools")
    };
    let mut sizes: Vec<f64> = figures["entries"].as_array().unwrap().iter().map(size).collect();
    sizes.sort_by(f64::total_cmp);
    let break_even = &figures["summary"]["typescript, discovery search"]["break-even, tools"];
    let measured = break_even.as_f64().unwrap() * sizes[sizes.len() / 2];
    let source = read(Path::new("src/server/shown.rs"));
    let (_, bound) = source.split_once("const AUTO_TOKENS: usize = ").unwrap();
    let bound: u64 = bound.split(';').next().unwrap().replace('_', "").parse().unwrap();
    let share = bound as f64 / measured;
    assert!((share - 1.0).abs() < 0.05, "{bound} tokens, and {measured} are measured");
    let said = format!("fewer than {} tokens", with_commas(bound));
    assert!(read(Path::new("docs/serving.md")).contains(&said), "docs/serving.md does not say {said}");
}

/// `chart.py` draws the charts from the same figures.
#[test]
fn the_charts_are_those_of_the_measurement() {
    let directory = tempfile::tempdir().unwrap();
    let script = root().join("benches/agents/chart.py");
    let drawn = Command::new("python3").arg(script).arg(directory.path()).output().unwrap();
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    for name in ["agents-break-even.svg", "agents-entries.svg", "agents-recorded.svg"] {
        let new = fs::read_to_string(directory.path().join(name)).unwrap();
        let is_same = new == read(&Path::new("docs").join(name));
        assert!(is_same, "docs/{name} is not what benches/agents/chart.py draws");
    }
}

/// The options and the commands that `cx WORDS --help` names.
fn help(words: &[String]) -> (BTreeSet<String>, Vec<String>) {
    let output = Command::new(env!("CARGO_BIN_EXE_cx")).args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // `  -e, --eval <CODE>` and `      --json`; descriptions are further to the right.
    let option = |line: &str| {
        let start = line.trim_start();
        let is_option = start.starts_with('-') && line.len() - start.len() <= 6;
        let name = start.split_once("--").filter(|_| is_option)?.1;
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        Some(format!("--{}", &name[..end.unwrap_or(name.len())]))
    };
    let commands = text.split_once("\nCommands:\n").map_or("", |(_, commands)| commands);
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let commands = commands.filter_map(|line| line.strip_prefix("  ").filter(|name| !name.starts_with(' ')));
    let commands = commands.filter_map(|line| line.split_whitespace().next());
    let commands = commands.filter(|name| *name != "help").map(str::to_owned).collect();
    (text.lines().filter_map(option).collect(), commands)
}

/// Whether a text has an option, and not only a longer one that begins with it.
fn has_option(text: &str, option: &str) -> bool {
    text.match_indices(option).any(|(at, _)| {
        !text[at + option.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '-')
    })
}

#[test]
fn every_option_of_a_command_is_in_a_page() {
    // `-e` is how it is written, and the others are those of every command.
    let left_out = set(["--eval", "--help", "--version"]);
    let pages: String = files("docs", ".md").iter().map(|page| read(page)).collect();
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    let mut checked = 0;
    while let Some(words) = waiting.pop() {
        let (options, commands) = help(&words);
        for option in options.difference(&left_out) {
            assert!(has_option(&pages, option), "cx {}: no page has {option}", words.join(" "));
            checked += 1;
        }
        waiting.extend(commands.into_iter().map(|command| {
            let mut words = words.clone();
            words.push(command);
            words
        }));
    }
    assert!(checked > 100, "{checked} options");
    // The tables of the two commands with the most options.
    for (command, page, heading) in
        [("run", "docs/command.md", "## cx run"), ("serve", "docs/serving.md", "# Serving agents")]
    {
        let text = section(page, heading);
        let (options, _) = help(&[command.to_owned()]);
        for option in options.difference(&left_out) {
            assert!(has_option(&text, option), "{page}: {heading} has no {option}");
        }
    }
}

/// Where the generated part of a page begins.
const MARK: &str = "<!-- Written by the test `the_page_of_keys_is_written_from_the_schema`. -->\n";

/// The generated part of `docs/config-keys.md`.
#[test]
fn the_page_of_keys_is_written_from_the_schema() {
    let schema = schema();
    let mut text = String::new();
    table(&mut text, "At the top level", &schema, &schema["properties"], "");
    for (key, value) in schema["properties"].as_object().unwrap() {
        if value["properties"].is_object() {
            table(
                &mut text,
                &format!("`{key}`"),
                &schema,
                &value["properties"],
                value["description"].as_str().unwrap_or_default(),
            );
        }
    }
    let server = &schema["$defs"]["server"]["properties"];
    table(&mut text, "A server: `mcpServers.NAME`", &schema, server, "With `command` or `url`.");
    for (key, value) in server.as_object().unwrap() {
        if value["properties"].is_object() {
            table(&mut text, &format!("`mcpServers.NAME.{key}`"), &schema, &value["properties"], "");
        }
    }
    let page = "docs/config-keys.md";
    let old = read(Path::new(page));
    let (head, _) = old.split_once(MARK).unwrap_or_else(|| panic!("{page} has no {MARK}"));
    let new = format!("{head}{MARK}\n{}\n", text.trim());
    check_page(page, &new, "what config.schema.json says");
}

fn table(text: &mut String, title: &str, schema: &Value, properties: &Value, description: &str) {
    let _ = write!(text, "## {title}\n\n");
    if !description.is_empty() {
        let _ = write!(text, "{description}\n\n");
    }
    let _ = writeln!(text, "| key | value | default | |\n|---|---|---|---|");
    for (key, value) in properties.as_object().unwrap() {
        let resolved = resolve(schema, value);
        let default = value.get("default").map(|default| format!("`{default}`")).unwrap_or_default();
        let said = value["description"].as_str().unwrap_or_default();
        let kind = kind(schema, &resolved);
        // A `<` would begin a tag.
        let said = said.replace('|', "\\|").replace('<', "\\<");
        let cells = [format!("`{key}`"), kind, default, said].map(|cell| match cell.as_str() {
            "" => " ".to_owned(),
            cell => format!(" {cell} "),
        });
        let _ = writeln!(text, "|{}|", cells.join("|"));
    }
    text.push('\n');
}

/// A schema together with the one that its `$ref` names.
fn resolve(schema: &Value, value: &Value) -> Value {
    let Some(reference) = value["$ref"].as_str() else { return value.clone() };
    let target = schema.pointer(reference.trim_start_matches('#'));
    let mut resolved = target.unwrap_or_else(|| panic!("no {reference}")).clone();
    for (key, own) in value.as_object().unwrap() {
        resolved[key] = own.clone();
    }
    resolved
}

/// The type of a value, in a few words.
fn kind(schema: &Value, value: &Value) -> String {
    if let Some(words) = value["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_str().unwrap())).collect();
        return words.join(", ");
    }
    let kinds: Vec<&str> = match &value["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        // `mcpServers` is an object, or the array of another program.
        _ => vec!["object"],
    };
    match kinds[0] {
        "array" => {
            let items = resolve(schema, &value["items"]);
            if items["enum"].is_array() {
                return format!("list of {}", kind(schema, &items));
            }
            if items["anyOf"].is_array() {
                "list of patterns or words".to_owned()
            } else {
                "list of texts".to_owned()
            }
        }
        "integer" => {
            let bound = |field: &str| value[field].as_u64().map(with_commas);
            match (bound("minimum"), bound("maximum")) {
                (Some(least), Some(most)) => format!("{least} to {most}"),
                _ => "integer".to_owned(),
            }
        }
        "boolean" => "`true`, `false`".to_owned(),
        "string" => "text".to_owned(),
        kind => kind.to_owned(),
    }
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
