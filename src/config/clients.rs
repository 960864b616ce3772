//! Locations and formats of the configuration files of other MCP clients.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::document::{Node, parse_json, parse_toml, parse_yaml};
use super::entry::ServerEntry;
use super::environment::{Environment, canonical};
use super::error::{Finding, Key};
use super::file::Provenance;
use super::formats::{Dialect, server, servers};
use super::goose;

/// A client whose servers can be imported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// Its name in `import`.
    pub(super) name: &'static str,
    /// In the client's own order: project files before user files. `./` is the workspace, `~/` the
    /// home directory, `$CONFIG/` is `$XDG_CONFIG_HOME` or `~/.config`, and `%APPDATA%/` is Windows'
    /// variable.
    files: &'static [&'static str],
    /// The key of the list of servers.
    key: &'static str,
    pub(super) layout: Layout,
    dialect: Dialect,
}

/// The layout of a client's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// JSON with one list of servers.
    Json,
    /// JSON with a list of servers by project, in `projects`, and one for all projects.
    JsonWithProjects,
    /// TOML with one list of servers.
    Toml,
    /// goose's YAML, whose extensions include servers.
    Yaml,
    /// A directory of JSON files. Each has a list of servers, or is one server.
    Directory,
}

/// One of a client's files.
#[derive(Clone, Debug)]
pub(super) struct ClientFile {
    pub(super) client: &'static Client,
    pub(super) path: PathBuf,
    /// A file in the workspace must be trusted first.
    pub(super) provenance: Provenance,
    /// Where the file comes from, for users.
    pub(super) role: &'static str,
}

/// A client with the most common format.
const fn common(name: &'static str, files: &'static [&'static str], key: &'static str) -> Client {
    Client { name, files, key, layout: Layout::Json, dialect: Dialect::Common }
}

impl Client {
    /// The file that most clients read in a workspace.
    pub(super) const MCP_JSON: Self = common(".mcp.json", &["./.mcp.json"], "mcpServers");

    /// All clients, in the order in which messages list them.
    pub(super) const ALL: &'static [Self] = &[
        Self::MCP_JSON,
        Self {
            layout: Layout::JsonWithProjects,
            ..common("claude-code", &["./.mcp.json", "~/.claude.json"], "mcpServers")
        },
        common(
            "claude-desktop",
            &[
                "$CONFIG/Claude/claude_desktop_config.json",
                "~/Library/Application Support/Claude/claude_desktop_config.json",
                "%APPDATA%/Claude/claude_desktop_config.json",
            ],
            "mcpServers",
        ),
        common("cursor", &["./.cursor/mcp.json", "~/.cursor/mcp.json"], "mcpServers"),
        common(
            "vscode",
            &[
                "./.vscode/mcp.json",
                "$CONFIG/Code/User/mcp.json",
                "~/Library/Application Support/Code/User/mcp.json",
                "%APPDATA%/Code/User/mcp.json",
            ],
            "servers",
        ),
        common("windsurf", &["~/.codeium/windsurf/mcp_config.json"], "mcpServers"),
        Self {
            layout: Layout::Toml,
            ..common("codex", &["./.codex/config.toml", "~/.codex/config.toml"], "mcp_servers")
        },
        Self {
            dialect: Dialect::Gemini,
            ..common("gemini-cli", &["./.gemini/settings.json", "~/.gemini/settings.json"], "mcpServers")
        },
        common(
            "zed",
            &["./.zed/settings.json", "$CONFIG/zed/settings.json", "%APPDATA%/Zed/settings.json"],
            "context_servers",
        ),
        common(
            "opencode",
            &[
                "./opencode.json",
                "./opencode.jsonc",
                "$CONFIG/opencode/opencode.json",
                "$CONFIG/opencode/opencode.jsonc",
            ],
            "mcp",
        ),
        Self {
            layout: Layout::Yaml,
            ..common(
                "goose",
                &["$CONFIG/goose/config.yaml", "%APPDATA%/Block/goose/config/config.yaml"],
                "extensions",
            )
        },
        Self {
            layout: Layout::Directory,
            ..common("mcp-servers", &["$CONFIG/mcp/servers", "~/MCPs"], "mcpServers")
        },
        Self {
            dialect: Dialect::Mcpproxy,
            ..common("mcpproxy", &["~/.mcpproxy/mcp_config.json"], "mcpServers")
        },
    ];

    pub(super) fn from_name(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|client| client.name == name)
    }

    /// The client whose project file this is, by its name and its directory.
    pub(super) fn of_project_file(path: &Path) -> Option<&'static Self> {
        let is_it =
            |template: &&str| template.strip_prefix("./").is_some_and(|template| path.ends_with(template));
        Self::ALL.iter().find(|client| client.files.iter().any(&is_it))
    }

    /// Whether its files have settings that are used beside the servers.
    pub(super) fn is_mcpproxy(&self) -> bool {
        self.dialect == Dialect::Mcpproxy
    }

    /// Parses one of the client's files.
    pub(super) fn parse(&self, text: &str) -> Result<Node, Vec<Finding>> {
        match self.layout {
            Layout::Toml => parse_toml(text),
            Layout::Yaml => parse_yaml(text).map(goose::servers),
            Layout::Json | Layout::JsonWithProjects | Layout::Directory => parse_json(text),
        }
    }

    /// The key of the list of servers for all projects.
    #[cfg(feature = "cli")]
    pub(super) fn list_key(&self) -> &'static str {
        self.key
    }

    /// One entry of that list, with a name that may differ from the file's. Records everything that is
    /// wrong with it.
    #[cfg(feature = "cli")]
    pub(super) fn server(&self, name: &str, node: &Node, findings: &mut Vec<Finding>) -> Option<ServerEntry> {
        server(self.dialect, &Key::default().child(self.key).child(name), name, node, findings)
    }

    /// All possible files of this client, whether they exist or not.
    pub(super) fn files(&'static self, workspace: &Path, environment: &Environment) -> Vec<ClientFile> {
        let file = |template: &&str| {
            let below = |base: Option<PathBuf>, rest: &str| Some(base?.join(rest));
            let (path, provenance) = match template.split_once('/')? {
                (".", rest) => (below(Some(workspace.to_owned()), rest)?, Provenance::Workspace),
                ("~", rest) => (below(environment.home(), rest)?, Provenance::User),
                ("$CONFIG", rest) => (below(environment.config_home(), rest)?, Provenance::User),
                (_, rest) => (below(environment.get("APPDATA").map(PathBuf::from), rest)?, Provenance::User),
            };
            Some(ClientFile { client: self, path, provenance, role: self.name })
        };
        let files: Vec<ClientFile> = self.files.iter().filter_map(file).collect();
        // If the workspace is the home directory, the project file is the user's file. `HOME` may lead there by a
        // link, which the workspace does not have.
        let in_workspace = |file: &ClientFile| file.provenance == Provenance::Workspace;
        let place = |path: &Path| path.parent().map(canonical).zip(path.file_name().map(OsStr::to_owned));
        let of_user: Vec<_> =
            files.iter().filter(|file| !in_workspace(file)).map(|file| place(&file.path)).collect();
        let is_users = |path: &Path| of_user.contains(&place(path));
        files.iter().filter(|file| !(in_workspace(file) && is_users(&file.path))).cloned().collect()
    }

    /// The servers in one of the client's files, and the mistakes in some of them. Unknown keys are
    /// ignored.
    pub(super) fn servers(
        &self,
        root: &Node,
        file: &Path,
        workspace: &Path,
    ) -> (Vec<ServerEntry>, Vec<Finding>) {
        let (root_key, mut findings) = (Key::default(), Vec::new());
        if root.as_object().is_none() {
            findings.push(Finding::unexpected(&root_key, root.location, "an object", root.kind()));
        }
        if self.layout == Layout::Directory && root.get(self.key).is_none() {
            // One server, named after its file.
            let name = file.file_stem().map(|name| name.to_string_lossy().into_owned());
            let name = root.get("name").and_then(Node::as_str).map(str::to_owned).or(name);
            let entry = server(self.dialect, &root_key, &name.unwrap_or_default(), root, &mut findings);
            return (entry.into_iter().collect(), findings);
        }
        let mut entries: Vec<ServerEntry> = Vec::new();
        let mut add = |path: &[&str]| {
            let Some(node) = path.iter().try_fold(root, |node, name| node.get(name)) else { return };
            let key = path.iter().fold(root_key.clone(), |key, name| key.child(name));
            // If a name occurs in several lists of one file, the first list wins.
            for entry in servers(self.dialect, &key, node, &mut findings) {
                if !entries.iter().any(|known| known.name == entry.name) {
                    entries.push(entry);
                }
            }
        };
        if self.layout == Layout::JsonWithProjects {
            add(&["projects", &workspace.to_string_lossy(), self.key]);
        }
        add(&[self.key]);
        (entries, findings)
    }
}
