//! Decides which files are read, what each may set, and which has precedence.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::clients::{Client, ClientFile};
use super::document::{self, Node};
use super::entry::{Entry, Target};
use super::environment::{self, Directories, Environment, canonical};
use super::error::{ConfigError, Finding, Place, Problem};
use super::expand::{Role, Scope};
use super::file::{self, Origin};
use super::own::{self, OwnFile, Placed};
use super::trust::{TrustStore, summary};
use super::{
    Config, ConfigFile, ConfigFileStatus, ConfigOrigin, ConfigWarning, ConfigWarningCode, LoadOptions,
    SkippedServer, launch, patterns,
};
use crate::mcp::McpTransport;
use crate::text::one_line;

/// Maximum nesting: an executor may start an executor. A greater depth means a cycle.
const DEEPEST: u32 = 2;

/// Variables that name cx's own file; the first one that is set is used.
const FILE_VARIABLES: [&str; 2] = ["CX_CONFIG", "CODE_EXECUTOR_CONFIG_PATH"];

/// Names of cx's own file in a workspace; the first one that exists is used.
const WORKSPACE_FILES: [&str; 2] = [".cx.json", ".code-executor.json"];

/// Maximum number of warnings of one kind per file. More add no information.
const MAX_WARNINGS: usize = 20;

/// The servers of one file.
struct Layer {
    file: PathBuf,
    servers: Vec<Entry>,
    /// Whether its servers may be started. If not, its entries can still restrict others.
    is_trusted: bool,
    /// Whether the file is one of cx's own, so that its entries may restrict those of other files.
    is_own: bool,
    /// Whether the user has named the file: then a server that cannot be resolved is an error.
    is_named: bool,
}

/// The entry that was selected for a name.
struct Chosen {
    layer: usize,
    entry: Entry,
    /// Restricting entries of higher precedence.
    narrowed_by: Vec<(PathBuf, Entry)>,
}

struct Loader<'a> {
    environment: &'a Environment,
    workspace: PathBuf,
    trust: Option<TrustStore>,
    config: Config,
    /// Highest precedence first.
    layers: Vec<Layer>,
}

/// Loads the complete configuration.
pub(super) fn load(options: &LoadOptions, environment: &Environment) -> Result<Config, ConfigError> {
    let depth = environment.depth();
    if depth >= DEEPEST {
        let hint = "remove cx from the servers that it starts";
        let finding = Finding::from(Problem::TooDeep(environment::DEPTH, depth)).hint(hint);
        return Err(ConfigError::new("the environment", vec![finding]));
    }
    let mut loader = Loader {
        environment,
        workspace: canonical(&options.workspace),
        trust: Directories::of(environment).as_ref().map(TrustStore::new),
        config: Config::default(),
        layers: Vec::new(),
    };
    // A later file has precedence, and layers are in order of precedence.
    for path in options.files.iter().rev() {
        loader.named(path)?;
    }
    if options.discover {
        loader.discover()?;
    }
    loader.merge()?;
    Ok(loader.config)
}

impl Loader<'_> {
    /// Reads a file of servers from the command line.
    fn named(&mut self, path: &Path) -> Result<(), ConfigError> {
        let error = |findings| ConfigError::new(path, findings);
        let bytes =
            file::read(path, Origin::Named).map_err(|finding| error(vec![finding]))?.unwrap_or_default();
        let root = json(&bytes).map_err(error)?;
        let mut findings = Vec::new();
        let file = own::parse(&root, own::SERVERS_FILE_KEYS, &mut findings);
        if findings.is_empty() && root.get("mcpServers").is_none() {
            let key = super::error::Key::default();
            let expected = "an object with the key `mcpServers`";
            findings.push(Finding::unexpected(&key, root.place, expected, "an object without it"));
        }
        // An entry without a target is an error here, because there is nothing that it could
        // restrict.
        for entry in file.servers.iter().filter(|entry| entry.target.is_none()) {
            let expected = "an object with the key `command` or `url`";
            findings.push(Finding::unexpected(&entry.key, entry.place, expected, "an object without it"));
        }
        if !findings.is_empty() {
            return Err(error(findings));
        }
        self.note_file(path, "command line", ConfigFileStatus::Used);
        self.add_layer(path, file.servers, true, true);
        if let Some(layer) = self.layers.last_mut() {
            layer.is_named = true;
        }
        Ok(())
    }

    fn discover(&mut self) -> Result<(), ConfigError> {
        let mut imports: Vec<Client> = Vec::new();
        let variable = FILE_VARIABLES.into_iter().find_map(|name| {
            let value = self.environment.get(name).filter(|value| !value.is_empty())?;
            Some((name, PathBuf::from(value)))
        });
        if let Some((name, path)) = variable {
            // The only file that is read: it replaces the user's and the workspace's.
            let file = self.own_file(&path, name, Origin::Named)?;
            if let Some((file, _)) = file {
                self.apply_trusted(&path, &file, &mut imports);
                self.add_layer(&path, file.servers, true, true);
            }
        } else {
            let user = self.user_file()?;
            if let Some((path, file)) = &user {
                self.apply_trusted(path, file, &mut imports);
            }
            let workspace = self.workspace_file(user.as_ref().map(|(path, _)| path.as_path()))?;
            if let Some((path, file, is_trusted)) = workspace {
                if is_trusted {
                    self.apply_trusted(&path, &file, &mut imports);
                } else {
                    self.apply_narrowing(&path, &file);
                }
                self.add_layer(&path, file.servers, is_trusted, true);
            }
            self.import(Client::McpJson);
            if let Some((path, file)) = user {
                self.add_layer(&path, file.servers, true, true);
            }
        }
        for client in imports {
            self.import(client);
        }
        Ok(())
    }

    /// The user's own file: the first one that exists.
    fn user_file(&mut self) -> Result<Option<(PathBuf, OwnFile)>, ConfigError> {
        let config = self.environment.config_home().map(|directory| directory.join("cx"));
        let home = self.environment.home();
        let candidates = [
            config.as_ref().map(|directory| directory.join("config.json")),
            config.as_ref().map(|directory| directory.join(".code-executor.json")),
            home.map(|home| home.join(".code-executor.json")),
        ];
        let mut found = None;
        for path in candidates.into_iter().flatten() {
            if found.is_some() {
                self.note_ignored(&path, "user");
            } else if let Some((file, _)) = self.own_file(&path, "user", Origin::User)? {
                found = Some((path, file));
            }
        }
        Ok(found)
    }

    /// The workspace's own file: the first one that exists, and whether it is trusted.
    fn workspace_file(
        &mut self,
        user: Option<&Path>,
    ) -> Result<Option<(PathBuf, OwnFile, bool)>, ConfigError> {
        let mut found = None;
        for name in WORKSPACE_FILES {
            let path = self.workspace.join(name);
            if user.is_some_and(|user| canonical(user) == canonical(&path)) {
                // The workspace is the home directory.
                continue;
            }
            if found.is_some() {
                self.note_ignored(&path, "workspace");
            } else if let Some((file, is_trusted)) = self.own_file(&path, "workspace", Origin::Workspace)? {
                found = Some((path, file, is_trusted));
            }
        }
        Ok(found)
    }

    /// Reads one of cx's own files. `None` if it does not exist.
    fn own_file(
        &mut self,
        path: &Path,
        role: &'static str,
        origin: Origin,
    ) -> Result<Option<(OwnFile, bool)>, ConfigError> {
        let error = |findings| ConfigError::new(path, findings);
        let Some(bytes) = file::read(path, origin).map_err(|finding| error(vec![finding]))? else {
            self.note_file(path, role, ConfigFileStatus::Missing);
            return Ok(None);
        };
        let is_trusted = origin != Origin::Workspace || self.is_trusted(path, &bytes);
        let root = json(&bytes).map_err(error)?;
        let mut findings = Vec::new();
        let file = own::parse(&root, own::FILE_KEYS, &mut findings);
        if !is_trusted {
            // An unknown key cannot restrict anything, and must not disable the keys that do.
            let (unknown, rest) = findings
                .into_iter()
                .partition::<Vec<_>, _>(|finding| matches!(finding.problem, Problem::UnknownKey { .. }));
            findings = rest;
            for finding in unknown.into_iter().take(MAX_WARNINGS) {
                let message = format!("ignored: {}", finding.problem);
                self.warn(ConfigWarningCode::Untrusted, message, path, finding.place, finding.hint);
            }
        }
        if !findings.is_empty() {
            return Err(error(findings));
        }
        let status = if is_trusted { ConfigFileStatus::Used } else { ConfigFileStatus::Untrusted };
        self.note_file(path, role, status);
        Ok(Some((file, is_trusted)))
    }

    /// Adds the servers of a client's files. Mistakes in them are only warnings.
    fn import(&mut self, client: Client) {
        for file in client.files(&self.workspace, self.environment) {
            if self.config.files.iter().any(|known| known.path == file.path) {
                continue;
            }
            if client == Client::McpServers {
                self.import_directory(&file);
            } else {
                self.import_file(&file);
            }
        }
    }

    /// Reads a directory with one file per server.
    fn import_directory(&mut self, directory: &ClientFile) {
        let Ok(entries) = std::fs::read_dir(&directory.path) else {
            self.note_file(&directory.path, directory.client.name(), ConfigFileStatus::Missing);
            return;
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .take(own::MAX_SERVERS)
            .collect();
        paths.sort();
        for path in paths {
            self.import_file(&ClientFile { path, ..directory.clone() });
        }
    }

    fn import_file(&mut self, file: &ClientFile) {
        let (path, role) = (&file.path, file.client.name());
        let origin = if file.in_workspace { Origin::Workspace } else { Origin::User };
        let read = file::read(path, origin).map_err(|finding| vec![finding]);
        let bytes = match read {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return self.note_file(path, role, ConfigFileStatus::Missing),
            Err(findings) => return self.unusable(path, role, findings),
        };
        let root = if file.client.is_toml() {
            file::text(&bytes).map_err(|finding| vec![finding]).and_then(document::parse_toml)
        } else {
            json(&bytes)
        };
        let root = match root {
            Ok(root) => root,
            Err(findings) => return self.unusable(path, role, findings),
        };
        let is_trusted = !file.in_workspace || self.is_trusted(path, &bytes);
        let status = if is_trusted { ConfigFileStatus::Used } else { ConfigFileStatus::Untrusted };
        self.note_file(path, role, status);
        let (servers, findings) = file.client.servers(&root, path, &self.workspace);
        for finding in findings.into_iter().take(MAX_WARNINGS) {
            let message = format!("ignored: {}", finding.problem);
            self.warn(ConfigWarningCode::ServerSkipped, message, path, finding.place, finding.hint);
        }
        self.add_layer(path, servers, is_trusted, false);
    }

    fn unusable(&mut self, path: &Path, role: &'static str, findings: Vec<Finding>) {
        self.note_file(path, role, ConfigFileStatus::Unusable);
        for finding in findings.into_iter().take(MAX_WARNINGS) {
            let message = format!("ignored: {}", finding.problem);
            self.warn(ConfigWarningCode::Unreadable, message, path, finding.place, finding.hint);
        }
    }

    /// Whether the user has trusted exactly these bytes at this path. False if that cannot be
    /// determined.
    fn is_trusted(&mut self, path: &Path, bytes: &[u8]) -> bool {
        let Some(trust) = &self.trust else { return false };
        match trust.is_trusted(&canonical(path), bytes) {
            Ok(is_trusted) => is_trusted,
            Err(error) => {
                let message = format!("the list of trusted files cannot be used: {error}");
                self.warn(ConfigWarningCode::Unreadable, message, path, None, None);
                false
            }
        }
    }

    /// Applies the settings of a trusted file: they replace earlier values, and deny lists
    /// accumulate.
    fn apply_trusted(&mut self, path: &Path, file: &OwnFile, imports: &mut Vec<Client>) {
        if let Some(import) = &file.import {
            self.note_origin("import", path, import.place);
            for client in &import.value {
                if !imports.contains(client) {
                    imports.push(*client);
                }
            }
        }
        if let Some(allow) = &file.allow {
            self.note_origin("allow", path, allow.place);
            self.config.allow = Some(allow.value.clone());
        }
        self.add("deny", |config| &mut config.deny, path, file.deny.as_ref());
        self.add("ask", |config| &mut config.ask, path, file.ask.as_ref());
        self.add("readOnly", |config| &mut config.read_only, path, file.read_only.as_ref());
        if let Some(strict) = &file.strict {
            self.note_origin("strict", path, strict.place);
            self.config.strict = strict.value;
        }
        for (position, limit) in &file.limits {
            self.set_limit(*position, limit, path);
        }
        if let Some(enabled) = &file.cache_enabled {
            self.note_origin("cache.enabled", path, enabled.place);
            self.config.cache_enabled = enabled.value;
        }
        if let Some(directory) = &file.cache_directory {
            let scope = Scope { environment: self.environment, workspace: &self.workspace };
            match directory.value.expand(Role::Path, scope) {
                Ok(value) => {
                    self.note_origin("cache.directory", path, directory.place);
                    self.config.cache_directory = Some(PathBuf::from(value));
                }
                Err(finding) => {
                    let message = format!("ignored: {}", finding.problem);
                    self.warn(ConfigWarningCode::Unused, message, path, finding.place, finding.hint);
                }
            }
        }
    }

    /// Applies the settings of an untrusted workspace file: only those that restrict.
    fn apply_narrowing(&mut self, path: &Path, file: &OwnFile) {
        if let Some(allow) = &file.allow {
            self.note_origin("allow", path, allow.place);
            let narrowed = match &self.config.allow {
                Some(allowed) => patterns::intersection(allowed, &allow.value),
                None => allow.value.clone(),
            };
            self.config.allow = Some(narrowed);
        }
        self.add("deny", |config| &mut config.deny, path, file.deny.as_ref());
        self.add("ask", |config| &mut config.ask, path, file.ask.as_ref());
        let mut ignored: Vec<(String, Option<Place>)> = Vec::new();
        match &file.strict {
            Some(Placed { value: true, place }) => {
                self.note_origin("strict", path, *place);
                self.config.strict = true;
            }
            Some(strict) if self.config.strict => ignored.push(("`strict`".to_owned(), strict.place)),
            _ => {}
        }
        for (position, limit) in &file.limits {
            let Some(key) = own::LIMIT_KEYS.get(*position) else { continue };
            if key.narrows(&self.config.limits, limit.value) {
                self.set_limit(*position, limit, path);
            } else {
                let now = (key.get)(&self.config.limits);
                ignored.push((format!("`limits.{}` above {now}", key.name), limit.place));
            }
        }
        // A tool that counts as read-only needs no approval and is called in a dry run.
        ignored.extend(file.read_only.as_ref().map(|list| ("`readOnly`".to_owned(), list.place)));
        ignored.extend(file.import.as_ref().map(|import| ("`import`".to_owned(), import.place)));
        ignored.extend(file.cache_enabled.as_ref().map(|cache| ("`cache.enabled`".to_owned(), cache.place)));
        ignored
            .extend(file.cache_directory.as_ref().map(|cache| ("`cache.directory`".to_owned(), cache.place)));
        for (what, place) in ignored {
            let message = format!("ignored, because nobody has trusted this file: {what}");
            self.warn(ConfigWarningCode::Untrusted, message, path, place, Some(trust_hint(path)));
        }
    }

    /// Adds to a list from which no file can remove anything.
    fn add(
        &mut self,
        name: &str,
        list: fn(&mut Config) -> &mut Vec<String>,
        path: &Path,
        more: Option<&Placed<Vec<String>>>,
    ) {
        let Some(more) = more else { return };
        self.note_origin(name, path, more.place);
        let list = list(&mut self.config);
        let mut known: HashSet<String> = list.iter().cloned().collect();
        list.extend(more.value.iter().filter(|pattern| known.insert((*pattern).clone())).cloned());
    }

    fn set_limit(&mut self, position: usize, limit: &Placed<u64>, path: &Path) {
        let Some(key) = own::LIMIT_KEYS.get(position) else { return };
        self.note_origin(&format!("limits.{}", key.name), path, limit.place);
        (key.set)(&mut self.config.limits, limit.value);
        (key.set)(&mut self.config.max_limits, limit.value);
    }

    /// Selects an entry for each name, and resolves the entries to servers.
    fn merge(&mut self) -> Result<(), ConfigError> {
        let layers = std::mem::take(&mut self.layers);
        let mut order: Vec<Chosen> = Vec::new();
        let mut by_name: HashMap<String, usize> = HashMap::new();
        let mut narrowing: BTreeMap<String, Vec<(PathBuf, Entry)>> = BTreeMap::new();
        let mut untrusted = 0;
        for (position, layer) in layers.iter().enumerate() {
            for entry in &layer.servers {
                if !layer.is_trusted {
                    untrusted += 1;
                    self.untrusted_server(layer, entry, untrusted);
                }
                if let Some(chosen) = by_name.get(&entry.name).and_then(|at| order.get(*at)) {
                    if layer.is_trusted && entry.target.is_some() {
                        let winner = layers.get(chosen.layer).map(|layer| layer.file.display().to_string());
                        let reason = format!("overridden by {}", winner.unwrap_or_default());
                        self.skip(layer, entry, &reason);
                    }
                } else if layer.is_trusted && entry.target.is_some() {
                    if order.len() >= own::MAX_SERVERS {
                        self.skip(layer, entry, &format!("there are more than {} servers", own::MAX_SERVERS));
                        continue;
                    }
                    by_name.insert(entry.name.clone(), order.len());
                    let narrowed_by = narrowing.remove(&entry.name).unwrap_or_default();
                    order.push(Chosen { layer: position, entry: entry.clone(), narrowed_by });
                } else if layer.is_own {
                    let narrowed = self.narrowing(layer, entry);
                    narrowing.entry(entry.name.clone()).or_default().push((layer.file.clone(), narrowed));
                }
            }
        }
        for chosen in order {
            if let Some(layer) = layers.get(chosen.layer) {
                self.settle(layer, chosen)?;
            }
        }
        // The remaining entries had nothing to restrict. For untrusted files there is already a
        // warning.
        for (file, entry) in narrowing.into_values().flatten().filter(|(_, entry)| entry.target.is_none()) {
            let message = format!("no server `{}` is configured that this could narrow", entry.name);
            self.warn(ConfigWarningCode::Unused, message, &file, entry.place, None);
        }
        Ok(())
    }

    /// The part of an entry that applies to a server of lower precedence.
    fn narrowing(&mut self, layer: &Layer, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        if !layer.is_trusted && entry.read_only.take().is_some() {
            let message = format!(
                "ignored, because nobody has trusted this file: `mcpServers.{}.readOnly`",
                entry.name
            );
            let hint = Some(trust_hint(&layer.file));
            self.warn(ConfigWarningCode::Untrusted, message, &layer.file, entry.place, hint);
        }
        entry
    }

    /// Records a server of an untrusted file as skipped, and warns of what it would start.
    fn untrusted_server(&mut self, layer: &Layer, entry: &Entry, count: usize) {
        if entry.target.is_none() || entry.enabled == Some(false) {
            return;
        }
        self.skip(layer, entry, "nobody has trusted the file");
        if count > MAX_WARNINGS {
            return;
        }
        let verb = if matches!(entry.target, Some(Target::Http { .. })) { "connected" } else { "started" };
        let message = format!(
            "server `{}` is not {verb}, because nobody has trusted this file: {}",
            entry.name,
            summary(entry)
        );
        let hint = Some(trust_hint(&layer.file));
        self.warn(ConfigWarningCode::Untrusted, message, &layer.file, entry.place, hint);
    }

    fn settle(&mut self, layer: &Layer, chosen: Chosen) -> Result<(), ConfigError> {
        let Chosen { entry, narrowed_by, .. } = chosen;
        if entry.enabled == Some(false) {
            self.skip(layer, &entry, "switched off");
            return Ok(());
        }
        if let Some((file, _)) = narrowed_by.iter().find(|(_, narrowing)| narrowing.enabled == Some(false)) {
            let reason = format!("switched off by {}", file.display());
            self.skip(layer, &entry, &reason);
            return Ok(());
        }
        let scope = Scope { environment: self.environment, workspace: &self.workspace };
        let mut server = match entry.resolve(scope) {
            Ok(server) => server,
            Err(findings) if layer.is_named => return Err(ConfigError::new(&layer.file, findings)),
            Err(findings) => {
                for finding in findings {
                    let reason = finding.problem.to_string();
                    self.skip(layer, &entry, &reason);
                    let message = format!("server `{}` is not used: {reason}", entry.name);
                    let code = ConfigWarningCode::ServerSkipped;
                    self.warn(code, message, &layer.file, finding.place.or(entry.place), finding.hint);
                }
                return Ok(());
            }
        };
        // Lowest precedence first, so that the highest decides which tools are read-only.
        for (_, narrowing) in narrowed_by.into_iter().rev() {
            if let Some(allow) = narrowing.allow {
                server.allow = Some(match &server.allow {
                    Some(allowed) => patterns::intersection_of_names(allowed, &allow),
                    None => allow,
                });
            }
            server.deny.extend(narrowing.deny);
            server.ask.extend(narrowing.ask);
            if narrowing.read_only.is_some() {
                server.read_only = narrowing.read_only;
            }
        }
        if let McpTransport::Stdio(stdio) = &server.transport {
            for name in stdio.env.keys().filter(|name| launch::loads_code(name)) {
                let name = one_line(name);
                let message =
                    format!("server `{}`: the variable `{name}` makes programs run other code", entry.name);
                self.warn(ConfigWarningCode::LoaderVariable, message, &layer.file, entry.place, None);
            }
        }
        if let Some(Target::Stdio { args, .. }) = &entry.target {
            let written = args.iter().map(|text| text.raw.clone()).collect();
            self.config.written_arguments.insert(entry.name.clone(), written);
        }
        self.note_origin(&format!("mcpServers.{}", entry.name), &layer.file, entry.place);
        self.config.servers.push(server);
        Ok(())
    }

    fn add_layer(&mut self, file: &Path, servers: Vec<Entry>, is_trusted: bool, is_own: bool) {
        self.layers.push(Layer { file: file.to_owned(), servers, is_trusted, is_own, is_named: false });
    }

    fn note_file(&mut self, path: &Path, role: &'static str, status: ConfigFileStatus) {
        self.config.files.push(ConfigFile { path: path.to_owned(), role, status });
    }

    /// Records a further file where only the first one is used.
    fn note_ignored(&mut self, path: &Path, role: &'static str) {
        if path.symlink_metadata().is_err() {
            return self.note_file(path, role, ConfigFileStatus::Missing);
        }
        self.note_file(path, role, ConfigFileStatus::Ignored);
        let message = "ignored: another file of the same kind is used".to_owned();
        self.warn(
            ConfigWarningCode::Unused,
            message,
            path,
            None,
            Some("move what it has into the other".to_owned()),
        );
    }

    fn note_origin(&mut self, key: &str, file: &Path, place: Option<Place>) {
        self.config.origins.insert(key.to_owned(), at(file, place));
    }

    fn skip(&mut self, layer: &Layer, entry: &Entry, reason: &str) {
        let origin = at(&layer.file, entry.place);
        let (name, reason) = (entry.name.clone(), one_line(reason));
        self.config.skipped.push(SkippedServer { name, origin, reason });
    }

    fn warn(
        &mut self,
        code: ConfigWarningCode,
        message: String,
        file: &Path,
        place: Option<Place>,
        hint: Option<String>,
    ) {
        let origin = Some(at(file, place));
        self.config.warnings.push(ConfigWarning { code, message, origin, hint });
    }
}

fn json(bytes: &[u8]) -> Result<Node, Vec<Finding>> {
    document::parse_json(file::text(bytes).map_err(|finding| vec![finding])?)
}

fn at(file: &Path, place: Option<Place>) -> ConfigOrigin {
    ConfigOrigin { file: file.to_owned(), line: place.map(|place| place.line) }
}

fn trust_hint(path: &Path) -> String {
    format!("look at it and decide: cx trust {}", one_line(&path.display().to_string()))
}
