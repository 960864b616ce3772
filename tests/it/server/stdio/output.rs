//! What a run prints, emits and reports.

use super::*;

#[test]
fn what_a_failed_run_did_is_told() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let code = "await tools.well.echo({ a: 1 });\nawait tools.well.slow({ ms: 60000 })";
    let result = client.call("executeTypescript", json!({ "code": code, "timeoutMs": 3000 }));
    let answer = &result["structuredContent"];
    assert_eq!(answer["error"]["code"], "TIMEOUT");
    let summary = answer["toolCallSummary"].as_array().unwrap();
    assert_eq!(summary.len(), 2);
    assert_eq!((&summary[0]["tool"], &summary[0]["calls"]), (&json!("mcp__well__echo"), &json!(1)));
    assert_eq!((&summary[1]["tool"], &summary[1]["inFlight"]), (&json!("mcp__well__slow"), &json!(1)));
    let run = answer["runId"].as_str().unwrap();
    let calls = client.request("resources/read", json!({ "uri": format!("cx://runs/{run}/calls") }));
    let calls: Value =
        serde_json::from_str(calls["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&calls[0]["status"], &calls[1]["status"]), (&json!("ok"), &json!("in flight")));
    let result = client.call("executeTypescript", json!({ "code": "const a: = 1" }));
    assert_eq!(result["structuredContent"]["error"]["code"], "SYNTAX_ERROR");
    assert!(text(&result).contains("at line 1, column"), "{}", text(&result));
    client.end();
}

#[test]
fn what_was_cut_can_be_read() {
    let mut client = Client::plain();
    let code = "
        for (let i = 0; i < 20000; i++) console.log('line ' + i);
        return Array.from({ length: 20000 }, (_, i) => i)
    ";
    let result = client.call("executeTypescript", json!({ "code": code }));
    let answer = &result["structuredContent"];
    let output = answer["output"].as_str().unwrap();
    assert_eq!(output.chars().count(), 25_000);
    assert!(output.starts_with("line 0\nline 1\n") && output.ends_with("line 19999"), "{output}");
    assert!(answer.get("value").is_none());
    assert!(answer["valueTruncated"]["head"].as_str().unwrap().starts_with("[0,1,2,"));
    assert!(text(&result).len() < 60_000);
    // What it says about the rest is an expression in both languages.
    let rest = answer["valueTruncated"]["rest"].as_str().unwrap();
    for (tool, code) in [
        ("executeTypescript", format!("return ({rest}).value.length")),
        ("executePython", format!("len(({rest})['value'])")),
    ] {
        let whole = client.call(tool, json!({ "code": code }));
        assert_eq!(whole["structuredContent"]["value"], 20_000, "{whole}");
    }
    let run = answer["runId"].as_str().unwrap().to_owned();
    let mut read = |part: &str| {
        let answer = client.request("resources/read", json!({ "uri": format!("cx://runs/{run}/{part}") }));
        answer["result"]["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(read("output").lines().count(), 20_000);
    let value: Vec<u32> = serde_json::from_str(&read("value")).unwrap();
    assert_eq!(value.len(), 20_000);
    assert_eq!(read("calls"), "[]");
    let listed = client.request("resources/list", json!({}));
    let listed: Vec<_> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap().to_owned())
        .collect();
    assert!(listed.contains(&format!("cx://runs/{run}/value")), "{listed:?}");
    for missing in [
        "cx://runs/absent/value",
        "cx://runs/",
        "cx://else",
        &format!("cx://runs/{run}/else"),
        "file:///etc/passwd",
    ] {
        let answer = client.request("resources/read", json!({ "uri": missing }));
        assert_eq!(answer["error"]["code"], -32002, "{missing}: {answer}");
    }
    let templates = client.request("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "cx://runs/{id}/{part}");
    assert!(client.run("return 1").get("runId").is_none(), "there is nothing more to read");
    client.end();
}

#[test]
fn at_most_64_runs_are_kept() {
    let mut client = Client::plain();
    let mut ids = Vec::new();
    for _ in 0..66 {
        let answer = client.run("console.log('x'.repeat(30000))");
        ids.push(answer["runId"].as_str().unwrap().to_owned());
    }
    let listed = client.request("resources/list", json!({}))["result"]["resources"].as_array().unwrap().len();
    assert_eq!(listed, 1 + 64 * 2, "the guide, and two parts of each run");
    let gone = client.request("resources/read", json!({ "uri": format!("cx://runs/{}/output", ids[1]) }));
    assert_eq!(gone["error"]["code"], -32002);
    let there = client.request("resources/read", json!({ "uri": format!("cx://runs/{}/output", ids[2]) }));
    assert!(there.get("result").is_some());
    client.end();
}

#[test]
fn what_is_emitted_becomes_content() {
    let mut client = Client::plain();
    let code = "
        emit('words');
        emit({ type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' });
        emit({ type: 'audio', mimeType: 'audio/wav', data: 'UklGRg==' });
        emit({ type: 'resource', resource: { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'a' } });
        return 1
    ";
    for (tool, code) in [
        ("executeTypescript", code.to_owned()),
        (
            "executePython",
            code.replace("return 1", "1")
                .replace(';', "")
                .replace("        ", "")
                .replace("type:", "'type':")
                .replace("mimeType:", "'mimeType':")
                .replace("data:", "'data':")
                .replace(" resource:", " 'resource':")
                .replace("uri:", "'uri':")
                .replace("text:", "'text':"),
        ),
    ] {
        let result = client.call(tool, json!({ "code": code }));
        let kinds: Vec<_> = result["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["text", "text", "image", "audio", "resource"], "{result:#}");
        assert_eq!(result["content"][1]["text"], "words");
        assert_eq!(result["structuredContent"]["emittedBlocks"], 4);
        assert!(result["structuredContent"].get("emitted").is_none(), "images are not sent twice");
    }
    client.end();
}

#[test]
fn formats_of_the_text() {
    let code = json!({ "code": "return [{ id: 1, name: 'Ada' }, { id: 2, name: 'Bob' }]" });
    let mut json = Start::new().arguments(&["--format", "json"]).spawn().shaken();
    let result = json.call("executeTypescript", code.clone());
    assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), result["structuredContent"]);
    json.end();
    let mut toon = Start::new().arguments(&["--format", "toon"]).spawn().shaken();
    let result = toon.call("executeTypescript", code);
    assert!(
        text(&result).starts_with("success: true\nvalue[2]{id,name}:\n  1,Ada\n  2,Bob\n"),
        "{}",
        text(&result)
    );
    toon.end();
}

#[test]
fn progress_when_asked_for() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let call = json!({
        "name": "executeTypescript",
        "arguments": { "code": "
            for (let i = 0; i < 3; i++) await tools.well.echo({});
            call_tool('well', 'fail');
            await new Promise((done) => setTimeout(done, 5500))
        " },
        "_meta": { "progressToken": "p-1" },
    });
    let answer = client.request("tools/call", call);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let notes = client.take_seen();
    assert!(
        notes.iter().all(
            |note| note["method"] == "notifications/progress" && note["params"]["progressToken"] == "p-1"
        ),
        "{notes:?}"
    );
    let messages: Vec<_> = notes.iter().map(|note| note["params"]["message"].as_str().unwrap()).collect();
    let (beats, calls): (Vec<&str>, Vec<&str>) =
        messages.iter().copied().partition(|message| message.starts_with("running for "));
    assert_eq!(calls.len(), 4, "{messages:?}");
    assert!(calls[..3].iter().all(|message| message.starts_with("well.echo: ok, ")), "{messages:?}");
    assert!(calls[3].starts_with("well.fail: TOOL_ERROR, "), "{messages:?}");
    // One every five seconds: on a busy machine, where the calls take long, there may be several.
    let last = messages.last().unwrap();
    let seconds = last.strip_prefix("running for ").and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(last.contains(" s, 4 tool calls"), "{messages:?}");
    assert!((1..=seconds.parse::<usize>().unwrap() / 5).contains(&beats.len()), "{messages:?}");
    let progress: Vec<_> = notes.iter().map(|note| note["params"]["progress"].as_f64().unwrap()).collect();
    assert!(progress.is_sorted_by(|a, b| a < b), "{progress:?}");
    client.end();
}

/// A report is told after what was printed before it, and before what was printed after it.
#[test]
fn progress_and_printed_lines_have_the_order_of_the_script() {
    let mut client = Client::plain();
    client.request("logging/setLevel", json!({ "level": "debug" }));
    let code = "console.log('one'); progress(1); console.log('two'); progress(2); console.log('three')";
    let call = json!({
        "name": "executeTypescript", "arguments": { "code": code }, "_meta": { "progressToken": "p" },
    });
    let answer = client.request("tools/call", call);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let params: Vec<Value> = client.take_seen().into_iter().map(|note| note["params"].clone()).collect();
    let position =
        |of: &dyn Fn(&Value) -> bool| params.iter().position(of).unwrap_or_else(|| panic!("{params:?}"));
    let line = |text: &'static str| position(&|params: &Value| params["data"] == text);
    let last = position(&|params: &Value| params["progress"].as_f64().is_some_and(|value| value >= 2.0));
    assert!(line("one") < line("two") && line("two") < last && last < line("three"), "{params:?}");
    client.end();
}

#[test]
fn printed_lines_when_asked_for() {
    let mut client = Client::plain();
    let code = "console.debug('d'); console.log('i'); console.warn('w'); console.error('e')";
    client.run(code);
    assert!(client.take_seen().is_empty());
    for (level, expected) in
        [("debug", "diwe"), ("info", "iwe"), ("notice", "we"), ("error", "e"), ("emergency", "")]
    {
        assert_eq!(client.request("logging/setLevel", json!({ "level": level }))["result"], json!({}));
        client.run(code);
        let seen = client.take_seen();
        let data: String = seen.iter().map(|note| note["params"]["data"].as_str().unwrap()).collect();
        assert_eq!(data, expected, "{level}: {seen:?}");
    }
    client.request("logging/setLevel", json!({ "level": "debug" }));
    client.call("executePython", json!({ "code": "print('p')" }));
    assert_eq!(
        client.take_seen()[0]["params"],
        json!({ "level": "info", "logger": "script.py", "data": "p" })
    );
    let refused = client.request("logging/setLevel", json!({ "level": "loud" }));
    assert_eq!(refused["error"]["code"], -32602);
    // A flood of output is bounded for the client, and the answer has all of it.
    let answer = client.run("for (let i = 0; i < 100000; i++) console.log(i); return 1");
    assert_eq!(answer["value"], 1);
    let seen = client.take_seen();
    let last = seen.last().unwrap()["params"]["data"].as_str().unwrap().to_owned();
    assert!(
        seen.len() < 100_000 && last.ends_with("printed lines were not passed on"),
        "{} {last}",
        seen.len()
    );
    client.end();
}
