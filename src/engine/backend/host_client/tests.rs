use super::*;
use crate::run::context::{ExecutionContext, RunEnvironment};
use crate::run::limits::Limits;
use crate::run::script::Script;

fn client() -> HostClient {
    let environment = RunEnvironment::empty(Limits::default(), tokio::runtime::Handle::current());
    let context = Arc::new(ExecutionContext::new(Script::typescript("source"), environment));
    HostClient::new(context as Arc<dyn RunHost>)
}

fn code(result: Result<Permit, ToolError>) -> Option<ToolErrorCode> {
    result.err().map(|error| error.code)
}

#[tokio::test]
async fn v_567_as_many_calls_are_in_flight_as_in_other_engines() {
    let client = client();
    let mut permits: Vec<Permit> = (0..MAX_CALLS).map(|_| client.begin(1).unwrap()).collect();
    assert_eq!(code(client.begin(1)), Some(ToolErrorCode::QueueFull));
    // Those of a clone are of the same run.
    assert_eq!(code(client.clone().begin(0)), Some(ToolErrorCode::QueueFull));
    permits.pop();
    assert_eq!(code(client.begin(1)), None);
}

#[tokio::test]
async fn v_567_queries_in_flight_are_bounded_together() {
    let client = client();
    let half = client.begin(MAX_QUERY_BYTES / 2).unwrap();
    let other = client.begin(MAX_QUERY_BYTES / 2).unwrap();
    assert_eq!(code(client.begin(1)), Some(ToolErrorCode::QueueFull));
    drop(half);
    assert_eq!(code(client.begin(1)), None);
    drop(other);
    assert_eq!(code(client.begin(MAX_QUERY_BYTES)), None);
    // It would never fit, however long it waits.
    assert_eq!(code(client.begin(MAX_QUERY_BYTES + 1)), Some(ToolErrorCode::InvalidArguments));
}

#[tokio::test]
async fn a_query_that_is_dropped_is_in_flight_no_more() {
    let client = client();
    drop(client.ask(&Query::Servers));
    assert_eq!(client.ask(&Query::Servers).await.unwrap(), "[]");
    assert_eq!(client.in_flight.lock().calls, 0);
}

#[tokio::test]
async fn an_answer_of_another_form_is_an_error() {
    let wrong = client().read::<u32>(&Query::Servers).await.unwrap_err();
    assert_eq!(wrong.code, ToolErrorCode::UpstreamProtocol);
}
