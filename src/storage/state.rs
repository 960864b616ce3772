//! The state that scripts keep between runs: JSON values by key, in isolated scopes.

mod call;
mod error;
mod scope;

#[cfg(feature = "state")]
mod days;
#[cfg(feature = "state")]
mod entries;
#[cfg(feature = "state")]
mod file;
#[cfg(feature = "state")]
mod shared;
#[cfg(feature = "state")]
mod store;

#[cfg(not(feature = "state"))]
#[path = "state/absent.rs"]
mod store;

pub(crate) use self::call::StateCall;
pub(crate) use self::error::StateError;
pub(crate) use self::scope::DefaultScope;
pub use self::scope::{StateScope, StateUsage};
#[cfg(feature = "state")]
pub(crate) use self::shared::SharedState;
pub(crate) use self::store::RunState;
#[cfg(not(feature = "state"))]
pub(crate) use self::store::SharedState;
pub use self::store::StateStore;
