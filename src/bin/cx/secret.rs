//! Secrets of the command, from files that only its user can read, and from environment variables.

use std::env;
use std::io::Read as _;
use std::path::Path;

use anyhow::bail;
use cx::command::NamedFile;

/// A secret in the environment.
///
/// # Errors
///
/// If it is not UTF-8.
#[expect(
    clippy::disallowed_methods,
    reason = "a secret of the command's own, which is no part of the configuration"
)]
pub(crate) fn variable(name: &str) -> anyhow::Result<Option<String>> {
    match env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => bail!("{name} is not UTF-8"),
    }
}

/// Whether systemd has put the file there for this service only (`LoadCredential=`). systemd grants access by an access
/// control list, whose mask looks like permissions of the group.
#[expect(
    clippy::disallowed_methods,
    reason = "where systemd puts secrets, which is no part of the configuration"
)]
fn is_credential(path: &Path) -> bool {
    env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|directory| {
        Path::new(&directory).is_absolute() && path.parent() == Some(Path::new(&directory))
    })
}

/// Reads a file with a secret.
///
/// # Errors
///
/// If it cannot be read, others may read it too, it is longer than `max` bytes, or nobody writes to a pipe.
pub(crate) fn read_secret(path: &Path, max: usize) -> anyhow::Result<String> {
    let file = NamedFile::open(path)?;
    if !is_credential(path) {
        file.check_private()?;
    }
    let mut text = String::new();
    // One byte more, to detect that the file is longer.
    file.take(max as u64 + 1).read_to_string(&mut text)?;
    anyhow::ensure!(text.len() <= max, "it is longer than {max} bytes");
    Ok(text)
}
