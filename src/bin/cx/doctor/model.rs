//! The language model of scripts: whether there is one, and with `--ask-model` whether it answers.

use std::time::{Duration, Instant};

use cx::{Config, Limits, LlmAccess, SamplingOptions, Script};

use super::context::DoctorContext;
use super::report::Check;
use crate::diagnostic;
use crate::progress::ProgressLine;

const SECTION: &str = "language model";

/// A question with a minimal answer.
const QUESTION: &str = "return await llm.ask('Answer with the word ok and nothing else.', { maxTokens: 16 })";

/// Time for the answer.
const MAX_ANSWER: Duration = Duration::from_secs(60);

/// Whether a provider is configured: not known without a configuration. No request is sent.
pub(super) fn check(config: Option<&Config>) -> Check {
    let Some(config) = config else { return Check::unknown(SECTION) };
    let who = match config.llm.access {
        LlmAccess::Always => "every script may ask it",
        LlmAccess::Never => "no script may ask it: `llm.enabled` is false",
        _ => "scripts may ask it whose run says so (`--llm`, `enableSampling`)",
    };
    let Some(provider) = &config.llm.provider else {
        let message = "none is configured: scripts can ask the model of a client that offers it";
        return match config.llm.access {
            LlmAccess::Always => Check::warning(
                SECTION,
                "provider",
                format!("{message}; {who}"),
                "set `llm.provider` and `llm.model`, or ANTHROPIC_API_KEY; see docs/llm.md",
            ),
            _ => Check::ok(SECTION, "provider", message),
        }
        .with("configured", false);
    };
    let kind = provider.kind.as_str();
    let model = &provider.model;
    let check = match (provider.kind.key_variable(), &provider.key) {
        // A self-hosted service at an address may need no key.
        (Some(variable), None) if provider.url.is_none() => Check::problem(
            SECTION,
            "provider",
            format!("{kind}, model {model}, has no key"),
            format!("set {variable}, or `llm.apiKey` in cx's configuration"),
        ),
        _ => Check::ok(SECTION, "provider", format!("{kind}, model {model}; {who}")),
    };
    check.with("configured", true).with("provider", kind).with("model", model.as_str())
}

/// Asks the provider, as a script does.
pub(super) async fn ask(context: &DoctorContext, progress: &ProgressLine) -> Check {
    progress.say("waiting for the language model");
    let sampling = SamplingOptions { enabled: Some(true), ..SamplingOptions::default() };
    let limits = Limits { wall_time: MAX_ANSWER, ..context.executor.limits() };
    let began = Instant::now();
    let result = context.executor.run(Script::typescript(QUESTION).sampling(sampling).limits(limits)).await;
    let milliseconds = began.elapsed().as_millis();
    let hint = "see `llm` in `cx config show`, and docs/llm.md";
    match result.as_ref().map(|result| result.error()) {
        Ok(None) => Check::ok(SECTION, "answer", format!("it answered after {milliseconds} ms")),
        Ok(Some(error)) => {
            let hint = error.hint.as_deref().unwrap_or(hint);
            let code = error.tool_code.map_or(error.code.as_str(), |code| code.as_str());
            Check::problem(SECTION, "answer", format!("{code}: {}", error.message), hint)
        }
        Err(error) => Check::problem(SECTION, "answer", diagnostic::message_of(error), hint),
    }
    .with("answerMs", u64::try_from(milliseconds).unwrap_or(u64::MAX))
}
