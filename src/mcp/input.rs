//! Provides input that a server requires before it answers a call: the rounds of the stateless revision, and addresses
//! that users have to open first.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, InputResponses};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::errors::{self, MESSAGE_BYTES, shortened};
use super::questions::{Caller, Questions, Refused};
use super::results::RequiredInput;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum number of times that a server may ask for input before it answers one call.
const MAX_ROUNDS: u32 = 10;

/// The pause before a call is repeated to a server that needs time and no input. It doubles with each round.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The error of a server whose user has to open addresses first (revision 2025-11-25).
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Maximum number of such addresses in one error.
const MAX_ADDRESSES: usize = 4;

/// The rounds of one call.
#[derive(Default)]
pub(crate) struct Rounds(u32);

/// One request for input in an answer.
#[derive(Deserialize)]
struct Request<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Rounds {
    /// Whether the server has asked for no input yet.
    pub(crate) fn is_first(&self) -> bool {
        self.0 == 0
    }

    /// Provides the input that a server requires: answers of the user, one after the other, and roots.
    ///
    /// # Errors
    ///
    /// `ToolDenied` if the user cannot be asked; `UpstreamProtocol` if the server asks too often or for something
    /// unsupported.
    pub(crate) async fn give(
        &mut self,
        questions: &Questions,
        server: &str,
        caller: &Arc<Caller>,
        required: RequiredInput,
    ) -> Result<(InputResponses, Option<String>), ToolError> {
        let wrong = |problem: String| {
            ToolError::new(ToolErrorCode::UpstreamProtocol, format!("server `{server}` {problem}"))
        };
        if self.0 >= MAX_ROUNDS {
            return Err(wrong(format!("asks for input more than {MAX_ROUNDS} times in one call")));
        }
        let round = self.0;
        self.0 += 1;
        if required.requests.is_empty() {
            sleep(FIRST_PAUSE.saturating_mul(2u32.saturating_pow(round))).await;
        }
        let mut responses = InputResponses::new();
        for (key, request) in required.requests {
            let request: Request<'_> = serde_json::from_str(&request)
                .map_err(|error| wrong(format!("asks for input that cannot be read: {error}")))?;
            let response = match (request.method.as_str(), questions.roots()) {
                ("elicitation/create", _) => {
                    let answer = questions.ask(caller, request.params).await;
                    answer.map_err(|refused| not_asked(server, &refused))?
                }
                ("roots/list", Some(roots)) => roots,
                (method, _) => {
                    let method = shortened(method, 100);
                    return Err(wrong(format!("asks for `{method}`, which this client does not support")));
                }
            };
            responses.insert(key, response);
        }
        Ok((responses, required.state))
    }
}

/// The error of a call, after the user was asked to open the addresses that it needs. The call is not repeated
/// automatically: only the user knows when they have finished there.
pub(crate) async fn call_error(
    questions: &Questions,
    server: &str,
    tool: &str,
    caller: &Arc<Caller>,
    error: &ErrorData,
) -> ToolError {
    let plain = errors::call_error(server, tool, error);
    let asked = error.data.as_ref().filter(|_| error.code == URL_ELICITATION_REQUIRED);
    let Some(addresses) = asked.and_then(|data| data["elicitations"].as_array()) else { return plain };
    let mut message = shortened(&error.message, MESSAGE_BYTES);
    for address in addresses.iter().take(MAX_ADDRESSES) {
        match open_address(questions, caller, address).await {
            Ok(true) => {}
            Ok(false) => {
                message = format!("{message}; a person was asked to open an address for it, and refused");
                return ToolError { code: ToolErrorCode::ToolDenied, message, ..plain };
            }
            Err(refused) => {
                let refused = not_asked(server, &refused);
                let message = format!("{message}; {}", refused.message);
                return ToolError { code: refused.code, message, ..plain };
            }
        }
    }
    message = format!(
        "{message}; a person has agreed to open the address for it: call again when they are done there"
    );
    ToolError { message, ..plain }
}

/// Asks the user to open one address. Returns whether they agree.
async fn open_address(questions: &Questions, caller: &Arc<Caller>, address: &Value) -> Result<bool, Refused> {
    let mut parameters = address.clone();
    // An error can only ask for addresses.
    if let Value::Object(fields) = &mut parameters {
        fields.insert("mode".to_owned(), "url".into());
    }
    let text = serde_json::value::to_raw_value(&parameters).map_err(Refused::Invalid)?;
    Ok(questions.ask(caller, Some(&text)).await?["action"] == "accept")
}

fn not_asked(server: &str, refused: &Refused) -> ToolError {
    let message = format!("server `{server}` requests an elicitation before it answers the call: {refused}");
    ToolError::new(ToolErrorCode::ToolDenied, message)
}
