//! Decides which entry of a name is used and what restricts it, and resolves it to a server.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::describe::summary;
use super::entry::{ServerEntry, Target};
use super::error::{ConfigError, Finding};
use super::expand::Scope;
use super::formats::MAX_SERVERS;
use super::resolve::resolve;
use super::resolved::{Config, ConfigWarningCode, MAX_WARNINGS};
use crate::mcp::{McpServer, McpTransport};
use crate::text::one_line;

/// The servers of one file.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) file: PathBuf,
    pub(super) servers: Vec<ServerEntry>,
    pub(super) source: LayerSource,
}

/// Where a layer comes from, which decides what its entries may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayerSource {
    /// A file that the user has named. A server that cannot be resolved is an error.
    Named,
    /// A trusted file of cx's own. Its entries also restrict those of other files.
    Own,
    /// An untrusted file of cx's own. Its entries only restrict those of other files.
    UntrustedOwn,
    /// A trusted file of another client.
    Foreign,
    /// An untrusted file of another client, which has no effect.
    UntrustedForeign,
}

impl LayerSource {
    fn is_trusted(self) -> bool {
        !matches!(self, Self::UntrustedOwn | Self::UntrustedForeign)
    }

    fn may_restrict(self) -> bool {
        !matches!(self, Self::Foreign | Self::UntrustedForeign)
    }
}

/// The entry that is used for a name.
struct Selected<'a> {
    layer: &'a Layer,
    entry: &'a ServerEntry,
    /// Entries of higher precedence that restrict it.
    restrictions: Vec<Restriction<'a>>,
}

/// An entry that restricts a server of lower precedence.
struct Restriction<'a> {
    layer: &'a Layer,
    entry: &'a ServerEntry,
}

/// Selects an entry for each name in `layers`, highest precedence first, and resolves them to the
/// servers of `config`.
///
/// # Errors
///
/// What is wrong with a server of a named file.
pub(super) fn merge(config: &mut Config, layers: &[Layer], scope: Scope<'_>) -> Result<(), ConfigError> {
    let mut selected: Vec<Selected<'_>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut restrictions: BTreeMap<&str, Vec<Restriction<'_>>> = BTreeMap::new();
    let mut untrusted = 0;
    for layer in layers {
        let is_trusted = layer.source.is_trusted();
        for entry in &layer.servers {
            if !is_trusted {
                untrusted += 1;
                skip_untrusted(config, layer, entry, untrusted, scope.workspace);
            }
            let is_candidate = is_trusted && entry.target.is_some();
            let name = entry.name.as_str();
            match by_name.get(name).and_then(|position| selected.get(*position)) {
                Some(winner) if is_candidate => {
                    let reason = format!("overridden by {}", winner.layer.file.display());
                    config.skip(&layer.file, entry, &reason);
                }
                Some(_) => {}
                None if is_candidate && selected.len() >= MAX_SERVERS => {
                    config.skip(&layer.file, entry, &format!("there are more than {MAX_SERVERS} servers"));
                }
                None if is_candidate => {
                    by_name.insert(name, selected.len());
                    let restrictions = restrictions.remove(name).unwrap_or_default();
                    selected.push(Selected { layer, entry, restrictions });
                }
                None if layer.source.may_restrict() => {
                    restrictions.entry(name).or_default().push(restriction(config, layer, entry));
                }
                None => {}
            }
        }
    }
    for selected in selected {
        use_server(config, selected, scope)?;
    }
    // The remaining entries had nothing to restrict. For untrusted files there is a warning already.
    for Restriction { layer, entry } in restrictions.into_values().flatten() {
        if entry.target.is_none() {
            let message = format!("no server `{}` is configured that this could restrict", entry.name);
            config.warn(ConfigWarningCode::Unused, message, &layer.file, entry.location, None);
        }
    }
    Ok(())
}

/// Warns of keys of an entry that cannot restrict.
fn restriction<'a>(config: &mut Config, layer: &'a Layer, entry: &'a ServerEntry) -> Restriction<'a> {
    if !layer.source.is_trusted() && entry.read_only.is_some() {
        let key = format!("mcpServers.{}.readOnly", entry.name);
        let message = format!("ignored, because this file is not trusted: `{key}`");
        config.warn_untrusted(message, &layer.file, entry.location);
    }
    Restriction { layer, entry }
}

/// Records a server of an untrusted file as skipped, and warns of the program or URL that it would use. `count` is the
/// number of untrusted entries so far.
fn skip_untrusted(config: &mut Config, layer: &Layer, entry: &ServerEntry, count: usize, workspace: &Path) {
    if entry.enabled == Some(false) {
        return;
    }
    let verb = match entry.target {
        Some(Target::Stdio(_)) => "started",
        Some(Target::Http(_)) => "connected",
        None => return,
    };
    config.skip(&layer.file, entry, "the file is not trusted");
    let path = layer.file.strip_prefix(workspace).unwrap_or(&layer.file);
    if !config.untrusted.iter().any(|known| known == path) {
        config.untrusted.push(path.to_owned());
    }
    if count <= MAX_WARNINGS {
        let (name, summary) = (&entry.name, summary(entry));
        let message = format!("server `{name}` is not {verb}, because this file is not trusted: {summary}");
        config.warn_untrusted(message, &layer.file, entry.location);
    }
}

/// Resolves the entry and adds it to the servers, unless it is disabled or cannot be resolved.
fn use_server(config: &mut Config, selected: Selected<'_>, scope: Scope<'_>) -> Result<(), ConfigError> {
    let Selected { layer, entry, restrictions } = selected;
    if entry.enabled == Some(false) {
        config.skip(&layer.file, entry, "disabled");
        return Ok(());
    }
    if let Some(by) = restrictions.iter().find(|restriction| restriction.entry.enabled == Some(false)) {
        config.skip(&layer.file, entry, &format!("disabled by {}", by.layer.file.display()));
        return Ok(());
    }
    let mut server = match resolve(entry, scope) {
        Ok(server) => server,
        Err(findings) if layer.source == LayerSource::Named => {
            return Err(ConfigError::new(&layer.file, findings));
        }
        Err(findings) => {
            skip_unresolved(config, &layer.file, entry, findings);
            return Ok(());
        }
    };
    server.elicitation &= config.elicitation;
    // Lowest precedence first, so that the highest decides which tools are read-only.
    for restriction in restrictions.iter().rev() {
        restrict(&mut server, restriction);
    }
    warn_of_loaded_code(config, &layer.file, entry, &server);
    if let Some(Target::Stdio(target)) = &entry.target {
        let written = target.args.iter().map(|text| text.raw.clone()).collect();
        config.written_arguments.insert(entry.name.clone(), written);
    }
    config.add_origin(format!("mcpServers.{}", entry.name), &layer.file, entry.location);
    config.servers.push(server);
    Ok(())
}

fn skip_unresolved(config: &mut Config, file: &Path, entry: &ServerEntry, findings: Vec<Finding>) {
    for finding in findings {
        let reason = finding.kind.to_string();
        config.skip(file, entry, &reason);
        let message = format!("server `{}` is not used: {reason}", entry.name);
        let location = finding.location.or(entry.location);
        config.warn(ConfigWarningCode::ServerSkipped, message, file, location, finding.hint);
    }
}

/// Applies the rules of an entry of higher precedence, which never allow more.
fn restrict(server: &mut McpServer, Restriction { layer, entry }: &Restriction<'_>) {
    if let Some(allow) = &entry.allow {
        server.rules.allow.push(allow.clone());
    }
    server.rules.deny.extend_from_slice(&entry.deny);
    server.rules.ask.extend_from_slice(&entry.ask);
    server.rules.private_addresses =
        server.rules.private_addresses.max(entry.private_addresses.unwrap_or_default());
    server.elicitation &= entry.elicitation.unwrap_or(true);
    // A tool that counts as read-only needs no approval.
    if layer.source.is_trusted() && entry.read_only.is_some() {
        server.rules.read_only = entry.read_only.iter().cloned().collect();
    }
}

/// Warns of variables that make a program load code that is not its own.
fn warn_of_loaded_code(config: &mut Config, file: &Path, entry: &ServerEntry, server: &McpServer) {
    let McpTransport::Stdio(stdio) = &server.transport else { return };
    for variable in stdio.env.keys().filter(|name| loads_code(name)) {
        let (name, variable) = (&entry.name, one_line(variable));
        let message = format!("server `{name}`: the variable `{variable}` makes programs run other code");
        config.warn(ConfigWarningCode::LoaderVariable, message, file, entry.location, None);
    }
}

/// Whether a variable makes a program load code that is not its own.
fn loads_code(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "BASH_ENV",
        "ENV",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "RUBYLIB",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "GCONV_PATH",
        "IFS",
        "PROMPT_COMMAND",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "DOTNET_STARTUP_HOOKS",
    ];
    name.starts_with("LD_") || name.starts_with("DYLD_") || NAMES.contains(&name)
}
