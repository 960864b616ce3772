//! Requests other than calls over a connection: their answers pass to scripts unchanged.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::model::{ClientRequest, CustomRequest, JsonObject};
use rmcp::service::ServiceError;
use serde_json::Value;

use super::answers::{self, RequestTrace};
use super::connection::{CallFailure, Connection};
use super::errors;
use super::input::Rounds;
use super::questions::Caller;
use super::results;
use crate::json::Json;

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
        if results::asks_for_input(&text).map_err(|error| unreadable(&error.to_string()))? {
            return Err(unreadable("it asks for input, which it may not before it answers this request"));
        }
        Json::parse(&text).map_err(|error| unreadable(&error.to_string()))
    }

    /// As [`request`](Self::request), for a request that a server may answer by asking the user of `caller`, as it may a
    /// call. The request is then sent again with the user's answer, within the bounds of a call.
    pub(crate) async fn request_for(
        &self,
        method: &str,
        parameters: JsonObject,
        caller: &Arc<Caller>,
    ) -> Result<Json, CallFailure> {
        let failed = CallFailure::after_sending;
        let mut rounds = Rounds::default();
        let mut more = None;
        loop {
            let request = answers::request_for(method, parameters.clone(), Arc::clone(caller), more.take());
            let text = match self.exchange(request, Some(caller), &caller.trace, None).await {
                Ok(text) => text,
                Err(error @ ServiceError::McpError(_)) => {
                    return Err(self.call_failure(method, caller, error, rounds.is_first()).await);
                }
                Err(error) => return Err(self.unanswered(error, rounds.is_first(), "it was asked").await),
            };
            self.has_answered.store(true, Ordering::Relaxed);
            let required = results::input_before(&self.server, &text, self.is_stateless());
            let Some(required) = required.map_err(failed)? else {
                let unreadable = |problem: String| failed(errors::unreadable(&self.server, &problem));
                return Json::parse(&text).map_err(|error| unreadable(error.to_string()));
            };
            let given = rounds.give(self.notifications.questions(), &self.server, caller, required).await;
            more = Some(given.map_err(failed)?);
        }
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
            Err(error) => return Err(self.unanswered(error, true, "it was asked").await),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        result.map_err(CallFailure::after_sending)
    }
}
