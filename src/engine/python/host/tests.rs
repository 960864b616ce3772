use super::*;
use crate::run::context::{ExecutionContext, RunEnvironment};
use crate::run::limits::Limits;
use crate::run::script::Script;
use crate::run::tape::Tape;

/// A host with a run, for which timers are calls of the host.
fn host() -> Host {
    let tape = Some(Tape::recording([1; 32]));
    let runtime = tokio::runtime::Handle::current();
    let environment = RunEnvironment { tape, ..RunEnvironment::empty(Limits::default(), runtime) };
    let context = Arc::new(ExecutionContext::new(Script::python("source"), environment));
    let (mut host, _sink) = Host::new();
    host.start(&(context as Arc<dyn RunHost>), None);
    host
}

/// A query of `bytes` bytes, whose answer takes an hour.
fn query(bytes: usize) -> String {
    let query = r#"{"kind":"timer","delay":3600000}"#;
    format!("{query}{}", " ".repeat(bytes - query.len()))
}

/// Begins a call, and returns its answer if it has one at once.
fn begin(run: &mut Run, operation: Operation, server: &str, arguments: String) -> Option<String> {
    run.begin(operation, server.to_owned(), String::new(), arguments).1
}

#[tokio::test]
async fn v_476_queries_in_flight_are_bounded_together() {
    let mut host = host();
    let run = host.run().unwrap();
    let part = MAX_QUERY_BYTES / 4;
    for _ in 0..4 {
        assert_eq!(begin(run, Operation::Query, "", query(part)), None);
    }
    let refused = begin(run, Operation::Query, "", query(100)).unwrap();
    assert!(refused.contains("QUEUE_FULL"), "{refused}");
    assert_eq!((run.calls.len(), run.held_bytes), (4, MAX_QUERY_BYTES));
}

/// One query may be as long as the interpreter's memory allows, as long as it is alone.
#[tokio::test]
async fn v_476_a_long_query_is_the_only_one() {
    let mut host = host();
    let run = host.run().unwrap();
    assert_eq!(begin(run, Operation::Query, "", query(MAX_QUERY_BYTES + 1)), None);
    let refused = begin(run, Operation::Query, "", query(100)).unwrap();
    assert!(refused.contains("QUEUE_FULL"), "{refused}");
    // Names are counted too, and have a bound of their own.
    for operation in [Operation::Tool, Operation::FullName, Operation::Query] {
        let refused = begin(run, operation, "s", query(100)).unwrap();
        assert!(refused.contains("QUEUE_FULL"), "{refused}");
        let refused = begin(run, operation, &"s".repeat(MAX_NAME + 1), query(100)).unwrap();
        assert!(refused.contains("INVALID_ARGUMENTS"), "{refused}");
    }
    assert_eq!(run.held_bytes, MAX_QUERY_BYTES + 1);
}

/// An error of serde quotes what it does not know.
#[tokio::test]
async fn v_763_a_query_that_cannot_be_read_is_not_quoted_as_a_whole() {
    let environment = RunEnvironment::empty(Limits::default(), tokio::runtime::Handle::current());
    let context = Arc::new(ExecutionContext::new(Script::python("source"), environment));
    let unknown = format!(r#"{{"kind":"{}"}}"#, "a".repeat(1 << 20));
    let error = RunHost::query(context, &unknown).await.unwrap_err();
    assert!(error.message.starts_with("unknown variant `aaa"), "{error:?}");
    assert!(error.message.len() < 2_000, "{}", error.message.len());
}
