//! The variables of mcp-server-code-execution-mode. `docs/other-programs.md` has the same table for users.

use super::document::{Content, Node};
use super::error::Finding;
use super::foreign::{Becomes, Program, never, set_limit, setting};
use super::limits::LimitRole;
use super::parsed::Settings;
use super::reader::At;

/// Maximum number of seconds that is read: a day. cx's own limits are below it.
const MAX_SECONDS: u64 = 24 * 60 * 60;

/// All its variables.
pub(super) static VARIABLES: Program = Program {
    name: "mcp-server-code-execution-mode",
    finish: |_, _| {},
    settings: &[
        setting(
            "MCP_BRIDGE_TIMEOUT",
            Becomes::Key("limits.timeoutMs", |at, settings| seconds(at, LimitRole::Default, settings)),
        ),
        setting(
            "MCP_BRIDGE_MAX_TIMEOUT",
            Becomes::Key("maxLimits.timeoutMs", |at, settings| seconds(at, LimitRole::Max, settings)),
        ),
        setting("MCP_BRIDGE_MEMORY", Becomes::Key("limits.memoryBytes", memory)),
        setting("MCP_BRIDGE_OUTPUT_MODE", Becomes::Nothing(is_compact)),
        setting("MCP_BRIDGE_RUNTIME", Becomes::Nothing(never)),
        setting("MCP_BRIDGE_IMAGE", Becomes::Nothing(never)),
        setting("MCP_BRIDGE_PIDS", Becomes::Nothing(never)),
        setting("MCP_BRIDGE_CPUS", Becomes::Nothing(never)),
        setting("MCP_BRIDGE_CONTAINER_USER", Becomes::Nothing(never)),
        setting("MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT", Becomes::Nothing(never)),
    ],
};

/// A wall-clock time in seconds.
fn seconds(at: &At<'_>, role: LimitRole, settings: &mut Settings) -> Result<(), Finding> {
    let seconds = at.number(1, MAX_SECONDS, "seconds")?;
    set_limit(at, "timeoutMs", seconds * 1_000, role, settings);
    Ok(())
}

/// A size as container programs write it: a number of bytes, or of the unit that its last letter is.
fn memory(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    let text = at.string()?.trim().to_ascii_lowercase();
    let unexpected = || at.unexpected("a size such as `512m`");
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit {
        "" | "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return Err(unexpected()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let bytes = bytes.filter(|bytes| *bytes > 0).ok_or_else(unexpected)?;
    set_limit(at, "memoryBytes", bytes, LimitRole::Both, settings);
    Ok(())
}

/// Whether a value asks for the text that answers have anyway.
fn is_compact(node: &Node) -> bool {
    matches!(&node.content, Content::String(text) if text == "compact")
}
