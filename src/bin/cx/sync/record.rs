//! The result of a synchronization: `last-sync.json` in the state directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use cx::command::read_regular;
use cx::text::{one_line, rfc3339_seconds};
use cx::{Directories, Language};
use serde_json::{Map, Value, json};

use crate::document;
use crate::text::{counted, shown_path};

/// The file's name.
const NAME: &str = "last-sync.json";

/// The version of its format.
const VERSION: u32 = 1;

/// Maximum bytes that are read of it: more than some thousand servers need.
const MAX_BYTES: u64 = 4 << 20;

/// The result for one server.
pub(super) struct ServerRecord {
    pub(super) name: String,
    /// The number of its tools that are known now, even if it failed.
    pub(super) tools: Option<usize>,
    /// The number of definitions that differ from the pinned ones.
    pub(super) changed_definitions: usize,
    pub(super) error: Option<String>,
}

/// The result of reading a client's file.
pub(super) struct ClientRecord {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) problem: Option<String>,
    /// Servers that the client starts itself although it starts cx.
    pub(super) not_behind_cx: Vec<String>,
}

/// The result of writing the types of one language.
pub(super) struct TypesRecord {
    pub(super) directory: PathBuf,
    pub(super) language: Language,
    /// The files that have changed.
    pub(super) written: Vec<PathBuf>,
}

/// The result of a synchronization.
pub(super) struct SyncRecord {
    path: PathBuf,
    started: String,
    finished: String,
    /// When each server last answered, by name.
    last_success: Map<String, Value>,
    pub(super) servers: Vec<ServerRecord>,
    pub(super) clients: Vec<ClientRecord>,
    pub(super) types: Vec<TypesRecord>,
    /// Why it could not be completed.
    pub(super) error: Option<String>,
}

/// The path of the record.
pub(super) fn path(directories: &Directories) -> PathBuf {
    directories.state.join(NAME)
}

/// The last record; `None` if there is none, or it cannot be read.
pub(super) fn read(path: &Path) -> Option<Value> {
    let record: Value = serde_json::from_slice(&read_regular(path, MAX_BYTES).ok()?).ok()?;
    (record["version"] == VERSION).then_some(record)
}

fn now() -> String {
    rfc3339_seconds(SystemTime::now())
}

impl SyncRecord {
    /// A record that begins now. It keeps only the servers' times of the last record.
    ///
    /// # Errors
    ///
    /// If something else than a regular file is in its place.
    pub(super) fn begin(directories: &Directories) -> anyhow::Result<Self> {
        let path = path(directories);
        document::check_regular(&path).with_context(|| format!("failed to write `{}`", shown_path(&path)))?;
        let last = read(&path).unwrap_or_default();
        let times = last["servers"].as_array().into_iter().flatten();
        let times = times.filter_map(|server| Some((server["name"].as_str()?, &server["lastSuccess"])));
        let last_success = times.map(|(name, time)| (name.to_owned(), time.clone())).collect();
        Ok(Self {
            path,
            started: now(),
            finished: String::new(),
            last_success,
            servers: Vec::new(),
            clients: Vec::new(),
            types: Vec::new(),
            error: None,
        })
    }

    pub(super) fn set_servers(&mut self, servers: Vec<ServerRecord>) {
        for server in servers.iter().filter(|server| server.error.is_none()) {
            self.last_success.insert(server.name.clone(), now().into());
        }
        self.servers = servers;
    }

    /// Whether everything succeeded.
    pub(super) fn is_ok(&self) -> bool {
        self.error.is_none() && self.servers.iter().all(|server| server.error.is_none())
    }

    /// Writes the record, as a whole.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        self.finished = now();
        let text = format!("{:#}\n", self.to_json());
        document::replace_private(&self.path, &text)
            .with_context(|| format!("failed to write `{}`", shown_path(&self.path)))
    }

    pub(super) fn to_json(&self) -> Value {
        let servers = self.servers.iter().map(|server| {
            let mut record = json!({
                "name": server.name,
                "ok": server.error.is_none(),
                "tools": server.tools,
                "changedDefinitions": server.changed_definitions,
                "lastSuccess": self.last_success.get(&server.name),
            });
            if let Some(error) = &server.error {
                record["error"] = error.as_str().into();
            }
            record
        });
        let clients = self.clients.iter().map(|client| {
            json!({
                "name": client.name,
                "file": client.file.to_string_lossy(),
                "problem": client.problem,
                "notBehindCx": client.not_behind_cx,
            })
        });
        let types = self.types.iter().map(|types| {
            let written: Vec<_> = types.written.iter().map(|path| path.to_string_lossy()).collect();
            json!({
                "directory": types.directory.to_string_lossy(),
                "language": types.language.as_str(),
                "written": written,
            })
        });
        let mut record = json!({
            "version": VERSION,
            "ok": self.is_ok(),
            "startedAt": self.started,
            "finishedAt": self.finished,
            "servers": servers.collect::<Vec<_>>(),
            "clients": clients.collect::<Vec<_>>(),
            "types": types.collect::<Vec<_>>(),
        });
        if let Some(error) = &self.error {
            record["error"] = error.as_str().into();
        }
        record
    }

    /// The record as lines.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for server in &self.servers {
            let name = one_line(&server.name);
            // Writing to a string cannot fail.
            let _ = match (&server.error, server.tools) {
                (None, tools) => write!(text, "{name}: {}", counted(tools.unwrap_or_default(), "tool")),
                (Some(error), None) => write!(text, "{name}: failed: {error}"),
                (Some(error), Some(tools)) => {
                    let tools = counted(tools, "tool");
                    write!(text, "{name}: {tools} when it was last asked; now it failed: {error}")
                }
            };
            if server.changed_definitions > 0 {
                let count = server.changed_definitions;
                let _ = write!(text, ", {count} not as pinned: see `cx tools changed`");
            }
            text.push('\n');
        }
        if self.servers.is_empty() && self.error.is_none() {
            text.push_str("no server is configured; `cx setup` finds those of your MCP clients\n");
        }
        for client in &self.clients {
            let name = &client.name;
            if let Some(problem) = &client.problem {
                let _ = writeln!(text, "{name}: its file cannot be read: {}", one_line(problem));
            }
            if !client.not_behind_cx.is_empty() {
                let names: Vec<String> = client.not_behind_cx.iter().map(|name| one_line(name)).collect();
                let names = names.join(", ");
                let _ = writeln!(text, "{name}: not behind cx: {names}; `cx setup` puts them there");
            }
        }
        for types in &self.types {
            if types.written.is_empty() {
                let directory = shown_path(&types.directory);
                let _ = writeln!(text, "{} types in {directory}: unchanged", types.language);
            }
            for path in &types.written {
                let _ = writeln!(text, "types: wrote {}", shown_path(path));
            }
        }
        text
    }
}
