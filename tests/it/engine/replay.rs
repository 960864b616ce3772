//! Recordings: a run is repeated without its host, with what it got from it.

use std::fs;

use cx::{Executor, Language, Limits, ProviderKind, Recording, RecordingError, Script, StateStore};
use serde_json::{Value, json};

use crate::support::mock::Mock;
use crate::support::provider::{FakeProvider, Reply};
use crate::support::python;
use crate::support::script_suite::{language_of, scripts, snapshot, without_times};

/// Scripts whose replay differs, with the reason.
const EXCLUDED: &[(&str, &str)] = &[];

/// The result as JSON, without times and measurements.
fn comparable(result: &cx::ExecuteResult) -> Value {
    let mut report = result.to_json();
    report.as_object_mut().unwrap().remove("executionTimeMs");
    report
}

/// Every script of the suite is recorded, and replayed by an executor that has no server: the recording as it
/// is to the byte, and as a file.
#[tokio::test(flavor = "multi_thread")]
async fn every_script_replays() {
    python().await;
    let directory = tempfile::tempdir().unwrap();
    let store = StateStore::new(directory.path().join("state.sqlite3"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for language in [Language::TypeScript, Language::Python] {
        let alone = Executor::builder().languages([language]).build().unwrap();
        for path in scripts().into_iter().filter(|path| language_of(path) == language) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let source = fs::read_to_string(&path).unwrap();
            let script = match language {
                Language::Python => Script::python(source),
                _ => Script::typescript(source),
            };
            // An executor for each script, because an executor learns what tools return.
            let executor = Executor::builder()
                .dispatcher(Mock::default())
                .languages([language])
                .state(store.clone(), directory.path())
                .build()
                .unwrap();
            let script = script.session(name.as_str()).input(json!({ "n": 7, "list": [1, 2] }));
            let (result, recording) = executor.record(script).await.unwrap();
            let recording = recording.unwrap();
            count += 1;
            if without_times(&result) != snapshot(&path) {
                wrong.push(format!("{name} is recorded as {}", without_times(&result)));
            }
            if EXCLUDED.iter().any(|(excluded, _)| *excluded == name) {
                continue;
            }
            let replay = alone.replay(&recording).await.unwrap();
            if let Some(difference) = &replay.difference {
                wrong.push(format!("{name}: {difference}"));
            } else if comparable(&replay.result) != comparable(&result) {
                wrong.push(format!("{name}: {} {}", comparable(&replay.result), comparable(&result)));
            }
            let read = Recording::parse(&recording.to_text()).unwrap();
            let replay = alone.replay(&read).await.unwrap();
            if let Some(difference) = &replay.difference {
                wrong.push(format!("{name}, from its file with {} masks: {difference}", read.masked()));
            } else if read.masked() == 0 && comparable(&replay.result) != comparable(&result) {
                wrong.push(format!("{name}, from its file: {}", comparable(&replay.result)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 500, "only {count} scripts were found");
}

/// A recording of a script with the mock server.
async fn record(script: Script, language: Language) -> (cx::ExecuteResult, Recording) {
    if language == Language::Python {
        python().await;
    }
    let executor = Executor::builder().dispatcher(Mock::default()).languages([language]).build().unwrap();
    let (result, recording) = executor.record(script).await.unwrap();
    (result, recording.unwrap())
}

/// A replay by an executor without servers, of the recording's file.
async fn replay(recording: &Recording, edit: impl FnOnce(Script) -> Script) -> cx::Replay {
    let executor = Executor::builder().languages([recording.language()]).build().unwrap();
    let read = Recording::parse(&recording.to_text()).unwrap();
    executor.replay_with(&read, edit).await.unwrap()
}

async fn same(script: Script, language: Language) -> cx::ExecuteResult {
    let (result, recording) = record(script, language).await;
    let replay = replay(&recording, |script| script).await;
    assert_eq!(replay.difference, None);
    assert_eq!(comparable(&replay.result), comparable(&result));
    result
}

const CLOCKS_TS: &str = r#"
const seen = [];
const start = Date.now();
setTimeout(() => seen.push("b"), 12);
setTimeout(() => seen.push("a"), 3);
const interval = setInterval(() => seen.push("i"), 5);
const cleared = setTimeout(() => seen.push("never"), 1);
clearTimeout(cleared);
await Promise.all([1, 9, 4].map(async (ms) => { await tools.mock.sleep({ ms }); seen.push(ms); }));
await new Promise((resolve) => setTimeout(resolve, 25));
clearInterval(interval);
while (Date.now() - start < 60) {}
const bytes = crypto.getRandomValues(new Uint8Array(8));
console.log(new Date(), Date(), performance.now(), new Intl.DateTimeFormat("en", { timeStyle: "long" }).format());
return { seen, random: Math.random(), id: crypto.randomUUID(), bytes: [...bytes], took: Date.now() - start,
    zoned: Temporal.Now.instant().toString() };
"#;

const CLOCKS_PY: &str = r#"
import asyncio, datetime, os, random, secrets, time, uuid
seen = []
start = time.time()
async def one(ms):
    await tools.mock.sleep(ms=ms)
    seen.append(ms)
async def ticks():
    while True:
        await asyncio.sleep(0.004)
        seen.append("i")
ticking = asyncio.create_task(ticks())
await asyncio.gather(*[one(ms) for ms in (1, 9, 4)])
time.sleep(0.02)
ticking.cancel()
while time.time() - start < 0.06:
    pass
print(datetime.datetime.now(), time.monotonic(), time.perf_counter_ns())
{"seen": seen, "random": random.random(), "id": str(uuid.uuid4()), "bytes": list(os.urandom(8)),
 "token": secrets.token_hex(4), "set": list({"a", "b", "c"}), "took": time.time() - start, "object": id(seen)}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn time_and_chance_are_those_of_the_recorded_run() {
    let first = same(Script::typescript(CLOCKS_TS), Language::TypeScript).await;
    let second = same(Script::typescript(CLOCKS_TS), Language::TypeScript).await;
    assert_ne!(first.value().unwrap()["random"], second.value().unwrap()["random"]);
    let seen = first.value().unwrap()["seen"].to_string();
    assert!(!seen.contains("never") && seen.contains("\"b\""), "{seen}");
    let first = same(Script::python(CLOCKS_PY), Language::Python).await;
    let second = same(Script::python(CLOCKS_PY), Language::Python).await;
    assert_ne!(first.value().unwrap()["random"], second.value().unwrap()["random"]);
}

/// A replay waits for nothing: neither for tools nor for timers.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_does_not_sleep() {
    let source = "await new Promise((resolve) => setTimeout(resolve, 15_000)); return Date.now()";
    let (result, recording) = record(Script::typescript(source), Language::TypeScript).await;
    assert!(result.usage.wall_time.as_millis() >= 15_000);
    let replay = replay(&recording, |script| script).await;
    assert_eq!(replay.difference, None);
    // One that waited would take at least as long.
    assert!(replay.result.usage.wall_time.as_millis() < 15_000, "{:?}", replay.result.usage);
}

/// The timer of a signal keeps a script that listens to it, and nothing else does.
#[tokio::test(flavor = "multi_thread")]
async fn signals_with_a_time_replay() {
    let source = "
        const aborted = (signal) => new Promise((done) => {
            signal.addEventListener('abort', () => done(signal.reason.name));
        });
        const listener = () => {};
        const never = AbortSignal.timeout(1e6);
        never.addEventListener('abort', listener);
        never.removeEventListener('abort', listener);
        return [await aborted(AbortSignal.timeout(5)), await aborted(AbortSignal.any([AbortSignal.timeout(5)]))]";
    let result = same(Script::typescript(source), Language::TypeScript).await;
    assert_eq!(result.value(), Some(&json!(["TimeoutError", "TimeoutError"])), "{}", result.to_json());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_stopped_while_it_waited_replays() {
    let limits = Limits { wall_time: std::time::Duration::from_secs(8), ..Limits::default() };
    for (script, language) in [
        (
            Script::typescript("console.log('a'); await tools.mock.echo({}); await tools.mock.hang({})"),
            Language::TypeScript,
        ),
        (Script::python("print('a')\nawait tools.mock.echo()\nawait tools.mock.hang()"), Language::Python),
    ] {
        let result = same(script.limits(limits), language).await;
        assert_eq!(result.error().unwrap().code, cx::ErrorCode::Timeout);
    }
}

/// What asks the host to end a call, or gives it a time, is no call, so that recordings from before there was such a
/// request replay too.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_call_is_not_recorded() {
    for call in [
        "await asyncio.wait_for(tools.mock.hang(), timeout=0.5)",
        "await tools.mock.hang({}, {'timeout': 0.5})",
        "call_mcp_tool_sync('mcp__mock__hang', {}, {'timeout': 0.5})",
    ] {
        let source = format!(
            "import asyncio
await tools.mock.echo()
try:
    {call}
except (TimeoutError, McpToolError) as error:
    print('late', error)
await tools.mock.echo()"
        );
        let (result, recording) = record(Script::python(source), Language::Python).await;
        let text = recording.to_text();
        assert!(!text.contains("cancelCall") && !text.contains("limitCall"), "{text}");
        assert!(result.to_json().to_string().contains("late "), "{}", result.to_json());
        let replay = replay(&recording, |script| script).await;
        assert_eq!(replay.difference, None);
        assert_eq!(comparable(&replay.result), comparable(&result));
    }
}

/// A difference of an edited script is named by the number of its call.
#[tokio::test(flavor = "multi_thread")]
async fn a_difference_names_the_call() {
    for (language, source, edited) in [
        (
            Language::TypeScript,
            "const a = await tools.mock.echo({ n: 1 }); return await tools.mock.echo({ n: a.n + 1 })",
            "const a = await tools.mock.echo({ n: 1 }); return await tools.mock.echo({ n: a.n + 2 })",
        ),
        (
            Language::Python,
            "a = await tools.mock.echo(n=1)\nreturn await tools.mock.echo(n=a['n'] + 1)",
            "a = await tools.mock.echo(n=1)\nreturn await tools.mock.echo(n=a['n'] + 2)",
        ),
    ] {
        let script = match language {
            Language::Python => Script::python(source),
            _ => Script::typescript(source),
        };
        let (_, recording) = record(script, language).await;
        let replay = replay(&recording, |script| script.source_text(edited)).await;
        let difference = replay.difference.unwrap();
        assert_eq!(difference.call, Some(2));
        let shown = difference.to_string().replace(' ', "");
        assert!(shown.contains(r#"expectedmock.echowith{"n":2};gotmock.echowith{"n":3}"#), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_script_gets_the_old_answers() {
    let source = "const a = await tools.mock.echo({ n: 1 }); return a.n";
    let (_, recording) = record(Script::typescript(source), Language::TypeScript).await;
    // Nothing that is compared differs: clocks, timers and the order of keys are the script's own.
    let edited = "const t = Date.now(); await new Promise((r) => setTimeout(r, 5000));\n\
        const a = await tools.mock.echo({ n: 1 }); return Date.now() - t >= 5000 ? a.n : t";
    let replayed = replay(&recording, |script| script.source_text(edited)).await;
    assert_eq!(replayed.difference, None, "{:?}", replayed.result.outcome);
    for (edited, expected) in [
        (
            "const a = await tools.mock.echo({ n: 1 }); return a.n + 1",
            "the outcome: expected the value 1; got the value 2",
        ),
        ("return 1", "call 1: expected mock.echo with {\"n\":1}; got the end of the script: the value 1"),
        (
            "const a = await tools.mock.echo({ n: 1 }); await tools.mock.count(); return a.n",
            "call 2: expected no further call; got mock.count with {}",
        ),
    ] {
        let replay = replay(&recording, |script| script.source_text(edited)).await;
        assert_eq!(replay.difference.unwrap().to_string(), expected);
    }
}

/// A replay does not reach anything that the executor has.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_reaches_no_tool() {
    let source = "const a = await tools.mock.echo({ n: 1 }); return a.n";
    let (_, recording) = record(Script::typescript(source), Language::TypeScript).await;
    let mock = Mock::default();
    let executor =
        Executor::builder().dispatcher(mock.clone()).languages([Language::TypeScript]).build().unwrap();
    let edited =
        "try { await tools.mock.count() } catch {} await tools.mock.count(); callMCPToolSync; return 1";
    let replay = executor.replay_with(&recording, |script| script.source_text(edited)).await.unwrap();
    assert!(replay.difference.is_some());
    assert_eq!(executor.replay(&recording).await.unwrap().difference, None);
    assert_eq!(mock.calls.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_in_the_file_and_replay_as_masks() {
    const TOKEN: &str = "ghp_0123456789abcdefghij";
    let source = "const r = await tools.mock.echo({ token: input.token, password: 'correct horse' });\n\
        console.log(`got ${r.token}`); return await tools.mock.echo({ again: r.token })";
    let script = Script::typescript(source).input(json!({ "token": TOKEN }));
    let (result, recording) = record(script, Language::TypeScript).await;
    assert!(result.printed().contains(TOKEN));
    let text = recording.to_text();
    assert!(!text.contains(TOKEN) && !text.contains("correct horse"), "{text}");
    let replayed = replay(&recording, |script| script).await;
    assert_eq!(replayed.difference, None);
    assert!(replayed.result.printed().starts_with("got ***"), "{}", replayed.result.printed());
    let read = Recording::parse(&text).unwrap();
    assert_eq!(read.masked(), 2);
    assert!(read.explain().contains("Masked: 2 different secrets"), "{}", read.explain());
    // The recording is exact as long as it is not written to a file.
    let alone = Executor::builder().languages([Language::TypeScript]).build().unwrap();
    assert!(alone.replay(&recording).await.unwrap().result.printed().contains(TOKEN));
}

/// Answers of a language model are played back too: at once, in pieces, as a value, and failures.
#[tokio::test(flavor = "multi_thread")]
async fn answers_of_models_replay_and_no_model_is_asked() {
    python().await;
    let typescript =
        "const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
        const pieces = [];
        for await (const piece of llm.ask('in pieces, please', { stream: true })) pieces.push(piece);
        const [one, two] = await Promise.all([llm.ask('first'), llm.ask('second')]);
        const value = await llm.ask('json', { schema });
        const failure = await llm.ask('fail').catch((error) => error.code);
        return { pieces, one, two, value, failure };";
    let python = "schema = {'type': 'object', 'properties': {'n': {'type': 'number'}}, 'required': ['n']}
import asyncio
pieces = [piece async for piece in llm.ask('in pieces, please', stream=True)]
one, two = await asyncio.gather(llm.ask('first'), llm.ask('second'))
value = llm.ask_sync('json', schema=schema)
try:
    await llm.ask('fail')
except McpToolError as error:
    failure = error.code
return {'pieces': pieces, 'one': one, 'two': two, 'value': value, 'failure': failure}";
    for (language, script) in
        [(Language::TypeScript, Script::typescript(typescript)), (Language::Python, Script::python(python))]
    {
        let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
            "fail" => Reply::Status(400, "", "no".to_owned()),
            prompt if prompt.contains("json") => Reply::Text("{\"n\": 7}".to_owned()),
            prompt => Reply::Text(format!("about {prompt}")),
        });
        let executor = Executor::builder().llm(provider.options()).languages([language]).build().unwrap();
        let (result, recording) = executor.record(script).await.unwrap();
        let recording = recording.unwrap();
        let value = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
        assert_eq!(
            (&value["one"], &value["two"]),
            (&json!("about first"), &json!("about second")),
            "{value}"
        );
        assert_eq!(
            (&value["value"], value["pieces"].as_array().unwrap().len() > 1),
            (&json!({ "n": 7 }), true)
        );
        assert!(value["failure"].is_string(), "{value}");
        let asked = provider.asked().len();
        let replayed = replay(&recording, |script| script).await;
        assert_eq!(replayed.difference, None);
        assert_eq!(comparable(&replayed.result), comparable(&result));
        assert_eq!(provider.asked().len(), asked, "a replay asks no model");
        // Another question has no answer in the recording.
        let edited = recording.source().replace("first", "another");
        let replayed = replay(&recording, |script| script.source_text(edited)).await;
        assert!(replayed.difference.is_some(), "{}", replayed.result.to_json());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_recordings_are_refused() {
    // A call that is not answered at once, and a clock that is read after it.
    let source = "await tools.mock.sleep({ ms: 300 }); performance.now(); setTimeout(() => {}, 1); return 1";
    let (_, recording) = record(Script::typescript(source), Language::TypeScript).await;
    let text = recording.to_text();
    let lines: Vec<&str> = text.lines().collect();
    let parse = |text: &str| Recording::parse(text).unwrap_err();
    assert!(matches!(parse(""), RecordingError::CutOff { lines: 0 }));
    assert!(matches!(parse(&lines[..lines.len() - 1].join("\n")), RecordingError::CutOff { .. }));
    let half = &text[..text.len() - 9];
    assert!(matches!(parse(half), RecordingError::Line { line, .. } if line == lines.len()));
    for (from, to) in [
        ("\"number\":1", "\"number\":2"),
        ("\"arguments\":", "\"argument\":"),
        ("\"language\":\"typescript\"", "\"language\":\"cobol\""),
        ("\"seed\":\"", "\"seed\":\"zz"),
        ("\"wallTimeMs\":30000", "\"wallTimeMs\":99999999"),
        ("\"memoryBytes\":", "\"memoryBytes\":9"),
        ("\"recording\":1,", ""),
        ("\"line\":\"turn\",\"call\":1", "\"line\":\"turn\",\"call\":7"),
        ("\"monotonic\":\"", "\"monotonic\":\"x"),
    ] {
        let at = text.find(from).unwrap_or_else(|| panic!("{from} is not in {text}"));
        let expected = text[..at].matches('\n').count() + 1;
        let error = parse(&text.replacen(from, to, 1));
        assert!(matches!(error, RecordingError::Line { line, .. } if line == expected), "{from}: {error}");
    }
    let error = parse(&text.replacen("\"recording\":1", "\"recording\":9", 1));
    assert!(matches!(error, RecordingError::Version { found: 9, .. }), "{error}");
    let deep = format!("{}{}", lines[0], "\n") + &"[".repeat(100_000);
    assert!(matches!(parse(&deep), RecordingError::Line { line: 2, .. }));
    let huge = " ".repeat(Recording::MAX_FILE_BYTES + 1);
    assert!(matches!(parse(&huge), RecordingError::TooLarge { .. }));
}

/// No change of a single byte makes the reader or a replay panic, hang or reach anything.
#[tokio::test(flavor = "multi_thread")]
async fn changed_recordings_do_no_harm() {
    let source = "const a = await Promise.all([tools.mock.echo({ n: 1 }), tools.mock.sleep({ ms: 2 })]);\n\
        await new Promise((resolve) => setTimeout(resolve, 2)); return [Date.now(), a]";
    let (_, recording) = record(Script::typescript(source), Language::TypeScript).await;
    let text = recording.to_text();
    let executor = Executor::builder().languages([Language::TypeScript]).build().unwrap();
    let limits = Limits { wall_time: std::time::Duration::from_secs(2), ..Limits::default() };
    let start = text.find("\"line\":\"call\"").unwrap();
    let mut replayed = 0;
    for position in (start..text.len()).step_by(11) {
        let mut changed = text.clone().into_bytes();
        changed[position] = b'7';
        let Ok(changed) = String::from_utf8(changed) else { continue };
        if let Ok(recording) = Recording::parse(&changed) {
            replayed += 1;
            executor.replay_with(&recording, |script| script.limits(limits)).await.unwrap();
        }
    }
    assert!(replayed > 3, "{replayed}");
}

/// Threat 731. The numbers of an untrusted recording are any.
#[tokio::test(flavor = "multi_thread")]
async fn v_731_the_masks_of_a_recording_overflow_no_sum() {
    let token = "ghp_0123456789abcdefghij";
    let (_, recording) = record(Script::typescript(format!("return '{token}'")), Language::TypeScript).await;
    let largest = format!("\"masked\":{}", u64::MAX);
    let hostile = recording.to_text().replacen("\"masked\":1", &largest, 1).replace("***1", token);
    let text = Recording::parse(&hostile).unwrap().to_text();
    assert!(hostile.contains(token) && !text.contains(token) && text.contains(&largest), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_exceeds_the_bound_is_left_out_and_named() {
    let source = "for (let i = 0; i < 3; i++) { await tools.mock.big({ bytes: 13000000 }) } return 1";
    let limits = Limits { memory_bytes: 256 << 20, ..Limits::default() };
    let (_, recording) = record(Script::typescript(source).limits(limits), Language::TypeScript).await;
    assert!(recording.explain().contains("is left out"), "{}", recording.explain());
    let difference = replay(&recording, |script| script).await.difference.unwrap();
    assert_eq!(difference.call, Some(3));
    assert!(difference.to_string().contains("left out"), "{difference}");
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_says_what_there_is_and_escapes_it() {
    let source = "await tools.mock.echo({ text: '\\x1b[31mred' }); return 'x'";
    let script = Script::typescript(source).named("a\u{1b}[0m.ts").input(json!([1]));
    let (_, recording) = record(script, Language::TypeScript).await;
    let text = recording.explain();
    assert!(!text.contains('\u{1b}'), "{text}");
    for part in [
        "1 line of TypeScript",
        "Input: 3 bytes",
        "mock, other-server",
        "1. at ",
        "mock.echo with",
        "Outcome: the value \"x\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Threat 461: an untrusted recording whose turns deliver, 150,000 times, a timer that the script has not
/// started, while it has thousands of others.
#[tokio::test(flavor = "multi_thread")]
async fn v_461_timers_of_a_recording_are_not_searched_for() {
    let source = "for (let count = 0; count < 9_000; count++) setTimeout(() => {}, 1e6); return 1";
    // In CPU time, which others on the machine do not change: the replay takes half a second of it at most.
    let (wall_time, cpu_time) = (std::time::Duration::from_secs(100), std::time::Duration::from_secs(4));
    let limits = Limits { wall_time, cpu_time, ..Limits::default() };
    let (_result, recording) = record(Script::typescript(source).limits(limits), Language::TypeScript).await;
    let text = recording.to_text();
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.contains("\"line\":\"turn\"") && !line.contains("\"line\":\"timers\""))
        .map(str::to_owned)
        .collect();
    // The script waits in the replay, so that turns are searched.
    lines[0] = lines[0].replace("return 1", "await new Promise(() => {})");
    let end = lines.pop().unwrap();
    lines.push(json!({ "line": "timers", "delays": vec![5.0; 20_000] }).to_string());
    lines.extend((0..150_000).map(|_| json!({ "line": "turn", "timer": 20_000 }).to_string()));
    lines.extend([json!({ "line": "turn" }).to_string(), end]);
    let hostile = Recording::parse(&lines.join("\n")).unwrap();
    let alone = Executor::builder().languages([Language::TypeScript]).build().unwrap();
    let replay = alone.replay(&hostile).await.unwrap();
    // It has come to its end, and not to its limit.
    let difference = replay.difference.unwrap();
    assert_eq!((difference.call, &*difference.expected), (None, "the value 1"));
    assert!(difference.found.ends_with("waits for a promise that can never settle"), "{difference}");
}
