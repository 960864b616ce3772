//! Errors for methods that are not served: what there is instead.

use rmcp::model::{ErrorCode, ErrorData};

use crate::text::{MAX_SHOWN_NAME, preview};

/// What to use in place of a method that the revision of a request does not have, or that cx does not serve.
const INSTEAD: &[(&str, &str)] = &[
    ("initialize", "the revision 2026-07-28 has no handshake; `server/discover` says what is offered"),
    (
        "logging/setLevel",
        "the revision 2026-07-28 does not have it; name the level in `_meta` of each request \
         (`io.modelcontextprotocol/logLevel`)",
    ),
    (
        "ping",
        "the revision 2026-07-28 does not have it; an answer to any request, such as `server/discover`, says the same",
    ),
    (
        "resources/subscribe",
        "the revision 2026-07-28 does not have it; name the resource in `resourceSubscriptions` of \
         `subscriptions/listen`",
    ),
    (
        "resources/unsubscribe",
        "the revision 2026-07-28 does not have it; cancel the request `subscriptions/listen`",
    ),
    (
        "subscriptions/listen",
        "only the revision 2026-07-28 has it; use `resources/subscribe` for a resource. Changes of the list of tools \
         are told without a subscription",
    ),
    ("tasks/list", "a task is found by its id only; `tools/call` answers with it"),
    ("tasks/result", "`tasks/get` has the result of a task that has ended"),
    ("roots/list", "a server asks its client for this"),
    ("sampling/createMessage", "a server asks its client for this"),
    ("elicitation/create", "a server asks its client for this"),
];

/// The error for a request with a method that is not served.
pub(crate) fn error(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, problem(method), None)
}

fn problem(method: &str) -> String {
    let instead = INSTEAD.iter().find(|(name, _)| *name == method);
    match instead {
        Some((_, instead)) => format!("`{method}` is not served here: {instead}"),
        None => {
            let method = preview(method, MAX_SHOWN_NAME);
            format!("no method `{method}`; there are tools, prompts, resources, skills and tasks")
        }
    }
}

/// Says the same in an error of rmcp, which has the bare name of the method as its text.
pub(crate) fn explain(error: &mut ErrorData) {
    if error.code == ErrorCode::METHOD_NOT_FOUND && INSTEAD.iter().any(|(name, _)| *name == error.message) {
        error.message = problem(&error.message).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_known_method_says_what_to_use_instead() {
        let mut bare = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "subscriptions/listen", None);
        explain(&mut bare);
        assert_eq!(bare, error("subscriptions/listen"));
        assert!(bare.message.contains("use `resources/subscribe`"), "{bare:?}");
        let mut other = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "else", None);
        explain(&mut other);
        assert_eq!(other.message, "else");
        let mut refused = ErrorData::new(ErrorCode::INVALID_PARAMS, "ping", None);
        explain(&mut refused);
        assert_eq!(refused.message, "ping");
        assert!(error("no/such").message.starts_with("no method `no/such`"));
    }
}
