//! Checks a call for private addresses in its arguments.

use serde_json::{Map, Value};

use super::held::HeldCall;
#[cfg(any(feature = "mcp", feature = "fetch"))]
use crate::net::private::private_address;
use crate::run::ledger::Call;
use crate::tools::approval::AskReason;
use crate::tools::in_force::ToolsInForce;
use crate::tools::{PrivateAddresses, ToolError, ToolErrorCode};

/// Looks for private addresses if any rule is about them. Returns why the call needs an approval, if it does, and
/// records in `held` the rule that requires the approval or refuses the call.
///
/// # Errors
///
/// `ToolDenied` if there is one and the rules allow none.
pub(super) fn check_addresses(
    held: &HeldCall,
    in_force: &ToolsInForce,
    call: Call<'_>,
    arguments: &Map<String, Value>,
) -> Result<Option<AskReason>, ToolError> {
    let treatment = in_force.private_addresses(call.server);
    if treatment == PrivateAddresses::Allow {
        return Ok(None);
    }
    let Some(found) = private_address(arguments) else {
        return Ok(None);
    };
    if treatment == PrivateAddresses::Ask {
        return Ok(Some(AskReason::PrivateAddress(found)));
    }
    held.note_rule(format!("privateAddresses: {treatment}"));
    let Call { server, tool, .. } = call;
    let message = format!(
        "the arguments of `{server}.{tool}` have {found}, and the configuration does not let tools have such addresses: \
         `privateAddresses` is `deny`"
    );
    Err(ToolError::new(ToolErrorCode::ToolDenied, message).for_tool(server, tool))
}

/// In a build without MCP servers and `fetch` no rule is about addresses.
#[cfg(not(any(feature = "mcp", feature = "fetch")))]
fn private_address(_arguments: &Map<String, Value>) -> Option<String> {
    None
}
