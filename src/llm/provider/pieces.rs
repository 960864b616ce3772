//! A streamed answer, piece by piece.

use std::sync::Arc;

use futures::StreamExt as _;

use super::failure::{Failures, cut};
use super::incoming::Incoming;
use super::part::AnswerPart;
use super::wire;
use crate::llm::model::{ModelAnswer, ModelError, ModelPiece, ModelStream};
use crate::llm::options::ProviderKind;

/// A streamed answer that is being read.
pub(crate) struct StreamedAnswer {
    kind: ProviderKind,
    failures: Arc<Failures>,
    incoming: Incoming,
    /// What its messages have said so far, but for the text.
    known: AnswerPart,
}

impl StreamedAnswer {
    /// The answer of `model`, of which nothing was read.
    pub(crate) fn new(
        kind: ProviderKind,
        failures: Arc<Failures>,
        model: String,
        incoming: Incoming,
    ) -> Self {
        Self { kind, failures, incoming, known: AnswerPart { model: Some(model), ..AnswerPart::default() } }
    }

    /// The pieces. The last one is the end or an error. Dropping the stream ends the request.
    pub(crate) fn into_stream(self) -> ModelStream {
        let pieces = futures::stream::unfold(Some(self), |answer: Option<Self>| async move {
            let mut answer = answer?;
            let piece = answer.next().await;
            let goes_on = matches!(piece, Ok(ModelPiece::Text(_)));
            Some((piece, goes_on.then_some(answer)))
        });
        pieces.boxed()
    }

    /// The next piece. All providers say why an answer ends, most of them before the last message: an answer whose
    /// connection ends before that was cut. A reason is not the end.
    async fn next(&mut self) -> Result<ModelPiece, ModelError> {
        while !self.known.is_last {
            let message = self.incoming.next().await.map_err(|failure| self.failures.unread(&failure))?;
            let Some(message) = message else {
                if self.known.stop_reason.is_none() {
                    return Err(cut());
                }
                break;
            };
            let text = std::str::from_utf8(&message.data).ok();
            let part = text.and_then(|text| wire::message(self.kind, &message.name, text));
            let part = part.ok_or_else(|| self.failures.unexpected())?;
            if let Some(error) = &part.error {
                return Err(self.failures.reported(error));
            }
            let text = self.learn(part);
            if !text.is_empty() {
                return Ok(ModelPiece::Text(text));
            }
        }
        Ok(ModelPiece::End(ModelAnswer {
            text: String::new(),
            model: self.known.model.take(),
            stop_reason: self.known.stop_reason.take(),
            usage: self.known.usage(),
        }))
    }

    /// Takes up what a message says, and returns its text. Later numbers replace earlier ones.
    fn learn(&mut self, part: AnswerPart) -> String {
        let known = &mut self.known;
        known.stop_reason = part.stop_reason.or_else(|| known.stop_reason.take());
        known.input_tokens = part.input_tokens.or(known.input_tokens);
        known.output_tokens = part.output_tokens.or(known.output_tokens);
        known.is_last |= part.is_last;
        part.text
    }
}
