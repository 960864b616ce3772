//! Finds the clients of this user and their configured servers.

use std::path::{Path, PathBuf};

use super::own_entry::valid_name;
use crate::config::clients::{Client, ClientFile, Layout};
use crate::config::describe::summary;
use crate::config::document::{Content, Node};
use crate::config::entry::{ServerEntry, Target};
use crate::config::environment::{Environment, canonical};
use crate::config::error::{ConfigError, Finding, FindingKind, Key};
use crate::config::expand::Scope;
use crate::config::file::{Provenance, broken_link, read, text};
use crate::config::formats::MAX_SERVERS;
use crate::config::resolve::resolve;

/// The clients that setup supports: the name in `import`, and the name that users know.
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

/// The name that users know for a client's name in `import`.
pub(super) fn title(client: &str) -> &str {
    TITLES.iter().find(|(name, _)| *name == client).map_or(client, |(_, title)| title)
}

/// Words in a command that start an executor like cx, and names that users give to its entry. Behind cx it would start
/// itself or another executor.
const EXECUTORS: [&str; 2] = ["code-executor-mcp", "code-executor"];

/// The name that users give to cx's entry.
const OWN_NAME: &str = "cx";

/// The clients of this user.
#[derive(Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Those that are installed, in the order of cx's documentation.
    pub clients: Vec<FoundClient>,
    /// The servers that clients have for one directory only, in the same order: first those of their
    /// own files, then those of files in the working directory.
    pub projects: Vec<FoundProject>,
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
    /// The program that it starts as cx, as written in its file.
    pub program: Option<String>,
    /// Why the file cannot be read. It is then left as it is.
    pub problem: Option<String>,
    pub(super) client: &'static Client,
    /// The file's content, if it exists.
    pub(super) bytes: Option<Vec<u8>>,
}

/// A client's servers for one directory only.
#[derive(Debug)]
#[non_exhaustive]
pub struct FoundProject {
    /// The client's name in `import`.
    pub client: &'static str,
    /// The client's name, for people.
    pub title: &'static str,
    /// The directory for which the client has them.
    pub directory: PathBuf,
    /// The file that has them: the client's own, or one in the directory.
    pub file: PathBuf,
    /// Whether the file is in the directory, where others may share it.
    pub is_in_directory: bool,
    /// The servers. There is at least one, or a problem.
    pub servers: Vec<FoundServer>,
    /// Whether the client starts cx there because of this list.
    pub has_cx: bool,
    /// Why the file cannot be read. It is then left as it is.
    pub problem: Option<String>,
    pub(super) of: &'static Client,
    /// The keys that lead to the list.
    pub(super) path: Vec<String>,
    /// The content of a file in the directory.
    pub(super) bytes: Option<Vec<u8>>,
}

/// Names one list of servers in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ServerList {
    /// The client's name in `import`.
    pub client: &'static str,
    /// The file that has the list.
    pub file: PathBuf,
    /// The directory that the list is for; `None` for all.
    pub directory: Option<PathBuf>,
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
    /// It could, but it is disabled in the client.
    Disabled,
    /// It is cx, which is never put behind itself.
    Cx,
    /// It is another executor, which is never put behind cx.
    Executor,
    /// It cannot at present, for this reason: a variable is not set, or there is no command.
    Unusable(String),
}

impl FoundClient {
    /// Whether its file exists. It is made if it does not.
    pub fn has_file(&self) -> bool {
        self.bytes.is_some() || self.problem.is_some()
    }

    /// Its list of servers for all projects.
    pub fn list(&self) -> ServerList {
        ServerList { client: self.name, file: self.file.clone(), directory: None }
    }
}

impl FoundProject {
    /// Its list of servers.
    pub fn list(&self) -> ServerList {
        ServerList { client: self.client, file: self.file.clone(), directory: Some(self.directory.clone()) }
    }
}

impl Survey {
    /// Reads the files of all clients of this process's user, and those in `workspace`. A file that cannot
    /// be read is a [`problem`](FoundClient::problem) of its client.
    pub fn read(workspace: &Path) -> Self {
        Self::with_environment(workspace, Environment::from_process())
    }

    pub(super) fn with_environment(workspace: &Path, environment: Environment) -> Self {
        let workspace = canonical(workspace);
        let scope = Scope { environment: &environment, workspace: &workspace };
        let (mut clients, mut projects) = (Vec::new(), Vec::new());
        for (name, title) in TITLES {
            let Some(client) = Client::from_name(name) else { continue };
            let Some(file) = user_file(client, &workspace, &environment) else { continue };
            let (found, root) = found_client(client, title, file, scope);
            if let Some(root) = root.filter(|_| client.layout == Layout::JsonWithProjects) {
                projects.extend(own_projects(&found, &root, &environment));
            }
            clients.push(found);
        }
        for (name, title) in TITLES {
            let Some(client) = Client::from_name(name) else { continue };
            let files = client.files(&workspace, &environment).into_iter();
            let in_workspace = files.filter(|file| file.provenance == Provenance::Workspace);
            projects
                .extend(in_workspace.filter_map(|file| workspace_project(client, title, file.path, scope)));
        }
        Self { clients, projects, environment }
    }

    /// All lists of servers: those for all projects, then those for one directory.
    pub fn lists(&self) -> impl Iterator<Item = (ServerList, &[FoundServer])> {
        let clients = self.clients.iter().map(|client| (client.list(), client.servers.as_slice()));
        clients.chain(self.projects.iter().map(|project| (project.list(), project.servers.as_slice())))
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
    // The home directory exists even if a client with a file there is not installed.
    let has_directory = |path: &PathBuf| match path.parent() {
        Some(parent) if Some(parent) == home.as_deref() => parent.join(".claude").is_dir(),
        Some(parent) => parent.is_dir(),
        None => false,
    };
    of_user().find(|path| path.symlink_metadata().is_ok()).or_else(|| of_user().find(has_directory))
}

/// The content of a client's file, if the file exists, and its parsed form, if it is not empty.
fn contents(
    client: &Client,
    file: &Path,
    provenance: Provenance,
) -> (Option<Vec<u8>>, Result<Option<Node>, String>) {
    let problem = |findings| ConfigError::new(file, findings).to_string();
    let bytes = match read(file, provenance) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return (None, broken_link(file).map_or(Ok(None), |finding| Err(problem(vec![finding])))),
        Err(finding) => return (None, Err(problem(vec![finding]))),
    };
    // Some clients create an empty file first.
    let root = text(&bytes).map_err(|finding| vec![finding]).and_then(|text| match text.trim().is_empty() {
        true => Ok(None),
        false => client.parse(text).map(Some),
    });
    let root = root.map_err(problem);
    (Some(bytes), root)
}

fn found_client(
    client: &'static Client,
    title: &'static str,
    file: PathBuf,
    scope: Scope<'_>,
) -> (FoundClient, Option<Node>) {
    let (bytes, root) = contents(client, &file, Provenance::User);
    let root = root.and_then(|root| match root.as_ref().and_then(|root| no_list(client, root)) {
        Some(finding) => Err(ConfigError::new(&file, vec![finding]).to_string()),
        None => Ok(root),
    });
    let (root, problem) = match root {
        Ok(root) => (root, None),
        Err(problem) => (None, Some(problem)),
    };
    let list = root.as_ref().and_then(|root| root.get(client.list_key()));
    let servers = list.map(|list| found_servers(client, list, scope)).unwrap_or_default();
    let own = || servers.iter().filter(|server| server.fitness == ServerFitness::Cx);
    let direct = own().filter_map(|server| server.entry.as_ref()).find(|entry| starts_cx(entry));
    let program = direct.and_then(|entry| Some((*words(entry).first()?).to_owned()));
    let has_cx = own().next().is_some();
    let found =
        FoundClient { name: client.name, title, file, servers, has_cx, program, problem, client, bytes };
    (found, root)
}

/// The finding if a client's file has something else in place of its list of servers, so that nothing can be added.
fn no_list(client: &Client, root: &Node) -> Option<Finding> {
    let whole = Key::default();
    let unexpected =
        |key: &Key, node: &Node| Finding::unexpected(key, node.location, "an object", node.kind());
    if root.as_object().is_none() {
        return Some(unexpected(&whole, root));
    }
    let list = root.get(client.list_key())?;
    // In YAML a key without a value is an empty list.
    let is_empty = client.layout == Layout::Yaml && matches!(list.content, Content::Null);
    if list.as_object().is_none() && !is_empty {
        return Some(unexpected(&whole.child(client.list_key()), list));
    }
    too_many(client, list)
}

/// The finding if a list has more servers than a configuration of cx can have.
fn too_many(client: &Client, list: &Node) -> Option<Finding> {
    let count = list.as_object().map_or(0, <[_]>::len);
    let key = Key::default().child(client.list_key());
    let expected = || format!("at most {MAX_SERVERS} servers");
    (count > MAX_SERVERS).then(|| Finding::unexpected(&key, list.location, expected(), count.to_string()))
}

/// Maximum number of directories for which servers in a client's own file are read, and of those in a large one: the
/// file is parsed again for each of them that changes.
const MAX_PROJECTS: usize = 500;
const MAX_PROJECTS_OF_LARGE_FILE: usize = 50;

/// A file of more bytes is large.
const LARGE_FILE: usize = 1 << 20;

/// The lists that a client has in its own file for single directories. One more than are read says so.
fn own_projects<'a>(
    client: &'a FoundClient,
    root: &'a Node,
    environment: &'a Environment,
) -> impl Iterator<Item = FoundProject> {
    let is_large = client.bytes.as_ref().is_some_and(|bytes| bytes.len() > LARGE_FILE);
    let max = if is_large { MAX_PROJECTS_OF_LARGE_FILE } else { MAX_PROJECTS };
    let projects = root.get("projects").and_then(Node::as_object).unwrap_or_default();
    let key = client.client.list_key();
    let lists = projects.iter().filter_map(move |project| {
        let list = project.value.get(key).filter(|list| too_many(client.client, list).is_none())?;
        list.as_object().is_some_and(|members| !members.is_empty()).then_some((project, list))
    });
    lists.take(max + 1).enumerate().map(move |(position, (project, list))| {
        let directory = PathBuf::from(&project.name);
        let is_read = position < max;
        let scope = Scope { environment, workspace: &directory };
        let servers = if is_read { found_servers(client.client, list, scope) } else { Vec::new() };
        let problem = (!is_read)
            .then(|| format!("it has servers for more than {max} directories, of which others are not read"));
        FoundProject {
            client: client.name,
            title: client.title,
            file: client.file.clone(),
            is_in_directory: false,
            has_cx: servers.iter().any(|server| server.fitness == ServerFitness::Cx),
            servers,
            problem,
            of: client.client,
            path: vec!["projects".to_owned(), project.name.clone(), key.to_owned()],
            bytes: None,
            directory,
        }
    })
}

/// The list in a client's file in the working directory. `None` if there is no file, or no server in it.
fn workspace_project(
    client: &'static Client,
    title: &'static str,
    file: PathBuf,
    scope: Scope<'_>,
) -> Option<FoundProject> {
    let (bytes, root) = contents(client, &file, Provenance::Workspace);
    let servers = match root {
        Ok(root) => {
            let root = root?;
            let list = root.get(client.list_key())?;
            match too_many(client, list) {
                Some(finding) => Err(ConfigError::new(&file, vec![finding]).to_string()),
                None => Ok(found_servers(client, list, scope)),
            }
        }
        Err(problem) => Err(problem),
    };
    let (servers, problem) = match servers {
        Ok(servers) => (servers, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    (!servers.is_empty() || problem.is_some()).then(|| FoundProject {
        client: client.name,
        title,
        directory: scope.workspace.to_owned(),
        file,
        is_in_directory: true,
        has_cx: servers.iter().any(|server| server.fitness == ServerFitness::Cx),
        servers,
        problem,
        of: client,
        path: vec![client.list_key().to_owned()],
        bytes,
    })
}

fn found_servers(client: &'static Client, list: &Node, scope: Scope<'_>) -> Vec<FoundServer> {
    let members = list.as_object().unwrap_or_default();
    members.iter().map(|member| found_server(client, &member.name, &member.value, scope)).collect()
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

/// The first mistake, without its location, which is shown with the server.
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
