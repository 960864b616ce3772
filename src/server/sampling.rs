//! The client's model, through the protocol's sampling.
//!
//! A client of the handshake revisions is sent a request for each question. A client of the stateless
//! revision gets all questions that are open at the same time in one result, and repeats the call
//! with the answers.

#![expect(deprecated, reason = "the latest revision deprecates sampling, which all revisions in use have")]

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ModelHint, ModelPreferences, Role, SamplingMessage,
    SamplingMessageContentBlock,
};

use super::prompt::AskModel;
use crate::llm::{
    LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelPiece, ModelRequest, ModelRole, ModelStream,
};

/// The model of one client.
pub(crate) struct ClientModel {
    pub(crate) ask: AskModel,
}

impl LanguageModel for ClientModel {
    fn complete(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let asked = (self.ask)(parameters(request));
        async move { asked.await.and_then(answer) }.boxed()
    }

    /// Sampling has no streaming, so the answer is one piece.
    fn stream(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelStream, ModelError>> {
        let complete = self.complete(request);
        async move {
            let mut answer = complete.await?;
            let text = std::mem::take(&mut answer.text);
            let pieces = [Ok(ModelPiece::Text(text)), Ok(ModelPiece::End(answer))];
            Ok(futures::stream::iter(pieces).boxed())
        }
        .boxed()
    }
}

/// The request in the protocol's types.
fn parameters(request: ModelRequest) -> CreateMessageRequestParams {
    let messages = request.messages.into_iter().map(|message| match message.role {
        ModelRole::User => SamplingMessage::new(Role::User, SamplingMessageContentBlock::text(message.text)),
        ModelRole::Assistant => {
            SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(message.text))
        }
    });
    let mut parameters = CreateMessageRequestParams::new(messages.collect(), request.max_tokens);
    parameters.system_prompt = request.system_prompt;
    // The client decides: a model's name is only a hint.
    parameters.model_preferences =
        request.model.map(|model| ModelPreferences::new().with_hints(vec![ModelHint::new(model)]));
    parameters
}

/// The text of an answer.
fn answer(result: CreateMessageResult) -> Result<ModelAnswer, ModelError> {
    let mut text = String::new();
    for block in result.message.content.into_vec() {
        if let SamplingMessageContentBlock::Text(part) = block {
            text += &part.text;
        }
    }
    if text.is_empty() {
        return Err(ModelError::new(ModelErrorKind::Failed, "the client's answer has no text"));
    }
    let mut answer = ModelAnswer::text(text).with_model(result.model);
    answer.stop_reason = result.stop_reason;
    Ok(answer)
}
