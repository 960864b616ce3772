//! Target of the lines that clients write: no panic, and no more messages than lines.

use futures::FutureExt as _;
use rmcp::transport::Transport as _;
use tokio_util::sync::CancellationToken;

use super::ClientLines;

pub(crate) fn client_lines(data: &[u8]) {
    let (mut lines, writing) = ClientLines::new(data, tokio::io::sink(), CancellationToken::new());
    let mut received = 0;
    // Nothing here waits: the reader is memory.
    while let Some(Some(_)) = lines.receive().now_or_never() {
        received += 1;
    }
    let most = data.iter().filter(|byte| **byte == b'\n').count();
    // A cancellation is passed on once for each request of that id.
    assert!(received <= most * (most + 1), "{received} messages of {most} lines");
    drop(lines);
    let _ = writing.now_or_never();
}

#[cfg(test)]
#[test]
fn v_304_lines_of_clients() {
    crate::fuzzing::smoke("client_lines", 5_000, client_lines);
}
