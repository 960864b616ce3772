//! `cx config`, and loading the configuration for the other commands.

use std::env;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use cx::{
    CONFIG_SCHEMA, Config, ConfigFileStatus, Directories, Executor, ExecutorBuilder, LoadOptions, StateStore,
};
use serde_json::Value;

use crate::args::{ConfigCommand, ShowArguments};
use crate::exit::ExitStatus;
use crate::{diagnostic, output};

/// Loads the configuration: the named files or, if there are none, the files found from the working
/// directory.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn load(files: Vec<PathBuf>) -> anyhow::Result<Config> {
    let workspace = env::current_dir().context("failed to find the working directory")?;
    let discover = files.is_empty();
    Ok(Config::load(&LoadOptions { workspace, files, discover })?)
}

/// An executor builder with that configuration, which stores its data in the user's directories.
pub(crate) fn builder(config: Config) -> ExecutorBuilder {
    let directories = Directories::from_environment();
    let mut builder = Executor::builder();
    let cache = config.cache_directory.clone().or_else(|| Some(directories.as_ref()?.cache.clone()));
    if let Some(cache) = cache.filter(|_| config.cache_enabled) {
        builder = builder.cache_directory(cache.join("servers"));
    }
    if let Some(directories) = directories {
        if let Ok(workspace) = env::current_dir() {
            builder = builder.state(state_store(&directories), workspace);
        }
        builder = builder.state_directory(directories.state);
    }
    builder.config(config)
}

/// The store of the state that scripts keep between runs.
pub(crate) fn state_store(directories: &Directories) -> StateStore {
    StateStore::new(directories.state.join("scripts.sqlite3"))
}

/// Shows the configuration or its schema.
///
/// # Errors
///
/// What is wrong with the configuration.
pub(crate) fn run(command: ConfigCommand) -> anyhow::Result<ExitStatus> {
    // A closed stdout is the reader's decision, not a failure.
    let _ = match command {
        ConfigCommand::Schema => output::print_text(CONFIG_SCHEMA),
        ConfigCommand::Show(ShowArguments { mcp_config, json }) => {
            let config = load(mcp_config)?;
            if json {
                output::print_json(&config.to_json())
            } else {
                diagnostic::print_warnings(&config.warnings);
                output::print_text(&text(&config))
            }
        }
    };
    Ok(ExitStatus::Success)
}

/// The configuration as readable text.
fn text(config: &Config) -> String {
    let json = config.to_json();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "servers:");
    for (name, server) in json["mcpServers"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "  {name}{}", origin(config, &format!("mcpServers.{name}")));
        for (key, value) in server.as_object().into_iter().flatten() {
            let _ = writeln!(text, "    {key}: {value}");
        }
    }
    if config.servers.is_empty() {
        let _ = writeln!(text, "  none");
    }
    if !config.skipped.is_empty() {
        let _ = writeln!(text, "not used:");
    }
    for skipped in &config.skipped {
        let _ = writeln!(text, "  {}: {} ({})", skipped.name, skipped.reason, skipped.origin);
    }
    let _ = writeln!(text, "settings:");
    for name in ["allow", "deny", "ask", "readOnly", "strict"] {
        setting(&mut text, config, name, &json[name]);
    }
    for group in ["limits", "cache"] {
        for (name, value) in json[group].as_object().into_iter().flatten() {
            setting(&mut text, config, &format!("{group}.{name}"), value);
        }
    }
    let _ = writeln!(text, "files:");
    for file in &config.files {
        let hint = match file.status {
            ConfigFileStatus::Untrusted => ": may only restrict until you trust it with `cx trust`",
            _ => "",
        };
        let _ = writeln!(text, "  {} ({}): {}{hint}", file.path.display(), file.role, file.status.as_str());
    }
    text
}

fn setting(text: &mut String, config: &Config, name: &str, value: &Value) {
    let shown = if value.is_null() { "not set".to_owned() } else { value.to_string() };
    let _ = writeln!(text, "  {name}: {shown}{}", origin(config, name));
}

fn origin(config: &Config, key: &str) -> String {
    config.origins.get(key).map(|origin| format!("  [{origin}]")).unwrap_or_default()
}
