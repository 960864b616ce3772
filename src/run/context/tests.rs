//! What is left of a run that has ended.

use futures::future::BoxFuture;

use super::*;
use crate::json::Json;
use crate::llm::{LanguageModel, ModelAnswer, ModelError, ModelRequest, ModelStream, NamedModel};
use crate::run::models::Candidate;
use crate::run::models::streams::{Entry, UnsentQuestion};

/// A model that is not asked.
struct Unasked;

impl LanguageModel for Unasked {
    fn complete(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        Box::pin(std::future::pending())
    }

    fn stream(&self, _request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        Box::pin(std::future::pending())
    }
}

/// What holds the context may do so for longer than the run: an engine that is kept for the next one.
#[tokio::test]
async fn v_573_a_run_that_has_ended_keeps_no_request_open() {
    let environment = RunEnvironment::empty(Limits::default(), tokio::runtime::Handle::current());
    let context = ExecutionContext::new(Script::python("source"), environment);
    let model: Arc<dyn LanguageModel> = Arc::new(Unasked);
    let candidate = Candidate { model: NamedModel::new("model", Arc::clone(&model)), is_client: false };
    let request = ModelRequest { model: None, system_prompt: None, messages: Vec::new(), max_tokens: 1 };
    let question = UnsentQuestion { candidates: vec![candidate], request, may_shrink: false, bytes: 1 };
    context.streams.lock().add(Entry::Unsent(Box::new(question)), 1).unwrap();
    assert_eq!(Arc::strong_count(&model), 2);
    context.finish(Outcome::Returned(Json::from(serde_json::Value::Null)), Measured::default());
    assert_eq!(Arc::strong_count(&model), 1, "the question is still there");
}
