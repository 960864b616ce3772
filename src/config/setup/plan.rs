//! Decides what setup changes, and changes nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::client_entry::client_entry;
use super::edit::{Edit, apply};
use super::error::SetupError;
use super::inherited::inherited;
use super::own_entry::{keep_directory, own_entry, valid_name};
use super::paths::below_home;
use super::survey::{FoundClient, FoundProject, FoundServer, ServerFitness, ServerList, Survey, title};
use crate::config::clients::Layout;
use crate::config::document::parse_json;
use crate::config::entry::ServerEntry;
use crate::config::environment::Environment;
use crate::config::error::{ConfigError, Finding, Key};
use crate::config::file::{Provenance, broken_link, read, read_again, text};
use crate::config::formats::{Dialect, MAX_SERVERS, servers};
use crate::config::load::user_files;

/// The key of servers in cx's own file.
const LIST: &str = "mcpServers";

/// The treatment of an existing configuration of cx.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Servers are added. An existing server with the same name stays unchanged.
    #[default]
    Merge,
    /// The servers are replaced by the chosen ones. Rules and limits stay.
    Reset,
    /// The file is left alone; only clients are changed.
    Keep,
}

/// The names of the servers that are behind cx after the change, by the lists that have them.
type Behind = HashMap<ServerList, Vec<String>>;

/// What the user has chosen.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Choices {
    /// The servers to put behind cx: the list that has the server, and its name there.
    pub servers: Vec<(ServerList, String)>,
    /// The clients that will start cx, by their names in `import`.
    pub clients: Vec<String>,
    /// Whether servers that are behind cx are removed from those clients.
    pub take_out: bool,
    /// What is done with the configuration that exists.
    pub existing: Existing,
    /// The program that clients start as `cx`.
    pub program: PathBuf,
}

impl Choices {
    /// Nothing chosen yet. Clients will start `program serve`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }
}

/// The changes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Plan {
    /// The files that change, cx's own first. Empty if nothing has to change.
    pub changes: Vec<FileChange>,
    /// The chosen servers, and the result for each.
    pub servers: Vec<PlannedServer>,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
}

/// One file that changes.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// The owner of the file, for people.
    pub owner: String,
    /// The changes in it, one line each.
    pub actions: Vec<String>,
    /// Its content when the plan was made. `None` if it did not exist.
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Vec<u8>,
}

/// A server that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedServer {
    /// The list that has it.
    pub list: ServerList,
    /// Its name there.
    pub name: String,
    /// Its name in cx; `None` if it is not put behind cx, for a reason that a note gives.
    pub name_in_cx: Option<String>,
}

/// cx's own file, as it is.
struct OwnFile {
    path: PathBuf,
    bytes: Option<Vec<u8>>,
    /// Its servers, as written values and as parsed by cx.
    servers: BTreeMap<String, Map<String, Value>>,
}

impl Plan {
    /// Plans the changes.
    ///
    /// # Errors
    ///
    /// If cx's own file cannot be read or a file cannot be changed without changing more than that.
    /// Clients with a [`problem`](FoundClient::problem) are left out, with a note.
    pub fn new(survey: &Survey, choices: &Choices) -> Result<Self, SetupError> {
        let own = own_file(survey)?;
        let mut plan = Self { changes: Vec::new(), servers: Vec::new(), notes: Vec::new() };
        let reset = choices.existing == Existing::Reset;
        let mut known = KnownServers::new(if reset { BTreeMap::new() } else { own.servers.clone() });
        let mut edit = Edit::default();
        for (list, server) in chosen(survey, choices) {
            let name_in_cx = plan.place(&list, server, choices.existing, &mut known, &mut edit);
            if let Some(name) = &name_in_cx {
                known.stands_for.insert((list.clone(), name.clone()));
            }
            if let (Some(name), Some(entry)) = (&name_in_cx, &server.entry) {
                plan.note_inherited(name, entry, &own.path, &survey.environment);
            }
            plan.servers.push(PlannedServer { list, name: server.name.clone(), name_in_cx });
        }
        plan.note_directories();
        if reset {
            edit.remove =
                own.servers.keys().filter(|name| !known.servers.contains_key(*name)).cloned().collect();
            edit.set.retain(|(name, entry)| own.servers.get(name) != entry.as_object());
        }
        plan.change_own(&own, edit)?;
        let mut behind = Behind::new();
        for server in plan.servers.iter().filter(|server| server.name_in_cx.is_some() && choices.take_out) {
            behind.entry(server.list.clone()).or_default().push(server.name.clone());
        }
        for client in &survey.clients {
            plan.change_client(client, &survey.projects, choices, &behind)?;
        }
        for project in survey.projects.iter().filter(|project| project.is_in_directory) {
            let of_all = survey.clients.iter().find(|client| client.name == project.client);
            let has_cx = of_all.is_some_and(|client| will_have_cx(client, choices));
            plan.change_project(project, has_cx, &behind)?;
        }
        Ok(plan)
    }

    /// Adds a server to cx's configuration. Returns its name there.
    fn place(
        &mut self,
        list: &ServerList,
        server: &FoundServer,
        existing: Existing,
        known: &mut KnownServers,
        edit: &mut Edit,
    ) -> Option<String> {
        let title = title(list.client);
        let entry = server.entry.as_ref().filter(|_| is_movable(&server.fitness));
        let Some(mut entry) = entry.map(own_entry) else {
            self.note_left(list, &server.name, why_left(&server.fitness));
            return None;
        };
        if let Some(directory) = &list.directory {
            keep_directory(&mut entry, directory);
        }
        // The same server in two clients is one server; a different server with the same name is another.
        let names = names_in_cx(list, &server.name);
        let is_there = |name: &String| known.servers.get(name).is_some_and(|same| is_same(same, &entry));
        if !names.iter().any(is_there)
            && let Some(same) = known.same(&entry, list)
        {
            let name = &server.name;
            self.notes.push(format!("`{name}` of {title} is `{same}` in cx: both start or reach the same"));
            return Some(same.to_owned());
        }
        for name in names {
            match known.servers.get(&name) {
                Some(same) if is_same(same, &entry) => {
                    self.note_rename(list, &server.name, &name);
                    return Some(name);
                }
                Some(_) => {}
                None if existing == Existing::Keep => {
                    let name = &server.name;
                    let note = format!("`{name}` of {title} is not in cx's configuration, which is kept");
                    self.notes.push(note);
                    return None;
                }
                // With one more nothing of the file could be used.
                None if known.servers.len() >= MAX_SERVERS => {
                    self.note_left(list, &server.name, &format!("cx has {MAX_SERVERS} servers"));
                    return None;
                }
                None => {
                    known.insert(name.clone(), entry.clone());
                    edit.set.push((name.clone(), Value::Object(entry)));
                    self.note_rename(list, &server.name, &name);
                    return Some(name);
                }
            }
        }
        self.note_left(list, &server.name, "cx has another server of that name");
        None
    }

    /// Notes that a server is not put behind cx, and why.
    fn note_left(&mut self, list: &ServerList, name: &str, why: &str) {
        self.notes.push(format!("{}: `{name}` is left where it is: {why}", title(list.client)));
    }

    /// Notes that a server gets another name in cx, and why, if it is not that of the same server.
    fn note_rename(&mut self, list: &ServerList, name: &str, name_in_cx: &str) {
        if name == name_in_cx {
            return;
        }
        let valid = valid_name(name);
        let why = if valid == name_in_cx {
            "names there have letters and digits of ASCII, `_`, `-` and `.`".to_owned()
        } else {
            format!("it has another server `{valid}`")
        };
        self.notes.push(format!("`{name}` of {} is `{name_in_cx}` in cx: {why}", title(list.client)));
    }

    /// Notes which servers will be available in more directories than before.
    fn note_directories(&mut self) {
        let of_all = self.servers.iter().filter(|server| server.list.directory.is_none());
        let everywhere: HashSet<&str> = of_all.filter_map(|server| server.name_in_cx.as_deref()).collect();
        for PlannedServer { list, name_in_cx, .. } in &self.servers {
            let (Some(directory), Some(name)) = (&list.directory, name_in_cx) else { continue };
            if !everywhere.contains(name.as_str()) {
                let directory = below_home(directory);
                self.notes.push(format!(
                    "`{name}` was a server of {} only: behind cx it is there in all directories",
                    directory.display()
                ));
            }
        }
    }

    /// Names the variables that the client has passed on, and the entry that they need now.
    fn note_inherited(&mut self, name: &str, entry: &ServerEntry, file: &Path, environment: &Environment) {
        for variable in inherited(name, entry, environment) {
            self.notes.push(format!(
                "`{name}` may rely on {variable}, which is set in this shell and which cx does not pass on. If it \
                 does, add to `{name}` in {}: \"env\": {{ \"{variable}\": \"${{{variable}}}\" }}",
                file.display()
            ));
        }
    }

    fn change_own(&mut self, own: &OwnFile, edit: Edit) -> Result<(), SetupError> {
        let mut actions: Vec<String> =
            edit.set.iter().map(|(name, _)| format!("+ server `{name}`")).collect();
        actions.extend(edit.remove.iter().map(|name| format!("- server `{name}`")));
        let edits = [(vec![LIST.to_owned()], edit)];
        self.change(&own.path, "cx", Layout::Json, own.bytes.as_ref(), &edits, actions)
    }

    /// Adds cx to a client's own file, and removes the servers that are behind cx.
    fn change_client(
        &mut self,
        client: &FoundClient,
        projects: &[FoundProject],
        choices: &Choices,
        behind: &Behind,
    ) -> Result<(), SetupError> {
        if let Some(problem) = &client.problem {
            if choices.clients.iter().any(|name| name == client.name) {
                self.notes.push(format!("{} is left as it is: {problem}", client.title));
            }
            return Ok(());
        }
        let mut edit = Edit::default();
        let mut actions = Vec::new();
        let has_cx = will_have_cx(client, choices);
        if has_cx && !client.has_cx {
            let is_free = |name: &&str| client.servers.iter().all(|server| server.name != *name);
            let name = ["cx", "cx-executor", "cx-code"].into_iter().find(is_free);
            let name = name.unwrap_or("cx-scripts");
            edit.set.push((name.to_owned(), client_entry(client.client, &choices.program)));
            actions.push(format!("+ server `{name}`: {} serve", choices.program.display()));
        }
        edit.remove = taken_out(&client.list(), has_cx, behind);
        actions.extend(edit.remove.iter().map(|name| format!("- server `{name}`, now behind cx")));
        let mut edits = vec![(vec![client.client.list_key().to_owned()], edit)];
        let in_file = |project: &&FoundProject| project.file == client.file && !project.is_in_directory;
        for project in projects.iter().filter(in_file) {
            let remove = taken_out(&project.list(), has_cx || project.has_cx, behind);
            let directory = below_home(&project.directory);
            let action = |name| format!("- server `{name}` of {}, now behind cx", directory.display());
            actions.extend(remove.iter().map(action));
            edits.push((project.path.clone(), Edit { remove, ..Edit::default() }));
        }
        self.change(&client.file, client.title, client.client.layout, client.bytes.as_ref(), &edits, actions)
    }

    /// Removes servers that are behind cx from a file in the working directory.
    fn change_project(
        &mut self,
        project: &FoundProject,
        has_cx: bool,
        behind: &Behind,
    ) -> Result<(), SetupError> {
        let remove = taken_out(&project.list(), has_cx || project.has_cx, behind);
        let actions = remove.iter().map(|name| format!("- server `{name}`, now behind cx")).collect();
        let edits = [(project.path.clone(), Edit { remove, ..Edit::default() })];
        let owner = format!("{}, in this directory", project.title);
        self.change(&project.file, &owner, project.of.layout, project.bytes.as_ref(), &edits, actions)
    }

    /// Plans the change of the lists in one file.
    fn change(
        &mut self,
        path: &Path,
        owner: &str,
        layout: Layout,
        bytes: Option<&Vec<u8>>,
        edits: &[(Vec<String>, Edit)],
        actions: Vec<String>,
    ) -> Result<(), SetupError> {
        if edits.iter().all(|(_, edit)| edit.is_empty()) {
            return Ok(());
        }
        let error = |reason| SetupError::Edit { path: path.to_owned(), reason };
        let before = bytes.map(|bytes| std::str::from_utf8(bytes)).transpose();
        let before = before.map_err(|not_utf8| error(not_utf8.to_string()))?.unwrap_or_default();
        let after = apply(layout, before, edits).map_err(error)?;
        self.changes.push(FileChange {
            path: path.to_owned(),
            owner: owner.to_owned(),
            actions,
            before: bytes.cloned(),
            after: after.into_bytes(),
        });
        Ok(())
    }
}

/// The names of the servers that leave a list. A server is taken out only where cx takes its place.
fn taken_out(list: &ServerList, has_cx: bool, behind: &Behind) -> Vec<String> {
    behind.get(list).filter(|_| has_cx).cloned().unwrap_or_default()
}

/// Whether the client starts cx after the change.
fn will_have_cx(client: &FoundClient, choices: &Choices) -> bool {
    client.has_cx || choices.clients.iter().any(|name| name == client.name)
}

fn is_movable(fitness: &ServerFitness) -> bool {
    matches!(fitness, ServerFitness::Usable | ServerFitness::Disabled)
}

/// Why a server that cannot be moved is left where it is.
fn why_left(fitness: &ServerFitness) -> &str {
    match fitness {
        ServerFitness::Cx => "it is cx",
        ServerFitness::Executor => "it is an executor itself",
        ServerFitness::Unusable(reason) => reason,
        ServerFitness::Usable | ServerFitness::Disabled => "it has no command and no URL",
    }
}

/// The names that a server of a list can get in cx, the preferred one first: its own, with that of its directory, with
/// that of its client.
fn names_in_cx(list: &ServerList, name: &str) -> Vec<String> {
    let name = valid_name(name);
    let directory = list.directory.as_deref().and_then(Path::file_name);
    let directory = directory.map(|directory| directory.to_string_lossy().into_owned());
    let named_after = directory.into_iter().chain([list.client.to_owned()]);
    let longer: Vec<String> = named_after.map(|other| valid_name(&format!("{name}-{other}"))).collect();
    std::iter::once(name).chain(longer).collect()
}

/// The chosen servers that were found, in the order of the survey.
fn chosen<'a>(
    survey: &'a Survey,
    choices: &'a Choices,
) -> impl Iterator<Item = (ServerList, &'a FoundServer)> {
    let all =
        survey.lists().flat_map(|(list, servers)| servers.iter().map(move |server| (list.clone(), server)));
    let chosen: HashSet<(&ServerList, &str)> =
        choices.servers.iter().map(|(list, name)| (list, name.as_str())).collect();
    all.filter(move |(list, server)| chosen.contains(&(list, server.name.as_str())))
}

/// What says which server an entry of cx's own file is.
const DEFINITION: [&str; 6] = ["command", "args", "env", "cwd", "url", "headers"];

/// Whether two entries of cx's own file are the same server: they start or reach the same, whatever their rules are.
fn is_same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    DEFINITION.iter().all(|key| one.get(*key) == other.get(*key))
}

/// The servers that cx has after the change.
struct KnownServers {
    /// Their entries, by name.
    servers: BTreeMap<String, Map<String, Value>>,
    /// The first name of each definition.
    names: HashMap<String, String>,
    /// The names that stand for a server of a list already.
    stands_for: HashSet<(ServerList, String)>,
}

impl KnownServers {
    fn new(servers: BTreeMap<String, Map<String, Value>>) -> Self {
        let mut known = Self { servers: BTreeMap::new(), names: HashMap::new(), stands_for: HashSet::new() };
        for (name, entry) in servers {
            known.insert(name, entry);
        }
        known
    }

    fn insert(&mut self, name: String, entry: Map<String, Value>) {
        if entry.contains_key("command") || entry.contains_key("url") {
            self.names.entry(definition(&entry)).or_insert_with(|| name.clone());
        }
        self.servers.insert(name, entry);
    }

    /// The name of the server that is the same under another name, as another client has it. A list that has a server
    /// twice wants it twice.
    fn same(&self, entry: &Map<String, Value>, list: &ServerList) -> Option<&str> {
        let name = self.names.get(&definition(entry))?;
        let is_taken = self.stands_for.contains(&(list.clone(), name.clone()));
        (!is_taken).then_some(name.as_str())
    }
}

/// The definition of an entry, as text.
fn definition(entry: &Map<String, Value>) -> String {
    Value::from_iter(DEFINITION.map(|key| entry.get(key).cloned().unwrap_or_default())).to_string()
}

/// cx's own file of this user: the existing one, else the one that would be read.
fn own_file(survey: &Survey) -> Result<OwnFile, SetupError> {
    let mut first = None;
    for path in user_files(&survey.environment) {
        let error = |findings| ConfigError::new(&path, findings);
        if let Some(bytes) = read(&path, Provenance::User).map_err(|finding| error(vec![finding]))? {
            let servers = own_servers(&bytes).map_err(error)?;
            return Ok(OwnFile { path, bytes: Some(bytes), servers });
        }
        if let Some(finding) = broken_link(&path) {
            return Err(error(vec![finding]).into());
        }
        first.get_or_insert(path);
    }
    let path = first.ok_or(SetupError::NoDirectories)?;
    Ok(OwnFile { path, bytes: None, servers: BTreeMap::new() })
}

fn own_servers(bytes: &[u8]) -> Result<BTreeMap<String, Map<String, Value>>, Vec<Finding>> {
    let text = text(bytes).map_err(|finding| vec![finding])?;
    if text.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    let root = parse_json(text)?;
    let Some(list) = root.get(LIST) else { return Ok(BTreeMap::new()) };
    let mut findings = Vec::new();
    let entries: Vec<ServerEntry> = servers(Dialect::Own, &Key::default().child(LIST), list, &mut findings);
    let entries = entries.iter().map(|entry| (entry.name.clone(), own_entry(entry)));
    let names = list.as_object().unwrap_or_default().iter().map(|member| member.name.clone());
    // An entry that cannot be used still occupies its name.
    let mut known: BTreeMap<_, _> = names.map(|name| (name, Map::new())).collect();
    known.extend(entries);
    Ok(known)
}

/// Whether a file still has the content for which the plan was made.
pub(super) fn is_unchanged(path: &Path, before: Option<&[u8]>) -> std::io::Result<bool> {
    Ok(read_again(path)?.as_deref() == before)
}
