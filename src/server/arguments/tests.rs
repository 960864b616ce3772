use serde_json::json;

use super::*;

fn read(arguments: Value) -> Result<RunArguments, String> {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    RunArguments::read(arguments, None)
}

#[test]
fn everything_that_can_be_asked_for() {
    let arguments = read(json!({
        "code": "return 1",
        "input": [1],
        "allowedTools": ["fs.*"],
        "timeoutMs": 600_000,
        "maxToolCalls": 0,
        "session": "trip to Oslo",
        "dryRun": true,
    }));
    let expected = RunArguments {
        code: "return 1".to_owned(),
        input: Some(json!([1]).into()),
        allowed_tools: Some(vec!["fs.*".to_owned()]),
        timeout: Some(Duration::from_secs(600)),
        max_tool_calls: Some(0),
        session: Some("trip to Oslo".to_owned()),
        is_dry_run: true,
    };
    assert_eq!(arguments, Ok(expected));
}

#[test]
fn whole_numbers_however_they_are_written() {
    for (written, number) in [
        (json!(5), Some(5)),
        (json!(5.0), Some(5)),
        (json!(3e4), Some(30_000)),
        (json!(u64::MAX), Some(u64::MAX)),
    ] {
        assert_eq!(whole(&written), number, "{written}");
    }
    for written in [json!(-1), json!(0.5), json!(1e18), json!("5"), json!(null), json!(true)] {
        assert_eq!(whole(&written), None, "{written}");
    }
}

#[test]
fn sessions_that_can_be() {
    for handle in ["a", " ", "Zoë/7", &"ö".repeat(128)] {
        let read = read(json!({ "code": "", "session": handle })).unwrap();
        assert_eq!(read.session.as_deref(), Some(handle));
    }
    for (handle, expected) in [
        (json!(""), "1 to 128 characters: 0"),
        (json!("x".repeat(129)), "1 to 128 characters: 129"),
        (json!("a\nb"), "that can be seen"),
        (json!("a\u{202e}b"), "that can be seen"),
        (json!("a\u{0}"), "that can be seen"),
        (json!(7), "a string: 7"),
    ] {
        let problem = read(json!({ "code": "", "session": handle })).unwrap_err();
        assert!(problem.starts_with("`session`: expected ") && problem.contains(expected), "{problem}");
    }
    assert_eq!(read(json!({ "code": "", "session": null, "dryRun": null })).unwrap().session, None);
    let problem = read(json!({ "code": "", "dryRun": "yes" })).unwrap_err();
    assert_eq!(problem, "`dryRun`: expected true or false: \"yes\"");
}

#[test]
fn the_cpu_time_follows_the_timeout_up_to_the_operators_maximum() {
    let seconds = |[wall, cpu]: [u64; 2]| Limits {
        wall_time: Duration::from_secs(wall),
        cpu_time: Duration::from_secs(cpu),
        ..Limits::default()
    };
    for (timeout, max, expected) in [
        (None, [600, 600], [30, 10]),
        (Some(60), [600, 600], [60, 60]),
        // Less time than the default for computing is no reason to lower that.
        (Some(5), [600, 600], [5, 10]),
        (Some(60), [40, 600], [40, 40]),
        (Some(60), [600, 10], [60, 10]),
        (Some(60), [600, 20], [60, 20]),
    ] {
        let arguments = RunArguments { timeout: timeout.map(Duration::from_secs), ..RunArguments::default() };
        let limits = arguments.limits(seconds([30, 10]), &seconds(max));
        assert_eq!(limits, seconds(expected), "{timeout:?} {max:?}");
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let problem = read(json!({ "kode": "x", "timeoutMs": "soon" })).unwrap_err();
    let expected = "unknown parameter `kode`; did you mean `code`?; \
        `timeoutMs`: expected a whole number of milliseconds from 1 to 600000: \"soon\"; \
        `code` is missing: expected the script's source, a string";
    assert_eq!(problem, expected);
}

#[test]
fn what_came_is_shown_in_few_words() {
    let problem = read(json!({ "code": "x", "timeoutMs": "x".repeat(10_000) })).unwrap_err();
    assert!(problem.len() < 200, "{problem}");
    let problem = read(json!({ "code": "x", "y".repeat(10_000): 1 })).unwrap_err();
    assert!(problem.len() < 300, "{problem}");
}
