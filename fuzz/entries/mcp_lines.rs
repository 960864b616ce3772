//! Target of the lines that servers write: no panic, and no answers but those to a pending request.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rmcp::transport::Transport as _;
use tokio_util::sync::CancellationToken;

use super::super::answers::Expected;
use super::{LineTransport, Notifications, Pending};

pub(crate) fn server_lines(data: &[u8]) {
    let (mut lines, writing) = LineTransport::new(
        Arc::from("fuzzed"),
        data,
        tokio::io::sink(),
        Notifications::default(),
        Duration::from_secs(1),
        CancellationToken::new(),
    );
    for (id, expected) in [Expected::Discover, Expected::Other].into_iter().enumerate() {
        lines.pending.insert(i64::try_from(id).unwrap_or(0), Pending { expected, caller: None });
    }
    let pending = lines.pending.len();
    let mut received = 0;
    while let Some(Some(_)) = lines.receive().now_or_never() {
        received += 1;
    }
    let acknowledged = data.windows(12).filter(|window| window == b"acknowledged").count();
    assert!(received <= pending + acknowledged, "{received} answers to {pending} requests");
    drop(lines);
    let _ = writing.now_or_never();
}

#[cfg(test)]
#[test]
fn v_304_lines_of_servers() {
    crate::fuzzing::smoke("server_lines", 5_000, server_lines);
}
