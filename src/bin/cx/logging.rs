//! Logs of the library, for diagnosis, and the form of what services write to stderr.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::env::VarError;
use std::error::Error as _;
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use std::{fmt, thread};

use cx::text::rfc3339;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::LogFormat;
use crate::stderr::{self, Logs};
use crate::terminal::has_color;
use crate::writer::{self, Stream};

/// Whether notes are written as JSON. Set once, before the first note.
static NOTES_ARE_JSON: AtomicBool = AtomicBool::new(false);

/// Logs go to stderr, and only if `CX_LOG` enables them, as in `CX_LOG=cx=debug`.
pub(crate) fn start() {
    start_in(LogFormat::Text);
}

/// As [`start`], for a service. Its notes have the same format as its logs, and both are dropped while nothing reads
/// them.
pub(crate) fn start_of_service(format: LogFormat) {
    stderr::drop_unread_lines();
    start_in(format);
    // The hook of the standard library blocks the thread that panics while nobody reads stderr.
    panic::set_hook(Box::new(|panicked| stderr::write(panic_line(panicked).as_bytes())));
}

/// A panic as a note, with the stack if `RUST_BACKTRACE` asks for it.
fn panic_line(panicked: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let mut text = format!("error: the thread `{}` {panicked}", thread.name().unwrap_or("without a name"));
    let stack = Backtrace::capture();
    if stack.status() == BacktraceStatus::Captured {
        text.push_str(&format!("\n{stack}"));
    }
    note_line(&text)
}

fn start_in(format: LogFormat) {
    NOTES_ARE_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
    let Some(filter) = filter() else { return };
    let logger = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Logs)
        // The default has colors in files and pipes too.
        .with_ansi(format == LogFormat::Text && has_color(Stream::Stderr));
    match format {
        LogFormat::Text => logger.finish().with(filter_fn(has_no_secrets)).init(),
        LogFormat::Json => logger.event_format(JsonLines).finish().with(filter_fn(has_no_secrets)).init(),
    }
}

/// The filter of logs; `None` if there is none. Warns of one that cannot be used: nothing would be logged, and nothing
/// would say why.
fn filter() -> Option<EnvFilter> {
    EnvFilter::try_from_env("CX_LOG")
        .inspect_err(|error| {
            let of_variable = error.source().and_then(|source| source.downcast_ref::<VarError>());
            if of_variable != Some(&VarError::NotPresent) {
                let said = "warning: nothing is logged, because CX_LOG has no filter such as `cx=debug`";
                // A closed stderr cannot be reported.
                let _ = writer::write(Stream::Stderr, &note_line(&format!("{said}: {error}")));
            }
        })
        .ok()
}

/// A note of the command in the format of the service, with the end of its line.
pub(crate) fn note_line(text: &str) -> String {
    if !NOTES_ARE_JSON.load(Ordering::Relaxed) {
        return format!("{text}\n");
    }
    let (level, message) = match text.split_once(": ") {
        Some(("warning", message)) => ("warn", message),
        Some(("error", message)) => ("error", message),
        _ => ("info", text),
    };
    format!("{}\n", json_line(level, "cx", message, Map::new()))
}

/// One line of JSON. A field of an event does not replace one that every line has.
fn json_line(level: &str, target: &str, message: &str, fields: Map<String, Value>) -> Value {
    let mut line = json!({
        "time": rfc3339(SystemTime::now()),
        "level": level,
        "target": target,
        "message": message,
    });
    if let Value::Object(line) = &mut line {
        for (name, value) in fields {
            line.entry(name).or_insert(value);
        }
    }
    line
}

/// Writes an event as one line of JSON.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut recorded = Recorded::default();
        event.record(&mut recorded);
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        let line = json_line(level, event.metadata().target(), &recorded.message, recorded.fields);
        writeln!(writer, "{line}")
    }
}

/// What an event has recorded.
#[derive(Default)]
struct Recorded {
    message: String,
    fields: Map<String, Value>,
}

impl Recorded {
    fn insert(&mut self, field: &Field, value: Value) {
        match value {
            Value::String(text) if field.name() == "message" => self.message = text,
            value => {
                self.fields.insert(field.name().to_owned(), value);
            }
        }
    }
}

impl Visit for Recorded {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}").into());
    }
}

/// Whether the events of this target and level have no secrets, so that `CX_LOG` may enable them.
fn has_no_secrets(metadata: &Metadata<'_>) -> bool {
    let rest = metadata.target().strip_prefix(cx::auth::LOG_TARGET_WITH_SECRETS);
    let is_secret = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    *metadata.level() <= Level::WARN || !is_secret
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_a_line_of_json_whatever_it_records() {
        let lines = Lines::default();
        let writer = lines.clone();
        let logger =
            tracing_subscriber::fmt().event_format(JsonLines).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(logger, || {
            let error = io::Error::other("a \"quoted\"\nerror");
            tracing::warn!(
                error = &error as &(dyn std::error::Error + 'static),
                share = f64::NAN,
                "two\n{}",
                "lines"
            );
            tracing::info!(message = "a message as a field", time = 7, count = 1_u64);
        });
        let written = String::from_utf8(lines.0.lock().clone()).unwrap();
        let all: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(all.len(), 2, "{written}");
        assert_eq!((&all[0]["message"], &all[0]["level"]), (&json!("two\nlines"), &json!("warn")));
        assert_eq!((&all[0]["error"], &all[0]["share"]), (&json!("a \"quoted\"\nerror"), &Value::Null));
        assert_eq!((&all[1]["message"], &all[1]["count"]), (&json!("a message as a field"), &json!(1)));
        assert!(all[1]["time"].is_string(), "{written}");
    }

    #[test]
    fn a_line_of_json_is_one_line_and_keeps_its_own_names() {
        let fields = Map::from_iter([("server".to_owned(), json!("a\nb")), ("level".to_owned(), json!(7))]);
        let line = json_line("warn", "cx::mcp", "two\nlines", fields);
        assert!(!line.to_string().contains('\n'), "{line}");
        assert_eq!(line["level"], "warn");
        assert_eq!(line["message"], "two\nlines");
        assert_eq!(line["server"], "a\nb");
    }
}
