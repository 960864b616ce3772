//! The configuration: files that were used, skipped or not trusted, warnings, and patterns that match
//! nothing.

use cx::{Config, ConfigFileStatus, ConfigWarning, ConfigWarningCode, Executor, Grants, TrustStore};

use super::report::Check;
use crate::text::shown_path;
use crate::{diagnostic, setup};

const SECTION: &str = "configuration";

/// The problem of a configuration that cannot be loaded. None of it is used then.
pub(super) fn unusable(error: &anyhow::Error) -> Check {
    let hint =
        diagnostic::hint(error).unwrap_or("correct what is named here; `cx config schema` has all keys");
    Check::problem(SECTION, "files", on_one_line(&diagnostic::message(error)), hint)
}

/// The problem of a configuration from which no executor can be made.
pub(super) fn no_executor(error: &anyhow::Error) -> Check {
    let hint =
        diagnostic::hint(error).unwrap_or("correct it; `cx config show` says where each value is from");
    Check::problem(SECTION, "settings", on_one_line(&diagnostic::message(error)), hint)
}

/// The text of an error on one line. An error of the configuration has a line for each mistake, and a check has one.
fn on_one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

/// The files, the warnings, and the servers that are not used.
pub(super) fn check(config: &Config) -> Vec<Check> {
    let used = config.files.iter().filter(|file| file.status == ConfigFileStatus::Used);
    let mut checks: Vec<Check> = used
        .map(|file| {
            Check::ok(SECTION, &shown_path(&file.path), format!("used ({})", file.role))
                .with("path", shown_path(&file.path))
                .with("role", file.role)
        })
        .collect();
    if checks.is_empty() {
        let servers = "no file was found; `cx setup` finds the servers of your MCP clients";
        checks.push(Check::ok(SECTION, "files", servers));
    }
    checks.extend(config.warnings.iter().map(of_warning));
    // Servers without a warning: they are disabled, or another file has one with the same name.
    let told: String = config.warnings.iter().map(|warning| format!("{}\n", warning.message)).collect();
    let untold = config.skipped.iter().filter(|skipped| !told.contains(&format!("`{}`", skipped.name)));
    checks.extend(untold.map(|skipped| {
        let message = format!("not used: {} ({})", skipped.reason, skipped.origin);
        Check::skipped(SECTION, &format!("server `{}`", skipped.name), message)
    }));
    checks.extend(trust());
    checks.extend(grants(config));
    checks
}

/// The check for a warning of cx. If something is lost, it is a problem.
fn of_warning(warning: &ConfigWarning) -> Check {
    let name = match &warning.origin {
        Some(origin) => origin.to_string(),
        None => "files".to_owned(),
    };
    let usual = match warning.code {
        ConfigWarningCode::LoaderVariable => "remove the variable, unless you know the code that it loads",
        ConfigWarningCode::Unused => "remove it, or correct it; `cx config schema` has all keys",
        _ => "correct the file; `cx config show` says what is used of it",
    };
    let hint = warning.hint.as_deref().unwrap_or(usual);
    let check = match warning.code {
        ConfigWarningCode::Unreadable | ConfigWarningCode::ServerSkipped => {
            Check::problem(SECTION, &name, &warning.message, hint)
        }
        _ => Check::warning(SECTION, &name, &warning.message, hint),
    };
    check.with("code", warning.code.as_str())
}

/// The grants of scripts. A directory that does not exist grants nothing.
fn grants(config: &Config) -> Vec<Check> {
    let Grants { read, write, net } = &config.grants;
    let mut checks = Vec::new();
    for (kind, paths) in [("read", read), ("write", write)] {
        checks.extend(paths.iter().map(|path| {
            let name = format!("grant `{kind}`");
            let check = match path.metadata() {
                Ok(metadata) if metadata.is_dir() => Check::ok(SECTION, &name, shown_path(path)),
                Ok(_) => {
                    let message = format!("{} is not a directory", shown_path(path));
                    Check::warning(SECTION, &name, message, "name a directory in `grants`")
                }
                Err(error) => {
                    let message = format!("{} cannot be used: {error}", shown_path(path));
                    Check::warning(SECTION, &name, message, "create it, or correct `grants`")
                }
            };
            check.with("path", shown_path(path))
        }));
    }
    checks.extend(net.iter().map(|host| {
        Check::ok(SECTION, "grant `net`", host.to_string()).with("host", host.to_string().as_str())
    }));
    checks
}

/// Whether the list of trusted files can be read.
fn trust() -> Option<Check> {
    let directories = setup::directories().ok()?;
    match TrustStore::new(&directories).list() {
        Ok(files) => {
            let changed = files.iter().filter(|file| !file.is_unchanged).count();
            let message = match (files.len(), changed) {
                (0, _) => "none".to_owned(),
                (all, 0) => format!("{all}, all as they were"),
                (all, changed) => format!("{all}; changed since, and so not trusted: {changed}"),
            };
            let check = Check::ok(SECTION, "trusted files", message);
            Some(check.with("files", files.len()).with("changed", changed))
        }
        // If the directory cannot be used, the check of the state reports it.
        Err(_) if !directories.state.join("trust.json").exists() => None,
        Err(error) => Some(Check::problem(
            SECTION,
            "trusted files",
            format!("the list cannot be read: {error}"),
            format!("remove `trust.json` in {} and trust the files again", shown_path(&directories.state)),
        )),
    }
}

/// Patterns of rules that match no known tool.
pub(super) fn unmatched(executor: &Executor) -> Vec<Check> {
    let patterns = executor.unmatched_patterns();
    let check = |pattern: &cx::UnmatchedPattern| {
        let hint = if pattern.has_server {
            "correct the pattern; `cx tools list --refresh` has the names"
        } else {
            "correct the pattern, or remove it; `cx config show` has the servers"
        };
        Check::warning(SECTION, "rules", pattern.to_string(), hint).with("pattern", pattern.pattern.as_str())
    };
    patterns.iter().map(check).collect()
}
