//! The state that scripts keep between runs: JSON values by key, in isolated scopes.

mod call;
mod error;
mod scope;

mod entries;
mod file;
mod store;

pub(crate) use self::call::StateCall;
pub(crate) use self::error::StateError;
pub(crate) use self::scope::DefaultScope;
pub use self::scope::{StateScope, StateUsage};
pub(crate) use self::store::RunState;
pub use self::store::StateStore;
