//! Changes of its tools that a server announces, over streams that break.

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::*;
use crate::mcp::McpServers;
use crate::mcp::http::client::HttpClient;
use crate::mcp::http::connection::HttpConnection;
use crate::mcp::http::events::Events;
use crate::tools::ToolDispatcher as _;

/// Threat 821. The server, or a proxy before it, ends the stream of a subscription.
#[tokio::test]
async fn v_821_a_subscription_that_was_ended_is_made_again() {
    let (subscribed, listed) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let fake = Fake::start(move |asked, mut stream| {
        let (subscribed, listed) = (Arc::clone(&subscribed), Arc::clone(&listed));
        async move {
            let id = &asked.body["id"];
            let result = match asked.body["method"].as_str() {
                Some("server/discover") => json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "new", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
                }),
                Some("subscriptions/listen") => {
                    let accepted = &asked.body["params"]["notifications"];
                    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
                    let acknowledged = json!({
                        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                        "params": { "notifications": accepted, "_meta": meta },
                    });
                    begin_events(&mut stream).await;
                    let _gone = stream.write_all(format!("data: {acknowledged}\n\n").as_bytes()).await;
                    if subscribed.fetch_add(1, Ordering::Relaxed) == 0 {
                        // The change comes when nobody is subscribed.
                        listed.notified().await;
                    } else {
                        std::future::pending::<()>().await;
                    }
                    return;
                }
                _ => {
                    listed.notify_one();
                    let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
                    json!({ "resultType": "complete", "tools": [tool] })
                }
            };
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            json_body(&mut stream, &answer.to_string()).await;
        }
    })
    .await;
    let server = McpServer::http("s", fake.url.clone());
    let servers = McpServers::new(vec![server], None, &Handle::current());
    let list = || servers.tools("s", std::time::Instant::now() + WATCHDOG);
    assert_eq!(list().await.unwrap().tools.len(), 1);
    timeout(WATCHDOG, async {
        while servers.known_tools("s").is_some() {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the list counts as changed once there is a subscription again");
    assert_eq!(list().await.unwrap().tools.len(), 1);
    let methods = fake.methods();
    let count = |name: &str| methods.iter().filter(|method| *method == name).count();
    assert_eq!((count("subscriptions/listen"), count("tools/list")), (2, 2), "{methods:?}");
}

/// Threat 822. The server ends its own stream, and is not there when the client opens it again.
#[tokio::test]
async fn v_822_a_stream_that_cannot_be_reopened_at_once_is_reopened_later() {
    let opened = Arc::new(AtomicUsize::new(0));
    let fake = Fake::start(move |asked, mut stream| {
        let opened = Arc::clone(&opened);
        async move {
            match (asked.method.as_str(), asked.body["method"].as_str()) {
                (_, Some("initialize")) => json_body(&mut stream, &initialized(&asked)).await,
                ("GET", _) => match opened.fetch_add(1, Ordering::Relaxed) {
                    0 => begin_events(&mut stream).await,
                    1 => respond(&mut stream, "503 Service Unavailable", "", "").await,
                    _ => {
                        begin_events(&mut stream).await;
                        std::future::pending::<()>().await;
                    }
                },
                _ => respond(&mut stream, "202 Accepted", "", "").await,
            }
        }
    })
    .await;
    let (_running, state) = connected(&fake.url).await;
    // A change may have been announced meanwhile.
    wait_for_change(&state).await;
    assert_eq!(fake.methods().iter().filter(|method| *method == "GET").count(), 3);
    assert_eq!(state.notifications.tool_changes(), 1);
}

/// Threat 853. All of it is there at once, as from a server that sends faster than it is read.
#[tokio::test]
async fn v_853_a_flood_of_events_leaves_turns_to_other_tasks() {
    const COUNT: usize = 10_000;
    let change = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let flood = format!("data: {change}\n\n").repeat(COUNT);
    let mut events = Events::new(reqwest::Response::from(http::Response::new(flood)));
    let server = McpServer::http("s", Url::parse("http://127.0.0.1:1/").unwrap());
    let McpTransport::Http(config) = &server.transport else { unreachable!() };
    let client = HttpClient::new(Arc::from("s"), config, None, DEADLINES.connect).unwrap();
    let state = Arc::new(HttpState::new(Notifications::default()));
    let (connection, _incoming) =
        HttpConnection::new(client, config, Arc::default(), Arc::clone(&state), DEADLINES);
    let reading = connection.read_events(&mut events, None).now_or_never();
    assert!(reading.is_none(), "all of it is read in one turn");
    timeout(WATCHDOG, connection.read_events(&mut events, None)).await.unwrap().unwrap();
    assert_eq!(state.notifications.tool_changes(), COUNT as u64);
}
