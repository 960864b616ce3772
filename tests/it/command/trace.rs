//! Traces of runs: pages, in a real browser, and files for Perfetto.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cx::{Executor, ProviderKind, RunTrace, Script};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::chaos;
use crate::support::own_files;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::serve::{Start, WATCHDOG};
use crate::support::serve_http::wait_for;
use crate::support::ui::browse;

const HOSTILE: &str =
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u{202e}";

fn run(directory: &Path, arguments: &[&str]) -> Output {
    chaos::configure_well(directory);
    own_files(&mut Command::new(env!("CARGO_BIN_EXE_cx")), directory)
        .args(["run", "--mcp-config", "mcp.json"])
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs a script with a trace in a file of this name, and returns the file.
fn traced(directory: &Path, name: &str, source: &str) -> PathBuf {
    fs::write(directory.join("report.ts"), source).unwrap();
    let output = run(directory, &["report.ts", "--trace", name]);
    let path = directory.join(name);
    assert!(path.is_file(), "{output:?}");
    path
}

fn chromium(arguments: &[&str], page: &Path) -> Output {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output();
    output.expect("chromium is missing: tests/interop/install.sh installs Debian's")
}

fn source() -> String {
    let hostile = serde_json::to_string(HOSTILE).unwrap();
    format!(
        "const hostile = {hostile};
        console.log(hostile); console.error('</code></li></ol>' + hostile);
        await Promise.all([1, 2, 3].map((ms) => tools.well.slow({{ ms: ms * 200 }})));
        await callMCPTool('mcp__well__' + hostile, {{}}).catch(() => {{}});
        await tools.well.fail({{}}).catch(() => {{}});
        throw new Error(hostile);"
    )
}

#[test]
fn a_page_of_a_trace_shows_the_run_and_runs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let page = traced(directory.path(), "trace.html", &source());
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let dom = String::from_utf8(chromium(&["--dump-dom"], &page).stdout).unwrap();
    assert!(dom.contains("<title>report.ts: cx run</title>"), "{dom}");
    // In text and in attributes, what could begin an element is written as `&lt;`.
    for element in ["<script", "<img", "<iframe", "<link"] {
        assert!(!dom.to_lowercase().contains(element), "{element}: {dom}");
    }
    // The text is there, as text, and characters that would reverse its direction are written out.
    assert!(dom.matches("&lt;script&gt;document.title='owned'").count() >= 4, "{dom}");
    assert!(!dom.contains('\u{202e}') && dom.contains("\\u{202e}"), "{dom}");
    // Waterfall: each call once, in a summary that the keyboard reaches, with its outcome.
    assert_eq!(dom.matches("<details><summary>").count(), 5, "{dom}");
    for part in
        ["<b>well.slow</b>", "<b>well.fail</b>", "TOOL_ERROR", "TOOL_NOT_FOUND", "RUNTIME_ERROR after"]
    {
        assert!(dom.contains(part), "{part}: {dom}");
    }
    // Where the time went.
    for row in ["waiting to run", "CPU", "calls in flight", "approval prompts"] {
        assert!(dom.contains(&format!("<dt>{row}</dt>")), "{row}: {dom}");
    }
    // The line of the error is marked, and the top of the page links to it.
    assert!(
        dom.contains("<a href=\"#L6\">line 6</a>") && dom.contains("<li id=\"L6\" class=\"at\">"),
        "{dom}"
    );
    // Every section has a name for screen readers, and every area that scrolls can be reached by keys.
    let sections = dom.matches("<section ").count();
    assert_eq!(dom.matches("<section aria-labelledby=\"").count(), sections);
    assert!(sections >= 5 && dom.contains("<html lang=\"en\">") && dom.contains("<main>"));
    assert_eq!(dom.matches("class=\"text ").count(), dom.matches("tabindex=\"0\"").count());
}

#[test]
fn a_page_of_a_trace_is_drawn_in_light_and_dark_and_on_a_phone() {
    let directory = tempfile::tempdir().unwrap();
    let page = traced(directory.path(), "trace.html", &source());
    let shot = |name: &str, arguments: &[&str]| {
        let file = directory.path().join(name);
        let screenshot = format!("--screenshot={}", file.display());
        let arguments: Vec<&str> = arguments.iter().copied().chain([&*screenshot]).collect();
        let output = chromium(&arguments, &page);
        fs::read(&file).unwrap_or_else(|error| panic!("{name}: {error}: {output:?}"))
    };
    let light = shot("light.png", &["--window-size=1200,1000"]);
    let dark = shot("dark.png", &["--window-size=1200,1000", "--blink-settings=preferredColorScheme=0"]);
    let phone = shot("phone.png", &["--window-size=500,1400"]);
    for picture in [&light, &dark, &phone] {
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 20_000, "{} bytes", picture.len());
    }
    assert_ne!(light, dark);
}

/// On a phone's screen nothing is wider than the screen, however long names and texts are.
#[test]
fn a_page_of_a_trace_is_no_wider_than_a_phone() {
    let directory = tempfile::tempdir().unwrap();
    let long = "x".repeat(300);
    let source = format!(
        "console.log('{long}');
        await tools.well.echo({{ text: '{long}' }});
        await callMCPTool('mcp__well__{long}', {{}}).catch(() => {{}});
        throw new Error('{long}');"
    );
    let page = traced(directory.path(), "trace.html", &source);
    let picture = directory.path().join("phone.png");
    browse(
        &format!("file://{}", page.display()),
        &json!([
            { "wait": "document.title.endsWith('cx run')" },
            { "picture": picture.display().to_string(), "width": 390, "height": 1400 },
            { "wait": "document.documentElement.scrollWidth <= 390" },
        ]),
    );
    assert!(fs::read(picture).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn a_trace_for_perfetto() {
    let directory = tempfile::tempdir().unwrap();
    let file = traced(directory.path(), "trace.json", &source());
    let trace: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    for span in &spans {
        assert!(span["ts"].is_number() && span["dur"].as_f64().unwrap() >= 0.0, "{span}");
    }
    let calls: Vec<&&Value> = spans.iter().filter(|span| span["cat"] == "call").collect();
    assert_eq!(calls.len(), 5);
    // Calls at the same time are in their own lanes.
    let slow = calls.iter().filter(|call| call["name"] == "well.slow");
    let lanes: std::collections::BTreeSet<i64> = slow.map(|call| call["tid"].as_i64().unwrap()).collect();
    assert_eq!(lanes.len(), 3);
    let run = spans.iter().find(|span| span["cat"] == "run").unwrap();
    assert_eq!(run["args"]["outcome"], "RUNTIME_ERROR");
    assert_eq!(run["args"]["line"], 6);
    assert_eq!(events.iter().filter(|event| event["cat"] == "output").count(), 2);
    // A file name without a known extension is an error before anything runs.
    let output = run_fails(directory.path());
    assert!(output.contains("ends with .html") && !output.contains("ran"), "{output}");
}

fn run_fails(directory: &Path) -> String {
    let output = run(directory, &["-e", "console.log('ran')", "--trace", "trace.txt"]);
    assert_eq!(output.status.code(), Some(2));
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A directory that belongs to another user: root gives one away, others take one of the system.
#[test]
fn traces_are_not_written_for_another_user() {
    let directory = tempfile::tempdir().unwrap();
    let given_away = directory.path().join("traces");
    fs::create_dir(&given_away).unwrap();
    fs::set_permissions(&given_away, fs::Permissions::from_mode(0o755)).unwrap();
    let is_given = std::os::unix::fs::chown(&given_away, Some(65_534), None).is_ok();
    let traces = if is_given { given_away } else { PathBuf::from("/usr") };
    let argument = traces.display().to_string();
    let (mut command, _directory) = Start::new().arguments(&["--traces", &argument]).command();
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("this directory belongs to another user"), "{error}");
}

#[test]
fn a_server_keeps_the_last_traces() {
    let directory = tempfile::tempdir().unwrap();
    let traces = directory.path().join("traces");
    let pages = || -> Vec<PathBuf> {
        let entries = fs::read_dir(&traces).into_iter().flatten();
        let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        pages.sort();
        pages
    };
    fs::create_dir(&traces).unwrap();
    fs::set_permissions(&traces, fs::Permissions::from_mode(0o700)).unwrap();
    for number in 0..205 {
        fs::write(traces.join(format!("run-{number:013}-old.html")), "old").unwrap();
    }
    fs::write(traces.join("mine.html"), "of the user").unwrap();
    let argument = traces.display().to_string();
    let mut client = Start::new().arguments(&["--traces", &argument]).spawn().shaken();
    client.run("console.log('kept'); return 7");
    let began = Instant::now();
    while pages().len() != 201 {
        assert!(began.elapsed() < WATCHDOG, "{} files", pages().len());
        std::thread::sleep(Duration::from_millis(10));
    }
    client.run("return 8");
    client.end();
    let kept = pages();
    assert_eq!(kept.len(), 201, "200 and the user's own");
    assert!(traces.join("mine.html").is_file() && !traces.join("run-0000000000006-old.html").exists());
    let last = kept.last().unwrap();
    assert_eq!(fs::metadata(last).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(last).unwrap().contains("return 8"));
    // A directory that others can write to is refused.
    fs::set_permissions(&traces, fs::Permissions::from_mode(0o777)).unwrap();
    let (mut command, _directory) = Start::new().arguments(&["--traces", &argument]).command();
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("others may write"), "{output:?}");
}

/// Questions to models may take most of a run's time: the waterfall shows them like calls.
#[test]
fn questions_to_models_are_in_a_trace() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
        "fails" => Reply::Status(500, "", "no".to_owned()),
        _ => Reply::Text("fine".to_owned()),
    });
    let traces = Arc::<Mutex<Vec<RunTrace>>>::default();
    let kept = Arc::clone(&traces);
    let executor = Executor::builder()
        .llm(provider.options())
        .warm_instances(1)
        .on_trace(move |trace| kept.lock().push(trace))
        .build()
        .unwrap();
    let source = "await llm.ask('works', { model: 'small', maxTokens: 9 });
        await llm.ask('fails', { maxTokens: 9 }).catch(() => 0);
        return 1";
    assert_eq!(executor.run_blocking(Script::typescript(source)).unwrap().error(), None);
    futures::executor::block_on(executor.close());
    let traces = traces.lock();
    let [trace] = &traces[..] else { panic!("{traces:?}") };
    let calls: Vec<_> = trace
        .calls
        .iter()
        .map(|call| (call.number, &*call.server, &*call.tool, call.status, call.is_error, call.result_bytes))
        .collect();
    let expected =
        [(1, "llm", "small", "ok", false, "fine".len()), (2, "llm", "fake-model", "MODEL_ERROR", true, 0)];
    assert_eq!(calls, expected);
    assert!(trace.calls.iter().all(|call| call.sent.is_some() && call.argument_bytes > 0), "{traces:?}");
}

/// All kept traces together are at most 256 MB.
#[test]
fn the_traces_of_a_server_are_bounded_in_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let traces = directory.path().join("traces");
    fs::create_dir(&traces).unwrap();
    fs::set_permissions(&traces, fs::Permissions::from_mode(0o700)).unwrap();
    for number in 0..4 {
        // Holes take no space on the disk.
        let file = fs::File::create(traces.join(format!("run-{number:013}-old.html"))).unwrap();
        file.set_len(100 << 20).unwrap();
    }
    let argument = traces.display().to_string();
    let mut client = Start::new().arguments(&["--traces", &argument]).spawn().shaken();
    client.run("return 7");
    let kept = wait_for(|| {
        let entries = fs::read_dir(&traces).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        (names.len() == 3).then_some(names)
    });
    assert_eq!(kept[..2], ["run-0000000000002-old.html", "run-0000000000003-old.html"]);
    assert!(!kept[2].ends_with("-old.html"), "{kept:?}");
    client.end();
}
