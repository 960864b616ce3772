//! `cx runs`: runs, from the audit trail.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::path::{self, Path};
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::audit::{AuditLine, AuditReader};
use cx::text::one_line;
use serde_json::{Map, Value, json};

use crate::args::{LISTED_RUNS, RunsArguments, RunsCommand};
use crate::audit::{Selection, render};
use crate::exit::ExitStatus;
use crate::output::{print_json, print_text};
use crate::text::counted;
use crate::trail_runs::{TrailRuns, client_of};
use crate::{browser, diagnostic, running, setup, trace};

/// Maximum characters to which a column of the list is filled up.
const MAX_COLUMN: usize = 40;

/// Letters of the id of a run.
const ID_LETTERS: usize = 16;

/// Maximum number of runs that are listed.
const MAX_LISTED: usize = 10_000;

/// Lists runs or shows one.
///
/// # Errors
///
/// Mistakes in the configuration, a trail that cannot be read, or no such run.
pub(crate) fn run(arguments: &RunsArguments) -> anyhow::Result<ExitStatus> {
    let directory = setup::audit_directory(&arguments.trail)?;
    match &arguments.command {
        None => list(&directory, LISTED_RUNS, None, false),
        Some(RunsCommand::List { limit, since, json }) => {
            list(&directory, (*limit).clamp(1, MAX_LISTED), *since, *json)
        }
        Some(RunsCommand::Show { id, json }) => show(&directory, &meant(&directory, id.as_deref())?, *json),
        Some(RunsCommand::Open { id, traces, no_browser }) => {
            open_page(&directory, &meant(&directory, id.as_deref())?, traces.as_deref(), !no_browser)
        }
    }
}

/// The id of the run that is meant: the given one, the one that begins so, or the latest. What begins no id in the
/// trail is returned as it is, because a server may have kept a trace of that run.
///
/// # Errors
///
/// A trail that cannot be read, or has no runs, or several that begin so.
fn meant(directory: &Path, given: Option<&str>) -> anyhow::Result<String> {
    if let Some(id) = given.filter(|id| id.len() >= ID_LETTERS) {
        return Ok(id.to_owned());
    }
    let mut found: Vec<String> = Vec::new();
    each_line(directory, |line| {
        let Some(id) = line.text_of("run").filter(|_| line.text_of("event") == Some("run.started")) else {
            return;
        };
        match given {
            None => found = vec![id.to_owned()],
            Some(beginning) if id.starts_with(beginning) && found.len() < MAX_LISTED => {
                found.push(id.to_owned());
            }
            Some(_) => {}
        }
    })?;
    match (given, found.as_slice()) {
        (_, [id]) => Ok(id.clone()),
        (Some(id), []) => Ok(id.to_owned()),
        (None, _) => bail!("{}", no_runs(directory)),
        (Some(beginning), several) => {
            bail!("{} runs begin with `{}`; write more of the id", several.len(), one_line(beginning))
        }
    }
}

fn no_runs(directory: &Path) -> String {
    let place = one_line(&directory.display().to_string());
    format!("no runs in the audit trail in {place}; `\"audit\": {{}}` in the configuration switches it on")
}

/// The lines about the start and the end of a run.
struct ListedRun {
    id: String,
    started: Map<String, Value>,
    ended: Option<Map<String, Value>>,
}

fn list(
    directory: &Path,
    limit: usize,
    since: Option<Duration>,
    is_json: bool,
) -> anyhow::Result<ExitStatus> {
    let selection = Selection::new(None, since);
    let mut runs: VecDeque<String> = VecDeque::new();
    let mut known: HashMap<String, ListedRun> = HashMap::new();
    let mut has_runs = false;
    each_line(directory, |line| {
        let (Some(fields), Some(id)) = (&line.fields, line.text_of("run")) else { return };
        has_runs = true;
        match line.text_of("event") {
            Some("run.started") if selection.has(line) => {
                let run = ListedRun { id: id.to_owned(), started: fields.clone(), ended: None };
                if known.insert(id.to_owned(), run).is_none() {
                    runs.push_back(id.to_owned());
                }
                if runs.len() > limit
                    && let Some(oldest) = runs.pop_front()
                {
                    known.remove(&oldest);
                }
            }
            Some("run.ended") => {
                if let Some(run) = known.get_mut(id) {
                    run.ended = Some(fields.clone());
                }
            }
            _ => {}
        }
    })?;
    let listed: Vec<&ListedRun> = runs.iter().filter_map(|id| known.get(id)).collect();
    if is_json {
        print_json(&listed.iter().map(|run| run_json(run)).collect::<Value>().to_string())?;
    } else if listed.is_empty() {
        print_text(&if has_runs {
            let place = one_line(&directory.display().to_string());
            format!("no runs within `--since` in the audit trail in {place}")
        } else {
            no_runs(directory)
        })?;
    } else {
        print_text(&table(&listed))?;
    }
    Ok(ExitStatus::Success)
}

/// One line per run, in columns that are as wide as the widest script and outcome of all.
fn table(runs: &[&ListedRun]) -> String {
    let width = |column: fn(&ListedRun) -> String| {
        runs.iter().map(|run| column(run).chars().count()).max().unwrap_or(0).min(MAX_COLUMN)
    };
    let (script, outcome) = (width(|run| field(&run.started, "script")), width(outcome));
    runs.iter().map(|run| row(run, script, outcome)).collect()
}

/// A field that is text, on one line.
fn field(fields: &Map<String, Value>, name: &str) -> String {
    one_line(fields.get(name).and_then(Value::as_str).unwrap_or_default())
}

fn outcome(run: &ListedRun) -> String {
    // Of a process that was killed there is no end.
    let Some(ended) = &run.ended else { return "running or killed".to_owned() };
    let code = field(ended, "code");
    if code.is_empty() { "ok".to_owned() } else { code }
}

fn row(run: &ListedRun, script_width: usize, outcome_width: usize) -> String {
    let number = |name: &str| run.ended.as_ref().and_then(|ended| ended.get(name)).and_then(Value::as_u64);
    let mut row = format!(
        "{}  {}  {:<10}  {:<script_width$}  {:<outcome_width$}",
        one_line(&run.id),
        field(&run.started, "at"),
        field(&run.started, "language"),
        field(&run.started, "script"),
        outcome(run)
    );
    if let Some(time) = number("durationUs") {
        // Writing to a string cannot fail.
        let _ = write!(row, "  {:>6} ms", time / 1_000);
    }
    if let Some(calls) = number("toolCalls") {
        let _ = write!(row, "  {}", counted(usize::try_from(calls).unwrap_or(usize::MAX), "call"));
    }
    let client = one_line(&client_of(&run.started));
    if !client.is_empty() {
        let _ = write!(row, "  for {client}");
    }
    row.truncate(row.trim_end().len());
    row.push('\n');
    row
}

fn run_json(run: &ListedRun) -> Value {
    json!({ "id": run.id, "started": run.started, "ended": run.ended })
}

fn show(directory: &Path, id: &str, is_json: bool) -> anyhow::Result<ExitStatus> {
    let selection = Selection::new(Some(id.to_owned()), None);
    let mut lines = Vec::new();
    each_line(directory, |line| {
        if selection.has(line) {
            lines.push(line.clone());
        }
    })?;
    if lines.is_empty() {
        bail!("no run `{}` in the audit trail; `cx runs list` lists them", one_line(id));
    }
    if is_json {
        let fields: Vec<&Map<String, Value>> = lines.iter().filter_map(|line| line.fields.as_ref()).collect();
        print_json(&json!({ "id": id, "events": fields }).to_string())?;
    } else {
        print_text(&lines.iter().map(render).collect::<Vec<_>>().join("\n"))?;
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
    let is_id = !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_id {
        bail!("`{}` is no id of a run; `cx runs list` lists them", one_line(id));
    }
    let directories = setup::directories()?;
    let running = running::list(&directories.state).unwrap_or_default();
    let kept = running.into_iter().filter_map(|server| server.traces);
    // The browser is started elsewhere.
    let named = traces.map(|traces| path::absolute(traces).unwrap_or_else(|_| traces.to_owned()));
    let mut found = None;
    for place in named.into_iter().chain(kept) {
        let shown = one_line(&place.display().to_string());
        found = trace::find(&place, id).with_context(|| format!("failed to read the traces in {shown}"))?;
        if found.is_some() {
            break;
        }
    }
    let page = match found {
        Some(page) => page,
        None => {
            let mut runs = TrailRuns::default();
            each_line(directory, |line| {
                if line.text_of("run") == Some(id) {
                    runs.add(line);
                }
            })?;
            let Some(run) = runs.get(id) else {
                bail!("no run `{id}` in the audit trail; `cx runs list` lists them");
            };
            trace::write_shown(&directories.cache.join("runs"), id, &run.drawing())?
        }
    };
    print_text(&one_line(&page.display().to_string()))?;
    if opens_browser && let Err(error) = browser::open(&page) {
        diagnostic::print_note(&format!("no browser could be opened: {error}"));
    }
    Ok(ExitStatus::Success)
}

fn each_line(directory: &Path, mut each: impl FnMut(&AuditLine)) -> anyhow::Result<()> {
    let mut reader = AuditReader::new(directory);
    let unreadable =
        || format!("failed to read the audit trail in {}", one_line(&directory.display().to_string()));
    while let Some(line) = reader.next_line(false).with_context(unreadable)? {
        each(&line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_listed_in_columns() {
        let fields = |value: Value| value.as_object().unwrap().clone();
        let run = |script: &str, code: &str, calls: u64| ListedRun {
            id: "id".to_owned(),
            started: fields(json!({ "at": "now", "language": "python", "script": script })),
            ended: Some(fields(json!({ "code": code, "durationUs": 7_000, "toolCalls": calls }))),
        };
        let long = "examples/recipes/typed.ts";
        assert_eq!(
            table(&[&run("a.py", "", 1), &run(long, "RUNTIME_ERROR", 2)]),
            format!(
                "id  now  python      a.py{}  ok{}       7 ms  1 call\n\
                 id  now  python      {long}  RUNTIME_ERROR       7 ms  2 calls\n",
                " ".repeat(21),
                " ".repeat(11)
            )
        );
    }
}
