//! What a language model says beside its answer, which the result of the run contains.

use std::sync::Arc;

use cx::{
    Executor, FilterMode, LanguageModel, LlmAccess, LlmOptions, ModelAnswer, ModelError, ModelPiece,
    ModelRequest, ModelStream,
};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::Barrier;

const SECRET: &str = "sk-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";

/// Answers two questions at once, or one in pieces, with long words and large numbers beside a short answer.
struct Verbose(Arc<Barrier>);

impl Verbose {
    fn answer(text: &str) -> ModelAnswer {
        ModelAnswer::text(text)
            .with_model("m".repeat(1_000_000))
            .with_stop_reason(format!("{SECRET} {}", "r".repeat(1_000_000)))
            .with_usage(u64::MAX, 1)
    }
}

impl LanguageModel for Verbose {
    fn complete(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let both = Arc::clone(&self.0);
        async move {
            both.wait().await;
            Ok(Self::answer("hi"))
        }
        .boxed()
    }

    fn stream(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let pieces = [ModelPiece::Text("hi".to_owned()), ModelPiece::End(Self::answer(""))];
        let pieces = futures::stream::iter(pieces.map(Ok)).boxed();
        futures::future::ready(Ok(pieces)).boxed()
    }
}

/// THREATS 670: the name of a model and the reason why its answer ends are short, and without the secrets that the
/// filter hides; the sum of tokens does not overflow.
#[tokio::test]
async fn v_670_what_a_model_says_beside_its_answer_is_short_and_filtered() {
    let whole = "return await Promise.all(['a', 'b'].map((text) => llm.ask(text, { maxTokens: 100 })))";
    let pieces = "for await (const _piece of llm.ask('a', { stream: true, maxTokens: 100 }));";
    for (mode, expected) in [
        (FilterMode::Redact, "[REDACTED_SECRET] rr"),
        (FilterMode::Refuse, "[REDACTED_SECRET] rr"),
        (FilterMode::Off, SECRET),
    ] {
        let executor = Executor::builder()
            .llm(LlmOptions { access: LlmAccess::Always, content_filter: mode, ..LlmOptions::default() })
            .language_model("verbose", Verbose(Arc::new(Barrier::new(2))))
            .build()
            .unwrap();
        for (source, count) in [(whole, 2), (pieces, 1)] {
            let result = executor.run_ts(source).await.unwrap();
            assert_eq!(result.error(), None);
            let text = result.to_json_text();
            assert!(text.len() < 5_000, "{} bytes", text.len());
            let report = result.sampling.unwrap();
            assert_eq!((report.calls.len(), report.metrics.total_tokens), (count, u64::MAX));
            for call in report.calls {
                let (model, reason) = (call.model.unwrap(), call.stop_reason.unwrap());
                assert_eq!((model.chars().count(), reason.chars().count()), (201, 201));
                assert!(reason.starts_with(expected), "{reason}");
            }
        }
    }
}
