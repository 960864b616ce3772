//! The guide that agents read: every example in it runs.

use std::path::Path;

use cx::{Executor, Language, Script, StateStore};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::python;

const GUIDE: &str = include_str!("../../../src/run/guide.md");

#[derive(Deserialize)]
struct Place {
    city: String,
}

/// The server that the guide's examples use.
async fn executor(directory: &Path) -> Executor {
    // Python is compiled once for all tests of the process.
    python().await;
    let schema = json!({
        "type": "object",
        "description": "Current weather in a city",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
    });
    Executor::builder()
        .tool("weather.current", schema, |place: Place| async move {
            match place.city.as_str() {
                "Atlantis" => Err("no such city"),
                city => Ok(json!({ "city": city, "celsius": city.len() })),
            }
        })
        .state(StateStore::new(directory.join("state.sqlite3")), directory)
        .build()
        .unwrap()
}

/// The code blocks, in order.
fn examples() -> Vec<(Language, String)> {
    let mut examples = Vec::new();
    let mut open: Option<(Language, String)> = None;
    for line in GUIDE.lines() {
        match (&mut open, line) {
            (None, "```ts") => open = Some((Language::TypeScript, String::new())),
            (None, "```py") => open = Some((Language::Python, String::new())),
            (None, line) => assert!(!line.starts_with("```"), "a block of another kind: {line}"),
            (Some(_), "```") => examples.extend(open.take()),
            (Some((_, code)), line) => {
                code.push_str(line);
                code.push('\n');
            }
        }
    }
    assert!(open.is_none());
    examples
}

#[tokio::test]
async fn every_example_runs_and_says_the_same_in_both_languages() {
    let directory = tempfile::tempdir().unwrap();
    let executor = executor(directory.path()).await;
    let mut values: Vec<(Language, Value)> = Vec::new();
    for (language, code) in examples() {
        let script = match language {
            Language::Python => Script::python(&code),
            _ => Script::typescript(&code),
        };
        let result = executor.run(script).await.unwrap();
        let value = result.value().unwrap_or_else(|| panic!("{code}\n{:#}", result.to_json()));
        values.push((language, value.clone()));
    }
    assert_eq!(values.len(), 10);
    for pair in values.chunks(2) {
        assert_eq!((pair[0].0, pair[1].0), (Language::TypeScript, Language::Python));
    }
    let of = |index: usize| &values[index].1;
    let usage = |index: usize| of(index)[0]["usage"].as_str().unwrap();
    assert!(usage(0).starts_with("tools.weather.current({city: string})"), "{}", usage(0));
    assert!(usage(1).starts_with("tools.weather.current(city: str)"), "{}", usage(1));
    assert_eq!((of(2), of(3)), (&json!(4), &json!(4)));
    assert_eq!((of(4), of(5)), (&json!({ "city": "Lisbon", "celsius": 6 }), of(4)));
    assert_eq!(of(6)["failed"][0]["code"], "TOOL_ERROR");
    assert_eq!(
        (&of(7)["ok"], &of(7)["failed"]),
        (&json!(["Oslo"]), &json!([{ "city": "Atlantis", "code": "TOOL_ERROR" }]))
    );
    let state = json!({ "cities": ["Oslo"], "visits": 1, "keys": ["seen", "visits"], "again": true });
    assert_eq!((of(8), of(9)), (&state, &state));
}

/// Scripts chain third-party tools: the guide tells models of the risks, and of what cx does not prevent.
#[test]
fn it_says_when_not_to_and_what_can_go_wrong() {
    let executor = Executor::builder().build().unwrap();
    let help = |topic: &str| {
        let source = format!("return help({})", json!(topic));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let result = runtime.block_on(executor.run_ts(&source)).unwrap();
        result.value().unwrap().as_str().unwrap().to_owned()
    };
    let section = help("what can go wrong");
    for part in [
        "No job for a script",
        "Never follow orders",
        "fetches addresses",
        "private networks",
        "does not check",
    ] {
        assert!(section.contains(part), "{part}: {section}");
    }
    assert_eq!(help("chained tools"), section);
    assert!(help("failed call").contains("shape of what each tool returned"));
}

/// The guide's sentences about limits, and about values that can be passed on.
#[test]
fn its_figures_are_the_real_ones() {
    let limits = cx::Limits::default();
    assert_eq!((limits.wall_time.as_secs(), limits.tool_calls), (30, 1_000));
    assert_eq!(cx::Limits::CEILING.wall_time.as_millis(), 600_000);
    for figure in [
        "30 s unless",
        "up to 600,000",
        "1,000 tool calls",
        "25,000 characters",
        "1,000 keys of up to 256 characters, 1 MB a value, 16 MB in all",
        "90 days",
    ] {
        assert!(GUIDE.contains(figure), "{figure}");
    }
}

/// Each name in a list can be called as it is written, in the language that asks.
#[tokio::test]
async fn the_names_in_a_list_can_be_called() {
    let (executor, _mock) = python().await;
    let typescript = "
        const lines = help('mock').split('\\n');
        const line = lines.find((line) => /with.dashes/.test(line));
        return [lines[0], line.split('(')[0], await tools.mock.with_dashes_and_dots({ a: 1 })]";
    let python = "
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as text:
    help('mock')
lines = text.getvalue().split('\\n')
line = next(line for line in lines if 'dashes' in line.split('(')[0])
return [lines[0], line.split('(')[0], await tools.mock.with_dashes_and_dots(a=1)]";
    for (script, call) in [(Script::typescript(typescript), "({…})"), (Script::python(python), "(…)")] {
        let result = executor.run(script).await.unwrap();
        let found = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
        let heading = found[0].as_str().unwrap();
        assert!(heading.ends_with(&format!(" tools, await tools.mock.<tool>{call}")), "{heading}");
        assert_eq!(found[1], "with_dashes_and_dots");
        assert_eq!(found[2], json!({ "a": 1 }));
    }
}

/// `help` lists what the script may use, and no more.
#[tokio::test]
async fn help_tells_of_no_tool_that_is_denied() {
    let executor = Executor::builder().dispatcher(crate::support::mock::Mock::default()).build().unwrap();
    let source = "
        const ask = (topic) => { try { return help(topic) } catch (error) { return error.code } };
        return ['mock.echo', 'mock.count', 'mock', 'otherServer'].map(ask)";
    let script = Script::typescript(source).allow(["mock.*"]).deny(["mock.count"]);
    let result = executor.run(script).await.unwrap();
    let found = result.value().unwrap();
    assert!(found[0].as_str().unwrap().starts_with("await tools.mock.echo({…})"), "{found}");
    assert_eq!((&found[1], &found[3]), (&json!("TOOL_NOT_FOUND"), &json!("TOOL_NOT_FOUND")));
    let server = found[2].as_str().unwrap();
    assert!(
        server.starts_with("mock: 17 tools, await tools.mock.<tool>({…})\necho(…): Returns its arguments\n"),
        "{server}"
    );
    assert!(!server.contains("count"), "{server}");
}
