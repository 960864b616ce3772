//! Finds the clients of this user, and what each has configured.

use std::path::{Path, PathBuf};

use super::own_entry::valid_name;
use crate::config::clients::{Client, ClientFile};
use crate::config::describe::summary;
use crate::config::document::Node;
use crate::config::entry::{ServerEntry, Target};
use crate::config::environment::{Environment, canonical};
use crate::config::error::{ConfigError, Finding, FindingKind};
use crate::config::expand::Scope;
use crate::config::file::{Provenance, read, text};
use crate::config::resolve::resolve;

/// The clients that setup knows, by their names in `import`, with the names that people know.
const TITLES: [(&str, &str); 10] = [
    ("claude-code", "Claude Code"),
    ("claude-desktop", "Claude Desktop"),
    ("cursor", "Cursor"),
    ("vscode", "VS Code"),
    ("windsurf", "Windsurf"),
    ("codex", "Codex"),
    ("gemini-cli", "Gemini CLI"),
    ("zed", "Zed"),
    ("opencode", "OpenCode"),
    ("goose", "goose"),
];

/// Words in a command that start an executor like cx, and names that people give to its entry. Behind cx it would
/// start itself, or another one.
const EXECUTORS: [&str; 2] = ["code-executor-mcp", "code-executor"];

/// The name that people give to cx's entry.
const OWN_NAME: &str = "cx";

/// The clients of this user.
#[derive(Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Those that are installed, in the order of cx's documentation.
    pub clients: Vec<FoundClient>,
    /// A `.mcp.json` in the working directory and the number of its servers. Setup leaves it alone: cx
    /// reads it once it is trusted.
    pub workspace_file: Option<(PathBuf, usize)>,
    pub(super) environment: Environment,
}

/// A client that is installed.
#[derive(Debug)]
#[non_exhaustive]
pub struct FoundClient {
    /// Its name in `import`.
    pub name: &'static str,
    /// Its name, for people.
    pub title: &'static str,
    /// The file that has its servers, which need not exist.
    pub file: PathBuf,
    /// Its servers for all projects.
    pub servers: Vec<FoundServer>,
    /// Whether it starts cx.
    pub has_cx: bool,
    /// The program that it starts as cx, as its file has it.
    pub program: Option<String>,
    /// Why the file cannot be read. It is then left as it is.
    pub problem: Option<String>,
    pub(super) client: &'static Client,
    /// The file's content, if it exists.
    pub(super) bytes: Option<Vec<u8>>,
}

/// A server in a client's file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FoundServer {
    /// Its name in the file.
    pub name: String,
    /// Its program or URL, on one line and without secrets.
    pub summary: String,
    /// Whether it can be put behind cx.
    pub fitness: ServerFitness,
    pub(super) entry: Option<ServerEntry>,
}

/// Whether a server can be put behind cx.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerFitness {
    /// It can.
    Usable,
    /// It could, but the client has it switched off.
    Disabled,
    /// It is cx: never behind itself.
    Cx,
    /// It is another executor: never behind cx.
    Executor,
    /// It cannot as things are, and why: a variable is not set, or there is no command.
    Unusable(String),
}

impl FoundClient {
    /// Whether its file exists. It is made if it does not.
    pub fn has_file(&self) -> bool {
        self.bytes.is_some() || self.problem.is_some()
    }
}

impl Survey {
    /// Reads the files of all clients of this process's user. A file that cannot be read is a
    /// [`problem`](FoundClient::problem) of its client.
    pub fn take(workspace: &Path) -> Self {
        Self::of(workspace, Environment::of_process())
    }

    pub(super) fn of(workspace: &Path, environment: Environment) -> Self {
        let workspace = canonical(workspace);
        let found = TITLES.iter().filter_map(|&(name, title)| {
            let client = Client::from_name(name)?;
            let file = user_file(client, &workspace, &environment)?;
            Some(found_client(
                client,
                title,
                file,
                Scope { environment: &environment, workspace: &workspace },
            ))
        });
        let clients = found.collect();
        let workspace_file = workspace.join(".mcp.json");
        let servers = read(&workspace_file, Provenance::Workspace).ok().flatten().and_then(|bytes| {
            let root = Client::MCP_JSON.parse(text(&bytes).ok()?).ok()?;
            Some(Client::MCP_JSON.servers(&root, &workspace_file, &workspace).0.len())
        });
        let workspace_file = servers.filter(|count| *count > 0).map(|count| (workspace_file, count));
        Self { clients, workspace_file, environment }
    }
}

/// The file in which the client has the servers of all projects: the first one that exists, else the
/// first one whose directory exists. `None` if the client is not installed.
fn user_file(client: &'static Client, workspace: &Path, environment: &Environment) -> Option<PathBuf> {
    let files = client.files(workspace, environment);
    let of_user = || {
        let is_of_user = |file: &&ClientFile| file.provenance == Provenance::User;
        files.iter().filter(is_of_user).map(|file| file.path.clone())
    };
    let home = environment.home();
    // The home directory exists without the client that has a file there.
    let has_directory = |path: &PathBuf| match path.parent() {
        Some(parent) if Some(parent) == home.as_deref() => parent.join(".claude").is_dir(),
        Some(parent) => parent.is_dir(),
        None => false,
    };
    of_user().find(|path| path.symlink_metadata().is_ok()).or_else(|| of_user().find(has_directory))
}

fn found_client(
    client: &'static Client,
    title: &'static str,
    file: PathBuf,
    scope: Scope<'_>,
) -> FoundClient {
    let mut found = FoundClient {
        name: client.name,
        title,
        file,
        servers: Vec::new(),
        has_cx: false,
        program: None,
        problem: None,
        client,
        bytes: None,
    };
    let read = read(&found.file, Provenance::User).map_err(|finding| vec![finding]);
    let root = read.and_then(|bytes| {
        found.bytes = bytes;
        let Some(bytes) = &found.bytes else { return Ok(None) };
        let text = text(bytes).map_err(|finding| vec![finding])?;
        // Some clients make an empty file first.
        if text.trim().is_empty() { Ok(None) } else { client.parse(text).map(Some) }
    });
    match root {
        Ok(None) => {}
        Ok(Some(root)) => {
            let members = root.get(client.list_key()).and_then(Node::as_object).unwrap_or_default();
            found.servers = members
                .iter()
                .map(|member| found_server(client, &member.name, &member.value, scope))
                .collect();
            let own = || found.servers.iter().filter(|server| server.fitness == ServerFitness::Cx);
            let direct = own().filter_map(|server| server.entry.as_ref()).find(|entry| starts_cx(entry));
            found.program = direct.and_then(|entry| Some((*words(entry).first()?).to_owned()));
            found.has_cx = own().next().is_some();
        }
        Err(findings) => found.problem = Some(ConfigError::new(&found.file, findings).to_string()),
    }
    found
}

fn found_server(client: &'static Client, name: &str, node: &Node, scope: Scope<'_>) -> FoundServer {
    let mut findings = Vec::new();
    let entry = client.server(&valid_name(name), node, &mut findings);
    let summary = entry.as_ref().map(summary).unwrap_or_default();
    let fitness = match &entry {
        Some(entry) if is_cx(name, entry) => ServerFitness::Cx,
        Some(entry) if is_executor(name, entry) => ServerFitness::Executor,
        Some(entry) if entry.target.is_none() => {
            ServerFitness::Unusable("it has no command and no URL".to_owned())
        }
        Some(entry) => match resolve(entry, scope) {
            Err(findings) => ServerFitness::Unusable(reason(&findings)),
            Ok(_) if entry.enabled == Some(false) => ServerFitness::Disabled,
            Ok(_) => ServerFitness::Usable,
        },
        None => ServerFitness::Unusable(reason(&findings)),
    };
    FoundServer { name: name.to_owned(), summary, fitness, entry }
}

/// The first mistake, without the place, which is shown with the server.
fn reason(findings: &[Finding]) -> String {
    match findings.first() {
        Some(Finding { kind: FindingKind::MissingVariable { name, .. }, .. }) => {
            format!("it needs the variable {name}, which is not set here")
        }
        Some(finding) => finding.kind.to_string(),
        None => "it has no command and no URL".to_owned(),
    }
}

/// The words that start the server.
fn words(entry: &ServerEntry) -> Vec<&str> {
    match &entry.target {
        Some(Target::Stdio(target)) => {
            std::iter::once(&target.command).chain(&target.args).map(|text| text.raw.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the program of an entry is cx itself.
fn starts_cx(entry: &ServerEntry) -> bool {
    words(entry).first().is_some_and(|word| is_program(word))
}

/// Whether a word is the path of cx, or of a build of it such as `cx-nightly`.
fn is_program(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name == OWN_NAME || name.starts_with("cx-")
}

/// Whether an entry starts `cx serve`, also through a shell, `env` or another program; or has its name.
fn is_cx(name: &str, entry: &ServerEntry) -> bool {
    let mut words = words(entry).into_iter().flat_map(|word| word.split([' ', '\t', '"', '\'', ';']));
    let starts = words.any(is_program) && words.any(|word| word == "serve");
    starts || name.eq_ignore_ascii_case(OWN_NAME)
}

/// Whether an entry starts an executor that cx replaces, or has its name.
fn is_executor(name: &str, entry: &ServerEntry) -> bool {
    let separators = ['/', '\\', '@', ':', ' ', '\t', '"', '\''];
    let mut parts = words(entry).into_iter().flat_map(|word| word.split(separators));
    parts.any(|part| EXECUTORS.contains(&part)) || EXECUTORS.contains(&name.to_lowercase().as_str())
}
