//! The data of the page: the running servers, their metrics and approvals, and the runs of audit trails.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cx::Json;
use cx::command::read_regular;
use cx::server::{MetricsPrinter, PageClient, Server};
use cx::text::one_line;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::prometheus::Samples;
use crate::reading::{Reading, ServerReading};
use crate::running::{self, RunningServer};
use crate::trace;
use crate::trace::html;
use crate::ui::inbox::Inbox;
use crate::ui::trails::Trails;

/// Minimum age of data before it is read again. Pages that ask more often get the existing data.
const MIN_AGE: Duration = Duration::from_millis(900);

/// Maximum number of runs in a list.
const MAX_LISTED: usize = 200;

/// Maximum number of approvals of one server, the same as for its own page.
const MAX_APPROVALS: usize = 64;

/// Points of the history: one hour.
const POINT_EVERY: Duration = Duration::from_secs(5);
const MAX_POINTS: usize = 720;

/// Maximum bytes of a kept trace that is shown.
const MAX_TRACE: u64 = 64 << 20;

/// Which servers and trails are watched.
enum Scope {
    /// All servers of this user that run, and the trail of the configuration.
    All { state: PathBuf, audit: PathBuf },
    /// The server of this process.
    Own(Box<OwnServer>),
}

/// The server of this process.
pub(crate) struct OwnServer {
    pub(crate) server: Server,
    pub(crate) print: MetricsPrinter,
    pub(crate) description: RunningServer,
    /// The approvals that are answered on the page, if they are.
    pub(crate) inbox: Option<Arc<Inbox>>,
}

/// Reads servers and trails, at most about once a second.
pub(crate) struct Watch {
    scope: Scope,
    known: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    read: Option<Instant>,
    state: String,
    trails: Arc<parking_lot::Mutex<Trails>>,
    servers: Vec<RunningServer>,
    /// The server at which each waiting approval can be answered.
    approvals: HashMap<String, PageClient>,
    /// The approvals of other approvers that waited at the last reading.
    asked_elsewhere: HashSet<String>,
    /// The tokens that each server has kept out of contexts, by process and start.
    kept_out: HashMap<(u32, u64), f64>,
    kept_out_total: f64,
    history: VecDeque<(u64, f64)>,
    last_point: Option<Instant>,
}

/// One server as last read.
struct ReadServer {
    description: RunningServer,
    reading: ServerReading,
    approvals: Vec<Value>,
}

impl Watch {
    pub(crate) fn of_all(state: PathBuf, audit: PathBuf) -> Self {
        Self { scope: Scope::All { state, audit }, known: Mutex::default() }
    }

    pub(crate) fn of_server(own: OwnServer) -> Self {
        Self { scope: Scope::Own(Box::new(own)), known: Mutex::default() }
    }

    /// All that the page shows.
    pub(crate) async fn state(&self) -> String {
        self.refresh().await;
        self.known.lock().await.state.clone()
    }

    /// The metrics of this process.
    pub(crate) fn own_metrics(&self) -> Option<String> {
        let Scope::Own(own) = &self.scope else { return None };
        own.server.sample_metrics();
        Some((own.print)())
    }

    /// The approvals that wait in this process.
    pub(crate) fn own_approvals(&self) -> String {
        let approvals = match &self.scope {
            Scope::Own(own) => own.inbox.as_ref().map(|inbox| inbox.to_json()).unwrap_or_default(),
            Scope::All { .. } => Vec::new(),
        };
        Value::Array(approvals).to_string()
    }

    /// Answers an approval, in this process or in the one that requested it.
    ///
    /// # Errors
    ///
    /// If it no longer waits.
    pub(crate) async fn answer(&self, id: &str, approve: bool, reason: Option<String>) -> Result<(), String> {
        let answered = self.give_answer(id, approve, reason).await;
        // The cached data would still show it as waiting.
        self.known.lock().await.read = None;
        answered
    }

    async fn give_answer(&self, id: &str, approve: bool, reason: Option<String>) -> Result<(), String> {
        let gone = || "this call does not wait any more: it was answered, or its time is over".to_owned();
        match &self.scope {
            Scope::Own(own) => {
                let is_answered = own.inbox.as_ref().is_some_and(|inbox| inbox.answer(id, approve, reason));
                is_answered.then_some(()).ok_or_else(gone)
            }
            Scope::All { .. } => {
                let client = self.known.lock().await.approvals.get(id).cloned().ok_or_else(gone)?;
                client
                    .answer(id, approve, reason.as_deref())
                    .await
                    .map_err(|error| format!("it could not be answered: {error}"))
            }
        }
    }

    /// The drawing of a run: the trace that its server has kept, else what the trail knows.
    pub(crate) async fn run(&self, id: &str) -> Option<String> {
        self.refresh().await;
        let known = self.known.lock().await;
        let directories: Vec<PathBuf> =
            known.servers.iter().filter_map(|server| server.traces.clone()).collect();
        let trails = Arc::clone(&known.trails);
        drop(known);
        let id = id.to_owned();
        let drawn = tokio::task::spawn_blocking(move || {
            for directory in directories {
                if let Ok(Some(path)) = trace::find(&directory, &id)
                    && let Ok(page) = read_regular(&path, MAX_TRACE)
                    && let Ok(page) = String::from_utf8(page)
                {
                    return Some(page);
                }
            }
            let drawing = trails.lock().get(&id)?.drawing();
            Some(html::render(&drawing))
        });
        drawn.await.ok().flatten()
    }

    /// Reads everything again, unless that was done a moment ago.
    pub(crate) async fn refresh(&self) {
        let mut known = self.known.lock().await;
        if known.read.is_some_and(|read| read.elapsed() < MIN_AGE) {
            return;
        }
        let servers = self.read_servers().await;
        let mut directories: Vec<PathBuf> =
            servers.iter().filter_map(|server| server.description.audit.clone()).collect();
        if let Scope::All { audit, .. } = &self.scope {
            directories.insert(0, audit.clone());
        }
        let trails = Arc::clone(&known.trails);
        let read = move || trails.lock().read(&directories);
        // After a panic the previous data stays.
        let _ended = tokio::task::spawn_blocking(read).await;
        known.approvals = servers
            .iter()
            .flat_map(|server| {
                let client = client(&server.description);
                let ids = server.approvals.iter().filter_map(|approval| approval["id"].as_str());
                ids.filter_map(move |id| Some((id.to_owned(), client.clone()?)))
            })
            .collect();
        known.count_kept_out(&servers);
        known.state = render(&mut known, &servers).to_string();
        known.servers = servers.into_iter().map(|server| server.description).collect();
        known.read = Some(Instant::now());
    }

    async fn read_servers(&self) -> Vec<ReadServer> {
        match &self.scope {
            Scope::Own(own) => {
                own.server.sample_metrics();
                let reading = Reading::new(&Samples::parse(&(own.print)()));
                vec![ReadServer {
                    description: own.description.clone(),
                    reading: ServerReading::Read(reading),
                    approvals: own.inbox.as_ref().map(|inbox| inbox.to_json()).unwrap_or_default(),
                }]
            }
            Scope::All { state, .. } => {
                let servers = running::list(state).unwrap_or_default();
                join_all(servers.into_iter().map(read_server)).await
            }
        }
    }
}

/// Reads the data of another process.
async fn read_server(description: RunningServer) -> ReadServer {
    let Some(client) = client(&description) else {
        return ReadServer { description, reading: ServerReading::NotListening, approvals: Vec::new() };
    };
    let (metrics, approvals) = tokio::join!(client.metrics(), client.approvals());
    let reading = ServerReading::from_metrics(metrics);
    let approvals = approvals.map(|text| read_approvals(&text)).unwrap_or_default();
    ReadServer { description, reading, approvals }
}

/// The approvals in an answer, which can have many megabytes. It is parsed only if the tree takes little more memory
/// than the text. What is no object is left out: fields are added to each.
fn read_approvals(text: &str) -> Vec<Value> {
    let listed = Json::parse(text).ok();
    let listed = listed.as_ref().and_then(Json::value).and_then(Value::as_array);
    let approvals = listed.into_iter().flatten().filter(|approval| approval.is_object());
    approvals.take(MAX_APPROVALS).cloned().collect()
}

fn client(server: &RunningServer) -> Option<PageClient> {
    Some(PageClient::new(server.address?, server.token.clone()))
}

impl WatchState {
    /// Adds what the servers have kept out of contexts since the last reading. The number of a server that has ended
    /// stays.
    fn count_kept_out(&mut self, servers: &[ReadServer]) {
        for server in servers {
            let Some(reading) = server.reading.numbers() else { continue };
            let key = (server.description.process, server.description.started);
            let before = self.kept_out.insert(key, reading.kept_out_tokens).unwrap_or_default();
            self.kept_out_total += (reading.kept_out_tokens - before).max(0.0);
        }
        if self.last_point.is_none_or(|point| point.elapsed() >= POINT_EVERY) {
            self.last_point = Some(Instant::now());
            self.history.push_back((running::seconds_since_1970(), self.kept_out_total));
            if self.history.len() > MAX_POINTS {
                self.history.pop_front();
            }
        }
    }
}

/// Approvals that other approvers were asked for, at a client or a terminal, with their keys.
fn asked_elsewhere(trails: &Trails, approvals: &[Value]) -> Vec<(String, Value)> {
    let waiting = trails.runs().flat_map(|run| run.waiting());
    let elsewhere = waiting.filter(|waiting| {
        !approvals.iter().any(|approval| {
            approval["server"] == waiting.server
                && approval["tool"] == waiting.tool
                && approval["script"] == waiting.script
        })
    });
    let shown = elsewhere.map(|waiting| {
        let key = format!("{}-{}", waiting.run, waiting.number);
        let approval = json!({
            "id": key, "call": one_line(&format!("{}.{}", waiting.server, waiting.tool)),
            "script": one_line(waiting.script), "reason": one_line(waiting.reason), "run": waiting.run,
            "answerable": false,
        });
        (key, approval)
    });
    shown.take(MAX_LISTED).collect()
}

fn render(known: &mut WatchState, servers: &[ReadServer]) -> Value {
    let trails = Arc::clone(&known.trails);
    let trails = trails.lock();
    let mut approvals: Vec<Value> = Vec::new();
    for server in servers {
        for approval in &server.approvals {
            let mut approval = approval.clone();
            approval["process"] = server.description.process.into();
            approval["answerable"] = true.into();
            approvals.push(approval);
        }
    }
    // A trail is written a moment after an answer is given, so an approval is shown only when it is seen a second time.
    let elsewhere = asked_elsewhere(&trails, &approvals);
    let keys = elsewhere.iter().map(|(key, _)| key.clone()).collect();
    let before = std::mem::replace(&mut known.asked_elsewhere, keys);
    approvals
        .extend(elsewhere.into_iter().filter(|(key, _)| before.contains(key)).map(|(_, approval)| approval));
    let mut runs: Vec<Value> = trails.latest(MAX_LISTED).map(|run| run.to_json()).collect();
    runs.sort_by(|one, other| other["started"].as_str().cmp(&one["started"].as_str()));
    runs.truncate(MAX_LISTED);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "servers": servers.iter().map(server_json).collect::<Vec<_>>(),
        "approvals": approvals,
        "runs": runs,
        "keptOut": { "total": known.kept_out_total, "points": known.history },
        "notes": notes(&trails, servers),
    })
}

fn server_json(server: &ReadServer) -> Value {
    let description = &server.description;
    let mut shown = json!({
        "process": description.process,
        "started": description.started,
        "version": description.version,
        "transport": description.transport.as_str(),
        "workspace": one_line(&description.workspace.display().to_string()),
        "address": description.address.map(|address| address.to_string()),
    });
    match &server.reading {
        ServerReading::NotListening => {}
        ServerReading::Read(reading) => shown["metrics"] = reading.to_json(),
        ServerReading::Failed(error) => shown["failure"] = one_line(error).into(),
    }
    shown
}

/// What the page cannot show, and the remedies.
fn notes(trails: &Trails, servers: &[ReadServer]) -> Vec<String> {
    let mut notes: Vec<String> = trails.failures().collect();
    let silent = servers.iter().filter(|server| !server.reading.is_listening()).count();
    if silent > 0 {
        notes.push(format!(
            "{silent} of the servers do not listen, so that only their audit trail is shown: start them with \
             `--metrics 127.0.0.1:0` to see their queues and health, and with `--approver page` too to answer \
             approvals here"
        ));
    }
    let unaudited = servers.iter().filter(|server| server.description.audit.is_none()).count();
    if unaudited > 0 {
        notes.push(format!(
            "{unaudited} of the servers keep no audit trail, so that their runs are not listed: switch it on with \
             `audit` in the configuration, or with `cx serve --audit DIR`"
        ));
    } else if servers.is_empty() && !trails.has_lines() {
        notes.push(
            "no server runs, and there is no audit trail: `\"audit\": {}` in the configuration switches it on"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v_538_approvals_of_another_process_take_little_memory() {
        let many = format!("[{}]", vec![r#"{"id":"a"}"#; 100].join(","));
        assert_eq!(read_approvals(&many).len(), MAX_APPROVALS);
        assert_eq!(read_approvals(r#"[{"id":"a"}]"#), [json!({ "id": "a" })]);
        // As a tree it would take ninety times as much.
        let hostile = format!("[{}]", vec![r#"{"":0}"#; 200_000].join(","));
        assert!(read_approvals(&hostile).is_empty());
        for text in ["", "{}", "null", "[", "[1]x"] {
            assert!(read_approvals(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn v_730_approvals_of_another_process_are_objects() {
        let text = r#"[1, "a", null, [], true, {"id":"a"}]"#;
        assert_eq!(read_approvals(text), [json!({ "id": "a" })]);
        let server = ReadServer {
            description: RunningServer {
                process: 1,
                started: 0,
                version: String::new(),
                transport: running::Transport::Http,
                workspace: PathBuf::new(),
                address: None,
                token: None,
                audit: None,
                traces: None,
            },
            reading: ServerReading::NotListening,
            approvals: read_approvals(text),
        };
        let shown = render(&mut WatchState::default(), &[server]);
        assert_eq!(shown["approvals"], json!([{ "id": "a", "process": 1, "answerable": true }]));
    }
}
