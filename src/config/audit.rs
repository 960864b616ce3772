//! Reads and applies the section `audit`: whether there is an audit trail, and where.

use std::path::{Path, PathBuf};

use super::expand::{Role, Scope};
use super::own::OwnFile;
use super::parsed::AuditFields;
use super::reader::{At, Fields};
use super::resolved::{AuditSettings, Config, ConfigWarningCode};

/// Every key of `audit`.
pub(super) const AUDIT_KEYS: &[&str] = &["enabled", "directory", "required", "contents", "retentionDays"];

/// A century, for those who keep everything.
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

/// Applies what a trusted file says about the audit trail, unless another has said it. The user's own
/// file is applied first: a workspace does not decide whether its runs are recorded.
pub(super) fn apply(config: &mut Config, path: &Path, file: &OwnFile, scope: Scope<'_>) {
    let Some(audit) = &file.settings.audit else { return };
    if config.origins.contains_key("audit") {
        let message = "ignored: another file decides about `audit`".to_owned();
        config.warn(ConfigWarningCode::Unused, message, path, file.locate("audit"), None);
        return;
    }
    config.add_origin("audit", path, file.locate("audit"));
    if audit.enabled == Some(false) {
        return;
    }
    let directory = match audit.directory.as_ref().map(|text| text.expand(Role::Path, scope)).transpose() {
        Ok(directory) => directory,
        Err(finding) => return config.warn_ignored(ConfigWarningCode::Unused, path, [finding]),
    };
    config.audit = Some(AuditSettings {
        directory: directory.map(PathBuf::from),
        required: audit.required.unwrap_or_default(),
        contents: audit.contents.unwrap_or_default(),
        retention_days: match audit.retention_days {
            None => Some(180),
            Some(0) => None,
            Some(days) => Some(days),
        },
    });
}
