//! Requests other than calls over a connection: their answers pass to scripts unchanged.

use std::sync::atomic::Ordering;

use rmcp::model::{ClientRequest, CustomRequest};
use rmcp::service::ServiceError;
use serde_json::Value;

use super::answers::RequestTrace;
use super::connection::{CallFailure, Connection};
use super::errors;
use crate::json::{self, Json};

impl Connection {
    /// Sends any other request once and returns its result unchanged. Dropping the future tells the
    /// server that the request is cancelled.
    pub(crate) async fn request(
        &self,
        method: &str,
        parameters: Value,
        trace: &RequestTrace,
    ) -> Result<Json, CallFailure> {
        let text = self.request_text(method, parameters, trace).await?;
        let failed = CallFailure::after_sending;
        let unreadable = |problem: &str| failed(errors::unreadable(&self.server, problem));
        let mut asks = false;
        json::each_field(&text, |field, value| {
            asks |= field == "resultType" && value.get() == "\"input_required\"";
        })
        .map_err(|error| unreadable(&error.to_string()))?;
        if asks {
            return Err(unreadable("it asks for input, which cx gives in calls of tools only"));
        }
        Json::parse(&text).map_err(|error| unreadable(&error.to_string()))
    }

    pub(crate) async fn request_text(
        &self,
        method: &str,
        parameters: Value,
        trace: &RequestTrace,
    ) -> Result<String, CallFailure> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(parameters)));
        let result = match self.exchange(request, None, trace, None).await {
            Ok(text) => Ok(text),
            Err(ServiceError::McpError(error)) => Err(errors::call_error(&self.server, method, &error)),
            Err(error) => {
                let is_unsent = matches!(error, ServiceError::TransportSend(_));
                let error = self.lost(error, "it was asked").await;
                return Err(CallFailure { error, is_unsent, is_limited: false });
            }
        };
        self.has_answered.store(true, Ordering::Relaxed);
        result.map_err(CallFailure::after_sending)
    }
}
