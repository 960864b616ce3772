//! The calls of a server in the metrics.

use std::sync::Arc;
use std::time::Instant;

use metrics::{Key, Label, Level, Metadata};

use crate::tools::ToolErrorCode;

/// The outcome of a call without an error, in the metrics.
pub(crate) const OUTCOME_OK: &str = "ok";

/// Where the metrics of calls are counted, for recorders that filter by it.
static PLACE: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The key of a server's metric.
fn server_key(name: &'static str, server: &Arc<str>) -> Key {
    Key::from_parts(name, vec![Label::new("server", Arc::clone(server))])
}

/// The keys of the metrics of one server's calls. They are made once, because to make one takes as long as to
/// count. Not the handles: those of before there is a recorder would count nothing for ever.
pub(crate) struct CallKeys {
    server: Arc<str>,
    duration: Key,
    succeeded: Key,
}

impl CallKeys {
    pub(crate) fn new(server: &Arc<str>) -> Self {
        Self {
            server: Arc::clone(server),
            duration: server_key("cx_tool_call_duration_seconds", server),
            succeeded: Self::calls(server, OUTCOME_OK),
        }
    }

    /// The key of the number of calls with this outcome.
    fn calls(server: &Arc<str>, outcome: &'static str) -> Key {
        let labels = vec![Label::new("server", Arc::clone(server)), Label::new("outcome", outcome)];
        Key::from_parts("cx_tool_calls_total", labels)
    }
}

/// A call in the metrics. It is counted when this is dropped.
pub(crate) struct CountedCall<'a> {
    keys: &'a CallKeys,
    /// When it passed the limiter; `None` if it did not.
    pub(crate) began: Option<Instant>,
    pub(crate) outcome: &'static str,
}

impl<'a> CountedCall<'a> {
    pub(crate) fn new(keys: &'a CallKeys) -> Self {
        // A call that is dropped before it ends was cancelled.
        Self { keys, began: None, outcome: ToolErrorCode::Cancelled.as_str() }
    }
}

impl Drop for CountedCall<'_> {
    fn drop(&mut self) {
        let CallKeys { server, duration, succeeded } = self.keys;
        let failed = (self.outcome != OUTCOME_OK).then(|| CallKeys::calls(server, self.outcome));
        metrics::with_recorder(|recorder| {
            if let Some(began) = self.began {
                recorder.register_histogram(duration, &PLACE).record(began.elapsed());
            }
            recorder.register_counter(failed.as_ref().unwrap_or(succeeded), &PLACE).increment(1);
        });
    }
}

/// The key of a gauge that counts something of a server, made once.
pub(crate) struct GaugeKey(Key);

impl GaugeKey {
    pub(crate) fn new(name: &'static str, server: &Arc<str>) -> Self {
        Self(server_key(name, server))
    }

    /// Counts one more, until the returned value is dropped.
    pub(crate) fn count(&self) -> Counted {
        let gauge = metrics::with_recorder(|recorder| recorder.register_gauge(&self.0, &PLACE));
        gauge.increment(1);
        Counted(gauge)
    }
}

/// One more of what a gauge counts for a server, until it is dropped.
pub(crate) struct Counted(metrics::Gauge);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

#[cfg(test)]
mod tests {
    use metrics::{Counter, Gauge, Histogram, KeyName, Recorder, SharedString, Unit};
    use parking_lot::Mutex;

    use super::*;

    /// Writes down which metrics are counted.
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Heard {
        fn note(&self, key: &Key) {
            let labels: Vec<String> =
                key.labels().map(|label| format!(" {}={}", label.key(), label.value())).collect();
            self.0.lock().push(format!("{}{}", key.name(), labels.concat()));
        }
    }

    impl Recorder for Heard {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            self.note(key);
            Counter::noop()
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            self.note(key);
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            self.note(key);
            Histogram::noop()
        }
    }

    #[test]
    fn calls_are_counted_by_a_recorder_that_is_there_later() {
        let server: Arc<str> = "s".into();
        let (keys, waiting) = (CallKeys::new(&server), GaugeKey::new("pool_queue_depth", &server));
        let heard = Heard::default();
        metrics::with_local_recorder(&heard, || {
            let mut call = CountedCall::new(&keys);
            call.began = Some(Instant::now());
            call.outcome = OUTCOME_OK;
            drop(call);
            // Dropped while it waits for its slot.
            drop(CountedCall::new(&keys));
            drop(waiting.count());
        });
        assert_eq!(
            *heard.0.lock(),
            [
                "cx_tool_call_duration_seconds server=s",
                "cx_tool_calls_total server=s outcome=ok",
                "cx_tool_calls_total server=s outcome=CANCELLED",
                "pool_queue_depth server=s",
            ]
        );
    }
}
