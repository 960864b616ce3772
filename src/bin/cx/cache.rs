//! `cx cache`.

use crate::args::CacheCommand;
use crate::exit::ExitStatus;
use crate::text::counted;
use crate::{output, setup};

/// Clears the cache.
///
/// # Errors
///
/// Mistakes in the configuration, or an error of the files.
pub(crate) fn run(command: &CacheCommand) -> anyhow::Result<ExitStatus> {
    let CacheCommand::Clear = command;
    let files = setup::builder(setup::load(Vec::new())?).warm_instances(0).build()?.clear_cache()?;
    output::print_text(&format!("deleted {}", counted(files, "cached file")))?;
    Ok(ExitStatus::Success)
}
