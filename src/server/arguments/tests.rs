use serde_json::json;

use super::*;

fn read(arguments: Value) -> Result<RunArguments, InvalidArguments> {
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
        "timeZone": "Asia/Tokyo",
        "permissions": { "net": ["a.example"] },
        "yieldAfterMs": 0,
        "enableSampling": true,
        "maxSamplingRounds": 5,
        "maxSamplingTokens": 6000,
        "samplingSystemPrompt": "be brief",
        "allowedSamplingModels": ["small"],
    }));
    let expected = RunArguments {
        script: None,
        code: "return 1".to_owned(),
        input: Some(json!([1]).into()),
        allowed_tools: Some(vec!["fs.*".to_owned()]),
        timeout: Some(Duration::from_secs(600)),
        max_tool_calls: Some(0),
        session: Some("trip to Oslo".to_owned()),
        is_dry_run: true,
        time_zone: Some("Asia/Tokyo".to_owned()),
        permissions: Permissions { net: Some(vec!["a.example".parse().unwrap()]), ..Permissions::default() },
        yield_after: Some(Duration::ZERO),
        sampling: SamplingOptions {
            enabled: Some(true),
            max_rounds: Some(5),
            max_tokens: Some(6_000),
            system_prompt: Some("be brief".to_owned()),
            allowed_models: Some(vec!["small".to_owned()]),
        },
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
        (json!("x".repeat(129)), "1 to 128 characters: 129"),
        (json!("a\nb"), "that can be seen"),
        (json!("a\u{202e}b"), "that can be seen"),
        (json!("a\u{0}"), "that can be seen"),
        (json!(7), "a string: 7"),
    ] {
        let problem = read(json!({ "code": "", "session": handle })).unwrap_err().to_string();
        assert!(problem.starts_with("`session`: expected ") && problem.contains(expected), "{problem}");
    }
    assert_eq!(read(json!({ "code": "", "session": null, "dryRun": null })).unwrap().session, None);
    let problem = read(json!({ "code": "", "dryRun": "yes" })).unwrap_err().to_string();
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
    let problem = read(json!({ "kode": "x", "timeoutMs": "soon" })).unwrap_err().to_string();
    let expected = "unknown parameter `kode`; did you mean `code`?; \
        `timeoutMs`: expected a whole number of milliseconds from 1 to 600000: \"soon\"; \
        `code` is missing: expected the script's source, a string";
    assert_eq!(problem, expected);
}

#[test]
fn what_came_is_shown_in_few_words() {
    let problem = read(json!({ "code": "x", "timeoutMs": "x".repeat(10_000) })).unwrap_err().to_string();
    assert!(problem.len() < 200, "{problem}");
    let problem = read(json!({ "code": "x", "y".repeat(10_000): 1 })).unwrap_err().to_string();
    assert!(problem.len() < 500, "{problem}");
}

/// Searching finds tools, and no parameters.
#[test]
fn parameters_are_named_where_an_unknown_one_is_like_none() {
    let problem = read(json!({ "code": "x", "language": "js", "qqq": 1 })).unwrap_err().to_string();
    let start =
        "unknown parameter `language`; unknown parameter `qqq`; the parameters are `code`, `script`, ";
    assert!(problem.starts_with(start), "{problem}");
    assert!(problem.ends_with("`samplingSystemPrompt`, `allowedSamplingModels`"), "{problem}");
    let near = read(json!({ "code": "x", "sesion": 1 })).unwrap_err().to_string();
    assert_eq!(near, "unknown parameter `sesion`; did you mean `session`?");
}

/// What strict modes of models fill in where the model has nothing to say.
#[test]
fn neutral_values_are_values_that_were_not_given() {
    let plain = read(json!({ "code": "x" })).unwrap();
    for (name, neutral) in [
        ("input", json!(null)),
        ("allowedTools", json!(null)),
        ("timeoutMs", json!(0)),
        ("timeoutMs", json!(0.0)),
        ("timeoutMs", json!(null)),
        ("maxToolCalls", json!(null)),
        ("session", json!("")),
        ("session", json!(null)),
        ("dryRun", json!(false)),
        ("dryRun", json!(null)),
        ("timeZone", json!("")),
        ("timeZone", json!(null)),
        ("permissions", json!({})),
        ("permissions", json!(null)),
        ("permissions", json!(false)),
        ("permissions", json!("")),
        ("permissions", json!({ "read": null, "write": null, "env": {}, "run": "" })),
        ("enableSampling", json!(null)),
        ("maxSamplingRounds", json!(0)),
        ("maxSamplingTokens", json!(0)),
        ("samplingSystemPrompt", json!("")),
        ("allowedSamplingModels", json!([])),
        ("skipDangerousPatternCheck", json!(false)),
        ("skipDangerousPatternCheck", json!(true)),
        ("skipDangerousPatternCheck", json!(null)),
    ] {
        assert_eq!(read(json!({ "code": "x", name: neutral })).as_ref(), Ok(&plain), "{name}: {neutral}");
    }
    let Value::Object(detached) = json!({ "code": "x", "input": null }) else { panic!("an object") };
    assert_eq!(RunArguments::read(detached.clone(), Some(Value::Null.into())).as_ref(), Ok(&plain));
    let given = RunArguments::read(detached, Some(json!([1]).into())).unwrap();
    assert_eq!(given.input, Some(json!([1]).into()));
}

/// A restriction that is read as none would allow what the client has forbidden.
#[test]
fn an_empty_list_of_tools_allows_none() {
    assert_eq!(read(json!({ "code": "", "allowedTools": [] })).unwrap().allowed_tools, Some(Vec::new()));
}

#[test]
fn what_others_have_is_refused_where_it_asks_for_something() {
    for (name, value, expected) in [
        ("permissions", json!({ "run": ["ls"] }), "`run` cannot be granted"),
        ("permissions", json!({ "net": true }), "expected an array of hosts"),
        ("permissions", json!({ "net": ["http://a"] }), "expected a host such as"),
        ("permissions", json!({ "read": ["/data", 1] }), "expected an array of directories"),
        ("permissions", json!({ "reads": ["/data"] }), "`reads` cannot be granted"),
        ("permissions", json!("all"), "expected an object with any of `read`"),
        ("skipDangerousPatternCheck", json!("eval"), "there is no such check"),
    ] {
        let problem = read(json!({ "code": "", name: value })).unwrap_err().to_string();
        let start = format!("`{name}`: ");
        assert!(problem.starts_with(&start) && problem.contains(expected), "{problem}");
    }
}

/// A misspelled restriction would leave the run what the client has forbidden.
#[test]
fn v_688_a_restriction_of_an_unknown_kind_is_refused() {
    for (kind, value) in
        [("reads", json!([])), ("network", json!(false)), ("Net", json!([])), ("", json!({}))]
    {
        let problem = read(json!({ "code": "", "permissions": { kind: value } })).unwrap_err().to_string();
        assert!(problem.contains(&format!("`{kind}` cannot be granted")), "{problem}");
    }
}

/// Strict modes fill in every field. A list with nothing in it asks for nothing.
#[test]
fn permissions_are_read_as_they_are_written() {
    let permissions = |value: Value| read(json!({ "code": "", "permissions": value })).unwrap().permissions;
    let none = Permissions { read: Some(Vec::new()), write: Some(Vec::new()), net: Some(Vec::new()) };
    assert_eq!(permissions(json!({ "read": [], "write": false, "net": [], "env": [], "run": false })), none);
    let asked = permissions(json!({ "read": ["/data", "/srv/x"], "net": ["a.example:443"] }));
    let expected = Permissions {
        read: Some(vec!["/data".into(), "/srv/x".into()]),
        write: None,
        net: Some(vec!["a.example:443".parse().unwrap()]),
    };
    assert_eq!(asked, expected);
}

#[test]
fn many_problems_are_counted() {
    let unknown = (0..1_000).map(|number| (format!("x{number}"), json!(1)));
    let problem = RunArguments::read(unknown.collect(), None).unwrap_err().to_string();
    assert!(
        problem.starts_with("unknown parameter `x0`") && problem.ends_with("; and 981 more"),
        "{problem}"
    );
    assert!(problem.len() < 5_000, "{}", problem.len());
}

/// Patterns of a client times names of upstream servers.
#[test]
fn v_527_patterns_of_a_client_have_a_bound() {
    let problem = |patterns: Vec<String>| {
        read(json!({ "code": "", "allowedTools": patterns })).unwrap_err().to_string()
    };
    assert_eq!(
        problem(vec!["fs.*".to_owned(); MAX_PATTERNS + 1]),
        "`allowedTools`: expected at most 500 patterns: 501"
    );
    let long = "x".repeat(MAX_PATTERN_BYTES);
    assert_eq!(problem(vec![format!("{long}.*")]), "`allowedTools`: a pattern has at most 512 bytes: 514");
    assert!(read(json!({ "code": "", "allowedTools": vec!["fs.*"; MAX_PATTERNS] })).is_ok());
}

/// Wildcards of a client times names that a server chooses.
#[test]
fn v_535_wildcards_of_a_client_have_a_bound() {
    let read = |pattern: &str, count: usize| {
        let read = read(json!({ "code": "", "allowedTools": vec![pattern; count] }));
        read.map_err(|problem| problem.to_string()).err().unwrap_or_default()
    };
    for (pattern, count) in [("*.get_*", 500), ("mcp__*__list*", 500), ("*.*_x_*", 500), ("a?.b", 30)] {
        assert_eq!(read(pattern, count), "", "{pattern}");
    }
    for (pattern, count) in [("fs.*a*a*a*", 500), ("*.*a*b*", 251), ("*.aaaaaaaa?", 10)] {
        let problem = read(pattern, count);
        assert!(problem.starts_with("`allowedTools`: expected at most 500 `*` in all patterns"), "{problem}");
    }
    let all = "*a".repeat(200);
    assert_eq!(read(&format!("fs.{all}"), 2), "");
    assert_ne!(read(&format!("fs.{all}"), 3), "");
}
