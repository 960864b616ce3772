//! Decides which files are read, and in which order of precedence.

mod imports;

use std::path::{Path, PathBuf};

use super::clients::{Client, ClientFile};
use super::document::{Node, parse_json};
use super::environment::{DEPTH, Directories, Environment, ORIGIN, canonical};
use super::error::{ConfigError, Finding, FindingKind, Key};
use super::expand::{Role, Scope};
use super::file::{Provenance, read, text};
use super::foreign::{Foreign, Program};
use super::merge::{Layer, LayerSource, merge};
use super::own::{FILE_KEYS, FileKind, OwnFile, named_file, own_file};
use super::parsed::{AuditFields, ServerDefaults, Settings};
use super::reader::At;
use super::resolved::{Config, ConfigFileStatus, ConfigWarningCode, Discovery, LoadOptions};
use super::settings::{apply_restrictions, apply_rules, apply_trusted, set_limit};
use super::trust::TrustStore;
use super::{audit, code_executor, execution_mode, grants, llm, open_telemetry, references};
use crate::mcp::McpServer;

/// Maximum nesting: an executor may start an executor. A greater depth means a cycle.
const MAX_DEPTH: u32 = 2;

/// Variables that name cx's own file, with its kind; the first one that is set is used.
const FILE_VARIABLES: [(&str, FileKind); 2] =
    [("CX_CONFIG", FileKind::Own), ("CODE_EXECUTOR_CONFIG_PATH", FileKind::CodeExecutor)];

/// A variable that names a file with servers, which has precedence over those that are found.
const SERVERS_VARIABLE: &str = "MCP_CONFIG_PATH";

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
        load(options, &Environment::from_process())
    }
}

/// Reads the servers of a file that the user has named.
///
/// # Errors
///
/// As [`Config::load`].
pub(crate) fn read_mcp_config(path: &Path) -> Result<Vec<McpServer>, ConfigError> {
    let options = LoadOptions {
        workspace: PathBuf::from("."),
        files: vec![path.to_owned()],
        discover: Discovery::None,
    };
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
        return Err(ConfigError::new(ORIGIN, vec![finding]));
    }
    let workspace = canonical(&options.workspace);
    let mut loader = Loader {
        environment,
        workspace: &workspace,
        trust: Directories::in_environment(environment).as_ref().map(TrustStore::new),
        config: Config::default(),
        layers: Vec::new(),
        server_defaults: ServerDefaults::default(),
    };
    // A later file has precedence, and layers are in order of precedence.
    let named = options.files.iter().rev().map(|path| loader.load_named(path));
    let named = named.collect::<Result<Vec<Found>, ConfigError>>()?;
    match options.discover {
        Discovery::None => {}
        Discovery::UserRules => loader.load_user_rules()?,
        Discovery::All => loader.discover()?,
    }
    let scope = loader.scope();
    for Found { path, file, .. } in named.iter().rev() {
        apply_rules(&mut loader.config, path, file, scope);
    }
    let Loader { mut config, mut layers, server_defaults, .. } = loader;
    let entries = layers.iter_mut().flat_map(|layer| &mut layer.servers);
    entries.for_each(|entry| server_defaults.fill(entry));
    merge(&mut config, &layers, scope)?;
    config.open_telemetry = open_telemetry::resolve(&config.telemetry, environment);
    llm::resolve(&mut config, scope);
    audit::resolve(&mut config);
    Ok(config)
}

struct Loader<'a> {
    environment: &'a Environment,
    workspace: &'a Path,
    trust: Option<TrustStore>,
    config: Config,
    /// Highest precedence first.
    layers: Vec<Layer>,
    /// Settings from variables for servers that do not set them.
    server_defaults: ServerDefaults,
}

/// One of cx's own files that exists, or a named file.
struct Found {
    path: PathBuf,
    file: OwnFile,
    is_trusted: bool,
}

impl<'a> Loader<'a> {
    /// Reads a file of servers from the command line. Its settings are applied later, because they
    /// have precedence.
    fn load_named(&mut self, path: &Path) -> Result<Found, ConfigError> {
        let error = |findings| ConfigError::new(path, findings);
        let bytes = read(path, Provenance::Named).map_err(|finding| error(vec![finding]))?;
        let root = parse(&bytes.unwrap_or_default()).map_err(error)?;
        let mut findings = Vec::new();
        let own = user_files(self.environment).next();
        let mut file = named_file(root, own.as_deref(), &mut findings);
        if !findings.is_empty() {
            return Err(error(findings));
        }
        self.config.add_file(path, "command line", ConfigFileStatus::Used);
        if let Some((program, foreign)) = &mut file.foreign {
            self.report_foreign(path, program, foreign);
        }
        // Another program may have written servers that cx cannot use.
        let source = if file.foreign.is_some() { LayerSource::Foreign } else { LayerSource::Named };
        let servers = std::mem::take(&mut file.servers);
        self.layers.push(Layer { file: path.to_owned(), servers, source });
        Ok(Found { path: path.to_owned(), file, is_trusted: true })
    }

    /// The file that a variable names in place of the user's and the workspace's.
    fn named_by_variable(&mut self) -> Result<Option<Found>, ConfigError> {
        for (name, kind) in FILE_VARIABLES {
            if let Some(value) = self.environment.get(name).filter(|value| !value.is_empty()) {
                return self.own_file(Path::new(value), kind, name, Provenance::Named);
            }
        }
        Ok(None)
    }

    /// Applies the user's own file to all servers, without the servers in it.
    fn load_user_rules(&mut self) -> Result<(), ConfigError> {
        let found = match self.named_by_variable()? {
            Some(found) => Some(found),
            None => self.user_file()?,
        };
        let scope = self.scope();
        if let Some(Found { path, file, .. }) = &found {
            apply_rules(&mut self.config, path, file, scope);
        }
        self.apply_variables();
        Ok(())
    }

    /// Applies the variables of other programs, which have precedence over files there.
    fn apply_variables(&mut self) {
        let mut settings = Settings::default();
        let mut programs = [&code_executor::VARIABLES, &execution_mode::VARIABLES]
            .map(|program| (program, Foreign::default()));
        for (program, foreign) in &mut programs {
            for setting in program.settings {
                let Some(value) = self.environment.get(setting.name).filter(|value| !value.is_empty()) else {
                    continue;
                };
                let (key, node) = (Key::default().child(setting.name), Node::of_variable(value, None));
                foreign.read_value(setting, &At { key, node: &node }, &mut settings);
            }
            (program.finish)(&mut settings, foreign);
        }
        let path = Path::new(ORIGIN);
        for limit in &settings.limits {
            set_limit(&mut self.config, path, limit);
        }
        self.server_defaults = settings.server_defaults;
        let scope = self.scope();
        grants::apply_variables(&mut self.config, path, &settings.grants, scope);
        audit::apply_variables(&mut self.config, path, &settings.foreign_audit, scope);
        llm::apply_variables(&mut self.config, path, &settings.llm, scope);
        if settings.client_rate.is_some() {
            self.config.add_origin("clientRate", path, None);
            self.config.client_rate = settings.client_rate;
        }
        for (program, foreign) in &mut programs {
            self.report_foreign(path, program, foreign);
        }
    }

    /// Records the origins of another program's settings that apply to many servers, and warns of those that are not
    /// used.
    fn report_foreign(&mut self, path: &Path, program: &Program, foreign: &mut Foreign) {
        for (key, location) in foreign.used.iter().filter(|(key, _)| key.starts_with("mcpServers.*")) {
            self.config.add_origin(*key, path, *location);
        }
        if let Some((message, location)) = foreign.warning(program) {
            let hint = Some("docs/other-programs.md says what each setting becomes".to_owned());
            self.config.warn(ConfigWarningCode::Unused, message, path, location, hint);
        }
        let mistakes = std::mem::take(&mut foreign.mistakes);
        self.config.warn_ignored(ConfigWarningCode::Unused, path, mistakes);
    }

    fn discover(&mut self) -> Result<(), ConfigError> {
        if let Some(value) = self.environment.get(SERVERS_VARIABLE).filter(|value| !value.is_empty()) {
            self.import_file(&ClientFile {
                client: &Client::MCP_JSON,
                // Canonical, so that a variable that names `./.mcp.json` does not make it be read twice.
                path: canonical(&self.workspace.join(value)),
                provenance: Provenance::Named,
                role: SERVERS_VARIABLE,
            });
        }
        let mut imports: Vec<&'static Client> = Vec::new();
        if let Some(found) = self.named_by_variable()? {
            // This is the only file that is read: it replaces the user's and the workspace's.
            self.apply(Some(&found), &mut imports);
            self.add_layer(Some(found));
        } else {
            let user = self.user_file()?;
            self.apply(user.as_ref(), &mut imports);
            let mut workspace = self.workspace_file(user.as_ref().map(|user| user.path.as_path()))?;
            if let Some(found) = &mut workspace {
                self.leave_out_llm(found);
                self.leave_out_foreign_audit(found);
            }
            self.apply(workspace.as_ref(), &mut imports);
            self.add_layer(workspace);
            self.import(&Client::MCP_JSON);
            self.add_layer(user);
        }
        self.apply_variables();
        for client in imports {
            self.import(client);
        }
        Ok(())
    }

    /// Leaves out the language models of a workspace's file, also of a trusted one: a workspace
    /// must not decide which provider gets a key and what is paid for.
    fn leave_out_llm(&mut self, found: &mut Found) {
        if std::mem::take(&mut found.file.settings.llm).is_present {
            let message = "ignored: `llm` belongs in the user's own file".to_owned();
            let location = found.file.locate("llm");
            self.config.warn(ConfigWarningCode::Unused, message, &found.path, location, None);
        }
    }

    /// Leaves out another program's audit settings in a workspace's file, even if it is trusted: a workspace must not
    /// move a trail that the user's variables enable.
    fn leave_out_foreign_audit(&mut self, found: &mut Found) {
        let AuditFields { enabled, directory, .. } = std::mem::take(&mut found.file.settings.foreign_audit);
        let key = if enabled.is_some() { "audit.enabled" } else { "audit.directory" };
        if enabled.is_some() || directory.is_some() {
            let message = format!("ignored: `{key}` of another program belongs in the user's own file");
            let location = found.file.locate(key);
            self.config.warn(ConfigWarningCode::Unused, message, &found.path, location, None);
        }
    }

    /// Applies the settings of one of cx's own files.
    fn apply(&mut self, found: Option<&Found>, imports: &mut Vec<&'static Client>) {
        let scope = self.scope();
        match found {
            Some(Found { path, file, is_trusted: true }) => {
                apply_trusted(&mut self.config, path, file, scope, imports);
            }
            Some(Found { path, file, is_trusted: false }) => {
                apply_restrictions(&mut self.config, path, file, scope);
            }
            None => {}
        }
    }

    /// Adds the servers of one of cx's own files, and of the file with servers that it names.
    fn add_layer(&mut self, found: Option<Found>) {
        let Some(Found { path, file, is_trusted }) = found else { return };
        let source = if is_trusted { LayerSource::Own } else { LayerSource::UntrustedOwn };
        self.layers.push(Layer { file: path.clone(), servers: file.servers, source });
        let Some(named) = file.settings.servers_file.filter(|_| is_trusted) else { return };
        match named.expand(Role::Path, self.scope()) {
            Ok(value) => self.import_servers_file(self.workspace.join(value)),
            Err(finding) => self.config.warn_ignored(ConfigWarningCode::Unused, &path, [finding]),
        }
    }

    /// The user's own file: the first one that exists.
    fn user_file(&mut self) -> Result<Option<Found>, ConfigError> {
        self.first_file(user_files(self.environment), "user", Provenance::User)
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
                found = self.own_file(&path, FileKind::from_path(&path), role, provenance)?;
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
        kind: FileKind,
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
        let mut root = parse(&bytes).map_err(error)?;
        if is_trusted {
            references::resolve(&mut root, FILE_KEYS, self.environment).map_err(error)?;
        }
        let mut file = own_file(root, kind, &mut findings);
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
        if let Some((program, foreign)) = &mut file.foreign {
            self.report_foreign(path, program, foreign);
        }
        Ok(Some(Found { path: path.to_owned(), file, is_trusted }))
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

/// Where the user's own file may be. The first one that exists is used.
pub(super) fn user_files(environment: &Environment) -> impl Iterator<Item = PathBuf> + use<> {
    let config = environment.config_home().map(|directory| directory.join("cx"));
    let candidates = [
        config.as_ref().map(|directory| directory.join("config.json")),
        config.as_ref().map(|directory| directory.join(".code-executor.json")),
        environment.home().map(|home| home.join(".code-executor.json")),
        environment.config_home().map(|directory| directory.join("code-executor/config.json")),
    ];
    candidates.into_iter().flatten()
}

fn status(is_trusted: bool) -> ConfigFileStatus {
    if is_trusted { ConfigFileStatus::Used } else { ConfigFileStatus::Untrusted }
}

/// Parses one of cx's own files.
fn parse(bytes: &[u8]) -> Result<Node, Vec<Finding>> {
    text(bytes).map_err(|finding| vec![finding]).and_then(parse_json)
}
