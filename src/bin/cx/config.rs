//! `cx config`.

use std::fmt::Write as _;

use cx::text::one_line;
use cx::{CONFIG_SCHEMA, Config, ConfigFileStatus};
use serde_json::Value;

use crate::args::{ConfigCommand, ShowArguments};
use crate::exit::ExitStatus;
use crate::text::{revealed, shown_path};
use crate::{diagnostic, output, setup};

/// The members of the configuration's JSON that are no settings: the text has parts for them, or stderr has them.
const SHOWN_APART: [&str; 5] = ["mcpServers", "origins", "skipped", "warnings", "files"];

/// The setting whose value is an object, `{calls, perMs}`. Every other object is a group of settings.
const RATE: &str = "clientRate";

/// Shows the configuration or its schema.
///
/// # Errors
///
/// Mistakes in the configuration.
pub(crate) fn run(command: ConfigCommand) -> anyhow::Result<ExitStatus> {
    match command {
        ConfigCommand::Schema => output::print_text(CONFIG_SCHEMA)?,
        ConfigCommand::Show(ShowArguments { mcp_config, json }) => {
            let config = setup::load(mcp_config)?;
            if json {
                output::print_json(&config.to_json().to_string())?;
            } else {
                diagnostic::print_warnings(&config.warnings);
                // Made only for its list of tools; it runs nothing. A configuration from which no executor can be made
                // is shown nevertheless.
                let executor = setup::builder(config.clone()).warm_instances(0).languages([]).build();
                if let Ok(executor) = &executor {
                    diagnostic::print_unmatched(executor);
                }
                output::print_text(&revealed(&render(&config)))?;
            }
        }
    }
    Ok(ExitStatus::Success)
}

/// The configuration as readable text.
fn render(config: &Config) -> String {
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
        let line = one_line(&format!("{}: {} ({})", skipped.name, skipped.reason, skipped.origin));
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "settings:");
    let settings = json.as_object().into_iter().flatten();
    for (name, value) in settings.filter(|(name, _)| !SHOWN_APART.contains(&name.as_str())) {
        match value {
            Value::Object(members) if name != RATE => {
                for (member, value) in members {
                    setting(&mut text, config, &format!("{name}.{member}"), value);
                }
            }
            value => setting(&mut text, config, name, value),
        }
    }
    let _ = writeln!(text, "files:");
    for file in &config.files {
        let hint = match file.status {
            ConfigFileStatus::Untrusted => ": can only restrict what is allowed, until `cx trust` trusts it",
            _ => "",
        };
        let (path, status) = (shown_path(&file.path), file.status.as_str());
        let _ = writeln!(text, "  {path} ({}): {status}{hint}", file.role);
    }
    text
}

fn setting(text: &mut String, config: &Config, name: &str, value: &Value) {
    let shown = if value.is_null() { "not set".to_owned() } else { value.to_string() };
    let _ = writeln!(text, "  {name}: {shown}{}", origin(config, name));
}

/// Where a value is from: the origin of its key, else that of the group before its first dot.
fn origin(config: &Config, key: &str) -> String {
    let of_group = || config.origins.get(key.split_once('.')?.0);
    let origin = config.origins.get(key).or_else(of_group);
    origin.map(|origin| format!("  [{}]", one_line(&origin.to_string()))).unwrap_or_default()
}
