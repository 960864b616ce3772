//! Replaces the compiler in a build without the feature `compile`, which only runs the machine
//! code that is in the program.

use super::compiled::Compiler;

/// The compiler of this build: none.
pub(super) const INCLUDED: Option<Compiler> = None;
