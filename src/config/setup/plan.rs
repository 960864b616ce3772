//! Decides what setup changes, and changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::client_entry::client_entry;
use super::edit::Edit;
use super::error::SetupError;
use super::inherited::inherited;
use super::own_entry::{own_entry, valid_name};
use super::survey::{FoundClient, FoundServer, ServerFitness, Survey};
use crate::config::clients::Layout;
use crate::config::document::parse_json;
use crate::config::entry::ServerEntry;
use crate::config::environment::Environment;
use crate::config::error::{ConfigError, Finding, Key};
use crate::config::file::{Provenance, read, text};
use crate::config::formats::{Dialect, servers};
use crate::config::load::user_files;

/// The key of servers in cx's own file.
const LIST: &str = "mcpServers";

/// What is done with a configuration of cx's that exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Servers are added. One that is there under the same name stays as it is.
    #[default]
    Merge,
    /// The servers are replaced by the chosen ones. Rules and limits stay.
    Reset,
    /// The file is left alone; only clients are changed.
    Keep,
}

/// What the user has chosen.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Choices {
    /// The servers to put behind cx: the client's name in `import`, and the server's in its file.
    pub servers: Vec<(String, String)>,
    /// The clients that shall start cx, by their names in `import`.
    pub clients: Vec<String>,
    /// Whether servers that are behind cx are taken out of those clients.
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
    /// The files that change, cx's own first. Empty if all is as it should be.
    pub changes: Vec<FileChange>,
    /// The chosen servers, and what becomes of each.
    pub servers: Vec<PlannedServer>,
    /// What the user should know, a line each.
    pub notes: Vec<String>,
}

/// One file that changes.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// Whose file it is, for people.
    pub owner: String,
    /// What changes in it, a line each.
    pub actions: Vec<String>,
    /// Its content when the plan was made. `None` if it did not exist.
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Vec<u8>,
}

/// A server that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedServer {
    /// The client's name in `import`.
    pub client: String,
    /// Its name in the client's file.
    pub name: String,
    /// Its name in cx; `None` if it does not get there, which a note explains.
    pub name_in_cx: Option<String>,
}

/// cx's own file, as it is.
struct OwnFile {
    path: PathBuf,
    bytes: Option<Vec<u8>>,
    /// Its servers, as values and as cx reads them.
    servers: BTreeMap<String, Map<String, Value>>,
}

impl Plan {
    /// Plans the changes.
    ///
    /// # Errors
    ///
    /// If cx's own file cannot be read or a file cannot be changed without changing more than that.
    /// Clients with a [`problem`](FoundClient::problem) are left out, with a note.
    pub fn of(survey: &Survey, choices: &Choices) -> Result<Self, SetupError> {
        let own = own_file(survey)?;
        let mut plan = Self { changes: Vec::new(), servers: Vec::new(), notes: Vec::new() };
        let reset = choices.existing == Existing::Reset;
        let mut known = if reset { BTreeMap::new() } else { own.servers.clone() };
        let mut edit = Edit::default();
        for (client, server) in chosen(survey, choices) {
            let name_in_cx = plan.place(client, server, choices.existing, &mut known, &mut edit);
            if let (Some(name), Some(entry)) = (&name_in_cx, &server.entry) {
                plan.note_inherited(name, entry, &own.path, &survey.environment);
            }
            let (client, name) = (client.name.to_owned(), server.name.clone());
            plan.servers.push(PlannedServer { client, name, name_in_cx });
        }
        if reset {
            edit.remove = own.servers.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
            edit.set.retain(|(name, entry)| own.servers.get(name) != entry.as_object());
        }
        plan.change_own(own, &edit)?;
        for client in &survey.clients {
            plan.change_client(client, choices)?;
        }
        Ok(plan)
    }

    /// Gives a server a place in cx's configuration. Returns its name there.
    fn place(
        &mut self,
        client: &FoundClient,
        server: &FoundServer,
        existing: Existing,
        known: &mut BTreeMap<String, Map<String, Value>>,
        edit: &mut Edit,
    ) -> Option<String> {
        let entry = server.entry.as_ref().filter(|_| is_movable(&server.fitness));
        let Some(entry) = entry.map(own_entry) else {
            let why = match &server.fitness {
                ServerFitness::Cx => "it is cx",
                ServerFitness::Executor => "it is an executor itself",
                ServerFitness::Unusable(reason) => reason,
                ServerFitness::Usable | ServerFitness::Disabled => "it has no command and no URL",
            };
            self.notes.push(format!("{}: `{}` is left where it is: {why}", client.title, server.name));
            return None;
        };
        let name = valid_name(&server.name);
        // The same server in two clients is one server; another one of the same name is another.
        let named_after_client = valid_name(&format!("{name}-{}", client.name));
        for name in [name, named_after_client] {
            match known.get(&name) {
                Some(same) if is_same(same, &entry) => return Some(name),
                Some(_) => {}
                None if existing == Existing::Keep => {
                    let note =
                        format!("`{name}` of {} is not in cx's configuration, which is kept", client.title);
                    self.notes.push(note);
                    return None;
                }
                None => {
                    known.insert(name.clone(), entry.clone());
                    edit.set.push((name.clone(), Value::Object(entry)));
                    return Some(name);
                }
            }
        }
        let name = &server.name;
        let note =
            format!("{}: `{name}` is left where it is: cx has another server of that name", client.title);
        self.notes.push(note);
        None
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

    fn change_own(&mut self, own: OwnFile, edit: &Edit) -> Result<(), SetupError> {
        if edit.is_empty() {
            return Ok(());
        }
        let error = |reason| SetupError::Edit { path: own.path.clone(), reason };
        let before = own.bytes.as_deref().map(std::str::from_utf8).transpose();
        let before = before.map_err(|error_| error(error_.to_string()))?;
        let after = edit.apply(Layout::Json, before.unwrap_or_default(), LIST).map_err(error)?;
        let mut actions: Vec<String> =
            edit.set.iter().map(|(name, _)| format!("+ server `{name}`")).collect();
        actions.extend(edit.remove.iter().map(|name| format!("- server `{name}`")));
        self.changes.push(FileChange {
            path: own.path,
            owner: "cx".to_owned(),
            actions,
            before: own.bytes,
            after: after.into_bytes(),
        });
        Ok(())
    }

    /// Puts cx into a client's file, and takes out what is behind it.
    fn change_client(&mut self, client: &FoundClient, choices: &Choices) -> Result<(), SetupError> {
        let (mut edit, mut actions) = (Edit::default(), Vec::new());
        if let Some(problem) = &client.problem {
            if choices.clients.iter().any(|name| name == client.name) {
                self.notes.push(format!("{} is left as it is: {problem}", client.title));
            }
            return Ok(());
        }
        let has_cx = client.has_cx || choices.clients.iter().any(|name| name == client.name);
        if has_cx && !client.has_cx {
            let is_free = |name: &&str| client.servers.iter().all(|server| server.name != *name);
            let name = ["cx", "cx-executor", "cx-code"].into_iter().find(is_free);
            let name = name.unwrap_or("cx-scripts");
            edit.set.push((name.to_owned(), client_entry(client.client, &choices.program)));
            actions.push(format!("+ server `{name}`: {} serve", choices.program.display()));
        }
        // A server is taken out only where cx takes its place.
        if choices.take_out && has_cx {
            let behind = self.servers.iter().filter(|server| server.client == client.name);
            let behind = behind.filter(|server| server.name_in_cx.is_some());
            edit.remove.extend(behind.map(|server| server.name.clone()));
            actions.extend(edit.remove.iter().map(|name| format!("- server `{name}`, now behind cx")));
        }
        if edit.is_empty() {
            return Ok(());
        }
        let error = |reason| SetupError::Edit { path: client.file.clone(), reason };
        let before = client.bytes.as_deref().map(std::str::from_utf8).transpose();
        let before = before.map_err(|error_| error(error_.to_string()))?;
        let after = edit
            .apply(client.client.layout, before.unwrap_or_default(), client.client.list_key())
            .map_err(error)?;
        self.changes.push(FileChange {
            path: client.file.clone(),
            owner: client.title.to_owned(),
            actions,
            before: client.bytes.clone(),
            after: after.into_bytes(),
        });
        Ok(())
    }
}

fn is_movable(fitness: &ServerFitness) -> bool {
    matches!(fitness, ServerFitness::Usable | ServerFitness::Disabled)
}

/// The chosen servers that were found, in the order of the survey.
fn chosen<'a>(
    survey: &'a Survey,
    choices: &'a Choices,
) -> impl Iterator<Item = (&'a FoundClient, &'a FoundServer)> {
    let is_chosen = |client: &FoundClient, server: &FoundServer| {
        choices.servers.iter().any(|(of, name)| of == client.name && *name == server.name)
    };
    let all =
        survey.clients.iter().flat_map(|client| client.servers.iter().map(move |server| (client, server)));
    all.filter(move |(client, server)| is_chosen(client, server))
}

/// Whether two entries of cx's own file are one server: what they start, whatever their rules are.
fn is_same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    ["command", "args", "env", "cwd", "url", "headers"].iter().all(|key| one.get(*key) == other.get(*key))
}

/// cx's own file of this user: the one that is read, else the one that would be.
fn own_file(survey: &Survey) -> Result<OwnFile, SetupError> {
    let mut first = None;
    for path in user_files(&survey.environment) {
        let error = |findings| ConfigError::new(&path, findings);
        if let Some(bytes) = read(&path, Provenance::User).map_err(|finding| error(vec![finding]))? {
            let servers = own_servers(&bytes).map_err(error)?;
            return Ok(OwnFile { path, bytes: Some(bytes), servers });
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
    // An entry that cannot be used has a name that is taken.
    let mut known: BTreeMap<_, _> = names.map(|name| (name, Map::new())).collect();
    known.extend(entries);
    Ok(known)
}

/// Whether a file that was planned for still has that content.
pub(super) fn is_unchanged(path: &Path, before: Option<&[u8]>) -> std::io::Result<bool> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes.as_slice()) == before),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(before.is_none()),
        Err(error) => Err(error),
    }
}
