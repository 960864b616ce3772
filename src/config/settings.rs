//! Applies the settings of cx's own files: all of a trusted file, and of an untrusted one those that
//! restrict.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::clients::Client;
use super::expand::{Role, Scope};
use super::limits::LimitKey;
use super::own::{OwnFile, Settings};
use super::resolved::{Config, ConfigWarningCode};
use crate::run::limits::Limits;

/// Applies the settings of a trusted file: they replace earlier values, and deny lists accumulate.
pub(super) fn apply_trusted(
    config: &mut Config,
    path: &Path,
    file: &OwnFile,
    scope: Scope<'_>,
    imports: &mut Vec<&'static Client>,
) {
    let settings = &file.settings;
    let origin = |config: &mut Config, key: &str| config.add_origin(key, path, file.root.locate(key));
    if let Some(import) = &settings.import {
        origin(config, "import");
        for client in import {
            if !imports.contains(client) {
                imports.push(*client);
            }
        }
    }
    if let Some(allow) = &settings.allow {
        origin(config, "allow");
        config.rules.allow = vec![allow.clone()];
    }
    add_to_lists(config, path, file);
    if let Some(read_only) = &settings.read_only {
        origin(config, "readOnly");
        match config.rules.read_only.first_mut() {
            Some(list) => add(list, read_only),
            None => config.rules.read_only.push(read_only.clone()),
        }
    }
    if let Some(strict) = settings.strict {
        origin(config, "strict");
        config.strict = strict;
    }
    for (key, value) in &settings.limits {
        set_limit(config, path, file, key, *value);
    }
    if let Some(resolution) = settings.clock_resolution {
        origin(config, "clockResolutionUs");
        config.clock_resolution = Some(resolution);
    }
    if let Some(enabled) = settings.cache_enabled {
        origin(config, "cache.enabled");
        config.cache_enabled = enabled;
    }
    if let Some(directory) = &settings.cache_directory {
        match directory.expand(Role::Path, scope) {
            Ok(value) => {
                origin(config, "cache.directory");
                config.cache_directory = Some(PathBuf::from(value));
            }
            Err(finding) => config.warn_ignored(ConfigWarningCode::Unused, path, [finding]),
        }
    }
}

/// Applies the settings of an untrusted workspace file: only those that restrict.
pub(super) fn apply_restrictions(config: &mut Config, path: &Path, file: &OwnFile) {
    let Settings {
        allow,
        read_only,
        import,
        strict,
        cache_enabled,
        cache_directory,
        limits,
        clock_resolution,
        ..
    } = &file.settings;
    if let Some(allow) = allow {
        config.add_origin("allow", path, file.root.locate("allow"));
        config.rules.allow.push(allow.clone());
    }
    add_to_lists(config, path, file);
    let ignore = |config: &mut Config, key: &str, more: &str| {
        let message = format!("ignored, because this file is not trusted: `{key}`{more}");
        config.warn_untrusted(message, path, file.root.locate(key));
    };
    match strict {
        Some(true) => {
            config.add_origin("strict", path, file.root.locate("strict"));
            config.strict = true;
        }
        Some(false) if config.strict => ignore(config, "strict", ""),
        _ => {}
    }
    for (key, value) in limits {
        if key.restricts(&config.limits, *value) {
            set_limit(config, path, file, key, *value);
        } else {
            let current = (key.get)(&config.limits);
            ignore(config, &format!("limits.{}", key.name), &format!(" above {current}"));
        }
    }
    for (key, is_there) in [
        // A tool that counts as read-only needs no approval and is called in a dry run.
        ("readOnly", read_only.is_some()),
        ("import", import.is_some()),
        // A finer clock helps attacks, and how coarse it is by default is not known here.
        ("clockResolutionUs", clock_resolution.is_some()),
        ("cache.enabled", cache_enabled.is_some()),
        ("cache.directory", cache_directory.is_some()),
    ] {
        if is_there {
            ignore(config, key, "");
        }
    }
}

/// Adds to the lists to which any file may add.
fn add_to_lists(config: &mut Config, path: &Path, file: &OwnFile) {
    if let Some(deny) = &file.settings.deny {
        config.add_origin("deny", path, file.root.locate("deny"));
        add(&mut config.rules.deny, deny);
    }
    if let Some(ask) = &file.settings.ask {
        config.add_origin("ask", path, file.root.locate("ask"));
        add(&mut config.rules.ask, ask);
    }
}

/// Adds to a list from which no file can remove anything.
fn add(list: &mut Vec<String>, more: &[String]) {
    let mut known: HashSet<String> = list.iter().cloned().collect();
    list.extend(more.iter().filter(|pattern| known.insert((*pattern).clone())).cloned());
}

/// Sets a limit, and with it the maximum. The CPU time follows the timeout unless a file sets it.
fn set_limit(config: &mut Config, path: &Path, file: &OwnFile, key: &LimitKey, value: u64) {
    let name = format!("limits.{}", key.name);
    let location = file.root.locate(&name);
    config.add_origin(name, path, location);
    (key.set)(&mut config.limits, value);
    (key.set)(&mut config.max_limits, value);
    let is_set = |name: &str| config.origins.contains_key(name);
    if is_set("limits.timeoutMs") && !is_set("limits.cpuTimeMs") {
        let default = Limits { cpu_time: Limits::default().cpu_time, ..config.limits };
        config.limits = default.with_wall_time(config.limits.wall_time, config.max_limits.cpu_time);
    }
}
