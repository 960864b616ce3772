//! Reads and applies the section `grants`: which directories and hosts scripts may reach.

use std::path::{Path, PathBuf};

use super::error::{Finding, Location};
use super::expand::{Role, Scope, Text};
use super::own::OwnFile;
use super::parsed::GrantFields;
use super::reader::{At, Fields};
use super::resolved::{Config, ConfigWarningCode};
use crate::run::grants::{Grants, HostPattern, Permissions};

/// Every key of `grants`.
const GRANT_KEYS: &[&str] = &["read", "write", "net"];

/// Reads the section.
pub(super) fn section(fields: &mut Fields<'_, '_>, grants: &mut GrantFields) {
    fields.check_names(GRANT_KEYS);
    // A list of cx's own replaces another program's value of the same list.
    grants.read = fields.read(&["read"], At::texts).or(grants.read.take());
    grants.write = fields.read(&["write"], At::texts).or(grants.write.take());
    grants.net = fields.read(&["net"], hosts).or(grants.net.take());
}

fn hosts(at: &At<'_>) -> Result<Vec<HostPattern>, Finding> {
    at.texts()?.into_iter().map(GrantFields::host).collect()
}

/// Applies the section of a trusted file: each list replaces an earlier one.
pub(super) fn apply(config: &mut Config, path: &Path, file: &OwnFile, scope: Scope<'_>) {
    apply_fields(config, path, &file.settings.grants, &|key| file.locate(key), scope);
}

/// Applies grants from variables.
pub(super) fn apply_variables(config: &mut Config, path: &Path, grants: &GrantFields, scope: Scope<'_>) {
    apply_fields(config, path, grants, &|_| None, scope);
}

fn apply_fields(
    config: &mut Config,
    path: &Path,
    grants: &GrantFields,
    locate: &dyn Fn(&str) -> Option<Location>,
    scope: Scope<'_>,
) {
    let Permissions { read, write, net } = read(config, path, grants, scope);
    let set =
        [("grants.read", read.is_some()), ("grants.write", write.is_some()), ("grants.net", net.is_some())];
    for (key, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
        config.add_origin(key, path, locate(key));
    }
    let Grants { read: own_read, write: own_write, net: own_net } = &mut config.grants;
    *own_read = read.unwrap_or_else(|| std::mem::take(own_read));
    *own_write = write.unwrap_or_else(|| std::mem::take(own_write));
    *own_net = net.unwrap_or_else(|| std::mem::take(own_net));
}

/// Applies the section of an untrusted file: of the grants, only those that it covers remain.
pub(super) fn restrict(config: &mut Config, path: &Path, file: &OwnFile, scope: Scope<'_>) {
    let asked = read(config, path, &file.settings.grants, scope);
    let granted = config.grants.restricted_to(&asked);
    let is_around = |directory: &PathBuf, granted: &[PathBuf]| {
        granted.iter().any(|granted| granted.starts_with(directory))
    };
    let names_a_host = |host: &HostPattern| granted.net.iter().any(|own| host.covers(own));
    let lists = [
        ("grants.read", Asked::compare(asked.read.as_deref(), |path| is_around(path, &config.grants.read))),
        (
            "grants.write",
            Asked::compare(asked.write.as_deref(), |path| is_around(path, &config.grants.write)),
        ),
        ("grants.net", Asked::compare(asked.net.as_deref(), names_a_host)),
    ];
    for (key, asked) in lists {
        if asked == Asked::Nothing {
            continue;
        }
        config.add_origin(key, path, file.locate(key));
        if asked == Asked::More {
            let message = format!(
                "ignored, because this file is not trusted: what `{key}` names is not granted, or only a part of what is"
            );
            config.warn_untrusted(message, path, file.locate(key));
        }
    }
    config.grants = granted;
}

/// How a list of an untrusted file compares with the grants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The file has no such list.
    Nothing,
    /// Each item is granted, or contains a grant.
    Granted,
    /// At least one item is not granted, or is only a part of a grant.
    More,
}

impl Asked {
    fn compare<T>(asked: Option<&[T]>, is_granted: impl Fn(&T) -> bool) -> Self {
        let Some(asked) = asked else { return Self::Nothing };
        if asked.iter().all(is_granted) { Self::Granted } else { Self::More }
    }
}

/// The section with its paths expanded. A path that cannot be used is left out with a warning.
fn read(config: &mut Config, path: &Path, grants: &GrantFields, scope: Scope<'_>) -> Permissions {
    let GrantFields { read, write, net } = grants;
    let mut findings = Vec::new();
    let mut directories = |texts: &Option<Vec<Text>>| {
        let texts = texts.as_ref()?;
        Some(texts.iter().filter_map(|text| directory(text, scope, &mut findings)).collect())
    };
    let permissions = Permissions { read: directories(read), write: directories(write), net: net.clone() };
    config.warn_ignored(ConfigWarningCode::Unused, path, findings);
    permissions
}

fn directory(text: &Text, scope: Scope<'_>, findings: &mut Vec<Finding>) -> Option<PathBuf> {
    let expanded = match text.expand(Role::Path, scope) {
        Ok(expanded) => PathBuf::from(expanded),
        Err(finding) => {
            findings.push(finding);
            return None;
        }
    };
    let alone = Grants { read: vec![expanded.clone()], ..Grants::default() };
    if alone.validate().is_err() {
        let expected =
            "an absolute path of a directory, `~/…` or `${workspaceFolder}/…`, without `..`, and not `/tmp`";
        findings.push(Finding::unexpected(&text.key, text.location, expected, "another text"));
        return None;
    }
    Some(expanded)
}
