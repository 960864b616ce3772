//! `cx types`.

use anyhow::Context as _;

use crate::args::TypesArguments;
use crate::exit::ExitStatus;
use crate::{document, output, setup};

/// Writes the declarations of the tools that scripts can call.
///
/// # Errors
///
/// What is wrong with the configuration, or with the file.
pub(crate) fn run(arguments: &TypesArguments) -> anyhow::Result<ExitStatus> {
    let declarations = setup::tools_executor(&arguments.source)?.declarations();
    match &arguments.out {
        None => output::print_text(&declarations)?,
        Some(path) => {
            let failed = || format!("failed to write `{}`", path.display());
            document::replace(path, &declarations).with_context(failed)?;
        }
    }
    Ok(ExitStatus::Success)
}
