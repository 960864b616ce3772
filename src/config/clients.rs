//! Locations and formats of the configuration files of other MCP clients.

use std::path::{Path, PathBuf};

use super::document::{Content, Node};
use super::entry::{Dialect, Entry};
use super::environment::Environment;
use super::error::{Finding, Key};
use super::own;
use super::values::At;

/// A client whose servers can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    McpJson,
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Windsurf,
    Codex,
    GeminiCli,
    Zed,
    OpenCode,
    McpServers,
}

/// One of a client's files.
#[derive(Clone, Debug)]
pub(super) struct ClientFile {
    pub(super) client: Client,
    pub(super) path: PathBuf,
    /// Whether it is in the workspace, so that it must be trusted first.
    pub(super) in_workspace: bool,
}

/// Locations: `./` is the workspace, `~/` the home directory, `$CONFIG/` is `$XDG_CONFIG_HOME` or
/// `~/.config`, and `%APPDATA%/` is Windows' variable. In the client's own order: project files
/// before user files.
const FILES: &[(Client, &[&str])] = &[
    (Client::McpJson, &["./.mcp.json"]),
    (Client::ClaudeCode, &["./.mcp.json", "~/.claude.json"]),
    (
        Client::ClaudeDesktop,
        &[
            "$CONFIG/Claude/claude_desktop_config.json",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
            "%APPDATA%/Claude/claude_desktop_config.json",
        ],
    ),
    (Client::Cursor, &["./.cursor/mcp.json", "~/.cursor/mcp.json"]),
    (
        Client::VsCode,
        &[
            "./.vscode/mcp.json",
            "$CONFIG/Code/User/mcp.json",
            "~/Library/Application Support/Code/User/mcp.json",
            "%APPDATA%/Code/User/mcp.json",
        ],
    ),
    (Client::Windsurf, &["~/.codeium/windsurf/mcp_config.json"]),
    (Client::Codex, &["./.codex/config.toml", "~/.codex/config.toml"]),
    (Client::GeminiCli, &["./.gemini/settings.json", "~/.gemini/settings.json"]),
    (Client::Zed, &["./.zed/settings.json", "$CONFIG/zed/settings.json", "%APPDATA%/Zed/settings.json"]),
    (
        Client::OpenCode,
        &[
            "./opencode.json",
            "./opencode.jsonc",
            "$CONFIG/opencode/opencode.json",
            "$CONFIG/opencode/opencode.jsonc",
        ],
    ),
    (Client::McpServers, &["$CONFIG/mcp/servers"]),
];

impl Client {
    pub(super) const ALL: [Self; 11] = [
        Self::McpJson,
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::GeminiCli,
        Self::Zed,
        Self::OpenCode,
        Self::McpServers,
    ];

    /// Its name in `import`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::McpJson => ".mcp.json",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Zed => "zed",
            Self::OpenCode => "opencode",
            Self::McpServers => "mcp-servers",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    pub(super) fn is_toml(self) -> bool {
        self == Self::Codex
    }

    /// All possible files of this client, whether they exist or not. The directory of `mcp-servers`
    /// is one of them.
    pub(super) fn files(self, workspace: &Path, environment: &Environment) -> Vec<ClientFile> {
        let templates = FILES.iter().find(|(client, _)| *client == self).map_or(&[][..], |(_, files)| *files);
        let file = |template: &&str| {
            let below = |base: Option<PathBuf>, rest: &str| Some(base?.join(rest));
            let (path, in_workspace) = match template.split_once('/')? {
                (".", rest) => (below(Some(workspace.to_owned()), rest)?, true),
                ("~", rest) => (below(environment.home(), rest)?, false),
                ("$CONFIG", rest) => (below(environment.config_home(), rest)?, false),
                (_, rest) => (below(environment.get("APPDATA").map(PathBuf::from), rest)?, false),
            };
            Some(ClientFile { client: self, path, in_workspace })
        };
        let files: Vec<ClientFile> = templates.iter().filter_map(file).collect();
        // If the workspace is the home directory, the project file is the user's file.
        let is_users = |path: &Path| files.iter().any(|file| !file.in_workspace && file.path == path);
        files.iter().filter(|file| !(file.in_workspace && is_users(&file.path))).cloned().collect()
    }

    /// The client whose project file this is, by its name and its directory.
    pub(super) fn of_project_file(path: &Path) -> Option<Self> {
        let is_it =
            |template: &&str| template.strip_prefix("./").is_some_and(|template| path.ends_with(template));
        FILES.iter().find(|(_, files)| files.iter().any(&is_it)).map(|(client, _)| *client)
    }

    /// The servers in one of the client's files, and the mistakes in some of them. Unknown keys are
    /// ignored.
    pub(super) fn servers(self, root: &Node, file: &Path, workspace: &Path) -> (Vec<Entry>, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut entries = Vec::new();
        let dialect = if self == Self::GeminiCli { Dialect::Gemini } else { Dialect::Common };
        let mut add = |node: Option<&Node>, key: &Key| {
            let Some(node) = node else { return };
            let found = own::servers(dialect, key, node, &mut findings);
            // If a name occurs in several lists of one file, the first list wins.
            for entry in found {
                if !entries.iter().any(|known: &Entry| known.name == entry.name) {
                    entries.push(entry);
                }
            }
        };
        let root_key = Key::default();
        match self {
            Self::VsCode => add(root.get("servers"), &root_key.child("servers")),
            Self::Codex => add(root.get("mcp_servers"), &root_key.child("mcp_servers")),
            Self::Zed => add(root.get("context_servers"), &root_key.child("context_servers")),
            Self::OpenCode => add(root.get("mcp"), &root_key.child("mcp")),
            Self::ClaudeCode => {
                let project = workspace.to_string_lossy();
                let key = root_key.child("projects").child(&project).child("mcpServers");
                let project = root.get("projects").and_then(|projects| projects.get(&project));
                add(project.and_then(|project| project.get("mcpServers")), &key);
                add(root.get("mcpServers"), &root_key.child("mcpServers"));
            }
            Self::McpServers if root.get("mcpServers").is_none() => {
                // One server, named after its file.
                let name = file.file_stem().map(|name| name.to_string_lossy().into_owned());
                let name = root.get("name").and_then(Node::as_str).map(str::to_owned).or(name);
                let name = name.unwrap_or_default();
                entries.extend(super::entry::parse(dialect, &root_key, &name, root, &mut findings));
            }
            _ => add(root.get("mcpServers"), &root_key.child("mcpServers")),
        }
        if !matches!(root.content, Content::Object(_)) {
            findings.push(At { key: root_key.clone(), node: root }.unexpected("an object"));
        }
        (entries, findings)
    }
}
