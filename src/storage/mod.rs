//! Files of one user, and the state that scripts keep between runs.

pub(crate) mod files;
pub(crate) mod state;
