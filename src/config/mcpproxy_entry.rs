//! The keys of mcpproxy's server entries that most other clients do not have.

use super::entry::{MAX_CALLS, MAX_CONNECT_TIME, MAX_QUEUE_TIME, OAuthEntry, ServerEntry};
use super::error::Finding;
use super::reader::{At, Fields};

/// Reads the state and the limits of a server. A server in quarantine is not used, because no user has approved it yet.
/// A limit that cannot be parsed is ignored, so that the default applies.
pub(super) fn rules(fields: &mut Fields<'_, '_>) -> ServerEntry {
    let enabled = fields.read(&["enabled"], At::boolean);
    let mut is_set = |name: &str| fields.read(&[name], At::boolean) == Some(true);
    // `disabled` is another program's key for the same.
    let is_off = is_set("quarantined") || is_set("disabled");
    let calls = |name: &str| optional(fields, name, |at| at.number(0, MAX_CALLS, "calls"));
    let size = |calls: u64| usize::try_from(calls).ok();
    let time = |name: &str, max| optional(fields, name, |at| at.duration(max)).flatten();
    ServerEntry {
        enabled: if is_off { Some(false) } else { enabled },
        connect_timeout: time("init_timeout", MAX_CONNECT_TIME),
        queue_timeout: time("queue_timeout", MAX_QUEUE_TIME),
        // 0 means no limit there; cx's own default applies.
        max_concurrent: calls("max_concurrent_requests").filter(|calls| *calls > 0).and_then(size),
        max_queued: calls("queue_size").and_then(size),
        ..ServerEntry::default()
    }
}

/// Reads how to sign in. A secret is not used, because the file does not say which authorization
/// server it is for.
pub(super) fn oauth(fields: &Fields<'_, '_>) -> Option<OAuthEntry> {
    let (_, node) = fields.find(&["oauth"])?;
    node.as_object()?;
    let at = |name: &str| node.get(name).map(|node| At { key: fields.key.child("oauth").child(name), node });
    Some(OAuthEntry {
        client_id: at("client_id").and_then(|at| at.text().ok()),
        scopes: at("scopes").and_then(|at| at.strings().ok()).unwrap_or_default(),
        ..OAuthEntry::default()
    })
}

fn optional<T>(
    fields: &Fields<'_, '_>,
    name: &str,
    read: impl FnOnce(&At<'_>) -> Result<T, Finding>,
) -> Option<T> {
    let (name, node) = fields.find(&[name])?;
    read(&At { key: fields.key.child(name), node }).ok()
}
