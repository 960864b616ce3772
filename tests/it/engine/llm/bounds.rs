//! What the operator sets: models, prompts, secrets, budgets.

use super::*;

#[tokio::test]
async fn sa_175_models_and_system_prompts_are_those_on_the_lists() {
    let provider = echo(ProviderKind::OpenAi);
    let options = LlmOptions {
        allowed_models: Some(vec!["small".to_owned(), "large".to_owned()]),
        allowed_system_prompts: Some(vec!["be brief".to_owned()]),
        ..provider.options()
    };
    let executor = executor(options);
    let refused = async |source: &str, wishes: SamplingOptions| {
        let result = run(&executor, Script::typescript(source).sampling(wishes)).await;
        result.error().map(|error| error.tool_code.unwrap().as_str())
    };
    let none = SamplingOptions::default;
    let only_large =
        || SamplingOptions { allowed_models: Some(vec!["huge".into(), "large".into()]), ..none() };
    let only = |model: &str| SamplingOptions { allowed_models: Some(vec![model.to_owned()]), ..none() };
    for (source, wishes, expected) in [
        ("await llm.ask('x')", none(), None),
        ("await llm.ask('x', { model: 'small' })", none(), None),
        ("await llm.ask('x', { model: 'huge' })", none(), Some("MODEL_DENIED")),
        ("await llm.ask('x', { model: 'small' })", only_large(), Some("MODEL_DENIED")),
        ("await llm.ask('x')", only_large(), None),
        ("await llm.ask('x')", only("fake-model"), None),
        ("await llm.ask('x')", only("huge"), Some("MODEL_DENIED")),
        ("await llm.ask('x', { systemPrompt: 'be brief' })", none(), None),
        ("await llm.ask('x', { systemPrompt: 'Be brief' })", none(), Some("MODEL_DENIED")),
        (
            "await llm.think({ messages: [{ role: 'system', content: 'obey' }, { role: 'user', content: 'x' }] })",
            none(),
            Some("MODEL_DENIED"),
        ),
        (
            "await llm.ask('x')",
            SamplingOptions { system_prompt: Some("other".into()), ..none() },
            Some("MODEL_DENIED"),
        ),
    ] {
        assert_eq!(refused(source, wishes).await, expected, "{source}");
    }
    // The first of the client's models that is allowed.
    let models: BTreeSet<String> =
        provider.asked().iter().map(|asked| asked.body["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(models, ["fake-model", "large", "small"].map(str::to_owned).into());
}

/// The refusal names the models that may be asked, so that the next script names one of them.
#[tokio::test]
async fn a_refused_model_is_answered_with_those_that_may_be_asked() {
    let provider = echo(ProviderKind::OpenAi);
    let refused = async |allowed: Option<Vec<String>>, of_run: Option<Vec<String>>, source: &str| {
        let executor = executor(LlmOptions { allowed_models: allowed, ..provider.options() });
        let wishes = SamplingOptions { allowed_models: of_run, ..SamplingOptions::default() };
        let result = run(&executor, Script::typescript(source).sampling(wishes)).await;
        result.error().unwrap().message.clone()
    };
    let of = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    let huge = "await llm.ask('x', { model: 'huge' })";
    for (allowed, of_run, source, expected) in [
        (of(&["small", "large"]), None, huge, "asked: fake-model, large, small"),
        (of(&["small", "large"]), of(&["large", "huge"]), huge, "asked: large"),
        (None, of(&["small"]), huge, "the model `huge` is not on the list of those that may be asked: small"),
        (of(&["small"]), of(&["large"]), huge, "asked: it is empty"),
        (
            of(&["small"]),
            of(&["huge"]),
            "await llm.ask('x')",
            "none of the `allowedSamplingModels` is on the list of those that may be asked: fake-model, small",
        ),
    ] {
        let message = refused(allowed, of_run, source).await;
        assert!(message.ends_with(expected), "{message}");
    }
    let twenty: Vec<String> = (10..30).map(|number| format!("model-{number}")).collect();
    let message = refused(Some(twenty), None, huge).await;
    assert!(
        message.contains(": fake-model, model-10, ") && message.ends_with("model-18 and 11 more"),
        "{message}"
    );
}

#[tokio::test]
async fn sa_175_secrets_in_answers_are_hidden_or_the_answer_is_refused() {
    let secret = format!("sk-{}", "abcdefghijklmnopqrstuvwx12345678");
    let text = format!("the key is {secret} of jane@example.com ok");
    let provider = {
        let text = text.clone();
        FakeProvider::start(ProviderKind::Anthropic, move |_| Reply::Text(text.clone()))
    };
    let source = "let pieces = '';
        for await (const piece of llm.ask('x', { stream: true })) pieces += piece;
        return [await llm.ask('x'), pieces]";
    let run_with = async |mode| {
        let options = LlmOptions { content_filter: mode, ..provider.options() };
        run(&executor(options), Script::typescript(source)).await
    };
    let hidden = "the key is [REDACTED_SECRET] of [REDACTED_PII] ok";
    let result = run_with(FilterMode::Redact).await;
    assert_eq!(value(&result), json!([hidden, hidden]));
    for call in result.sampling.unwrap().calls {
        let found: Vec<_> = call.violations.iter().map(|found| (found.pattern, found.count)).collect();
        assert_eq!(found, [("openai_key", 1), ("email", 1)]);
    }
    assert_eq!(value(&run_with(FilterMode::Off).await), json!([text, text]));
    let refused = run_with(FilterMode::Refuse).await;
    let error = refused.error().unwrap();
    assert_eq!(error.tool_code, Some(ToolErrorCode::ModelDenied));
    assert!(error.message.contains("openai_key") && !error.message.contains(&secret), "{error}");
    assert!(!refused.to_json_text().contains(&secret));
}

/// A request that the provider refuses takes no tokens. Of one that fails otherwise, nobody knows. Each is one of the
/// calls that the run may make, so that a script cannot go on without end.
#[tokio::test]
async fn a_request_that_is_refused_takes_no_tokens() {
    let provider = FakeProvider::start(ProviderKind::OpenAi, |asked| {
        Reply::Status(asked.prompt.parse().unwrap(), "", "no".to_owned())
    });
    let executor = executor(provider.options());
    let refused = [400, 401, 403, 422, 429].map(|status| (status, true));
    let failed = [408, 424, 499, 500].map(|status| (status, false));
    for (status, is_free) in refused.into_iter().chain(failed) {
        let source = format!("await llm.ask('{status}', {{ maxTokens: 50 }}).catch(() => 0)");
        let metrics = run(&executor, Script::typescript(source)).await.sampling.unwrap().metrics;
        assert_eq!(metrics.total_tokens == 0, is_free, "{status}");
        assert_eq!(metrics.tokens_left == LlmOptions::DEFAULT_TOKENS, is_free, "{status}");
        assert_eq!(metrics.rounds_left, LlmOptions::DEFAULT_ROUNDS - 1, "{status}");
    }
}

/// A saved script asks at the expense of its caller, and has no budget of its own.
#[tokio::test]
async fn a_called_script_has_the_budget_of_its_caller() {
    let provider = echo(ProviderKind::OpenAi);
    let directory = tempfile::tempdir().unwrap();
    let library = cx::ScriptLibrary::of_folder(directory.path().join("scripts"));
    let source = "// Asks twice.
        export default async () => [await llm.ask('a', { maxTokens: 9 }), await llm.ask('b', { maxTokens: 9 })]";
    library.save(cx::SaveRequest::new("twice", cx::Language::TypeScript, source)).unwrap();
    let options = LlmOptions { rounds: Some(3), ..provider.options() };
    let executor = Executor::builder().llm(options).scripts(library).build().unwrap();
    let source = "const first = await scripts.twice({});
        return [first, await scripts.twice({}).catch(() => 'ended')]";
    let result = run(&executor, Script::typescript(source)).await;
    assert_eq!(value(&result), json!([["you said: a", "you said: b"], "ended"]));
    assert_eq!(provider.asked().len(), 3);
    let metrics = result.sampling.unwrap().metrics;
    assert_eq!((metrics.total_rounds, metrics.rounds_left), (3, 0));
}

/// 50 parallel calls in each language: the budget is never exceeded by one call or one token, however many tokens the
/// calls take.
#[tokio::test]
async fn sa_174_fifty_parallel_calls_never_pass_the_budget() {
    python().await;
    let count = Arc::new(AtomicUsize::new(0));
    let provider = FakeProvider::start(ProviderKind::OpenAi, {
        let count = Arc::clone(&count);
        move |asked| {
            let max =
                asked.body["max_tokens"].as_u64().or(asked.body["max_completion_tokens"].as_u64()).unwrap();
            let number = count.fetch_add(1, Ordering::SeqCst) as u64;
            std::thread::sleep(Duration::from_millis(number % 5));
            // Some answers take their maximum.
            let words = if number.is_multiple_of(3) { max } else { max / 4 };
            Reply::Text("w ".repeat(usize::try_from(words).unwrap()))
        }
    });
    let typescript = "const asked = await Promise.allSettled(Array.from({ length: 50 }, (_, i) => llm.ask(`say ${i}`, { maxTokens: 100 })));
        return asked.map((one) => one.status === 'fulfilled' ? 'ok' : one.reason.code)";
    let python = "
import asyncio
asked = await asyncio.gather(*(llm.ask(f'say {i}', max_tokens=100) for i in range(50)), return_exceptions=True)
['ok' if isinstance(one, str) else one.code for one in asked]
";
    let executor = Executor::builder()
        .llm(LlmOptions { rounds: None, tokens: None, ..provider.options() })
        .cache_directory(crate::support::python_cache())
        .build()
        .unwrap();
    for script in [Script::typescript(typescript), Script::python(python)] {
        // A call takes 27 or 102 tokens, so in the second and third case the tokens run out first.
        for (rounds, tokens, is_ended_by_tokens) in
            [(10, 10_000, false), (100, 1_000, true), (100, 1_001, true), (25, 3_000, false)]
        {
            let (calls_before, before) = (count.load(Ordering::SeqCst), provider.tokens());
            let wishes = SamplingOptions {
                max_rounds: Some(rounds),
                max_tokens: Some(tokens),
                ..SamplingOptions::default()
            };
            let result = run(&executor, script.clone().sampling(wishes)).await;
            let value = value(&result);
            let ok = value.as_array().unwrap().iter().filter(|one| **one == "ok").count();
            let others =
                value.as_array().unwrap().iter().filter(|one| **one == "MODEL_BUDGET_EXCEEDED").count();
            assert_eq!(ok + others, 50, "{value}");
            let (made, used) = (count.load(Ordering::SeqCst) - calls_before, provider.tokens() - before);
            let metrics = result.sampling.as_ref().unwrap().metrics;
            assert!(made <= rounds as usize && used <= tokens, "{made} calls, {used} of {tokens} tokens");
            // As much of the budget is used as possible.
            if is_ended_by_tokens {
                assert!(tokens - used < 150, "{made} calls, {used} of {tokens} tokens");
            } else {
                assert_eq!(made, rounds as usize, "{used} of {tokens} tokens");
            }
            assert_eq!((metrics.total_rounds as usize, metrics.total_tokens), (made, used));
            assert_eq!(metrics.rounds_left as usize, rounds as usize - made);
            assert_eq!(metrics.tokens_left, tokens - used);
        }
    }
}
