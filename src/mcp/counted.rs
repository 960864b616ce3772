//! The calls of a server, and the requests to it, in the metrics.

use std::sync::Arc;
use std::time::Instant;

use metrics::{Key, Label, Level, Metadata};

use crate::conventions;
use crate::tools::ToolErrorCode;

/// The outcome of a call without an error, in the metrics.
pub(crate) const OUTCOME_OK: &str = "ok";

/// Metadata of the metrics of calls, for recorders that filter by module.
static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

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
                recorder.register_histogram(duration, &METADATA).record(began.elapsed());
            }
            recorder.register_counter(failed.as_ref().unwrap_or(succeeded), &METADATA).increment(1);
        });
    }
}

/// The methods that are counted by their names.
const METHODS: [&str; 16] = [
    "initialize",
    "server/discover",
    "subscriptions/listen",
    conventions::TOOLS_CALL,
    "tools/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "skills/list",
    "tasks/cancel",
    "tasks/get",
    "tasks/result",
    "tasks/update",
    "prompts/list",
    "prompts/get",
];

/// The keys of the metrics of requests over one connection. That of calls without an error is made once.
pub(crate) struct OperationKeys {
    transport: &'static str,
    calls: Key,
}

impl OperationKeys {
    pub(crate) fn new(transport: &'static str) -> Self {
        Self { transport, calls: Self::key(transport, conventions::TOOLS_CALL, None) }
    }

    fn key(transport: &'static str, method: &'static str, error: Option<&'static str>) -> Key {
        let mut labels = vec![
            Label::from_static_parts(conventions::LABEL_METHOD, method),
            Label::from_static_parts(conventions::LABEL_TRANSPORT, transport),
        ];
        labels.extend(error.map(|error| Label::from_static_parts(conventions::LABEL_ERROR, error)));
        Key::from_parts(conventions::CLIENT_OPERATION, labels)
    }
}

/// A request in the metrics. It is counted when this is dropped.
pub(crate) struct CountedOperation<'a> {
    keys: &'a OperationKeys,
    method: &'static str,
    began: Instant,
    pub(crate) error: Option<&'static str>,
}

impl<'a> CountedOperation<'a> {
    /// A request that is sent now.
    pub(crate) fn new(keys: &'a OperationKeys, method: &str) -> Self {
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER");
        // A request that is dropped before it is answered was cancelled.
        Self { keys, method, began: Instant::now(), error: Some("cancelled") }
    }

    /// Whether it is a call of a tool.
    pub(crate) fn is_call(&self) -> bool {
        self.method == conventions::TOOLS_CALL
    }
}

impl Drop for CountedOperation<'_> {
    fn drop(&mut self) {
        let OperationKeys { transport, calls } = self.keys;
        let is_usual = self.error.is_none() && self.method == conventions::TOOLS_CALL;
        let other = (!is_usual).then(|| OperationKeys::key(transport, self.method, self.error));
        metrics::with_recorder(|recorder| {
            let key = other.as_ref().unwrap_or(calls);
            recorder.register_histogram(key, &METADATA).record(self.began.elapsed());
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
        let gauge = metrics::with_recorder(|recorder| recorder.register_gauge(&self.0, &METADATA));
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
    fn calls_and_requests_are_counted_by_a_recorder_that_is_there_later() {
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
            let keys = OperationKeys::new(conventions::PIPE);
            for method in ["tools/call", "tools/list"] {
                let mut operation = CountedOperation::new(&keys, method);
                operation.error = None;
            }
            // One that the server chose, and that is not answered.
            drop(CountedOperation::new(&keys, "x/y"));
        });
        let operation = |labels: &str| format!("{} {labels}", conventions::CLIENT_OPERATION);
        assert_eq!(
            *heard.0.lock(),
            [
                "cx_tool_call_duration_seconds server=s".to_owned(),
                "cx_tool_calls_total server=s outcome=ok".to_owned(),
                "cx_tool_calls_total server=s outcome=CANCELLED".to_owned(),
                "pool_queue_depth server=s".to_owned(),
                operation("mcp_method_name=tools/call network_transport=pipe"),
                operation("mcp_method_name=tools/list network_transport=pipe"),
                operation("mcp_method_name=_OTHER network_transport=pipe error_type=cancelled"),
            ]
        );
    }
}
