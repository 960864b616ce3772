//! Applies the settings of cx's own files: all settings of a trusted file, and the restricting ones of an untrusted
//! file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::audit;
use super::clients::Client;
use super::expand::{Role, Scope};
use super::grants;
use super::limits::{LimitRole, LimitSetting};
use super::llm;
use super::own::OwnFile;
use super::parsed::Settings;
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
    let origin = |config: &mut Config, key: &str| config.add_origin(key, path, file.locate(key));
    if let Some(import) = &settings.import {
        origin(config, "import");
        for client in import {
            if !imports.contains(client) {
                imports.push(*client);
            }
        }
    }
    if let Some(read_only) = &settings.read_only {
        origin(config, "readOnly");
        match config.rules.read_only.first_mut() {
            Some(list) => add(list, read_only),
            None => config.rules.read_only.push(read_only.clone()),
        }
    }
    apply_rules(config, path, file, scope);
}

/// Applies those settings of a trusted file that do not depend on which servers exist.
pub(super) fn apply_rules(config: &mut Config, path: &Path, file: &OwnFile, scope: Scope<'_>) {
    let settings = &file.settings;
    let origin = |config: &mut Config, key: &str| config.add_origin(key, path, file.locate(key));
    if let Some(allow) = &settings.allow {
        origin(config, "allow");
        config.rules.allow = vec![allow.clone()];
    }
    add_to_lists(config, path, file);
    if let Some(direct) = &settings.direct {
        origin(config, "direct");
        add(&mut config.direct.tools, direct);
    }
    if let Some(mode) = settings.mode {
        origin(config, "mode");
        config.direct.mode = mode;
    }
    if let Some(interfaces) = settings.interfaces {
        origin(config, "interfaces");
        config.direct.interfaces = interfaces;
    }
    if let Some(strict) = settings.strict {
        origin(config, "strict");
        config.strict = strict;
    }
    if let Some(elicitation) = settings.elicitation {
        origin(config, "elicitation");
        config.elicitation = elicitation;
    }
    llm::apply(config, path, file, scope);
    grants::apply(config, path, file, scope);
    settings.limits.iter().for_each(|limit| set_limit(config, path, limit));
    if settings.max_runs.is_some() {
        origin(config, "maxRuns");
        config.max_runs = settings.max_runs;
    }
    if let Some(resolution) = settings.clock_resolution {
        origin(config, "clockResolutionUs");
        config.clock_resolution = Some(resolution);
    }
    if let Some(name) = &settings.time_zone {
        origin(config, "timeZone");
        config.time_zone = Some(name.clone());
    }
    if settings.isolation.is_some() {
        origin(config, "isolation");
        config.isolation.clone_from(&settings.isolation);
    }
    if settings.client_rate.is_some() {
        origin(config, "clientRate");
        config.client_rate = settings.client_rate;
    }
    if settings.tokens_file.is_some() {
        origin(config, "tokensFile");
        config.tokens_file.clone_from(&settings.tokens_file);
    }
    if settings.total_memory_bytes.is_some() {
        origin(config, "totalMemoryBytes");
        config.total_memory_bytes = settings.total_memory_bytes;
    }
    apply_locations(config, path, file, scope);
}

/// Applies the settings of what cx writes and sends beside the results of runs: caches, the audit trail, telemetry.
fn apply_locations(config: &mut Config, path: &Path, file: &OwnFile, scope: Scope<'_>) {
    let settings = &file.settings;
    let origin = |config: &mut Config, key: &str| config.add_origin(key, path, file.locate(key));
    if let Some(enabled) = settings.cache_enabled {
        origin(config, "cache.enabled");
        config.cache_enabled = enabled;
    }
    audit::apply(config, path, settings, &|key| file.locate(key), scope);
    if let Some(directory) = &settings.cache_directory {
        match directory.expand(Role::Path, scope) {
            Ok(value) => {
                origin(config, "cache.directory");
                config.cache_directory = Some(PathBuf::from(value));
            }
            Err(finding) => config.warn_ignored(ConfigWarningCode::Unused, path, [finding]),
        }
    }
    if let Some(endpoint) = &settings.telemetry_endpoint {
        match endpoint.expand(Role::Address, scope) {
            Ok(value) => {
                origin(config, "openTelemetry.endpoint");
                config.telemetry.endpoint = Some(value);
            }
            Err(finding) => config.warn_ignored(ConfigWarningCode::Unused, path, [finding]),
        }
    }
    if settings.telemetry_content.is_some() {
        origin(config, "openTelemetry.content");
        config.telemetry.content = settings.telemetry_content;
    }
}

/// Applies the other settings of a file whose servers are imported, if no other file sets them.
pub(super) fn apply_imported(config: &mut Config, path: &Path, settings: &Settings) {
    for limit in &settings.limits {
        if !config.origins.contains_key(&format!("limits.{}", limit.key.name)) {
            set_limit(config, path, limit);
        }
    }
    if settings.strict == Some(true) && !config.origins.contains_key("strict") {
        config.add_origin("strict", path, None);
        config.strict = true;
    }
    if config.max_runs.is_none() && settings.max_runs.is_some() {
        config.add_origin("maxRuns", path, None);
        config.max_runs = settings.max_runs;
    }
}

/// Applies the settings of an untrusted workspace file: only those that restrict.
pub(super) fn apply_restrictions(config: &mut Config, path: &Path, file: &OwnFile, scope: Scope<'_>) {
    let settings = &file.settings;
    if let Some(allow) = &settings.allow {
        config.add_origin("allow", path, file.locate("allow"));
        config.rules.allow.push(allow.clone());
    }
    add_to_lists(config, path, file);
    let ignore = |config: &mut Config, key: &str| {
        let message = format!("ignored, because this file is not trusted: `{key}`");
        config.warn_untrusted(message, path, file.locate(key));
    };
    if settings.private_addresses.is_some_and(|value| value < config.rules.private_addresses) {
        ignore(config, "privateAddresses");
    }
    grants::restrict(config, path, file, scope);
    match settings.strict {
        Some(true) => {
            config.add_origin("strict", path, file.locate("strict"));
            config.strict = true;
        }
        Some(false) if config.strict => ignore(config, "strict"),
        _ => {}
    }
    match settings.elicitation {
        Some(false) => {
            config.add_origin("elicitation", path, file.locate("elicitation"));
            config.elicitation = false;
        }
        Some(true) if !config.elicitation => ignore(config, "elicitation"),
        _ => {}
    }
    for limit in &settings.limits {
        let LimitSetting { key, value, role, .. } = limit;
        let current = if *role == LimitRole::Max { &config.max_limits } else { &config.limits };
        if key.restricts(current, *value) {
            set_limit(config, path, limit);
        } else {
            let current = (key.get)(current);
            let message =
                format!("ignored, because this file is not trusted: `limits.{}` above {current}", key.name);
            config.warn_untrusted(message, path, limit.location);
        }
    }
    settings_without_effect(settings).for_each(|key| ignore(config, key));
}

/// The keys of an untrusted file that have no effect in it: they could allow more, or decide for others.
fn settings_without_effect(settings: &Settings) -> impl Iterator<Item = &'static str> {
    let keys = [
        // A tool that counts as read-only needs no approval and is called in a dry run.
        ("readOnly", settings.read_only.is_some()),
        ("import", settings.import.is_some()),
        // A workspace must not decide what a client's model sees in every conversation.
        ("direct", settings.direct.is_some()),
        ("mode", settings.mode.is_some()),
        ("interfaces", settings.interfaces.is_some()),
        // A finer clock helps attacks, and the default resolution is not known here.
        ("clockResolutionUs", settings.clock_resolution.is_some()),
        // This setting restricts nothing.
        ("timeZone", settings.time_zone.is_some()),
        // This setting could disable a sandbox boundary.
        ("isolation", settings.isolation.is_some()),
        ("clientRate", settings.client_rate.is_some()),
        // This setting determines who may use a server.
        ("tokensFile", settings.tokens_file.is_some()),
        // A workspace must not affect the resources of other clients of a server.
        ("totalMemoryBytes", settings.total_memory_bytes.is_some()),
        ("cache.enabled", settings.cache_enabled.is_some()),
        ("cache.directory", settings.cache_directory.is_some()),
        // This setting could send everything that runs do to another host.
        ("openTelemetry.endpoint", settings.telemetry_endpoint.is_some()),
        ("openTelemetry.content", settings.telemetry_content.is_some()),
        ("audit", settings.audit.is_some()),
        ("mcpConfigPath", settings.servers_file.is_some()),
    ];
    keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key)
}

/// Adds to the lists that any file may extend, and to settings that any file may make stricter.
fn add_to_lists(config: &mut Config, path: &Path, file: &OwnFile) {
    if let Some(deny) = &file.settings.deny {
        config.add_origin("deny", path, file.locate("deny"));
        add(&mut config.rules.deny, deny);
    }
    if let Some(ask) = &file.settings.ask {
        config.add_origin("ask", path, file.locate("ask"));
        add(&mut config.rules.ask, ask);
    }
    if let Some(value) = file.settings.private_addresses
        && value >= config.rules.private_addresses
    {
        config.add_origin("privateAddresses", path, file.locate("privateAddresses"));
        config.rules.private_addresses = value;
    }
}

/// Adds to a list from which no file can remove anything.
fn add(list: &mut Vec<String>, more: &[String]) {
    let mut known: HashSet<String> = list.iter().cloned().collect();
    list.extend(more.iter().filter(|pattern| known.insert((*pattern).clone())).cloned());
}

/// Sets a limit. The default for runs is never above the maximum that a client may request.
pub(super) fn set_limit(config: &mut Config, path: &Path, limit: &LimitSetting) {
    let LimitSetting { key, value, role, location } = limit;
    let set = |config: &mut Config, group: &str| {
        config.add_origin(format!("{group}.{}", key.name), path, *location);
    };
    match role {
        LimitRole::Both => {
            set(config, "limits");
            (key.set)(&mut config.limits, *value);
            (key.set)(&mut config.max_limits, *value);
        }
        LimitRole::Default => {
            set(config, "limits");
            (key.set)(&mut config.limits, *value);
            keep_below_max(config, limit);
        }
        LimitRole::Max => {
            set(config, "maxLimits");
            (key.set)(&mut config.max_limits, *value);
            keep_below_max(config, limit);
        }
    }
    let is_set = |name: &str| config.origins.contains_key(name);
    // The CPU time follows the timeout unless a file sets it.
    if is_set("limits.timeoutMs") && !is_set("limits.cpuTimeMs") {
        let default = Limits { cpu_time: Limits::default().cpu_time, ..config.limits };
        config.limits = default.with_wall_time(config.limits.wall_time, config.max_limits.cpu_time);
    }
}

fn keep_below_max(config: &mut Config, LimitSetting { key, .. }: &LimitSetting) {
    let max = (key.get)(&config.max_limits);
    if !key.restricts(&config.max_limits, (key.get)(&config.limits)) {
        (key.set)(&mut config.limits, max);
    }
}
