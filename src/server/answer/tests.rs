use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::draft::{Draft, MAX_CHARACTERS};
use super::*;
use crate::json::Json;
use crate::run::result::{
    ErrorCode, ExecuteResult, LogLevel, Outcome, Output, PlannedCall, Refusal, ReturnedShape, ScriptError,
    ToolCallRecord, ToolCallStatus, Usage,
};
use crate::run::sampling::{ContentViolation, ModelCall, ModelCallStatus, SamplingMetrics, SamplingReport};
use crate::server::output_schemas;
use crate::tools::ToolErrorCode;

fn returned(value: Value) -> ExecuteResult {
    let usage = Usage { wall_time: Duration::from_micros(1_500), ..Usage::default() };
    ExecuteResult {
        outcome: Outcome::Returned(value.into()),
        logs: Vec::new(),
        tool_calls: Vec::new(),
        returned: Vec::new(),
        planned_calls: None,
        sampling: None,
        usage,
    }
}

fn failed(error: ScriptError) -> ExecuteResult {
    ExecuteResult { outcome: Outcome::Failed(error), ..returned(Value::Null) }
}

fn printing(mut result: ExecuteResult, lines: &[&str]) -> ExecuteResult {
    result
        .logs
        .extend(lines.iter().map(|&text| Output::Log { level: LogLevel::Info, text: text.to_owned() }));
    result
}

fn emitting(mut result: ExecuteResult, blocks: Vec<Value>) -> ExecuteResult {
    result.logs.extend(blocks.into_iter().map(|block| Output::Emit(block.into())));
    result
}

fn call(tool: &str, status: ToolCallStatus) -> ToolCallRecord {
    ToolCallRecord {
        server: "fs".to_owned(),
        tool: tool.to_owned(),
        status,
        approved: false,
        duration: Duration::from_millis(2),
        argument_bytes: 2,
        result_bytes: 10,
    }
}

fn answer(result: &ExecuteResult) -> Answer {
    Draft::new(result, MAX_CHARACTERS).answer(Format::Text, None)
}

fn text(answer: &Answer) -> &str {
    match &answer.content[0] {
        ContentBlock::Text(text) => &text.text,
        _ => panic!("the text comes first"),
    }
}

#[test]
fn the_text_has_the_value_first() {
    for (result, expected) in [
        (returned(json!(42)), "42"),
        (returned(json!("plain\ntext")), "plain\ntext"),
        (returned(json!({ "a": [1, "b"] })), r#"{"a":[1,"b"]}"#),
        (returned(Value::Null), "null"),
        (printing(returned(json!(1)), &["a", "b"]), "1\n[output]\na\nb"),
        (printing(returned(Value::Null), &["a"]), "[output] a"),
    ] {
        assert_eq!(text(&answer(&result)), expected);
        assert!(!answer(&result).is_error);
    }
}

#[test]
fn empty_fields_are_not_there() {
    assert_eq!(
        answer(&returned(json!(1))).structured,
        json!({ "success": true, "value": 1, "executionTimeMs": 1.5 })
    );
}

#[test]
fn a_traceback_has_no_marks() {
    let stack = "Traceback (most recent call last):\n  File \"script.py\", line 9, in <module>\n    f(1)\n    ~^^^\n  File \
                 \"script.py\", line 3, in f\n    g()\n    ~^^\nValueError: no";
    let error = ScriptError {
        code: ErrorCode::RuntimeError,
        message: "no".to_owned(),
        name: Some("ValueError".to_owned()),
        line: Some(3),
        column: Some(5),
        source_line: Some("    g()".to_owned()),
        stack: Some(stack.to_owned()),
        ..ScriptError::default()
    };
    let expected = "RUNTIME_ERROR: ValueError: no\nat line 3, column 5: g()\nTraceback (most recent call last):\n  File \
                    \"script.py\", line 9, in <module>\n    f(1)\n  File \"script.py\", line 3, in f\n    g()";
    assert_eq!(text(&answer(&failed(error))), expected);
}

/// Fractions say nothing to a model.
#[test]
fn the_time_after_which_to_try_again_has_no_fractions() {
    let error = ScriptError {
        code: ErrorCode::QueueFull,
        message: "no".to_owned(),
        retry_after: Some(Duration::from_micros(1_500)),
        ..ScriptError::default()
    };
    assert_eq!(text(&answer(&failed(error))), "QUEUE_FULL: no\ntry again after 2 ms");
}

#[test]
fn a_failure_has_its_code_its_location_and_what_was_done() {
    let error = ScriptError {
        code: ErrorCode::RuntimeError,
        message: "no such file".to_owned(),
        line: Some(3),
        column: Some(7),
        source_line: Some("  await read()".to_owned()),
        hint: Some("look again".to_owned()),
        stack: Some("Error: no such file\n    at read (script.ts:3:7)\n    at script.ts:9:1".to_owned()),
        tool_code: Some(ToolErrorCode::ToolError),
        ..ScriptError::default()
    };
    let mut result = printing(failed(error), &["before"]);
    result.tool_calls = vec![
        call("read", ToolCallStatus::Ok),
        call("read", ToolCallStatus::Failed(ToolErrorCode::ToolError)),
        call("write", ToolCallStatus::InFlight),
    ];
    result.usage.tool_calls = 3;
    result.usage.tool_calls_refused = 1;
    assert!(Draft::new(&result, MAX_CHARACTERS).leaves_out(), "the single calls can be read");
    let answer = Draft::new(&result, MAX_CHARACTERS).answer(Format::Text, Some("abc"));
    assert!(answer.is_error);
    let expected = "TOOL_ERROR: no such file\nat line 3, column 7: await read()\nhint: look again\n    \
        at read (script.ts:3:7)\n    at script.ts:9:1\n[output] before\n\
        [calls] mcp__fs__read ×2 (1 failed), mcp__fs__write ×1 (1 in flight); 1 refused\n\
        [more] cx://runs/abc/output, /calls";
    assert_eq!(text(&answer), expected);
    assert_eq!(answer.structured["runId"], "abc");
    assert_eq!(answer.structured["error"]["code"], "RUNTIME_ERROR");
    assert_eq!(
        [&answer.structured["toolCallsMade"], &answer.structured["toolCallsRefused"]],
        [&json!(3), &json!(1)]
    );
}

#[test]
fn a_failure_says_what_kind_of_error_it_is() {
    let of_kind = |name: &str, message: &str| {
        let error = ScriptError {
            code: ErrorCode::RuntimeError,
            name: Some(name.to_owned()),
            message: message.to_owned(),
            ..ScriptError::default()
        };
        let answer = answer(&failed(error));
        (text(&answer).to_owned(), answer.structured["error"]["message"].clone())
    };
    assert_eq!(of_kind("TypeError", "no"), ("RUNTIME_ERROR: TypeError: no".to_owned(), json!("no")));
    let key = ("RUNTIME_ERROR: KeyError: 'x'".to_owned(), json!("KeyError: 'x'"));
    assert_eq!(of_kind("KeyError", "'x'"), key);
    assert_eq!(of_kind("Error", "no"), ("RUNTIME_ERROR: no".to_owned(), json!("no")));
    // Without a message the name is the message.
    assert_eq!(of_kind("StopIteration", "StopIteration").0, "RUNTIME_ERROR: StopIteration");
}

#[test]
fn calls_that_were_all_refused_are_a_number_only() {
    let mut result = returned(json!(1));
    result.usage.tool_calls_refused = 2;
    let answer = answer(&result);
    assert_eq!(
        answer.structured,
        json!({ "success": true, "value": 1, "executionTimeMs": 1.5, "toolCallsRefused": 2 })
    );
    assert_eq!(text(&answer), "1\n[calls] 2 refused");
}

#[test]
fn calls_that_went_well_are_not_in_the_text() {
    let mut result = returned(json!(1));
    result.tool_calls = vec![call("read", ToolCallStatus::Ok)];
    assert_eq!(text(&answer(&result)), "1");
    result.tool_calls.push(call("write", ToolCallStatus::Failed(ToolErrorCode::ToolError)));
    let answer = answer(&result);
    assert_eq!(text(&answer), "1\n[calls] mcp__fs__write ×1 (1 failed)");
    assert_eq!(answer.structured["toolCallSummary"].as_array().unwrap().len(), 2);
}

#[test]
fn an_answer_names_only_parts_of_the_record_that_exist() {
    let mut called = returned(json!(1));
    called.tool_calls = vec![call("read", ToolCallStatus::Ok)];
    for (result, expected) in [
        (printing(returned(json!(1)), &["a"]), "[more] cx://runs/abc/output, /value"),
        (called, "[more] cx://runs/abc/value, /calls"),
        (printing(failed(ScriptError::default()), &["a"]), "[more] cx://runs/abc/output"),
    ] {
        let answer = Draft::new(&result, MAX_CHARACTERS).answer(Format::Text, Some("abc"));
        assert_eq!(text(&answer).lines().last(), Some(expected));
    }
}

/// What is said besides costs more tokens than the error itself.
#[test]
fn an_only_call_that_failed_is_told_by_the_error_alone() {
    let error = ScriptError {
        code: ErrorCode::RuntimeError,
        message: "File not found".to_owned(),
        line: Some(1),
        column: Some(8),
        source_line: Some("return await tools.fs.read({})".to_owned()),
        tool_code: Some(ToolErrorCode::ToolError),
        ..ScriptError::default()
    };
    let mut result = failed(error.clone());
    result.tool_calls = vec![call("read", ToolCallStatus::Failed(ToolErrorCode::ToolError))];
    result.usage.tool_calls = 1;
    let answer =
        |result: &ExecuteResult| Draft::new(result, MAX_CHARACTERS).answer(Format::Text, Some("abc"));
    let shown = answer(&result);
    let told = "TOOL_ERROR: File not found\nat line 1, column 8";
    assert_eq!(text(&shown), format!("{told}: return await tools.fs.read({{}})"));
    assert_eq!(shown.structured["runId"], "abc");
    assert_eq!(shown.structured["toolCallSummary"].as_array().unwrap().len(), 1);
    // Without the line of the source, the name of the tool is nowhere else.
    let with_line = |line: Option<&str>| {
        let error = ScriptError { source_line: line.map(str::to_owned), ..error.clone() };
        ExecuteResult { outcome: Outcome::Failed(error), ..result.clone() }
    };
    let calls = "\n[calls] mcp__fs__read ×1 (1 failed)";
    assert_eq!(text(&answer(&with_line(None))), format!("{told}{calls}"));
    // So it is where the line calls what a variable names.
    let line = "return await callMCPTool(name, {})";
    assert_eq!(text(&answer(&with_line(Some(line)))), format!("{told}: {line}{calls}"));
    // What was called before may have had an effect.
    result.tool_calls.insert(0, call("list", ToolCallStatus::Ok));
    result.usage.tool_calls = 2;
    let calls = "\n[calls] mcp__fs__list ×1, mcp__fs__read ×1 (1 failed)\n[more] cx://runs/abc/calls";
    assert!(text(&answer(&result)).ends_with(calls), "{}", text(&answer(&result)));
}

/// What the next attempt needs to know.
#[test]
fn a_failure_says_what_its_tools_returned() {
    let error = ScriptError { message: "dirs.split is not a function".to_owned(), ..ScriptError::default() };
    let mut result = failed(error);
    let returned = |tool: &str, shape: &str| ReturnedShape {
        server: "fs".to_owned(),
        tool: tool.to_owned(),
        shape: shape.to_owned(),
    };
    result.tool_calls = vec![call("list", ToolCallStatus::Ok)];
    result.returned = vec![returned("list", "{content: string}")];
    result.usage.tool_calls = 1;
    let shown = answer(&result);
    assert!(text(&shown).ends_with("\n[calls] mcp__fs__list ×1 → {content: string}"), "{}", text(&shown));
    assert_eq!(shown.structured["toolCallSummary"][0]["returned"], "{content: string}");
    result.tool_calls.push(call("read", ToolCallStatus::Ok));
    result.tool_calls.push(call("write", ToolCallStatus::Failed(ToolErrorCode::ToolError)));
    result.returned.push(returned("read", "{id: number, text?: string}[]"));
    let shown = answer(&result);
    let expected = "\n[calls]\nmcp__fs__list ×1 → {content: string}\n\
        mcp__fs__read ×1 → {id: number, text?: string}[]\nmcp__fs__write ×1 (1 failed)";
    assert!(text(&shown).ends_with(expected), "{}", text(&shown));
}

#[test]
fn output_keeps_head_and_tail_within_25_000_characters() {
    let line = "ü".repeat(99);
    let lines = vec![line.as_str(); 1_000];
    let result = printing(returned(json!(1)), &lines);
    let draft = Draft::new(&result, MAX_CHARACTERS);
    assert!(draft.leaves_out());
    let answer = draft.answer(Format::Text, Some("abc"));
    let output = answer.structured["output"].as_str().unwrap();
    assert!((24_990..=25_000).contains(&output.chars().count()), "{}", output.chars().count());
    assert!(output.starts_with("üüü") && output.ends_with("üüü"));
    let omitted = answer.structured["outputOmitted"].as_u64().unwrap();
    let marker = format!(
        "[… {omitted} characters left out; the next script gets the whole `output` with await mcp.run(\"abc\") …]"
    );
    assert!(output.contains(&marker), "{output}");
    let kept = output.chars().filter(|&character| character != '\n').count() - marker.chars().count();
    assert!(kept as u64 + omitted >= 99_000, "nothing is lost uncounted");
    // Output of exactly the maximum length is not truncated.
    let whole = printing(returned(json!(1)), &[&"x".repeat(MAX_CHARACTERS)]);
    assert!(!Draft::new(&whole, MAX_CHARACTERS).leaves_out());
    assert_eq!(self::answer(&whole).structured["output"].as_str().unwrap().len(), MAX_CHARACTERS);
}

#[test]
fn a_value_that_is_too_long_is_replaced() {
    let result = returned(json!({ "rows": vec!["row"; 10_000] }));
    let answer = Draft::new(&result, MAX_CHARACTERS).answer(Format::Text, Some("abc"));
    assert!(answer.structured.get("value").is_none());
    let truncated = &answer.structured["valueTruncated"];
    assert_eq!(truncated["characters"], 60_010);
    assert!(truncated["head"].as_str().unwrap().starts_with(r#"{"rows":["row","row""#));
    assert!(truncated["tail"].as_str().unwrap().ends_with(r#""row"]}"#));
    assert_eq!(truncated["rest"], r#"await mcp.run("abc")"#);
    let more = Draft::new(&result, 60_010);
    assert!(!more.leaves_out(), "a program can have more");
    assert!(more.answer(Format::Text, None).structured["value"]["rows"].is_array());
    assert_eq!(
        text(&answer)
            .lines()
            .filter(|line| line.contains("the whole `value` with await mcp.run(\"abc\")"))
            .count(),
        1
    );
    // A smaller bound is one of what is kept too.
    for (max, kept) in [(25_000, (4_000, 1_000)), (1_000, (800, 200)), (1, (1, 0)), (0, (0, 0))] {
        let truncated = &Draft::new(&result, max).answer(Format::Text, None).structured["valueTruncated"];
        let length = |part: &str| truncated[part].as_str().unwrap().len();
        assert_eq!((length("head"), length("tail")), kept, "{max}");
    }
    assert!(text(&answer).chars().count() < 25_200);
    // JSON and TOON encode the structured content, so they are no longer than it is.
    for format in [Format::Json, Format::Toon] {
        assert!(text(&Draft::new(&result, MAX_CHARACTERS).answer(format, None)).len() < 8_000);
    }
}

#[test]
fn texts_of_errors_are_bounded() {
    let error = ScriptError {
        message: "m".repeat(1 << 20),
        stack: Some("s".repeat(1 << 20)),
        source_line: Some("l".repeat(1 << 20)),
        line: Some(1),
        ..ScriptError::default()
    };
    let answer = answer(&failed(error));
    assert!(text(&answer).len() < 10_000 && answer.structured.to_string().len() < 10_000);
}

#[test]
fn a_thousand_tools_are_summed_up() {
    let mut result = failed(ScriptError::default());
    result.tool_calls = (0..1_000).map(|tool| call(&format!("tool{tool}"), ToolCallStatus::Ok)).collect();
    result.usage.tool_calls = 1_000;
    let answer = answer(&result);
    assert_eq!(answer.structured["toolCallSummary"].as_array().unwrap().len(), 50);
    assert_eq!(answer.structured["toolCallSummaryOmitted"], 950);
    assert!(text(&answer).ends_with("and 950 more tools"));
}

#[test]
fn emitted_blocks_follow_the_text() {
    let blocks = vec![
        json!({ "type": "text", "text": "words" }),
        json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" }),
        json!({ "type": "of no kind", "x": 1 }),
        json!({ "type": "text", "text": "y".repeat(30_000) }),
        json!({ "type": "text", "text": "z".repeat(30_000) }),
    ];
    let result = emitting(returned(Value::Null), blocks);
    assert!(Draft::new(&result, MAX_CHARACTERS).leaves_out());
    let answer = answer(&result);
    let content = serde_json::to_value(&answer.content[1..]).unwrap();
    assert_eq!(content[0], json!({ "type": "text", "text": "words" }));
    assert_eq!(content[1], json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" }));
    assert_eq!(content[2]["text"], r#"{"type":"of no kind","x":1}"#);
    let characters: usize = content.as_array().unwrap()[2..]
        .iter()
        .map(|block| block["text"].as_str().unwrap().chars().count())
        .sum();
    assert!(characters < MAX_CHARACTERS + 100, "{characters}");
    assert_eq!(answer.structured["emittedBlocks"], 5);
    let many = emitting(returned(Value::Null), vec![json!({ "type": "text", "text": "x" }); 300]);
    let answer = self::answer(&many);
    assert_eq!(answer.content.len(), 102);
    assert_eq!(serde_json::to_value(&answer.content[101]).unwrap()["text"], "200 more blocks were emitted");
}

/// The names of the fields of an object, or of the `properties` of a schema.
fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Answers that have every field between them.
pub(crate) fn full_answers() -> [Answer; 3] {
    let error = ScriptError {
        code: ErrorCode::RuntimeError,
        message: "no".to_owned(),
        name: Some("TypeError".to_owned()),
        stack: Some("TypeError: no\n    at f (script.ts:1:1)\n    at script.ts:2:1".to_owned()),
        line: Some(1),
        column: Some(1),
        source_line: Some("no()".to_owned()),
        hint: Some("yes()".to_owned()),
        tool_code: Some(ToolErrorCode::RateLimited),
        retry_after: Some(Duration::from_secs(1)),
        problems: vec![ScriptError::new(ErrorCode::SyntaxError, "another").into()],
    };
    let mut failed = printing(failed(error), &[&"x".repeat(30_000)]);
    failed.tool_calls = (0..60).map(|tool| call(&format!("tool{tool}"), ToolCallStatus::Ok)).collect();
    let others = [
        ToolCallStatus::Failed(ToolErrorCode::RateLimited),
        ToolCallStatus::InFlight,
        ToolCallStatus::AwaitingApproval,
        ToolCallStatus::NotApproved(Refusal::Denied),
        ToolCallStatus::Simulated,
    ];
    failed.tool_calls.extend(others.map(|status| call("tool0", status)));
    failed.tool_calls[0].approved = true;
    failed.returned = vec![ReturnedShape {
        server: "fs".to_owned(),
        tool: "tool0".to_owned(),
        shape: "{content: string}".to_owned(),
    }];
    let arguments = Json::from(json!({ "text": "x".repeat(20_000) }));
    let planned = PlannedCall { server: "fs".to_owned(), tool: "write".to_owned(), arguments };
    failed.planned_calls = Some(vec![planned; 2]);
    let model_call = ModelCall {
        round: 1,
        provider: "openai".to_owned(),
        model: Some("large".to_owned()),
        status: ModelCallStatus::Ok,
        tokens: 1,
        is_estimated: true,
        duration: Duration::ZERO,
        stop_reason: Some("end_turn".to_owned()),
        violations: vec![ContentViolation { pattern: "key", count: 1 }],
    };
    failed.sampling =
        Some(SamplingReport { calls: vec![model_call; 30], metrics: SamplingMetrics::default() });
    failed.usage = Usage {
        wall_time: Duration::from_millis(2),
        approval_time: Duration::from_millis(1),
        tool_calls: 60,
        tool_calls_refused: 1,
        fuel: Some(1),
        output_bytes_dropped: 1,
        planned_calls_dropped: 1,
        ..Usage::default()
    };
    let short = emitting(returned(json!(1)), vec![json!({ "type": "text", "text": "x" })]);
    let long = returned(json!("x".repeat(30_000)));
    [&failed, &short, &long]
        .map(|result| Draft::new(result, MAX_CHARACTERS).answer(Format::Text, Some("abc")))
}

/// No field is sent that the schema does not name, and it names none that is never sent.
#[test]
fn the_output_schema_names_the_fields_that_are_sent() {
    let answers = full_answers().map(|answer| answer.structured);
    let sent: BTreeSet<&str> = answers.iter().flat_map(names).collect();
    let schema = output_schemas::run(false);
    assert_eq!(sent, names(&schema["properties"]));
    assert_eq!(names(&answers[0]["error"]), names(&schema["properties"]["error"]["properties"]));
}

/// Examples from section 4.4 of the TOON specification.
#[test]
fn toon_as_its_specification_has_it() {
    for (value, expected) in [
        (json!({ "tags": ["a", "b"] }), "tags[2]: a,b"),
        (json!({ "user": { "name": "Ada" }, "none": [] }), "user:\n  name: Ada\nnone: []"),
        (
            json!({ "users": [{ "id": 1, "name": "Ada" }, { "id": 2, "name": "a,b" }] }),
            "users[2]{id,name}:\n  1,Ada\n  2,\"a,b\"",
        ),
        (json!({ "mixed": [1, { "a": "true" }, [2, 3]] }), "mixed[3]:\n  - 1\n  - a: \"true\"\n  - [2]: 2,3"),
    ] {
        assert_eq!(Format::Toon.render(&value, String::new), expected);
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let refusal = refusal(Format::Text, "INVALID_ARGUMENTS", "`code` is missing", Some("add it"));
    assert_eq!(text(&refusal), "INVALID_ARGUMENTS: `code` is missing\nhint: add it");
    let error = json!({ "code": "INVALID_ARGUMENTS", "message": "`code` is missing", "hint": "add it" });
    assert_eq!(refusal.structured, json!({ "success": false, "error": error }));
    assert!(refusal.is_error);
    let later = refusal_for_now(Format::Text, "RATE_LIMITED", "too many", Duration::from_micros(1_500));
    assert_eq!(text(&later), "RATE_LIMITED: too many\ntry again after 2 ms");
    let error = json!({ "code": "RATE_LIMITED", "message": "too many", "retryAfterMs": 1.5 });
    assert_eq!(later.structured, json!({ "success": false, "error": error }));
    assert!(later.is_error);
}
