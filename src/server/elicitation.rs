//! Passes questions of upstream servers on to the user at the client, marked with the server's name.

use futures::future::BoxFuture;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;

use super::prompt::{Show, UserPrompts, ask_user};
use crate::text::ids::random_id;
use crate::tools::{ElicitationAnswer, ElicitationMode, ElicitationRequest};

/// Returns an elicitor that passes questions on to the user of this client.
pub(crate) fn elicitor(
    client: &UserPrompts,
) -> impl Fn(ElicitationRequest) -> BoxFuture<'static, ElicitationAnswer> + Send + Sync + use<> {
    let show = Show::clone(&client.show);
    let (shows_forms, opens_addresses) = (client.shows_forms, client.opens_addresses);
    move |request: ElicitationRequest| -> BoxFuture<'static, ElicitationAnswer> {
        let may_show = match request.mode {
            ElicitationMode::Form(_) => shows_forms,
            ElicitationMode::Url(_) => opens_addresses,
        };
        let prompt = parameters(&request).filter(|_| may_show);
        ask_user(&show, prompt, answer, ElicitationAnswer::Unavailable)
    }
}

/// The request that the client shows. `None` if rmcp refuses the form, or the system provides no random numbers.
fn parameters(request: &ElicitationRequest) -> Option<ElicitRequestParams> {
    let message = request.render();
    Some(match &request.mode {
        ElicitationMode::Form(form) => ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema: serde_json::from_value(form.schema()).ok()?,
        },
        ElicitationMode::Url(address) => ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message,
            url: address.clone(),
            // Not the server's id: two servers may choose the same.
            elicitation_id: random_id().ok()?,
        },
    })
}

fn answer(result: ElicitResult) -> ElicitationAnswer {
    match result.action {
        ElicitationAction::Accept => match result.content {
            Some(Value::Object(content)) => ElicitationAnswer::Accept(content),
            _ => ElicitationAnswer::Accept(serde_json::Map::new()),
        },
        ElicitationAction::Decline => ElicitationAnswer::Decline,
        _ => ElicitationAnswer::Cancel,
    }
}
