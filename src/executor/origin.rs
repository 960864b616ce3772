//! Who has added a server.

/// Who has added a server, and so who can remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The embedder, by itself.
    Embedder,
    /// A configuration. It changes or goes with the configuration.
    Config,
}
