//! What transpilation makes: JavaScript, and what the engine has to know about it.

use super::positions::{Location, Positions};
use crate::run::check::survey::Survey;

/// The code for V8, and the data that maps its locations back to the author's text.
#[derive(Debug)]
pub(crate) struct Transpiled {
    /// A JavaScript expression in parentheses: an async function in strict mode, to be called
    /// without arguments.
    pub(crate) code: String,
    /// Static imports, in order, to be checked before anything runs.
    pub(crate) imports: Vec<Import>,
    /// Maps locations in `code` to the author's text.
    pub(crate) positions: Positions,
    /// The calls that the author's text shows.
    pub(crate) survey: Survey,
}

/// A static import that is used at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    /// `mcp:` and the name of a server, or a name of the module of files.
    pub(crate) specifier: String,
    /// The imported names; empty for `import * as` and for an import without names.
    pub(crate) names: Vec<ImportedName>,
    /// Location of the specifier.
    pub(crate) location: Location,
}

/// A name that is imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportedName {
    /// The exported name: `default` for a default import.
    pub(crate) name: String,
    /// Location of the name.
    pub(crate) location: Location,
}
