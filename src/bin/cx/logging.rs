//! Logs of the library, for diagnosis.

use std::io;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::terminal::has_color;
use crate::writer::Stream;

/// The library of the providers of language models. It logs answers, and errors in which a provider may repeat a key.
const MODELS: &str = "genai";

/// Logs go to stderr, and only if `CX_LOG` enables them, as in `CX_LOG=cx=debug`.
pub(crate) fn start() {
    if let Ok(filter) = tracing_subscriber::EnvFilter::try_from_env("CX_LOG") {
        let logger = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(io::stderr)
            // The default has colors in files and pipes too.
            .with_ansi(has_color(Stream::Stderr))
            .finish();
        logger.with(filter_fn(has_no_secrets)).init();
    }
}

/// Whether the events of this target and level have no secrets, so that `CX_LOG` may enable them.
fn has_no_secrets(metadata: &Metadata<'_>) -> bool {
    let is_of = |target: &str| {
        let rest = metadata.target().strip_prefix(target);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let is_warning = *metadata.level() <= Level::WARN;
    !is_of(MODELS) && (is_warning || !is_of(cx::auth::LOG_TARGET_WITH_SECRETS))
}
