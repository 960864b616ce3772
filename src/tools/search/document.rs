//! The texts of a tool that are indexed.

/// Maximum number of words of a name; enough for any real one.
pub(crate) const MAX_NAME_WORDS: usize = 32;

/// Maximum number of words of a description, and of the descriptions of a tool's parameters
/// together. Enough for any real one; it bounds the cost of a very long one.
pub(crate) const MAX_TEXT_WORDS: usize = 256;

/// The texts of one tool.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    /// The server's name.
    pub(crate) server: &'a str,
    /// The tool's name.
    pub(crate) tool: &'a str,
    /// The beginning that descriptions of this server share, if this description has it; otherwise empty.
    pub(crate) shared: &'a str,
    /// The rest of the server's description of the tool.
    pub(crate) description: &'a str,
    /// The names and descriptions of its parameters.
    pub(crate) parameters: &'a [(String, String)],
    /// The names and descriptions of its result's fields.
    pub(crate) results: &'a [(String, String)],
}
