//! Where a server comes from: the configuration or the embedder.

/// Where a server comes from. Only that origin can remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The embedder, by itself.
    Embedder,
    /// A configuration. It changes or goes with the configuration.
    Config,
}
