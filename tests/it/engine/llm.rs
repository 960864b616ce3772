//! Scripts that ask a language model, against a provider over HTTP on loopback.

/// What the operator sets: models, prompts, secrets, budgets.
mod bounds;
/// What providers send that is no answer, or has no end.
mod hostile;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use cx::{
    ExecuteResult, Executor, FilterMode, Limits, LlmAccess, LlmOptions, ModelCallStatus, ProviderKind,
    SamplingOptions, Script, ToolErrorCode,
};
use serde_json::{Value, json};

use crate::support::provider::{Asked, FakeProvider, KEY, Reply};
use crate::support::{python, wait_until};

fn echo(kind: ProviderKind) -> FakeProvider {
    FakeProvider::start(kind, |asked| Reply::Text(format!("you said: {}", asked.prompt)))
}

fn executor(options: LlmOptions) -> Executor {
    assert!(!format!("{options:?}").contains(KEY), "{options:?}");
    Executor::builder().llm(options).build().unwrap()
}

/// An executor that runs both languages.
fn executor_of_both(options: LlmOptions) -> Executor {
    let builder = Executor::builder().llm(options);
    builder.cache_directory(crate::support::python_cache()).build().unwrap()
}

async fn run(executor: &Executor, script: Script) -> ExecuteResult {
    let result = executor.run(script).await.unwrap();
    for text in [result.to_json_text(), format!("{result:?}")] {
        assert!(!text.contains(KEY), "{text}");
    }
    result
}

#[track_caller]
fn value(result: &ExecuteResult) -> Value {
    result.value().cloned().unwrap_or_else(|| panic!("{:#}", result.to_json()))
}

/// Each provider, with its wire format, with whole answers and with streams.
#[tokio::test]
async fn every_provider_answers_at_once_and_in_pieces() {
    for kind in ProviderKind::ALL {
        let provider = echo(kind);
        let executor = executor(provider.options());
        let source = "const text = await llm.ask('one two', { systemPrompt: 'be brief', maxTokens: 77 });
            const thought = await llm.think({ messages: [
                { role: 'user', content: 'a' }, { role: 'assistant', content: 'b' }, { role: 'user', content: 'c d' },
            ] });
            const pieces = [];
            for await (const piece of llm.ask('three four five', { stream: true })) pieces.push(piece);
            return [text, thought, pieces.join(''), pieces.length > 1]";
        let result = run(&executor, Script::typescript(source)).await;
        let expected = json!(["you said: one two", "you said: c d", "you said: three four five", true]);
        assert_eq!(value(&result), expected, "{kind:?}");
        let sampling = result.sampling.as_ref().unwrap();
        assert_eq!(sampling.calls.len(), 3, "{kind:?}");
        for (call, tokens) in sampling.calls.iter().zip([2 + 4, 2 + 4, 3 + 5]) {
            assert_eq!((call.status, &*call.provider), (ModelCallStatus::Ok, kind.as_str()));
            assert_eq!((call.tokens, call.is_estimated), (tokens, false), "{kind:?}: {call:?}");
            assert!(call.stop_reason.is_some() && call.model.as_ref().unwrap().starts_with("fake-model"));
        }
        assert_eq!(sampling.metrics.total_tokens, provider.tokens(), "{kind:?}");
        let asked = provider.asked();
        assert!(asked[0].body.to_string().contains("be brief"), "{kind:?}: {}", asked[0].body);
        assert!(asked[0].body.to_string().contains("77"), "{kind:?}: {}", asked[0].body);
        // Gemini has another word for it.
        let role = if kind == ProviderKind::Gemini { r#""role":"model""# } else { r#""role":"assistant""# };
        assert!(asked[1].body.to_string().contains(role), "{kind:?}: {}", asked[1].body);
        // The key is in a header of each request, and nowhere else.
        let has_key = |asked: &Asked| asked.headers.iter().any(|(_, value)| value.ends_with(KEY));
        assert!(asked.iter().all(has_key), "{kind:?}");
        assert!(asked.iter().all(|asked| !asked.path.contains(KEY) && !asked.body.to_string().contains(KEY)));
    }
}

#[tokio::test]
async fn python_asks_in_the_same_ways() {
    python().await;
    let provider = echo(ProviderKind::OpenAi);
    let executor = Executor::builder()
        .llm(provider.options())
        .cache_directory(crate::support::python_cache())
        .build()
        .unwrap();
    let source = "
text = await llm.ask('one', max_tokens=50, system_prompt='s')
thought = await llm.think(messages=[{'role': 'user', 'content': 'two'}])
pieces = [piece async for piece in llm.ask('three', stream=True)]
async for first in llm.think([{'role': 'user', 'content': 'four'}], stream=True):
    break
sync = [llm.ask_sync('five'), llm.think_sync([{'role': 'user', 'content': 'six'}])]
blocking = list(llm.ask_sync('seven', stream=True))
try:
    await llm.ask('x', max_tokens=0)
except McpToolError as error:
    code = error.code
[text, thought, ''.join(pieces), first, sync, ''.join(blocking), code]
";
    let result = run(&executor, Script::python(source)).await;
    let expected = json!([
        "you said: one",
        "you said: two",
        "you said: three",
        "you ",
        ["you said: five", "you said: six"],
        "you said: seven",
        "INVALID_ARGUMENTS"
    ]);
    assert_eq!(value(&result), expected);
    assert_eq!(result.sampling.unwrap().calls.len(), 7);
}

#[tokio::test]
async fn an_answer_with_a_schema_is_a_value_and_asked_for_once_more_if_it_does_not_fit() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| {
        let messages = asked.body["messages"].as_array().unwrap().len();
        Reply::Text(match (messages, asked.prompt.contains("never")) {
            (1, _) => "Here you are: {\"n\": \"one\"}".to_owned(),
            (_, true) => "no".to_owned(),
            _ => "```json\n{\"n\": 1}\n```".to_owned(),
        })
    });
    let executor = executor(provider.options());
    let source = "const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
        const good = await llm.ask('count', { schema });
        const extracted = await llm.extract('the number is one', schema);
        const fits = await llm.extract({ n: 5 }, schema);
        const parsed = await llm.extract('{\"n\": 6}', schema);
        return [good, extracted, fits, parsed]";
    let result = run(&executor, Script::typescript(source)).await;
    assert_eq!(value(&result), json!([{ "n": 1 }, { "n": 1 }, { "n": 5 }, { "n": 6 }]));
    let asked = provider.asked();
    // A value that fits already costs nothing.
    assert_eq!(asked.len(), 4);
    assert!(asked[0].prompt.contains("\"integer\""), "{}", asked[0].prompt);
    assert!(
        asked[1].prompt.contains("That does not fit") && asked[1].prompt.contains("`n`"),
        "{}",
        asked[1].prompt
    );
    assert!(asked[2].prompt.contains("the number is one"), "{}", asked[2].prompt);

    // The same in Python, awaited and blocking.
    python().await;
    let of_python = |provider: &FakeProvider| {
        let builder = Executor::builder().llm(provider.options());
        builder.cache_directory(crate::support::python_cache()).build().unwrap()
    };
    let source = "
schema = {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n']}
extracted = await llm.extract('a number, one', schema, model='fake-model', max_tokens=40, system_prompt='be brief')
sync = llm.extract_sync('once more one', schema)
fits = [await llm.extract({'n': 5}, schema), llm.extract_sync('{\"n\": 6}', schema)]
[extracted, sync, fits]
";
    let result = run(&of_python(&provider), Script::python(source)).await;
    assert_eq!(value(&result), json!([{ "n": 1 }, { "n": 1 }, [{ "n": 5 }, { "n": 6 }]]));
    let asked = &provider.asked()[4..];
    // One call that fits at once, because the provider counts the system prompt, and one that fits the second time.
    assert_eq!(asked.len(), 3, "{asked:#?}");
    assert!(asked[0].prompt.contains("a number, one") && asked[0].prompt.contains("\"integer\""));
    let body = asked[0].body.to_string();
    assert!(body.contains("be brief") && body.contains("40"), "{body}");
    assert!(asked[1].prompt.contains("once more one") && asked[2].prompt.contains("That does not fit"));

    let wrong = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("no".to_owned()));
    let executor = self::executor(wrong.options());
    let result =
        run(&executor, Script::typescript("await llm.ask('x', { schema: { type: 'object' } })")).await;
    assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::ModelAnswerInvalid));
    assert_eq!(wrong.asked().len(), 2);
    for (source, code) in [
        ("await llm.ask('x', { schema: { type: 5 } })", ToolErrorCode::InvalidArguments),
        ("await llm.ask('x', { maxToken: 5 })", ToolErrorCode::InvalidArguments),
        ("await llm.think({ messages: [] })", ToolErrorCode::InvalidArguments),
        ("await llm.think({ messages: [{ role: 'tool', content: '' }] })", ToolErrorCode::InvalidArguments),
        (
            "for await (const a of llm.ask('x', { stream: true, schema: {} }));",
            ToolErrorCode::InvalidArguments,
        ),
    ] {
        let result = run(&executor, Script::typescript(source)).await;
        assert_eq!(result.error().unwrap().tool_code, Some(code), "{source}");
    }
    assert_eq!(wrong.asked().len(), 2);
    let source = "llm.extract_sync('x', {'type': 'object'})";
    let result = run(&of_python(&wrong), Script::python(source)).await;
    assert_eq!(result.error().unwrap().tool_code, Some(ToolErrorCode::ModelAnswerInvalid));
    assert_eq!(wrong.asked().len(), 4);
}

/// Questions that are asked at once reach the provider at the same time, in both languages: the provider answers none
/// before the last one has arrived.
#[tokio::test]
async fn questions_are_asked_in_parallel() {
    python().await;
    let together = Barrier::new(5);
    let provider = FakeProvider::start(ProviderKind::OpenAi, move |_| {
        together.wait();
        Reply::Text("together".to_owned())
    });
    let executor = executor_of_both(provider.options());
    let typescript =
        "return await Promise.all([1, 2, 3, 4, 5].map((one) => llm.ask(`${one}`, { maxTokens: 50 })))";
    let python = "
import asyncio
await asyncio.gather(*(llm.ask(str(one), max_tokens=50) for one in range(5)))
";
    for script in [Script::typescript(typescript), Script::python(python)] {
        assert_eq!(value(&run(&executor, script).await), json!(vec!["together"; 5]));
    }
}

/// An answer that a script leaves early is not read any further: otherwise it could have no more than 64 at once.
#[tokio::test]
async fn an_answer_is_ended_early() {
    python().await;
    let provider = FakeProvider::start(ProviderKind::OpenAi, |_| Reply::Text("word ".repeat(100)));
    let options = LlmOptions { rounds: Some(100), tokens: Some(1_000_000), ..provider.options() };
    let executor = executor_of_both(options);
    let typescript = "for (let count = 0; count < 70; count++) {
            for await (const piece of llm.think({ messages: [{ role: 'user', content: 'x' }], stream: true, maxTokens: 10 })) {
                if (piece !== 'word ') return piece;
                break;
            }
        }
        return 'ended'";
    let python = "
for count in range(35):
    async for piece in llm.ask('x', stream=True, max_tokens=10):
        break
    for piece in llm.think_sync([{'role': 'user', 'content': 'x'}], stream=True, max_tokens=10):
        break
'ended'
";
    for script in [Script::typescript(typescript), Script::python(python)] {
        assert_eq!(value(&run(&executor, script).await), "ended");
    }
}

/// Failures of a provider, with whole answers and with streams: each is an error of its kind, without the key.
#[tokio::test]
async fn failures_of_a_provider_are_told_apart() {
    for kind in ProviderKind::ALL {
        let provider = FakeProvider::start(kind, |asked| match asked.prompt.as_str() {
            "limit" => Reply::Status(429, "retry-after: 7\r\n", "slow down".to_owned()),
            "overloaded" => Reply::Status(529, "retry-after: 3\r\n", "Overloaded".to_owned()),
            "elsewhere" => Reply::Status(403, "", "not in your country".to_owned()),
            "fail" => Reply::Status(500, "", format!("broken, and your key was {KEY} and jane@example.com")),
            "cut" => Reply::Cut("one two three four five six".to_owned()),
            "silent" => Reply::Silence,
            "garbage" => Reply::Garbage,
            _ => Reply::Text("fine".to_owned()),
        });
        let options = LlmOptions { rounds: Some(100), tokens: Some(1_000_000), ..provider.options() };
        let impatient = executor(LlmOptions { call_time: Duration::from_secs(2), ..options.clone() });
        let patient = executor(options);
        for (prompt, code, pause, said) in [
            ("limit", "RATE_LIMITED", 7_000, "status 429: slow down"),
            ("overloaded", "MODEL_ERROR", 3_000, "status 529: Overloaded"),
            ("elsewhere", "MODEL_ERROR", 0, "status 403: not in your country"),
            ("fail", "MODEL_ERROR", 0, "status 500: broken"),
            ("cut", "MODEL_ERROR", 0, "was cut"),
            ("silent", "MODEL_TIMEOUT", 0, "within 2s"),
            ("garbage", "MODEL_ERROR", 0, ""),
        ] {
            for ask in [
                format!("await llm.ask('{prompt}')"),
                format!("for await (const piece of llm.ask('{prompt}', {{ stream: true }}));"),
            ] {
                let source = format!(
                    "try {{ {ask} }} catch (error) {{ return [error.code, error.retryAfterMs ?? 0, error.message] }}"
                );
                let executor = if prompt == "silent" { &impatient } else { &patient };
                let result = run(executor, Script::typescript(source)).await;
                let value = value(&result);
                assert_eq!(value[0], code, "{kind:?} {ask}: {value}");
                assert_eq!(value[1], pause, "{kind:?} {ask}: {value}");
                let message = value[2].as_str().unwrap();
                assert!(message.contains(said), "{kind:?} {ask}: {value}");
                assert!(!message.contains("jane@") && !message.contains("127.0.0.1"), "{value}");
            }
        }
        wait_until(|| provider.open() == 0).await;
    }
}

#[tokio::test]
async fn a_wrong_key_and_a_provider_that_is_not_there() {
    let provider = echo(ProviderKind::Anthropic);
    let mut options = provider.options();
    options.provider.as_mut().unwrap().key = Some(cx::ApiKey::new("wrong"));
    let result = run(&executor(options.clone()), Script::typescript("await llm.ask('x')")).await;
    assert_eq!(result.error().unwrap().message, "anthropic refuses the key");
    options.provider.as_mut().unwrap().url = Some("http://127.0.0.1:1/".to_owned());
    let result = run(&executor(options), Script::typescript("await llm.ask('x')")).await;
    let error = result.error().unwrap();
    assert_eq!(error.tool_code, Some(ToolErrorCode::ModelUnavailable), "{error}");
    assert!(error.message.starts_with("anthropic cannot be reached: "), "{error}");
    // The request was never sent, so it costs nothing.
    assert_eq!(result.sampling.unwrap().metrics.total_tokens, 0);
}

/// A service that needs no key gets no header in place of one.
#[tokio::test]
async fn without_a_key_no_header_is_sent_for_one() {
    let provider = echo(ProviderKind::OpenAi);
    for key in [None, Some(cx::ApiKey::new(""))] {
        let mut options = provider.options();
        options.provider.as_mut().unwrap().key = key;
        let _refused = run(&executor(options), Script::typescript("await llm.ask('x')")).await;
    }
    let asked = provider.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|asked| asked.headers.iter().all(|(name, _)| name != "authorization")));
}

/// By default, only models that may use `llm` are told of it.
#[tokio::test]
async fn help_tells_of_models_where_there_are_some() {
    let provider = echo(ProviderKind::OpenAi);
    let source = "return [help().includes('llm.ask'), help('llm').includes('llm.extract')]";
    for (options, expected) in [(provider.options(), true), (LlmOptions::default(), false)] {
        let result = run(&executor(options), Script::typescript(source)).await;
        assert_eq!(value(&result), json!([expected, true]));
    }
}

#[tokio::test]
async fn without_a_model_scripts_are_told_the_ways_to_one() {
    let on = LlmOptions { access: LlmAccess::Always, ..LlmOptions::default() };
    let off = LlmOptions { access: LlmAccess::Never, ..LlmOptions::default() };
    let asks = || SamplingOptions { enabled: Some(true), ..SamplingOptions::default() };
    for (options, wishes, expected) in [
        (LlmOptions::default(), SamplingOptions::default(), "enableSampling: true"),
        (LlmOptions::default(), asks(), "ANTHROPIC_API_KEY"),
        (on.clone(), SamplingOptions::default(), "a client that offers its own"),
        (on, SamplingOptions { enabled: Some(false), ..SamplingOptions::default() }, "enableSampling: true"),
        (off, asks(), "switched it off"),
    ] {
        let script = Script::typescript("await llm.ask('x')").sampling(wishes);
        let result = run(&executor(options), script).await;
        let error = result.error().unwrap();
        assert_eq!(error.tool_code, Some(ToolErrorCode::ModelUnavailable));
        assert!(error.message.contains(expected), "{error}");
        assert!(result.sampling.is_none());
    }
}

#[tokio::test]
async fn the_result_reports_calls_and_metrics() {
    let provider =
        FakeProvider::start(ProviderKind::Mistral, |_| Reply::WithoutUsage("four words are here".to_owned()));
    let result =
        run(&executor(provider.options()), Script::typescript("return await llm.ask('hi there')")).await;
    let report = result.to_json();
    let call = &report["samplingCalls"][0];
    assert_eq!(
        (&call["round"], &call["provider"], &call["status"]),
        (&json!(1), &json!("mistral"), &json!("ok"))
    );
    // The provider did not report its tokens.
    assert_eq!(call["tokensEstimated"], true);
    let used = call["tokensUsed"].as_u64().unwrap();
    assert!((6..40).contains(&used), "{call}");
    let metrics = &report["samplingMetrics"];
    assert_eq!(metrics["quotaRemaining"], json!({ "rounds": 9, "tokens": 10_000 - used }));
    assert_eq!((&metrics["totalRounds"], &metrics["totalTokens"]), (&json!(1), &json!(used)));
    assert_eq!(metrics["averageTokensPerRound"], used);
    assert!(metrics["totalDurationMs"].as_f64().unwrap() > 0.0, "{metrics}");
    // The names that other programs know, and no others.
    let names: BTreeSet<&str> = metrics.as_object().unwrap().keys().map(String::as_str).collect();
    let known = ["averageTokensPerRound", "quotaRemaining", "totalDurationMs", "totalRounds", "totalTokens"];
    assert_eq!(names, BTreeSet::from(known));
    let without = run(&executor(provider.options()), Script::typescript("return 1")).await;
    assert!(without.to_json().get("samplingMetrics").is_none());
}

#[tokio::test]
async fn a_dry_run_plans_and_asks_no_model() {
    let provider = echo(ProviderKind::OpenAi);
    let source = "const schema = { type: 'object', properties: { n: { type: 'integer' } } };
        const pieces = [];
        for await (const piece of llm.ask('b', { stream: true })) pieces.push(piece);
        return [await llm.ask('a'), pieces, await llm.ask('c', { schema })]";
    let result = run(&executor(provider.options()), Script::typescript(source).dry_run()).await;
    assert_eq!(value(&result), json!(["dry run", ["dry run"], { "n": 1 }]));
    assert!(provider.asked().is_empty() && result.sampling.is_none());
    assert_eq!(result.planned_calls.unwrap().len(), 3);
}

/// A stream that is not read to its end, and a run that ends while a model answers, leave no request open.
#[tokio::test]
async fn what_is_not_read_is_cancelled() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
        "silent" => Reply::Silence,
        _ => Reply::Text("word ".repeat(20_000)),
    });
    let executor = executor(provider.options());
    let source = "for await (const piece of llm.ask('x', { stream: true })) return piece";
    assert_eq!(value(&run(&executor, Script::typescript(source)).await), "word ");
    wait_until(|| provider.open() == 0).await;
    let stop = cx::CancellationToken::new();
    let script = Script::typescript("await llm.ask('silent')").cancel_with(stop.clone());
    let answering = async {
        wait_until(|| provider.open() == 1).await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(run(&executor, script), answering);
    assert_eq!(result.error().unwrap().code, cx::ErrorCode::Cancelled);
    let calls = result.sampling.unwrap().calls;
    assert_eq!(calls[0].status, ModelCallStatus::InFlight);
    wait_until(|| provider.open() == 0).await;
}

/// The recipe: a document of 5 MB, asked about part by part, in parallel, under one budget.
#[tokio::test]
async fn a_long_document_is_read_in_parts() {
    python().await;
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| {
        let found = asked.prompt.contains("needle");
        Reply::Text(if asked.prompt.contains("Answers:") {
            "one".to_owned()
        } else if found {
            "needle".to_owned()
        } else {
            "none".to_owned()
        })
    });
    let mut document = "hay and more hay, as far as the eye can see.\n".repeat(5 * 1024 * 1024 / 45);
    document.insert_str(3_000_000, "\na needle\n");
    let options = LlmOptions { rounds: Some(200), tokens: Some(5_000_000), ..provider.options() };
    let executor =
        Executor::builder().llm(options).cache_directory(crate::support::python_cache()).build().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scripts");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    for script in [Script::typescript(read("long_document.ts")), Script::python(read("long_document.py"))] {
        let before = provider.asked().len();
        let input = json!({ "document": document, "question": "Where is the needle?" });
        let limits = Limits {
            wall_time: Duration::from_secs(120),
            cpu_time: Duration::from_secs(60),
            ..Limits::default()
        };
        let result = run(&executor, script.input(input).limits(limits)).await;
        assert_eq!(value(&result)["answer"], "one", "{:#}", result.to_json());
        assert!(value(&result)["parts"].as_u64().unwrap() > 20);
        assert!(provider.asked().len() - before > 20);
        // The parts never reach the agent.
        assert!(result.to_json_text().len() < 20_000);
    }
}

/// The name of a deployment does not tell that its model knows only the newer name of the maximum of tokens. The
/// service says so; then the question is sent once more with that name, and later ones are at once.
#[tokio::test]
async fn a_service_that_wants_the_newer_name_of_the_maximum_gets_it() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| {
        if asked.prompt == "wrong" {
            let message = "'max_tokens' or 'max_completion_tokens' is too large";
            Reply::Status(400, "", message.to_owned())
        } else if asked.prompt == "older" {
            match asked.body.get("max_tokens") {
                Some(maximum) => Reply::Text(maximum.to_string()),
                None => Reply::Status(400, "", "Unknown parameter: 'max_completion_tokens'".to_owned()),
            }
        } else if asked.body.get("max_tokens").is_some() {
            let message = "Unsupported parameter: 'max_tokens' is not supported with this model. \
                           Use 'max_completion_tokens' instead.";
            Reply::Status(400, "", message.to_owned())
        } else {
            Reply::Text(asked.body["max_completion_tokens"].to_string())
        }
    });
    let executor = executor(provider.options());
    let source = "const failure = await llm.ask('wrong', { maxTokens: 77 }).catch((error) => error.message);
        const pieces = [];
        for await (const piece of llm.ask('a', { maxTokens: 78, stream: true })) pieces.push(piece);
        const answers = [failure, pieces.join(''), await llm.ask('b', { maxTokens: 79 })];
        const older = () => llm.ask('older', { maxTokens: 80 });
        return [...answers, await older().catch((error) => error.code), await older()]";
    let result = run(&executor, Script::typescript(source)).await;
    let failure = "openai answers with status 400: 'max_tokens' or 'max_completion_tokens' is too large";
    assert_eq!(value(&result), json!([failure, "78", "79", "MODEL_ERROR", "80"]));
    // What is refused with both names is asked twice, and not a third time. A service that took the newer name and
    // refuses it now is asked with the older one from then on.
    let asked = provider.asked().into_iter().map(|asked| asked.prompt);
    assert_eq!(asked.collect::<Vec<_>>(), ["wrong", "wrong", "a", "a", "b", "older", "older"]);
}
