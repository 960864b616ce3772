use std::time::Duration;

use tokio::runtime::Handle;

use super::*;
use crate::files::{Clock, FileOptions};
use crate::run::limits::Limits;

/// Threat 818: thousands of blocks can wait for their files.
#[tokio::test]
async fn v_818_the_type_of_a_block_is_short() {
    let files = RunFiles::new(FileOptions {
        directories: Vec::new(),
        memory_bytes: 1 << 20,
        quota: Box::new(|| Limits::default().file_quota()),
        caller: None,
        clock: Clock::Real(Duration::ZERO),
        runtime: Handle::current(),
        is_dry_run: false,
    });
    let mode = OpenMode { write: true, create: true, ..OpenMode::default() };
    let file = files.open(&resolve("a").unwrap(), mode).await.unwrap();
    file.write(0, b"text".to_vec()).await.unwrap();
    let emitted = async |length: usize| {
        let mime_type = Some("a".repeat(length));
        block(&files, 1 << 20, FileBlock { path: "a".to_owned(), mime_type }).await
    };
    assert!(emitted(MAX_MEDIA_TYPE).await.unwrap().contains("aaa"));
    let refused = emitted(MAX_MEDIA_TYPE + 1).await.unwrap_err();
    assert_eq!(refused.code, ToolErrorCode::InvalidArguments);
    assert!(refused.message.contains("at most 1024"), "{}", refused.message);
}
