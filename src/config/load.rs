//! Decides which files are read, and in which order of precedence.

use std::path::{Path, PathBuf};

use super::clients::{Client, ClientFile, Layout};
use super::document::{Node, parse_json, parse_toml};
use super::environment::{DEPTH, Directories, Environment, canonical};
use super::error::{ConfigError, Finding, FindingKind};
use super::expand::Scope;
use super::file::{Provenance, read, text};
use super::formats::MAX_SERVERS;
use super::merge::{Layer, LayerSource, merge};
use super::own::{OwnFile, own_file, servers_file};
use super::resolved::{Config, ConfigFileStatus, ConfigWarningCode, LoadOptions};
use super::settings::{apply_restrictions, apply_trusted};
use super::trust::TrustStore;
use crate::mcp::McpServer;

/// Maximum nesting: an executor may start an executor. A greater depth means a cycle.
const MAX_DEPTH: u32 = 2;

/// Variables that name cx's own file; the first one that is set is used.
const FILE_VARIABLES: [&str; 2] = ["CX_CONFIG", "CODE_EXECUTOR_CONFIG_PATH"];

/// Names of cx's own file in a workspace; the first one that exists is used.
const WORKSPACE_FILES: [&str; 2] = [".cx.json", ".code-executor.json"];

impl Config {
    /// Reads all configuration, with this process's environment. Starts and connects nothing.
    ///
    /// # Errors
    ///
    /// All mistakes in the first file that has any, if it was named or is one of cx's own. Mistakes
    /// in other clients' files are [`warnings`](Self::warnings).
    pub fn load(options: &LoadOptions) -> Result<Self, ConfigError> {
        load(options, &Environment::of_process())
    }
}

/// Reads the servers of a file that the user has named.
///
/// # Errors
///
/// As [`Config::load`].
pub(crate) fn read_mcp_config(path: &Path) -> Result<Vec<McpServer>, ConfigError> {
    let options =
        LoadOptions { workspace: PathBuf::from("."), files: vec![path.to_owned()], discover: false };
    let config = Config::load(&options)?;
    for warning in &config.warnings {
        tracing::warn!(code = warning.code.as_str(), "{warning}");
    }
    Ok(config.servers)
}

/// Loads the complete configuration.
pub(super) fn load(options: &LoadOptions, environment: &Environment) -> Result<Config, ConfigError> {
    let depth = environment.depth();
    if depth >= MAX_DEPTH {
        let hint = "remove cx from the servers that it starts";
        let finding = Finding::from(FindingKind::TooDeep(DEPTH, depth)).hint(hint);
        return Err(ConfigError::new("the environment", vec![finding]));
    }
    let workspace = canonical(&options.workspace);
    let mut loader = Loader {
        environment,
        workspace: &workspace,
        trust: Directories::of(environment).as_ref().map(TrustStore::new),
        config: Config::default(),
        layers: Vec::new(),
    };
    // A later file has precedence, and layers are in order of precedence.
    for path in options.files.iter().rev() {
        loader.load_named(path)?;
    }
    if options.discover {
        loader.discover()?;
    }
    let scope = loader.scope();
    let Loader { mut config, layers, .. } = loader;
    merge(&mut config, &layers, scope)?;
    Ok(config)
}

struct Loader<'a> {
    environment: &'a Environment,
    workspace: &'a Path,
    trust: Option<TrustStore>,
    config: Config,
    /// Highest precedence first.
    layers: Vec<Layer>,
}

/// One of cx's own files that exists.
struct Found {
    path: PathBuf,
    file: OwnFile,
    is_trusted: bool,
}

impl<'a> Loader<'a> {
    /// Reads a file of servers from the command line.
    fn load_named(&mut self, path: &Path) -> Result<(), ConfigError> {
        let error = |findings| ConfigError::new(path, findings);
        let bytes = read(path, Provenance::Named).map_err(|finding| error(vec![finding]))?;
        let root = parse(&bytes.unwrap_or_default(), false).map_err(error)?;
        let mut findings = Vec::new();
        let servers = servers_file(&root, &mut findings);
        if !findings.is_empty() {
            return Err(error(findings));
        }
        self.config.add_file(path, "command line", ConfigFileStatus::Used);
        self.layers.push(Layer { file: path.to_owned(), servers, source: LayerSource::Named });
        Ok(())
    }

    fn discover(&mut self) -> Result<(), ConfigError> {
        let variable = FILE_VARIABLES.into_iter().find_map(|name| {
            let value = self.environment.get(name).filter(|value| !value.is_empty())?;
            Some((name, PathBuf::from(value)))
        });
        let mut imports: Vec<&'static Client> = Vec::new();
        if let Some((name, path)) = variable {
            // The only file that is read: it replaces the user's and the workspace's.
            let found = self.own_file(&path, name, Provenance::Named)?;
            self.apply(found.as_ref(), &mut imports);
            self.add_layer(found);
        } else {
            let user = self.user_file()?;
            self.apply(user.as_ref(), &mut imports);
            let workspace = self.workspace_file(user.as_ref().map(|user| user.path.as_path()))?;
            self.apply(workspace.as_ref(), &mut imports);
            self.add_layer(workspace);
            self.import(&Client::MCP_JSON);
            self.add_layer(user);
        }
        for client in imports {
            self.import(client);
        }
        Ok(())
    }

    /// Applies the settings of one of cx's own files.
    fn apply(&mut self, found: Option<&Found>, imports: &mut Vec<&'static Client>) {
        let scope = self.scope();
        match found {
            Some(Found { path, file, is_trusted: true }) => {
                apply_trusted(&mut self.config, path, file, scope, imports);
            }
            Some(Found { path, file, is_trusted: false }) => apply_restrictions(&mut self.config, path, file),
            None => {}
        }
    }

    /// Adds the servers of one of cx's own files.
    fn add_layer(&mut self, found: Option<Found>) {
        self.layers.extend(found.map(|Found { path, file, is_trusted }| {
            let source = if is_trusted { LayerSource::Own } else { LayerSource::UntrustedOwn };
            Layer { file: path, servers: file.servers, source }
        }));
    }

    /// The user's own file: the first one that exists.
    fn user_file(&mut self) -> Result<Option<Found>, ConfigError> {
        let config = self.environment.config_home().map(|directory| directory.join("cx"));
        let candidates = [
            config.as_ref().map(|directory| directory.join("config.json")),
            config.as_ref().map(|directory| directory.join(".code-executor.json")),
            self.environment.home().map(|home| home.join(".code-executor.json")),
        ];
        self.first_file(candidates.into_iter().flatten(), "user", Provenance::User)
    }

    /// The workspace's own file: the first one that exists.
    fn workspace_file(&mut self, user: Option<&Path>) -> Result<Option<Found>, ConfigError> {
        let user = user.map(canonical);
        let candidates = WORKSPACE_FILES.map(|name| self.workspace.join(name));
        // If the workspace is the home directory, the file may be the user's.
        let candidates = candidates.into_iter().filter(|path| user.as_ref() != Some(&canonical(path)));
        self.first_file(candidates, "workspace", Provenance::Workspace)
    }

    /// The first of several files that exists. Records the others.
    fn first_file(
        &mut self,
        candidates: impl Iterator<Item = PathBuf>,
        role: &'static str,
        provenance: Provenance,
    ) -> Result<Option<Found>, ConfigError> {
        let mut found = None;
        for path in candidates {
            if found.is_none() {
                found = self.own_file(&path, role, provenance)?;
            } else if path.symlink_metadata().is_err() {
                self.config.add_file(&path, role, ConfigFileStatus::Missing);
            } else {
                self.config.add_file(&path, role, ConfigFileStatus::Ignored);
                let message = "ignored: another file of the same kind is used".to_owned();
                let hint = Some("move what it has into the other".to_owned());
                self.config.warn(ConfigWarningCode::Unused, message, &path, None, hint);
            }
        }
        Ok(found)
    }

    /// Reads one of cx's own files. `None` if it does not exist.
    fn own_file(
        &mut self,
        path: &Path,
        role: &'static str,
        provenance: Provenance,
    ) -> Result<Option<Found>, ConfigError> {
        let error = |findings| ConfigError::new(path, findings);
        let Some(bytes) = read(path, provenance).map_err(|finding| error(vec![finding]))? else {
            self.config.add_file(path, role, ConfigFileStatus::Missing);
            return Ok(None);
        };
        let is_trusted = provenance != Provenance::Workspace || self.is_trusted(path, &bytes);
        let mut findings = Vec::new();
        let file = own_file(parse(&bytes, false).map_err(error)?, &mut findings);
        if !is_trusted {
            // An unknown key cannot restrict anything, and must not disable the keys that do.
            let (unknown, rest) =
                findings.into_iter().partition::<Vec<_>, _>(|finding| finding.kind.is_unknown_key());
            findings = rest;
            self.config.warn_ignored(ConfigWarningCode::Untrusted, path, unknown);
        }
        if !findings.is_empty() {
            return Err(error(findings));
        }
        self.config.add_file(path, role, status(is_trusted));
        Ok(Some(Found { path: path.to_owned(), file, is_trusted }))
    }

    /// Adds the servers of a client's files. Mistakes in them are only warnings.
    fn import(&mut self, client: &'static Client) {
        for file in client.files(self.workspace, self.environment) {
            if self.config.files.iter().any(|known| known.path == file.path) {
                continue;
            }
            if client.layout == Layout::Directory {
                self.import_directory(&file);
            } else {
                self.import_file(&file);
            }
        }
    }

    /// Reads a directory with one file per server.
    fn import_directory(&mut self, directory: &ClientFile) {
        let Ok(entries) = std::fs::read_dir(&directory.path) else {
            let role = directory.client.name;
            return self.config.add_file(&directory.path, role, ConfigFileStatus::Missing);
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .take(MAX_SERVERS)
            .collect();
        paths.sort();
        for path in paths {
            self.import_file(&ClientFile { path, ..directory.clone() });
        }
    }

    fn import_file(&mut self, file: &ClientFile) {
        let (path, role) = (&file.path, file.client.name);
        let provenance = if file.in_workspace { Provenance::Workspace } else { Provenance::User };
        let parsed = match read(path, provenance) {
            Ok(None) => return self.config.add_file(path, role, ConfigFileStatus::Missing),
            Ok(Some(bytes)) => parse(&bytes, file.client.is_toml()).map(|root| (root, bytes)),
            Err(finding) => Err(vec![finding]),
        };
        let (root, bytes) = match parsed {
            Ok(parsed) => parsed,
            Err(findings) => {
                self.config.add_file(path, role, ConfigFileStatus::Unusable);
                return self.config.warn_ignored(ConfigWarningCode::Unreadable, path, findings);
            }
        };
        let is_trusted = !file.in_workspace || self.is_trusted(path, &bytes);
        self.config.add_file(path, role, status(is_trusted));
        let (servers, findings) = file.client.servers(&root, path, self.workspace);
        self.config.warn_ignored(ConfigWarningCode::ServerSkipped, path, findings);
        let source = if is_trusted { LayerSource::Foreign } else { LayerSource::UntrustedForeign };
        self.layers.push(Layer { file: path.clone(), servers, source });
    }

    /// Whether the user has trusted exactly these bytes at this path. False if that cannot be
    /// determined.
    fn is_trusted(&mut self, path: &Path, bytes: &[u8]) -> bool {
        let Some(trust) = &self.trust else { return false };
        trust.is_trusted(&canonical(path), bytes).unwrap_or_else(|error| {
            let message = format!("the list of trusted files cannot be used: {error}");
            self.config.warn(ConfigWarningCode::Unreadable, message, path, None, None);
            false
        })
    }

    fn scope(&self) -> Scope<'a> {
        Scope { environment: self.environment, workspace: self.workspace }
    }
}

fn status(is_trusted: bool) -> ConfigFileStatus {
    if is_trusted { ConfigFileStatus::Used } else { ConfigFileStatus::Untrusted }
}

fn parse(bytes: &[u8], is_toml: bool) -> Result<Node, Vec<Finding>> {
    let text = text(bytes).map_err(|finding| vec![finding])?;
    if is_toml { parse_toml(text) } else { parse_json(text) }
}
