//! Reconstructs runs and their calls from the lines of an audit trail.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use cx::Language;
use cx::audit::AuditLine;
use cx::text::start_bytes;
use serde_json::{Map, Value, json};

use crate::trace::drawing::{Drawing, DrawnCall, DrawnEnd, DrawnUsage, Failure};

/// Maximum number of runs that are kept, the latest ones, and of calls of each and of all of them.
const MAX_RUNS: usize = 1_000;
const MAX_CALLS: usize = 10_000;
const MAX_ALL_CALLS: usize = 50_000;

/// Maximum bytes of a text of a line, and of a run's id, that are kept. Names in lines of cx are shorter.
const MAX_TEXT: usize = 1_100;
pub(crate) const MAX_ID: usize = 64;

/// Approvals that have waited for longer belong to a process that was killed: no limit is longer.
const MAX_APPROVAL: Duration = Duration::from_secs(11 * 60);

/// The note on a page that was drawn from a trail.
const NOTE: &str = "drawn from the audit trail, which has neither the source nor the output: `cx serve --traces \
                    DIR` keeps both";

/// The latest runs of a trail.
#[derive(Default)]
pub(crate) struct TrailRuns {
    /// The ids of the runs, in the order of their start.
    order: VecDeque<String>,
    by_id: HashMap<String, TrailRun>,
    calls: usize,
}

/// One run.
#[derive(Clone, Default)]
pub(crate) struct TrailRun {
    id: String,
    script: String,
    language: String,
    client: String,
    /// The time, as written in the line.
    started: String,
    ended: Option<RunEnd>,
    /// When the last line about it was written.
    last: Duration,
    calls: Vec<TrailCall>,
    calls_dropped: u64,
    /// Where calls are, by their kind and number.
    positions: HashMap<(CallKind, u64), usize>,
}

/// What a call is made to. Calls of each kind have numbers of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CallKind {
    Tool,
    Model,
}

impl CallKind {
    /// The field of a line that has the number of the call.
    const fn field(self) -> &'static str {
        match self {
            Self::Tool => "call",
            Self::Model => "request",
        }
    }
}

#[derive(Clone, Default)]
struct RunEnd {
    /// `None` if the run returned.
    code: Option<String>,
    duration: Duration,
    usage: DrawnUsage,
}

#[derive(Clone, Default)]
struct TrailCall {
    number: u64,
    drawn: DrawnCall,
    has_ended: bool,
    /// When the wait for an approval began, and the reason for it.
    waits: Option<(Duration, String)>,
}

/// A call that waits for an approval.
pub(crate) struct WaitingCall<'a> {
    pub(crate) run: &'a str,
    /// Number of the call in its run.
    pub(crate) number: u64,
    pub(crate) script: &'a str,
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) reason: &'a str,
}

impl TrailRuns {
    /// Adds the content of a line.
    pub(crate) fn add(&mut self, line: &AuditLine) {
        let (Some(fields), Some(id), Some(event)) =
            (&line.fields, line.text_of("run"), line.text_of("event"))
        else {
            return;
        };
        if id.len() > MAX_ID {
            return;
        }
        if event == "run.started" {
            self.start(id, fields);
        }
        let Some(run) = self.by_id.get_mut(id) else { return };
        let before = run.calls.len();
        run.add(event, fields);
        self.calls += run.calls.len() - before;
        while self.order.len() > MAX_RUNS || (self.calls > MAX_ALL_CALLS && self.order.len() > 1) {
            let oldest = self.order.pop_front().and_then(|id| self.by_id.remove(&id));
            self.calls -= oldest.map_or(0, |run| run.calls.len());
        }
    }

    fn start(&mut self, id: &str, fields: &Map<String, Value>) {
        let text = |name: &str| text(fields, name).to_owned();
        let run = TrailRun {
            id: id.to_owned(),
            script: text("script"),
            language: text("language"),
            client: kept(&client_of(fields)),
            started: text("at"),
            ..TrailRun::default()
        };
        match self.by_id.insert(id.to_owned(), run) {
            None => self.order.push_back(id.to_owned()),
            // The line occurs twice. The calls of the first occurrence are dropped.
            Some(before) => self.calls -= before.calls.len(),
        }
    }

    /// A run.
    pub(crate) fn get(&self, id: &str) -> Option<&TrailRun> {
        self.by_id.get(id)
    }

    /// The latest runs, the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &TrailRun> {
        self.order.iter().rev().filter_map(|id| self.by_id.get(id))
    }
}

impl TrailRun {
    fn add(&mut self, event: &str, fields: &Map<String, Value>) {
        let now = time(fields, "elapsedUs");
        self.last = self.last.max(now);
        match event {
            "run.ended" => {
                self.ended = Some(RunEnd {
                    code: fields.get("code").and_then(Value::as_str).map(kept),
                    duration: time(fields, "durationUs"),
                    usage: DrawnUsage {
                        queue_time: time(fields, "queueTimeUs"),
                        cpu_time: time(fields, "cpuTimeUs"),
                        approval_time: time(fields, "approvalTimeUs"),
                        memory_bytes: number(fields, "memoryBytes"),
                        tool_calls: number(fields, "toolCalls"),
                        tool_calls_refused: number(fields, "toolCallsRefused"),
                        tool_result_bytes: number(fields, "toolResultBytes"),
                    },
                });
            }
            "call.will" | "model.will" => self.change(fields, now, |call| {
                call.drawn.sent = Some(now);
                call.drawn.ended = now;
                call.drawn.argument_bytes = number(fields, "argumentBytes");
                "in flight".clone_into(&mut call.drawn.status);
            }),
            "call.did" | "model.did" => self.change(fields, now, |call| {
                let code = text(fields, "code");
                call.drawn.is_error = text(fields, "outcome") == "failed";
                call.drawn.status = if code.is_empty() { "ok" } else { code }.to_owned();
                call.drawn.result_bytes = number(fields, "resultBytes");
                (call.drawn.ended, call.has_ended) = (now, true);
            }),
            "call.simulated" => self.change(fields, now, |call| {
                "simulated".clone_into(&mut call.drawn.status);
                (call.drawn.ended, call.has_ended) = (now, true);
            }),
            "call.refused" => self.change(fields, now, |call| {
                // A call that was sent is ended by its own line.
                if call.drawn.sent.is_none() {
                    text(fields, "code").clone_into(&mut call.drawn.status);
                    (call.drawn.ended, call.drawn.is_error, call.has_ended) = (now, true, true);
                    call.waits = None;
                }
            }),
            "approval.asked" => self.change(fields, now, |call| {
                call.waits = Some((now, text(fields, "reason").to_owned()));
                "awaiting approval".clone_into(&mut call.drawn.status);
                call.drawn.ended = now;
            }),
            "approval.answered" => self.change(fields, now, |call| {
                call.waits = None;
                call.drawn.approval = time(fields, "durationUs");
                call.drawn.ended = now;
                text(fields, "answer").clone_into(&mut call.drawn.status);
                call.drawn.is_error = text(fields, "answer") == "refused";
            }),
            _ => {}
        }
    }

    /// Changes the call that a line is about, which is added if it is missing.
    fn change(&mut self, fields: &Map<String, Value>, now: Duration, change: impl FnOnce(&mut TrailCall)) {
        let is_model = fields.contains_key(CallKind::Model.field());
        let kind = if is_model { CallKind::Model } else { CallKind::Tool };
        // Calls that name nothing have no number.
        let number = number(fields, kind.field());
        let key = (kind, number);
        let position = self.positions.get(&key).copied().filter(|_| number > 0);
        let position = match position {
            Some(position) => position,
            None if self.calls.len() >= MAX_CALLS => {
                self.calls_dropped += 1;
                return;
            }
            None => {
                let (server, tool) = match kind {
                    CallKind::Model => ("llm", text(fields, "model")),
                    CallKind::Tool => (text(fields, "server"), text(fields, "tool")),
                };
                let drawn = DrawnCall {
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                    requested: now,
                    ended: now,
                    ..DrawnCall::default()
                };
                self.calls.push(TrailCall { number, drawn, ..TrailCall::default() });
                self.positions.insert(key, self.calls.len() - 1);
                self.calls.len() - 1
            }
        };
        if let Some(call) = self.calls.get_mut(position) {
            change(call);
        }
    }

    /// How long ago it was started.
    fn age(&self) -> Duration {
        let started = humantime::parse_rfc3339(&self.started).ok();
        started.and_then(|started| SystemTime::now().duration_since(started).ok()).unwrap_or_default()
    }

    fn duration(&self) -> Duration {
        // For a run without an end, only the time of its last line is known.
        self.ended.as_ref().map_or(self.last, |ended| ended.duration)
    }

    /// The calls that wait for an approval; none for a run that has ended.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = WaitingCall<'_>> {
        let age = self.age();
        let calls = self.calls.iter().filter(|_| self.ended.is_none());
        calls.filter_map(move |call| {
            let (since, reason) = call.waits.as_ref()?;
            let for_time = age.saturating_sub(*since);
            (for_time < MAX_APPROVAL).then(|| WaitingCall {
                run: &self.id,
                number: call.number,
                script: &self.script,
                server: &call.drawn.server,
                tool: &call.drawn.tool,
                reason,
            })
        })
    }

    fn is_waiting(&self) -> bool {
        self.waiting().next().is_some()
    }

    /// The data for a list.
    pub(crate) fn to_json(&self) -> Value {
        let failed = self.calls.iter().filter(|call| call.drawn.is_error).count();
        let outcome = match &self.ended {
            None if self.is_waiting() => "waits for approval",
            None => "no end yet",
            Some(RunEnd { code: None, .. }) => "ok",
            Some(RunEnd { code: Some(code), .. }) => code,
        };
        json!({
            "id": self.id, "script": self.script, "language": self.language, "client": self.client,
            "started": self.started, "ageMs": milliseconds(self.age()),
            "durationMs": self.ended.as_ref().map(|ended| milliseconds(ended.duration)),
            "outcome": outcome, "calls": self.calls.len() as u64 + self.calls_dropped, "callsFailed": failed,
            "callsInFlight": self.calls.iter().filter(|call| !call.has_ended).count(),
            "resultBytes": self.ended.as_ref().map(|ended| ended.usage.tool_result_bytes),
        })
    }

    /// The data for its page.
    pub(crate) fn drawing(&self) -> Drawing {
        let duration = self.duration();
        let end = match &self.ended {
            None => DrawnEnd::None,
            Some(RunEnd { code: None, .. }) => DrawnEnd::Returned,
            Some(RunEnd { code: Some(code), .. }) => {
                DrawnEnd::Failed(Failure { code: code.clone(), ..Failure::default() })
            }
        };
        let calls = self.calls.iter().map(|call| {
            let mut drawn = call.drawn.clone();
            if !call.has_ended {
                drawn.ended = duration;
            }
            drawn
        });
        let language = self.language.parse::<Language>().map_or("none: one call", Language::title);
        let script = if self.script.is_empty() { "(a call without a script)" } else { &self.script };
        let usage = match &self.ended {
            Some(ended) => ended.usage,
            None => DrawnUsage { tool_calls: self.calls.len() as u64, ..DrawnUsage::default() },
        };
        Drawing {
            id: self.id.clone(),
            script: script.to_owned(),
            language,
            duration,
            end,
            usage,
            calls: calls.collect(),
            calls_dropped: self.calls_dropped,
            contents: None,
            note: Some(NOTE.to_owned()),
        }
    }
}

/// The client of a run: the name by which it introduces itself, and for a client of a tenant also the name that cx has
/// given it, which begins with the tenant's.
pub(crate) fn client_of(started: &Map<String, Value>) -> String {
    let of_tenant = Some(text(started, "client")).filter(|client| client.contains('/'));
    match (of_tenant, text(started, "clientName")) {
        (None, name) => name.to_owned(),
        (Some(client), "") => client.to_owned(),
        (Some(client), name) => format!("{client} ({name})"),
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    start_bytes(fields.get(name).and_then(Value::as_str).unwrap_or_default(), MAX_TEXT)
}

fn kept(text: &str) -> String {
    start_bytes(text, MAX_TEXT).to_owned()
}

fn number(fields: &Map<String, Value>, name: &str) -> u64 {
    fields.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn time(fields: &Map<String, Value>, name: &str) -> Duration {
    Duration::from_micros(number(fields, name))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use cx::audit::AuditReader;

    use super::*;

    fn read(lines: impl IntoIterator<Item = Value>) -> TrailRuns {
        let directory = tempfile::tempdir().unwrap();
        let text: String = lines.into_iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(directory.path().join("2026-01-01.jsonl"), text).unwrap();
        let (mut runs, mut reader) = (TrailRuns::default(), AuditReader::new(directory.path()));
        while let Some(line) = reader.next_line(false).unwrap() {
            runs.add(&line);
        }
        runs
    }

    #[test]
    fn the_latest_runs_and_the_first_calls_of_each_are_kept() {
        let started = |run: usize| json!({ "event": "run.started", "run": run.to_string() });
        let runs = read((0..MAX_RUNS + 2).map(started));
        assert_eq!(runs.latest().count(), MAX_RUNS);
        assert!(runs.get("1").is_none() && runs.get("2").is_some());
        let with_calls = |run: usize| {
            let call =
                move |call: usize| json!({ "event": "call.will", "run": run.to_string(), "call": call });
            std::iter::once(started(run)).chain((1..MAX_CALLS + 2).map(call))
        };
        let runs = read((0..=MAX_ALL_CALLS / MAX_CALLS).flat_map(with_calls));
        assert_eq!((runs.latest().count(), runs.calls), (MAX_ALL_CALLS / MAX_CALLS, MAX_ALL_CALLS));
        assert!(runs.get("0").is_none() && runs.get("1").is_some_and(|run| run.calls_dropped == 1));
    }

    /// Threat 590.
    #[test]
    fn v_590_little_of_each_text_of_a_line_is_kept() {
        let (id, long) = ("abcdefghijklmnop", "a".repeat(100_000));
        let lines = [
            json!({ "event": "run.started", "run": long, "script": "ignored" }),
            json!({ "event": "run.started", "run": id, "script": long, "clientName": long, "at": long }),
            json!({ "event": "approval.asked", "run": id, "call": 1, "server": long, "tool": long, "reason": long }),
            json!({ "event": "run.ended", "run": id, "code": long }),
        ];
        let runs = read(lines);
        assert_eq!(runs.latest().count(), 1);
        let run = runs.get(id).unwrap();
        let (call, ended) = (&run.calls[0], run.ended.as_ref().unwrap());
        let reason = &call.waits.as_ref().unwrap().1;
        let code = ended.code.as_ref().unwrap();
        for text in
            [&run.script, &run.client, &run.started, &call.drawn.server, &call.drawn.tool, reason, code]
        {
            assert_eq!(text.len(), MAX_TEXT);
        }
    }
}
