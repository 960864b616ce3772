//! What `cx setup` does to files: finds the MCP clients of this user and their servers, plans the
//! changes that put those servers behind cx, makes the changes, and undoes them.
//!
//! [`Survey::read`] reads. [`Plan::new`] decides, and changes nothing. [`Plan::apply`] writes,
//! after it has kept a copy of every file, and [`undo`] puts the copies back. All of it blocks, for
//! as long as reading and writing some twenty small files takes; it starts no server and connects
//! to none.

mod client_entry;
mod edit;
mod error;
mod inherited;
mod journal;
mod lock;
mod own_entry;
mod paths;
mod plan;
mod survey;

pub use self::error::SetupError;
pub use self::journal::{Applied, Undone, undo};
pub use self::lock::{SetupLock, SyncLock};
pub use self::paths::{below_home, home_directory, on_path, timer_environment};
pub use self::plan::{Choices, Existing, FileChange, Plan, PlannedServer};
pub use self::survey::{FoundClient, FoundProject, FoundServer, ServerFitness, ServerList, Survey};

#[cfg(test)]
mod tests;
