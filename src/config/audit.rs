//! Reads and applies the section `audit`: whether there is an audit trail, and where.

use std::path::{Path, PathBuf};

use super::error::{Finding, Location};
use super::expand::{Role, Scope, Text};
use super::parsed::{AuditFields, Settings};
use super::reader::{At, Fields};
use super::resolved::{AuditParts, AuditSettings, Config, ConfigWarningCode};

/// Every key of `audit`.
pub(super) const AUDIT_KEYS: &[&str] = &["enabled", "directory", "required", "contents", "retentionDays"];

/// The key of cx's own settings among the origins. Keys of other programs are below it.
const OWN_KEY: &str = "audit";

/// The retention if no file sets it.
const DEFAULT_RETENTION_DAYS: u32 = 180;

/// A century, for users who keep everything.
const MAX_RETENTION_DAYS: u64 = 36_500;

/// Reads the section.
pub(super) fn section(section: &mut Fields<'_, '_>) -> AuditFields {
    section.check_names(AUDIT_KEYS);
    AuditFields {
        enabled: section.read(&["enabled"], At::boolean),
        directory: section.read(&["directory"], At::text),
        required: section.read(&["required"], At::boolean),
        contents: section.read(&["contents"], At::boolean),
        retention_days: section
            .read(&["retentionDays"], |at| at.number(0, MAX_RETENTION_DAYS, "days"))
            .and_then(|days| u32::try_from(days).ok()),
    }
}

/// Applies the audit settings of a trusted file, unless another file has set them. The user's own file is applied
/// first: a workspace must not decide whether its runs are recorded.
pub(super) fn apply(
    config: &mut Config,
    path: &Path,
    settings: &Settings,
    locate: &dyn Fn(&str) -> Option<Location>,
    scope: Scope<'_>,
) {
    let (own, foreign) = (settings.audit.as_ref(), &settings.foreign_audit);
    let Some(own) = own else {
        return apply_foreign(config, path, foreign, locate, scope);
    };
    if config.origins.contains_key(OWN_KEY) || config.audit_parts.enabled.is_some() {
        return ignore(config, path, locate(OWN_KEY));
    }
    config.add_origin(OWN_KEY, path, locate(OWN_KEY));
    if own.enabled == Some(false) {
        return;
    }
    let directory = match own.directory.as_ref().map(|text| absolute(text, scope)).transpose() {
        Ok(directory) => directory,
        // A trail at the default location is better than none, above all if it is required.
        Err(finding) => {
            config.warn_ignored(ConfigWarningCode::Unused, path, [finding]);
            None
        }
    };
    config.audit = Some(AuditSettings {
        directory,
        required: own.required.unwrap_or_default(),
        contents: own.contents.unwrap_or_default(),
        retention_days: kept(own.retention_days),
    });
}

/// Applies variables of another program: they have precedence over its file, but not over cx's own key.
pub(super) fn apply_variables(config: &mut Config, path: &Path, fields: &AuditFields, scope: Scope<'_>) {
    if !config.origins.contains_key(OWN_KEY) {
        apply_foreign(config, path, fields, &|_| None, scope);
    } else if fields.enabled.is_some() {
        ignore(config, path, None);
    }
}

/// Makes the trail from other programs' settings, unless cx's own settings decide about it.
pub(super) fn resolve(config: &mut Config) {
    let AuditParts { enabled, directory, retention_days } = std::mem::take(&mut config.audit_parts);
    if enabled == Some(true) && !config.origins.contains_key(OWN_KEY) {
        let retention_days = kept(retention_days);
        config.audit = Some(AuditSettings { directory, required: false, contents: false, retention_days });
    }
}

fn ignore(config: &mut Config, path: &Path, location: Option<Location>) {
    let message = "ignored: another file decides about `audit`".to_owned();
    config.warn(ConfigWarningCode::Unused, message, path, location, None);
}

fn apply_foreign(
    config: &mut Config,
    path: &Path,
    fields: &AuditFields,
    locate: &dyn Fn(&str) -> Option<Location>,
    scope: Scope<'_>,
) {
    let AuditFields { enabled, directory, retention_days, .. } = fields;
    for (key, is_said) in [
        ("audit.enabled", enabled.is_some()),
        ("audit.directory", directory.is_some()),
        ("audit.retentionDays", retention_days.is_some()),
    ] {
        if is_said {
            config.add_origin(key, path, locate(key));
        }
    }
    match directory.as_ref().map(|text| directory_beside(text, scope)).transpose() {
        Ok(directory) => config.audit_parts.directory = directory.or(config.audit_parts.directory.take()),
        // A trail at the default location is better than none.
        Err(finding) => config.warn_ignored(ConfigWarningCode::Unused, path, [finding]),
    }
    let parts = &mut config.audit_parts;
    parts.enabled = enabled.or(parts.enabled);
    parts.retention_days = retention_days.or(parts.retention_days);
}

/// The directory for the trail of a program whose log is at this path. If the log is a file, `.d` is appended to its
/// name, so that the two formats are not mixed.
fn directory_beside(text: &Text, scope: Scope<'_>) -> Result<PathBuf, Finding> {
    let mut path = absolute(text, scope)?;
    if let Some(extension) = path.extension() {
        let mut extension = extension.to_owned();
        extension.push(".d");
        path.set_extension(extension);
    }
    Ok(path)
}

/// An absolute path. A relative one would be another trail in each directory in which cx is started, such as a workspace
/// in which scripts may write.
fn absolute(text: &Text, scope: Scope<'_>) -> Result<PathBuf, Finding> {
    let path = PathBuf::from(text.expand(Role::Path, scope)?);
    if path.is_absolute() {
        return Ok(path);
    }
    let expected = "an absolute path, `~/…` or `${workspaceFolder}/…`";
    Err(Finding::unexpected(&text.key, text.location, expected, "another text"))
}

/// The number of days that files are kept; 0 means for ever.
fn kept(days: Option<u32>) -> Option<u32> {
    Some(days.unwrap_or(DEFAULT_RETENTION_DAYS)).filter(|days| *days > 0)
}
