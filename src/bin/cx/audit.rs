//! `cx audit`: the audit trail.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use cx::audit::{
    AuditLine, AuditProblem, AuditReader, Verification, VerifyOptions, verify, write_checkpoint,
};
use cx::text::{one_line, rfc3339};
use serde_json::{Map, Value, json};

use crate::args::{AuditArguments, AuditCommand, AuditFormat, LineFilter};
use crate::diagnostic::{self, invalid};
use crate::exit::ExitStatus;
use crate::output::{print_json, print_text};
use crate::text::shown_path;
use crate::{document, output, run_id, setup, source};

/// How often the files are checked for new lines.
const LOOK: Duration = Duration::from_millis(200);

/// Maximum bytes of a key or a checkpoint. Those of cx have some hundred.
const MAX_SIGNED: usize = 1 << 20;

/// Maximum number of records of one request of an export. A request is also complete with this many bytes of lines: the
/// trail may be another's, with lines of a megabyte.
const EXPORT_RECORDS: usize = 500;
const EXPORT_BYTES: usize = 1 << 20;

/// The columns of a table; the other fields are in the last one, as JSON.
const COLUMNS: &[&str] = &[
    "seq",
    "at",
    "event",
    "run",
    "call",
    "server",
    "tool",
    "outcome",
    "code",
    "rule",
    "approver",
    "durationUs",
    "argumentsSha256",
    "writer",
    "hash",
];

/// Fields of the chain, which do not describe the event.
const CHAIN: &[&str] = &["seq", "prev", "hash", "writer", "at", "event", "run", "elapsedUs"];

/// Shows, verifies, signs or exports the trail.
///
/// # Errors
///
/// Mistakes in the configuration, or a trail that cannot be read.
pub(crate) fn run(arguments: AuditArguments) -> anyhow::Result<ExitStatus> {
    let directory = setup::audit_directory(&arguments.trail)?;
    match arguments.command {
        AuditCommand::Verify { checkpoint, key, json } => check(&directory, &checkpoint, key, json),
        AuditCommand::Show { filter, follow, json } => show(&directory, &filter, follow, json),
        AuditCommand::Checkpoint { out } => {
            let note = write_checkpoint(&directory).with_context(|| unreadable(&directory))?;
            let shown = shown_path(&out);
            document::replace(&out, &note).with_context(|| format!("failed to write {shown}"))?;
            print_text(&format!("signed the end of the trail: {shown}"))?;
            Ok(ExitStatus::Success)
        }
        AuditCommand::Export { format, filter } => export(&directory, format, &filter),
    }
}

fn missing(directory: &Path) -> String {
    let shown = shown_path(directory);
    format!("there is no audit trail in {shown}; `\"audit\": {{}}` in the configuration switches it on")
}

/// Why a trail cannot be shown; the system's error follows.
pub(crate) fn unreadable(directory: &Path) -> String {
    format!("failed to read the audit trail in {}", shown_path(directory))
}

/// Calls `each` with every line of a trail.
pub(crate) fn each_line(
    directory: &Path,
    mut each: impl FnMut(&AuditLine) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut reader = AuditReader::new(directory);
    while let Some(line) = reader.next_line(false).with_context(|| unreadable(directory))? {
        each(&line)?;
    }
    Ok(())
}

fn check(
    directory: &Path,
    checkpoints: &[PathBuf],
    key: Option<PathBuf>,
    is_json: bool,
) -> anyhow::Result<ExitStatus> {
    let read = |path: &PathBuf, what| source::read_bounded(path, what, MAX_SIGNED).map_err(invalid);
    let mut options = VerifyOptions::default();
    options.key = key.as_ref().map(|path| read(path, "the key")).transpose()?;
    let signed = checkpoints.iter().map(|path| read(path, "the checkpoint"));
    options.checkpoints = signed.collect::<Result<_, _>>()?;
    let failed = || match &key {
        Some(key) => format!("failed to check {} with the key {}", shown_path(directory), shown_path(key)),
        None => unreadable(directory),
    };
    let found = verify(directory, &options).with_context(failed)?;
    if found.lines == 0 && found.is_ok() {
        bail!("{}", missing(directory));
    }
    if is_json {
        print_json(&verification_json(&found).to_string())?;
    } else {
        print_text(&verification(&found))?;
    }
    Ok(if found.is_ok() { ExitStatus::Success } else { ExitStatus::Failed })
}

fn verification(found: &Verification) -> String {
    let mut text = format!(
        "lines {} to {}, {} in all; processes that wrote them: {}; checkpoints that agree: {}, the last one covers \
         them up to {}\n",
        found.first, found.last, found.lines, found.writers, found.checkpoints, found.signed_through
    );
    if found.open_calls > 0 {
        // Writing to a string cannot fail.
        let calls = found.open_calls;
        let _ = writeln!(text, "calls without an end, whose process is running or was killed: {calls}");
    }
    for notice in &found.notices {
        let _ = writeln!(text, "note: {}", one_line(notice));
    }
    for problem in &found.problems {
        let location = match (problem.file.as_str(), problem.line) {
            ("", _) => String::new(),
            (file, 0) => format!("{file}: "),
            (file, line) => format!("{file}:{line}: "),
        };
        let _ = writeln!(text, "wrong: {}{}", one_line(&location), one_line(&problem.problem));
    }
    if found.problem_count > found.problems.len() {
        let _ = writeln!(text, "and {} more", found.problem_count - found.problems.len());
    }
    text.push_str(if found.is_ok() { "nothing is wrong" } else { "the trail is not what was written" });
    text
}

fn problem_json(problem: &AuditProblem) -> Value {
    json!({ "file": problem.file, "line": problem.line, "problem": problem.problem })
}

fn verification_json(found: &Verification) -> Value {
    json!({
        "ok": found.is_ok(),
        "lines": found.lines,
        "first": found.first,
        "last": found.last,
        "head": found.head,
        "writers": found.writers,
        "checkpoints": found.checkpoints,
        "signedThrough": found.signed_through,
        "openCalls": found.open_calls,
        "key": found.key,
        "notices": found.notices,
        "problems": found.problems.iter().map(problem_json).collect::<Vec<_>>(),
        "problemCount": found.problem_count,
    })
}

/// Selects lines by run and time.
pub(crate) struct Selection {
    run: Option<String>,
    /// The earliest time, as lines have it.
    since: Option<String>,
}

impl Selection {
    pub(crate) fn new(run: Option<String>, since: Option<Duration>) -> Self {
        let since = since.map(|time| SystemTime::now().checked_sub(time).unwrap_or(SystemTime::UNIX_EPOCH));
        Self { run, since: since.map(rfc3339) }
    }

    /// The lines that are asked for on the command line, where the beginning of a run's id is enough.
    fn from_filter(directory: &Path, filter: &LineFilter) -> anyhow::Result<Self> {
        let run = filter.run.as_deref().map(|given| run_id::resolve(directory, Some(given))).transpose()?;
        Ok(Self::new(run, filter.since))
    }

    pub(crate) fn has(&self, line: &AuditLine) -> bool {
        let is_of_run = self.run.as_deref().is_none_or(|run| line.text_of("run") == Some(run));
        // A line that cannot be parsed is shown, whatever its time.
        let is_recent = |since: &String| line.text_of("at").is_none_or(|at| at >= since.as_str());
        is_of_run && self.since.as_ref().is_none_or(is_recent)
    }
}

fn show(directory: &Path, filter: &LineFilter, follow: bool, is_json: bool) -> anyhow::Result<ExitStatus> {
    let selection = Selection::from_filter(directory, filter)?;
    let mut reader = AuditReader::new(directory);
    let (mut has_lines, mut is_shown, mut is_first) = (false, false, true);
    loop {
        while let Some(line) = next_line(&mut reader, directory, is_shown)? {
            has_lines = true;
            if selection.has(&line) {
                is_shown = true;
                if is_json {
                    print_json(&line.text)?;
                } else {
                    print_text(&render(&line))?;
                }
            }
        }
        // Lines that are followed may still come.
        if std::mem::take(&mut is_first) && !is_shown && !(follow && has_lines) {
            print_nothing(directory, has_lines);
        }
        if !follow {
            return Ok(ExitStatus::Success);
        }
        output::wait_for(LOOK)?;
    }
}

/// The next line. After lines that were printed, a failure is for stderr: on stdout its object would be read as a line.
fn next_line(
    reader: &mut AuditReader,
    directory: &Path,
    is_shown: bool,
) -> anyhow::Result<Option<AuditLine>> {
    let next = reader.next_line(false).with_context(|| unreadable(directory));
    next.map_err(|error| if is_shown { diagnostic::after_output(error) } else { error })
}

/// Says on stderr why no line is printed.
fn print_nothing(directory: &Path, has_lines: bool) {
    let shown = shown_path(directory);
    diagnostic::print_note(&if has_lines {
        format!("no line of the audit trail in {shown} is of that run or time; `cx runs list` lists runs")
    } else {
        missing(directory)
    });
}

/// A line in readable form. Untrusted text in it can neither begin a line nor hide anything.
pub(crate) fn render(line: &AuditLine) -> String {
    let Some(fields) = &line.fields else {
        return format!("{}:{}: not a line of a trail: {}", line.file, line.number, one_line(&line.text));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut shown =
        format!("{}  {:<16}  {:<17}", one_line(text("at")), one_line(text("run")), one_line(text("event")));
    for (name, value) in fields.iter().filter(|(name, _)| !CHAIN.contains(&name.as_str())) {
        let value = value.as_str().map_or_else(|| value.to_string(), quoted);
        let _ = write!(shown, "  {}={}", one_line(name), one_line(&value));
    }
    shown
}

/// Quotes a text so that it can be told apart from neighboring fields.
fn quoted(text: &str) -> String {
    if text.contains([' ', '"', '=']) { Value::from(text).to_string() } else { text.to_owned() }
}

fn export(directory: &Path, format: AuditFormat, filter: &LineFilter) -> anyhow::Result<ExitStatus> {
    let selection = Selection::from_filter(directory, filter)?;
    let mut reader = AuditReader::new(directory);
    let (mut records, mut bytes) = (Vec::new(), 0);
    let (mut has_lines, mut is_exported) = (false, false);
    if matches!(format, AuditFormat::Csv) {
        print_json(&format!("{},details", COLUMNS.join(",")))?;
    }
    while let Some(line) = reader.next_line(false).with_context(|| unreadable(directory))? {
        has_lines = true;
        let Some(fields) = line.fields.as_ref().filter(|_| selection.has(&line)) else { continue };
        is_exported = true;
        match format {
            AuditFormat::Csv => print_json(&csv(fields))?,
            AuditFormat::OtlpLogs => {
                records.push(log_record(&line, fields));
                bytes += line.text.len();
                if records.len() >= EXPORT_RECORDS || bytes >= EXPORT_BYTES {
                    bytes = 0;
                    print_json(&log_request(std::mem::take(&mut records)).to_string())?;
                }
            }
        }
    }
    if !records.is_empty() {
        print_json(&log_request(records).to_string())?;
    }
    if !is_exported {
        print_nothing(directory, has_lines);
    }
    Ok(ExitStatus::Success)
}

/// A line of a table (RFC 4180).
fn csv(fields: &Map<String, Value>) -> String {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut cells: Vec<String> =
        COLUMNS.iter().map(|name| fields.get(*name).map(cell).unwrap_or_default()).collect();
    let rest: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| !COLUMNS.contains(&name.as_str()) && *name != "prev")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    cells.push(Value::Object(rest).to_string());
    cells.iter().map(|text| csv_cell(text)).collect::<Vec<_>>().join(",")
}

/// How text begins that a spreadsheet interprets as a formula. Those in full width count as such in spreadsheets of
/// East Asian languages.
const FORMULA_STARTS: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Where a formula can begin within a text. Spreadsheets of many languages separate cells by semicolons, also in a
/// file with commas; then quotes inside of a cell mean nothing to them, and a line end in quotes begins a row.
const CELL_ENDS: [char; 4] = [';', '\t', '\n', '\r'];

/// A cell. Text that a spreadsheet would interpret as a formula is made plain text, because names are untrusted.
fn csv_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for part in text.split_inclusive(CELL_ENDS) {
        if part.trim_start_matches(' ').starts_with(FORMULA_STARTS) {
            cell.push('\'');
        }
        cell.push_str(part);
    }
    if cell.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell
}

/// A log record of OpenTelemetry's JSON.
fn log_record(line: &AuditLine, fields: &Map<String, Value>) -> Value {
    let attribute = |(name, value): (&String, &Value)| {
        let (key, value) = (format!("cx.audit.{name}"), attribute_value(value));
        json!({ "key": key, "value": value })
    };
    let time = line.text_of("at").and_then(|at| humantime::parse_rfc3339(at).ok());
    let nanoseconds = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let nanoseconds = nanoseconds.unwrap_or_default().as_nanos().to_string();
    json!({
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": 9,
        "severityText": "INFO",
        "eventName": format!("cx.audit.{}", line.text_of("event").unwrap_or_default()),
        // The line itself, so that the receiver can verify its hash.
        "body": { "stringValue": line.text },
        "attributes": fields.iter().map(attribute).collect::<Vec<_>>(),
    })
}

/// A value of an attribute. In the JSON of protocol buffers, 64-bit integers are strings.
fn attribute_value(value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(number) => match number.as_i64() {
            Some(number) => json!({ "intValue": number.to_string() }),
            // A receiver would refuse the request, with all of its records.
            None => json!({ "doubleValue": number.as_f64() }),
        },
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    }
}

fn log_request(records: Vec<Value>) -> Value {
    let service = json!({ "key": "service.name", "value": { "stringValue": "cx" } });
    json!({
        "resourceLogs": [{
            "resource": { "attributes": [service] },
            "scopeLogs": [{
                "scope": { "name": "cx.audit", "version": env!("CARGO_PKG_VERSION") },
                "logRecords": records,
            }],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat 728.
    #[test]
    fn v_728_no_cell_is_a_formula() {
        for (text, cell) in [
            ("\u{ff1d}1+1", "'\u{ff1d}1+1"),
            ("\u{ff20}a", "'\u{ff20}a"),
            ("  =1+1", "'  =1+1"),
            ("\t=1+1", "\t'=1+1"),
            ("a;=1+1;b", "a;'=1+1;b"),
            ("a\n=1+1\r\n@b", "\"a\n'=1+1\r\n'@b\""),
            ("{\"a\":\";=1\"}", "\"{\"\"a\"\":\"\";'=1\"\"}\""),
            (" a;b", " a;b"),
            ("a=1", "a=1"),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }

    #[test]
    fn a_number_of_an_exported_record_is_one_of_opentelemetry() {
        for (number, value) in [
            (json!(-7), json!({ "intValue": "-7" })),
            (json!(i64::MAX), json!({ "intValue": "9223372036854775807" })),
            (json!(1_u64 << 63), json!({ "doubleValue": 9_223_372_036_854_775_808.0 })),
            (json!(0.5), json!({ "doubleValue": 0.5 })),
        ] {
            assert_eq!(attribute_value(&number), value);
        }
    }
}
