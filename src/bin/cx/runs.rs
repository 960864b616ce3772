//! `cx runs`: runs, from the audit trail.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::audit::AuditLine;
use cx::text::one_line;
use serde_json::{Map, Value};

use crate::args::{LISTED_RUNS, RunsArguments, RunsCommand};
use crate::audit::{Selection, each_line, render};
use crate::exit::ExitStatus;
use crate::output::{print_json, print_text};
use crate::text::{counted, shown_path};
use crate::trail_runs::{MAX_ID, TrailRuns, client_of};
use crate::{browser, diagnostic, run_id, running, setup, trace};

/// Maximum characters to which a column of the list is filled up.
const MAX_COLUMN: usize = 40;

/// Maximum bytes of the lines of the listed runs, and of one run as JSON. The trail may be another's, with lines of a
/// megabyte; those of cx have some hundred bytes.
const MAX_LISTED_BYTES: usize = 32 << 20;
const MAX_JSON_BYTES: usize = 64 << 20;

/// Lists runs or shows one.
///
/// # Errors
///
/// Mistakes in the configuration, a trail that cannot be read, or no such run.
pub(crate) fn run(arguments: &RunsArguments) -> anyhow::Result<ExitStatus> {
    let directory = setup::audit_directory(&arguments.trail)?;
    match &arguments.command {
        None => list(&directory, LISTED_RUNS, None, false),
        Some(RunsCommand::List { limit, since, json }) => list(&directory, *limit, *since, *json),
        Some(RunsCommand::Show { id, json }) => {
            show(&directory, &run_id::resolve(&directory, id.as_deref())?, *json)
        }
        Some(RunsCommand::Open { id, traces, no_browser }) => open_page(
            &directory,
            &run_id::resolve(&directory, id.as_deref())?,
            traces.as_deref(),
            !no_browser,
        ),
    }
}

/// The lines about the start and the end of a run. They are text: as trees they could take ninety times as much.
struct ListedRun {
    id: String,
    started: String,
    ended: Option<String>,
}

impl ListedRun {
    fn bytes(&self) -> usize {
        self.started.len() + self.ended.as_ref().map_or(0, String::len)
    }

    fn to_json(&self) -> String {
        let (id, started) = (Value::from(self.id.as_str()), &self.started);
        let ended = self.ended.as_deref().unwrap_or("null");
        format!("{{\"id\":{id},\"started\":{started},\"ended\":{ended}}}")
    }
}

/// The latest runs of a trail, in the order of their start.
#[derive(Default)]
struct LatestRuns {
    order: VecDeque<String>,
    by_id: HashMap<String, ListedRun>,
    bytes: usize,
    /// Whether a run was dropped for the maximum of bytes.
    is_cut: bool,
}

impl LatestRuns {
    /// Adds a line about this run, if it is its start, which the selection may leave out, or its end. At most `limit`
    /// runs are kept.
    fn add(&mut self, id: &str, line: &AuditLine, selection: &Selection, limit: usize) {
        match line.text_of("event") {
            Some("run.started") if selection.has(line) => self.start(id, line),
            Some("run.ended") => self.end(id, line),
            _ => {}
        }
        self.drop_earliest(limit);
    }

    /// Adds a line about the start of a run. One that occurs again is ignored.
    fn start(&mut self, id: &str, line: &AuditLine) {
        let Entry::Vacant(vacant) = self.by_id.entry(id.to_owned()) else { return };
        let run = ListedRun { id: id.to_owned(), started: line.text.clone(), ended: None };
        self.bytes += run.bytes();
        vacant.insert(run);
        self.order.push_back(id.to_owned());
    }

    /// Adds a line about the end of a run. That of a run which is not listed is ignored.
    fn end(&mut self, id: &str, line: &AuditLine) {
        let Some(run) = self.by_id.get_mut(id) else { return };
        self.bytes -= run.bytes();
        run.ended = Some(line.text.clone());
        self.bytes += run.bytes();
    }

    /// Drops the earliest runs beyond `limit` and the maximum of bytes.
    fn drop_earliest(&mut self, limit: usize) {
        while self.order.len() > limit || (self.bytes > MAX_LISTED_BYTES && self.order.len() > 1) {
            self.is_cut |= self.order.len() <= limit;
            let earliest = self.order.pop_front().and_then(|id| self.by_id.remove(&id));
            self.bytes -= earliest.map_or(0, |run| run.bytes());
        }
    }

    fn runs(&self) -> impl Iterator<Item = &ListedRun> {
        self.order.iter().filter_map(|id| self.by_id.get(id))
    }
}

fn list(
    directory: &Path,
    limit: usize,
    since: Option<Duration>,
    is_json: bool,
) -> anyhow::Result<ExitStatus> {
    let selection = Selection::new(None, since);
    let mut latest = LatestRuns::default();
    let mut has_runs = false;
    each_line(directory, |line| {
        let Some(id) = line.text_of("run").filter(|id| id.len() <= MAX_ID) else { return Ok(()) };
        has_runs = true;
        latest.add(id, line, &selection, limit);
        Ok(())
    })?;
    if latest.is_cut && latest.order.len() < limit {
        let listed = counted(latest.order.len(), "run");
        diagnostic::print_note(&format!(
            "only the latest {listed} can be listed: the lines of more are over {} MiB",
            MAX_LISTED_BYTES >> 20
        ));
    }
    if is_json {
        let listed: Vec<String> = latest.runs().map(ListedRun::to_json).collect();
        print_json(&format!("[{}]", listed.join(",")))?;
    } else if latest.order.is_empty() {
        print_text(&if has_runs {
            let shown = shown_path(directory);
            format!("no runs within `--since` in the audit trail in {shown}")
        } else {
            run_id::no_runs(directory)
        })?;
    } else {
        print_text(&table(&latest.runs().map(TableRow::new).collect::<Vec<_>>()))?;
    }
    Ok(ExitStatus::Success)
}

/// The cells of a run.
struct TableRow {
    /// Its id, time and language, which are as wide in all rows.
    start: String,
    script: String,
    outcome: String,
    /// Its duration, calls and client.
    end: String,
}

impl TableRow {
    fn new(run: &ListedRun) -> Self {
        let parsed = |line: &str| serde_json::from_str::<Map<String, Value>>(line).unwrap_or_default();
        let (started, ended) = (parsed(&run.started), run.ended.as_deref().map(parsed));
        let number = |name: &str| ended.as_ref()?.get(name)?.as_u64();
        let mut end = String::new();
        if let Some(time) = number("durationUs") {
            // Writing to a string cannot fail.
            let _ = write!(end, "  {:>6} ms", time / 1_000);
        }
        if let Some(calls) = number("toolCalls") {
            let _ = write!(end, "  {}", counted(usize::try_from(calls).unwrap_or(usize::MAX), "call"));
        }
        let client = one_line(&client_of(&started));
        if !client.is_empty() {
            let _ = write!(end, "  for {client}");
        }
        Self {
            start: format!(
                "{}  {}  {:<10}",
                one_line(&run.id),
                field(&started, "at"),
                field(&started, "language")
            ),
            script: field(&started, "script"),
            outcome: outcome(ended.as_ref()),
            end,
        }
    }
}

/// One line per run, in columns that are as wide as the widest script and outcome of all.
fn table(rows: &[TableRow]) -> String {
    let script = width(rows.iter().map(|row| &row.script));
    let outcome = width(rows.iter().map(|row| &row.outcome));
    let mut table = String::new();
    for row in rows {
        let TableRow { start, end, .. } = row;
        let line = format!("{start}  {:<script$}  {:<outcome$}{end}", row.script, row.outcome);
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

/// The width of a column.
fn width<'a>(cells: impl Iterator<Item = &'a String>) -> usize {
    cells.map(|cell| cell.chars().count()).max().unwrap_or(0).min(MAX_COLUMN)
}

/// A field that is text, on one line.
fn field(fields: &Map<String, Value>, name: &str) -> String {
    one_line(fields.get(name).and_then(Value::as_str).unwrap_or_default())
}

fn outcome(ended: Option<&Map<String, Value>>) -> String {
    // A process that was killed has recorded no end.
    let Some(ended) = ended else { return "running or killed".to_owned() };
    let code = field(ended, "code");
    if code.is_empty() { "ok".to_owned() } else { code }
}

fn show(directory: &Path, id: &str, is_json: bool) -> anyhow::Result<ExitStatus> {
    let selection = Selection::new(Some(id.to_owned()), None);
    let (mut events, mut is_shown) = (String::new(), false);
    each_line(directory, |line| {
        if !selection.has(line) {
            return Ok(());
        }
        if !is_json {
            is_shown = true;
            return Ok(print_text(&render(line))?);
        }
        if events.len() + line.text.len() > MAX_JSON_BYTES {
            let id = one_line(id);
            bail!(
                "the events of `{id}` are more than {} MiB; `cx audit show --run {id} --json` prints each",
                MAX_JSON_BYTES >> 20
            );
        }
        if std::mem::replace(&mut is_shown, true) {
            events.push(',');
        }
        events.push_str(&line.text);
        Ok(())
    })?;
    if !is_shown {
        bail!("no run `{}` in the audit trail; `cx runs list` lists them", one_line(id));
    }
    if is_json {
        print_json(&format!("{{\"id\":{},\"events\":[{events}]}}", Value::from(id)))?;
    }
    Ok(ExitStatus::Success)
}

/// Opens the waterfall of a run: the trace that a server has kept, else a page made of the trail.
fn open_page(
    directory: &Path,
    id: &str,
    traces: Option<&Path>,
    opens_browser: bool,
) -> anyhow::Result<ExitStatus> {
    let is_id = !id.is_empty() && id.len() <= MAX_ID && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_id {
        bail!("`{}` is not an id of a run; `cx runs list` lists them", one_line(id));
    }
    let directories = setup::directories()?;
    let page = match kept_page(id, traces, &directories.state)? {
        Some(page) => page,
        None => {
            let mut runs = TrailRuns::default();
            each_line(directory, |line| {
                if line.text_of("run") == Some(id) {
                    runs.add(line);
                }
                Ok(())
            })?;
            let Some(run) = runs.get(id) else {
                bail!("no run `{id}` in the audit trail; `cx runs list` lists them");
            };
            trace::write_shown(&directories.cache.join("runs"), id, &run.drawing())?
        }
    };
    print_text(&shown_path(&page))?;
    if opens_browser && let Err(error) = browser::open(&page) {
        diagnostic::print_note(&format!("no browser could be opened: {error}"));
    }
    Ok(ExitStatus::Success)
}

/// The page of a run that a server has kept, if there is one: in the directory that was named, else in those of running
/// servers.
///
/// # Errors
///
/// If the directory that was named cannot be read. Another one is a warning, because the audit trail has the run too.
fn kept_page(id: &str, named: Option<&Path>, state: &Path) -> anyhow::Result<Option<PathBuf>> {
    let unreadable = |directory: &Path| format!("failed to read the traces in {}", shown_path(directory));
    if let Some(named) = named {
        // The browser is started elsewhere.
        let named = path::absolute(named).unwrap_or_else(|_| named.to_owned());
        if let Some(page) = trace::find(&named, id).with_context(|| unreadable(&named))? {
            return Ok(Some(page));
        }
    }
    let running = running::list(state).unwrap_or_default();
    for directory in running.into_iter().filter_map(|server| server.traces) {
        match trace::find(&directory, id) {
            Ok(None) => {}
            Ok(page) => return Ok(page),
            Err(error) => diagnostic::print_warning(&format!("{}: {error}", unreadable(&directory))),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_are_listed_in_columns() {
        let run = |script: &str, code: &str, calls: u64| {
            TableRow::new(&ListedRun {
                id: "id".to_owned(),
                started: json!({ "at": "now", "language": "python", "script": script }).to_string(),
                ended: Some(json!({ "code": code, "durationUs": 7_000, "toolCalls": calls }).to_string()),
            })
        };
        let long = "examples/recipes/typed.ts";
        assert_eq!(
            table(&[run("a.py", "", 1), run(long, "RUNTIME_ERROR", 2)]),
            format!(
                "id  now  python      a.py{}  ok{}       7 ms  1 call\n\
                 id  now  python      {long}  RUNTIME_ERROR       7 ms  2 calls\n",
                " ".repeat(21),
                " ".repeat(11)
            )
        );
    }

    #[test]
    fn a_run_whose_start_is_in_the_trail_twice_is_one_run() {
        let directory = tempfile::tempdir().unwrap();
        let line = |event: &str, id: &str| format!("{}\n", json!({ "event": event, "run": id }));
        let text = [
            line("run.started", "ab1"),
            line("run.ended", "ab1"),
            line("run.started", "b2"),
            line("run.started", "ab1"),
        ];
        std::fs::write(directory.path().join("2026-01-01.jsonl"), text.concat()).unwrap();
        let mut latest = LatestRuns::default();
        each_line(directory.path(), |line| {
            latest.add(line.text_of("run").unwrap_or_default(), line, &Selection::new(None, None), 20);
            Ok(())
        })
        .unwrap();
        let listed: Vec<_> = latest.runs().map(|run| (&*run.id, run.ended.is_some())).collect();
        assert_eq!(listed, [("ab1", true), ("b2", false)]);
    }

    /// Threat 727.
    #[test]
    fn v_727_the_listed_runs_of_another_ones_trail_take_bounded_memory() {
        let directory = tempfile::tempdir().unwrap();
        let long = "a".repeat(1_000_000);
        let line =
            |event: &str, id: &str| format!("{}\n", json!({ "event": event, "run": id, "script": long }));
        let mut text = String::new();
        for number in 0..20 {
            let id = format!("run{number}");
            text.push_str(
                &[line("run.started", &id), line("run.ended", &id), line("run.ended", &id)].concat(),
            );
        }
        std::fs::write(directory.path().join("2026-01-01.jsonl"), text).unwrap();
        let mut latest = LatestRuns::default();
        each_line(directory.path(), |line| {
            latest.add(line.text_of("run").unwrap_or_default(), line, &Selection::new(None, None), 20);
            assert!(latest.bytes <= MAX_LISTED_BYTES);
            Ok(())
        })
        .unwrap();
        assert!(latest.is_cut);
        assert_eq!(latest.bytes, latest.runs().map(ListedRun::bytes).sum::<usize>());
        assert_eq!(latest.by_id.len(), latest.order.len());
        let ids: Vec<&str> = latest.runs().map(|run| run.id.as_str()).collect();
        assert_eq!((ids.len(), ids.last()), (16, Some(&"run19")));
        let last: Value = serde_json::from_str(&latest.by_id["run19"].to_json()).unwrap();
        assert_eq!((&last["id"], &last["ended"]["event"]), (&json!("run19"), &json!("run.ended")));
    }
}
