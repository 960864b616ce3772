//! Metrics of requests to language models, by OpenTelemetry's semantic conventions.

use std::sync::Arc;
use std::time::Instant;

use metrics::Label;

use crate::conventions as names;
use crate::llm::ModelUsage;
use crate::tools::ToolErrorCode;

/// A request to a model. It is counted once, even if it is dropped before its end.
#[derive(Debug)]
pub(super) struct MeasuredRequest {
    provider: Arc<str>,
    /// `None` once it is counted.
    began: Option<Instant>,
}

impl MeasuredRequest {
    pub(super) fn begin(provider: &Arc<str>) -> Self {
        Self { provider: Arc::clone(provider), began: Some(Instant::now()) }
    }

    /// Counts the request, with the tokens that its provider reports, and the code of its error.
    pub(super) fn end(&mut self, usage: Option<&ModelUsage>, code: Option<ToolErrorCode>) {
        let Some(began) = self.began.take() else { return };
        let error = code.map(|code| Label::from_static_parts(names::LABEL_ERROR, code.as_str()));
        let labels = self.labels(error);
        metrics::histogram!(names::MODEL_OPERATION, labels).record(began.elapsed());
        let Some(usage) = usage else { return };
        for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            let kind = Label::from_static_parts(names::LABEL_TOKEN_TYPE, kind);
            let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
            let labels = self.labels(Some(kind));
            metrics::histogram!(names::MODEL_TOKENS, labels).record(tokens);
        }
    }

    /// Discards the request, which was not sent: it is not counted.
    pub(super) fn discard(&mut self) {
        self.began = None;
    }

    /// Omits the model's name: scripts choose names, and each would be another time series.
    fn labels(&self, more: Option<Label>) -> Vec<Label> {
        let provider = names::gen_ai_provider(&self.provider).to_owned();
        let mut labels = vec![
            Label::from_static_parts(names::LABEL_OPERATION, names::CHAT),
            Label::new(names::LABEL_PROVIDER, provider),
        ];
        labels.extend(more);
        labels
    }
}

impl Drop for MeasuredRequest {
    /// The run has ended, or the script has left the answer.
    fn drop(&mut self) {
        self.end(None, Some(ToolErrorCode::Cancelled));
    }
}
