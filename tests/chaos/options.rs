//! The mode, and the file of notes.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Faults of any transport.
const COMMON: &[&str] = &[
    "well",
    "silent",
    "slow-start",
    "hang-list",
    "hang-call",
    "flood-notifications",
    "flood-pings",
    "flood-sampling-requests",
    "flood-list-changed",
    "endless-cursor",
    "long-cursor",
    "odd-lists",
    "giant-schema",
    "wrong-id",
    "string-id",
    "duplicate-response",
    "late-response",
    "wrong-types",
    "dies-in-call",
    "dies-after-executing",
    "rug-pull",
    "hidden-text",
    "duplicate-tools",
    "bad-names",
    "hostile-declarations",
    "odd-schemas",
    "apps",
    "legacy-only",
    "modern-only",
    "discover-ignored",
    "asks",
    "input-required",
    "elicits",
    "tasks",
];

const STDIO: &[&str] = &[
    "garbage",
    "oversize-line",
    "endless-line",
    "half-line",
    "dies-in-handshake",
    "exits-0",
    "exits-1-stderr",
    "crash-loop",
    "stderr-flood",
    "ignores-stdin",
    "ignores-sigterm",
    "grandchild",
];

const HTTP: &[&str] = &[
    "401",
    "401-with-metadata",
    "403",
    "404-session",
    "405",
    "408",
    "409",
    "429",
    "500",
    "502",
    "503",
    "204",
    "redirect-301",
    "redirect-302",
    "redirect-307",
    "wrong-content-type",
    "html-error",
    "truncated-chunked",
    "endless-body",
    "slow-loris",
    "gzip-bomb",
    "sse-answers",
    "sse-cut",
    "sse-no-end",
    "sse-huge-event",
    "sse-comment-flood",
    "sse-retry-0",
    "sse-retry-huge",
    "sse-duplicate-ids",
    "session-crlf",
    "session-1mb",
    "session-changing",
];

const SSE: &[&str] = &["sse-cut", "endpoint-elsewhere", "no-endpoint"];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

/// The arguments. Read once, never changed.
pub(crate) struct Options {
    pub(crate) transport: Transport,
    /// The one thing that goes wrong.
    pub(crate) mode: String,
    /// The kind of the fault, or its amount.
    pub(crate) variant: String,
    /// Whether an HTTP fault strikes at every request and not only in calls of `target`.
    pub(crate) at_all: bool,
    notes: Option<String>,
}

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (transport, modes) = match arguments.next().as_deref() {
            Some("stdio") => (Transport::Stdio, STDIO),
            Some("http") => (Transport::Http, HTTP),
            Some("sse") => (Transport::Sse, SSE),
            other => return Err(format!("expected `stdio`, `http` or `sse`, found {other:?}")),
        };
        let mut options =
            Self { transport, mode: String::new(), variant: String::new(), at_all: false, notes: None };
        let mut positions = Vec::new();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--notes" => options.notes = arguments.next(),
                "--at" => match arguments.next().as_deref() {
                    Some("all") => options.at_all = true,
                    Some("call") => options.at_all = false,
                    other => return Err(format!("--at: expected `all` or `call`, found {other:?}")),
                },
                _ => positions.push(argument),
            }
        }
        if positions.is_empty() || positions.len() > 2 {
            return Err(format!("expected a mode and at most a variant, found {positions:?}"));
        }
        options.variant = if positions.len() > 1 { positions.remove(1) } else { String::new() };
        options.mode = positions.remove(0);
        let mode = options.mode.as_str();
        if !COMMON.contains(&mode) && !modes.contains(&mode) {
            return Err(format!("unknown mode `{mode}`; there are: {}", [COMMON, modes].concat().join(", ")));
        }
        Ok(options)
    }

    pub(crate) fn is(&self, mode: &str) -> bool {
        self.mode == mode
    }

    /// The variant as a number.
    pub(crate) fn number(&self, default: u64) -> u64 {
        self.variant.parse().unwrap_or(default)
    }

    /// How often a server with these notes was started, this process included.
    pub(crate) fn starts(&self) -> usize {
        let notes = self.notes.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        notes.map_or(1, |notes| notes.matches("started ").count())
    }

    /// Appends a line to the notes, in one write, so that several processes may share them.
    pub(crate) fn note(&self, line: &str) {
        if let Some(path) = &self.notes {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
    }
}
