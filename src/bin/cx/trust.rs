//! `cx trust`.

use std::fmt::Write as _;
use std::path::{self, Path};

use anyhow::{Context as _, bail};
use cx::audit::AuditTrail;
use cx::{TrustRequest, TrustStore};

use crate::args::TrustArguments;
use crate::confirm::confirm;
use crate::exit::ExitStatus;
use crate::text::shown_path;
use crate::{audit_watch, diagnostic, output, setup};

/// Trusts a file, lists the trusted files, or revokes trust.
///
/// # Errors
///
/// If the file cannot be read, confirmation cannot be asked for, or the list cannot be written.
pub(crate) fn run(arguments: &TrustArguments) -> anyhow::Result<ExitStatus> {
    let store = TrustStore::new(&setup::directories()?);
    if arguments.list {
        return list(&store);
    }
    if let Some(path) = &arguments.revoke {
        let was_trusted = store.revoke(path).context("failed to write the list of trusted files")?;
        if !was_trusted {
            bail!("`{}` is not trusted; `cx trust --list` lists the files that are", shown_path(path));
        }
        // The trail is read in other directories.
        record(&path::absolute(path).context("failed to find the working directory")?, None);
        output::print_text(&format!("no longer trusted: {}", shown_path(path)))?;
        return Ok(ExitStatus::Success);
    }
    let Some(path) = &arguments.file else { bail!("a file is needed, or --list, or --revoke FILE") };
    trust(&store, path, arguments.yes)
}

fn trust(store: &TrustStore, path: &Path, yes: bool) -> anyhow::Result<ExitStatus> {
    let request = TrustRequest::read(path)?;
    let mut text = format!("{}\n", shown_path(&request.path));
    if request.description.is_empty() {
        text.push_str("  starts and changes nothing\n");
    }
    for line in &request.description {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {line}");
    }
    output::print_text(&text)?;
    if !yes && !confirm("Trust this file with exactly this content?", "trusts the file")? {
        output::print_text("not trusted")?;
        return Ok(ExitStatus::Failed);
    }
    // The shown content is trusted: the file is not read again.
    store.trust(&request).context("failed to write the list of trusted files")?;
    record(&request.path, Some(&request.sha256));
    output::print_text("trusted, until the file changes")?;
    Ok(ExitStatus::Success)
}

/// Records the decision in the audit trail, if there is one. The decision is valid without it.
fn record(path: &Path, sha256: Option<&str>) {
    let trail = setup::load(Vec::new()).and_then(|config| {
        let Some(settings) = &config.audit else { return Ok(None) };
        Ok(Some(AuditTrail::start(setup::audit_options(Some(settings), None)?)?))
    });
    match trail {
        Ok(Some(trail)) => {
            trail.trust(path, sha256);
            trail.stop();
            audit_watch::print_failures(&trail.status());
        }
        Ok(None) => {}
        Err(error) => diagnostic::print_warning(&format!("the audit trail is not written: {error:#}")),
    }
}

fn list(store: &TrustStore) -> anyhow::Result<ExitStatus> {
    let files = store.list().context("failed to read the list of trusted files")?;
    let mut text = String::new();
    for file in &files {
        let state = if file.is_unchanged { "" } else { "  (changed since, and so not trusted)" };
        let _ = writeln!(text, "{}{state}", shown_path(&file.path));
    }
    if files.is_empty() {
        // Not on stdout: each of its lines is a file.
        diagnostic::print_note("no file is trusted");
    } else {
        output::print_text(&text)?;
    }
    Ok(ExitStatus::Success)
}
