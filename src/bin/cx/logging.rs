//! Logs of the library, for those who look for the cause of something.

use std::io;

/// Logs go to stderr, and only if `CX_LOG` enables them, as in `CX_LOG=cx=debug`.
pub(crate) fn start() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("CX_LOG");
    let without_secrets = format!("{}=warn", cx::auth::LOG_TARGET_WITH_SECRETS).parse();
    if let (Ok(filter), Ok(without_secrets)) = (filter, without_secrets) {
        let filter = filter.add_directive(without_secrets);
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    }
}
