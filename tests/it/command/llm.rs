//! Language models that environment variables configure: each does what `docs/llm.md` says.

use cx::ProviderKind;
use serde_json::{Value, json};

use super::home::Home;
use crate::support::provider::{FakeProvider, KEY, Reply};

const ASK: &str = "return await llm.ask('one two', { maxTokens: 50 })";

fn provider(kind: ProviderKind) -> FakeProvider {
    FakeProvider::start(kind, |asked| Reply::Text(format!("you said: {}", asked.prompt)))
}

/// The outcome of a script, and its stderr.
fn run(home: &Home, variables: &[(&str, &str)], source: &str) -> (Value, String) {
    let mut command = home.command(&["run", "--json", "-e", source]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let result = serde_json::from_slice(&output.stdout);
    (result.unwrap_or_else(|error| panic!("{error}: {stderr}")), stderr)
}

#[test]
fn the_variables_say_which_provider_and_model_are_asked_and_where() {
    let home = Home::new();
    let (openai, anthropic) = (provider(ProviderKind::OpenAi), provider(ProviderKind::Anthropic));
    let (openai_url, anthropic_url) = (openai.url(), anthropic.url());
    let of_openai = [
        ("CX_LLM", "true"),
        ("CX_LLM_PROVIDER", "openai"),
        ("CX_LLM_MODEL", "model-of-the-variable"),
        ("CX_LLM_URL", &*openai_url),
        ("OPENAI_API_KEY", KEY),
    ];
    let (result, stderr) = run(&home, &of_openai, ASK);
    assert_eq!(result["value"], "you said: one two", "{result:#} {stderr}");
    assert_eq!(result["samplingCalls"][0]["provider"], "openai");
    let asked = openai.asked();
    assert_eq!(
        (&*asked[0].path, &asked[0].body["model"]),
        ("/v1/chat/completions", &json!("model-of-the-variable"))
    );
    // Another wire format, at another address.
    let of_anthropic = [
        ("CX_LLM", "true"),
        ("CX_LLM_PROVIDER", "anthropic"),
        ("CX_LLM_MODEL", "another-model"),
        ("CX_LLM_URL", &*anthropic_url),
        ("ANTHROPIC_API_KEY", KEY),
    ];
    let (result, _) = run(&home, &of_anthropic, ASK);
    assert_eq!(result["samplingCalls"][0]["provider"], "anthropic", "{result:#}");
    let asked = anthropic.asked();
    assert_eq!((&*asked[0].path, &asked[0].body["model"]), ("/v1/messages", &json!("another-model")));
    // Variables have precedence over the user's file, whose other settings still hold.
    home.configure(&json!({ "llm": {
        "enabled": false, "provider": "openai", "model": "model-of-the-file", "url": "http://127.0.0.1:1/v1",
        "rounds": 3,
    } }));
    let (result, stderr) = run(&home, &of_openai, ASK);
    assert_eq!(result["value"], "you said: one two", "{result:#} {stderr}");
    assert_eq!(openai.asked()[1].body["model"], "model-of-the-variable");
    assert_eq!(result["samplingMetrics"]["quotaRemaining"]["rounds"], 2);
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[test]
fn the_key_of_anthropic_and_cx_llm_are_enough() {
    let home = Home::new();
    let anthropic = provider(ProviderKind::Anthropic);
    // The test sets the address only to reach its own provider.
    let url = anthropic.url();
    let (result, _) =
        run(&home, &[("CX_LLM", "true"), ("CX_LLM_URL", &url), ("ANTHROPIC_API_KEY", KEY)], ASK);
    assert_eq!(result["value"], "you said: one two", "{result:#}");
    assert_eq!(anthropic.asked()[0].body["model"], "claude-sonnet-4-5");
}

#[test]
fn cx_llm_says_whether_runs_may_ask() {
    let home = Home::new();
    let openai = provider(ProviderKind::OpenAi);
    let url = openai.url();
    let others = [
        ("CX_LLM_PROVIDER", "openai"),
        ("CX_LLM_MODEL", "m"),
        ("CX_LLM_URL", &*url),
        ("OPENAI_API_KEY", KEY),
    ];
    // `false`, not set, and empty, which is the same.
    for enabled in [Some("false"), None, Some("")] {
        let variables: Vec<_> = enabled.map(|value| ("CX_LLM", value)).into_iter().chain(others).collect();
        let (result, _) = run(&home, &variables, ASK);
        assert_eq!(result["error"]["toolCode"], "MODEL_UNAVAILABLE", "{enabled:?}: {result:#}");
        let asks = result["error"]["message"].as_str().unwrap().contains("enableSampling");
        assert_eq!(asks, enabled != Some("false"), "{enabled:?}: {result:#}");
    }
    assert!(openai.asked().is_empty());
    let (result, _) = run(&home, &[&[("CX_LLM", "true")], &others[..]].concat(), ASK);
    assert_eq!(result["value"], "you said: one two", "{result:#}");
}

/// The key is in no log, whatever the log level.
#[test]
fn v_564_the_most_detailed_log_has_no_key_and_no_answer_of_a_model() {
    let home = Home::new();
    let openai = FakeProvider::start(ProviderKind::OpenAi, |asked| match asked.prompt.as_str() {
        "fails" => Reply::Status(500, "", format!("your key was {KEY}")),
        _ => Reply::Text("said-by-the-model".to_owned()),
    });
    let url = openai.url();
    let source = "await llm.ask('works', { maxTokens: 9 }); await llm.ask('fails', { maxTokens: 9 })";
    let variables = [
        ("CX_LLM", "true"),
        ("CX_LLM_PROVIDER", "openai"),
        ("CX_LLM_MODEL", "m"),
        ("CX_LLM_URL", &*url),
        ("OPENAI_API_KEY", KEY),
        ("CX_LOG", "trace"),
    ];
    let (result, stderr) = run(&home, &variables, source);
    assert_eq!(result["error"]["toolCode"], "MODEL_ERROR", "{result:#}");
    assert!(stderr.contains("TRACE"), "{stderr}");
    assert!(
        !stderr.contains(KEY) && !stderr.contains("said-by") && !result.to_string().contains(KEY),
        "{stderr}"
    );
    assert_eq!(openai.asked().len(), 2);
}

#[test]
fn the_variables_bound_the_budget() {
    let home = Home::new();
    let openai = provider(ProviderKind::OpenAi);
    let url = openai.url();
    let base = [
        ("CX_LLM", "true"),
        ("CX_LLM_PROVIDER", "openai"),
        ("CX_LLM_MODEL", "m"),
        ("CX_LLM_URL", &*url),
        ("OPENAI_API_KEY", KEY),
    ];
    let with =
        |more: &[(&'static str, &'static str)], source: &str| run(&home, &[&base[..], more].concat(), source);
    let left = |result: &Value| {
        let left = &result["samplingMetrics"]["quotaRemaining"];
        (left["rounds"].as_u64().unwrap(), left["tokens"].as_u64().unwrap())
    };
    // Two words and four.
    let (result, _) = with(&[], ASK);
    assert_eq!(left(&result), (9, 10_000 - 6), "{result:#}");
    let (result, _) = with(&[("CX_LLM_ROUNDS", "2"), ("CX_LLM_TOKENS", "1234")], ASK);
    assert_eq!(left(&result), (1, 1_234 - 6), "{result:#}");
    let again = "const codes = [];
        for (let i = 0; i < 3; i++) {
            codes.push(await llm.ask('x', { maxTokens: 9 }).then(() => 'ok', (error) => error.code));
        }
        codes.push(await llm.ask('x', { maxTokens: 2_000 }).then(() => 'ok', (error) => error.code));
        return codes";
    let exceeded = "MODEL_BUDGET_EXCEEDED";
    let (result, _) = with(&[("CX_LLM_ROUNDS", "2")], again);
    assert_eq!(result["value"], json!(["ok", "ok", exceeded, exceeded]), "{result:#}");
    let (result, _) = with(&[("CX_LLM_TOKENS", "500")], again);
    assert_eq!(result["value"], json!(["ok", "ok", "ok", exceeded]), "{result:#}");
    let (result, _) = with(&[], again);
    assert_eq!(result["value"], json!(["ok", "ok", "ok", "ok"]), "{result:#}");
    // A value that cannot be read is reported, and the default stays.
    for (name, value) in [("CX_LLM_ROUNDS", "many"), ("CX_LLM_TOKENS", "0"), ("CX_LLM_PROVIDER", "absent")] {
        let (result, stderr) = with(&[(name, value)], ASK);
        assert!(stderr.contains(name), "{name}: {stderr}");
        if name == "CX_LLM_PROVIDER" {
            assert_eq!(result["error"]["toolCode"], "MODEL_UNAVAILABLE", "{result:#}");
        } else {
            assert_eq!(left(&result), (9, 10_000 - 6), "{name}: {result:#}");
        }
    }
}
