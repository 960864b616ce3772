//! Servers at an address that fail: docs/threats.md, UP 221 to 223 and 225.

use std::time::Duration;

use cx::{HttpKind, McpServer, McpTransport};
use serde_json::json;

use crate::support::chaos::{CALL_TIME, CONNECT_TIME, Stage, impatient, measured_http};
use crate::support::stopwatch::LATE;

/// The time after which a call has an answer or an error: its timeout, whatever the server does.
fn deadline() -> Duration {
    CALL_TIME + LATE
}

/// A header that must reach only the server.
const SECRET: &str = "Bearer chaos-secret";

fn with_secret(server: McpServer) -> McpServer {
    server.header("Authorization", SECRET)
}

/// The server of a call that ends with `code`. Only a call that gets no answer has little time: an endless answer is
/// read until it is too large, however long that takes on a busy machine.
fn until(server: McpServer, code: &str) -> McpServer {
    if code == "TOOL_TIMEOUT" { impatient(server) } else { server }
}

#[tokio::test]
async fn streamable_http_works() {
    let stage = Stage::http(&["http", "well"]);
    stage
        .beside(async {
            stage.target().await.returned("well");
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            stage.call("tools.faulty.progress({ steps: 3 })").await.returned("done");
            stage.call("tools.faulty.fail({})").await.failed("TOOL_ERROR", &["it did not work"]);
            assert_eq!(
                stage.value("return (await tools.faulty.big({ bytes: 1e6 })).length").await,
                1_000_000
            );
        })
        .await;
    assert_eq!(stage.noted("initialize"), 1);
    stage.close().await;
}

#[tokio::test]
async fn both_kinds_of_revisions_work_over_http() {
    for mode in ["legacy-only", "modern-only", "sse-answers"] {
        let stage = Stage::http(&["http", mode]);
        stage.beside(stage.target()).await.returned("well");
        assert_eq!(stage.noted("executed target"), 1, "{mode}");
        stage.close().await;
    }
}

#[tokio::test]
async fn the_transport_of_2024_works_when_asked_for_and_when_detected() {
    for kind in [HttpKind::Sse, HttpKind::Detect] {
        let stage = Stage::http_with(&["sse", "well"], |mut server| {
            if let McpTransport::Http(http) = &mut server.transport {
                http.kind = kind;
            }
            server
        });
        stage
            .beside(async {
                stage.target().await.returned("well");
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        assert_eq!(stage.noted("executed target"), 1);
        stage.close().await;
    }
}

#[tokio::test]
async fn up_221_statuses_that_refuse_everything() {
    for (mode, parts) in [
        ("401", &["cx auth login faulty"][..]),
        ("401-with-metadata", &["cx auth login faulty"]),
        ("403", &["403"]),
        ("405", &["405"]),
        ("500", &["500"]),
        ("503", &["503"]),
    ] {
        let stage = Stage::http(&["http", mode, "--at", "all"]);
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed("UPSTREAM_UNAVAILABLE", parts);
            })
            .await;
        assert_eq!(stage.noted("executed"), 0, "{mode}");
        assert!(stage.noted("request") <= 12, "{mode} is no reason to go on and on: {}", stage.notes());
        stage.close().await;
    }
}

#[tokio::test]
async fn up_221_statuses_of_a_call() {
    for (mode, code, part) in [
        ("401", "UPSTREAM_UNAVAILABLE", "401 Unauthorized"),
        ("403", "UPSTREAM_UNAVAILABLE", "403 Forbidden"),
        ("408", "UPSTREAM_UNAVAILABLE", "408 Request Timeout"),
        ("409", "UPSTREAM_UNAVAILABLE", "409 Conflict"),
        ("500", "UPSTREAM_UNAVAILABLE", "500 Internal Server Error"),
        ("502", "UPSTREAM_UNAVAILABLE", "502 Bad Gateway"),
        ("503", "UPSTREAM_UNAVAILABLE", "503 Service Unavailable"),
        ("204", "UPSTREAM_PROTOCOL", "204 No Content"),
    ] {
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed(code, &[part]);
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        let posts = stage.noted("request POST /mcp tools/call target");
        assert_eq!(posts, 1, "{mode}: a call is not repeated: {}", stage.notes());
        stage.close().await;
    }
}

#[tokio::test]
async fn up_221_too_many_requests_says_when_to_retry() {
    for (variant, range) in [
        ("2", 1_000..=2_000),
        ("huge", 1..=60_000),
        ("date", 1..=60_000),
        ("negative", 0..=60_000),
        ("nonsense", 0..=60_000),
    ] {
        let stage = Stage::http(&["http", "429", variant]);
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed("RATE_LIMITED", &[]);
                let retry_after = called.retry_after_ms.unwrap_or(0);
                assert!(range.contains(&retry_after), "{variant}: {called:?}");
            })
            .await;
        assert_eq!(stage.noted("request POST /mcp tools/call target"), 1, "{variant}");
        stage.close().await;
    }
}

#[tokio::test]
async fn up_221_a_session_that_is_gone_is_begun_again() {
    let stage = Stage::http(&["http", "404-session"]);
    stage
        .beside(async {
            stage.target().await.failed("UPSTREAM_UNAVAILABLE", &["ended the session"]);
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        })
        .await;
    assert_eq!(stage.noted("executed target"), 0);
    assert_eq!(stage.noted("initialize"), 2);
    stage.close().await;
}

/// Threat 700. Each call of a session that has ended gets the same error, and the error is true.
#[tokio::test]
async fn v_700_calls_of_an_ended_session_are_told_the_truth() {
    for _ in 0..5 {
        let stage = Stage::http(&["http", "404-session"]);
        let source = "const call = () => call_tool('faulty', 'target', {});
            await tools.faulty.echo({});
            const all = await Promise.all(Array.from({ length: 30 }, call));
            return all.map((answer) => answer.ok ? 'well' : answer.error.message)";
        let answers = stage.value(source).await;
        let answers: Vec<&str> =
            answers.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        let told = "server `faulty` has ended the session; the call did not run";
        assert!(answers.iter().all(|answer| ["well", told].contains(answer)), "{answers:?}");
        assert!(answers.contains(&told), "{answers:?}");
        let executed = answers.iter().filter(|answer| **answer == "well").count();
        assert_eq!(stage.noted("executed target"), executed, "{answers:?}");
        stage.close().await;
    }
}

#[tokio::test]
async fn up_221_no_credentials_for_another_origin() {
    for mode in ["redirect-301", "redirect-302", "redirect-307"] {
        for at in ["call", "all"] {
            let stage = Stage::http_with(&["http", mode, "--at", at], with_secret);
            stage
                .beside(async {
                    let called = stage.target().await;
                    called.failed("UPSTREAM_PROTOCOL", &["redirects", "not followed"]);
                })
                .await;
            assert!(!stage.notes().contains("chaos-secret"), "{mode} {at}: {}", stage.notes());
            assert_eq!(stage.noted("elsewhere POST"), 0, "{mode} {at}: {}", stage.notes());
            stage.close().await;
        }
    }
    let stage = Stage::http_with(&["sse", "endpoint-elsewhere"], with_secret);
    stage
        .beside(async {
            let called = stage.target().await;
            called.failed("UPSTREAM_UNAVAILABLE", &["no MCP endpoint"]);
        })
        .await;
    assert_eq!(stage.noted("elsewhere"), 0, "{}", stage.notes());
    stage.close().await;
}

#[tokio::test]
async fn up_222_invalid_bodies() {
    for (mode, variant, code, part) in [
        ("wrong-content-type", "", "UPSTREAM_PROTOCOL", "`text/plain`"),
        ("html-error", "", "UPSTREAM_PROTOCOL", "`text/html`"),
        ("html-error", "502", "UPSTREAM_UNAVAILABLE", "502 Bad Gateway"),
        ("truncated-chunked", "", "UPSTREAM_UNAVAILABLE", "unknown"),
        ("endless-body", "", "RESULT_TOO_LARGE", "34 MB"),
        ("slow-loris", "", "TOOL_TIMEOUT", "3000 ms"),
        ("gzip-bomb", "", "UPSTREAM_PROTOCOL", "compressed"),
    ] {
        let stage = Stage::http_with(&["http", mode, variant], |server| until(server, code));
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed(code, &[part]);
                if code == "TOOL_TIMEOUT" {
                    called.within(deadline());
                }
                assert!(called.message.len() < 4_096, "{mode}: a page is no message");
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        assert_eq!(stage.noted("executed target"), 1, "{mode}: {}", stage.notes());
        stage.close().await;
    }
}

/// Each of them sends gigabytes; the maximum length of a message is 34 MB.
#[test]
fn up_222_floods_over_http_take_little_memory() {
    for mode in ["endless-body", "gzip-bomb", "sse-comment-flood"] {
        let measured = measured_http(&["http", mode], "tools.faulty.target({})");
        assert!(measured.peak_megabytes < 250 && measured.seen != "well", "{mode}: {measured:?}");
    }
}

#[tokio::test]
async fn up_223_faulty_streams() {
    for (mode, code, part) in [
        ("sse-cut", "UPSTREAM_UNAVAILABLE", "broke off"),
        ("sse-no-end", "TOOL_TIMEOUT", "3000 ms"),
        ("sse-huge-event", "RESULT_TOO_LARGE", "one event"),
        ("sse-comment-flood", "UPSTREAM_PROTOCOL", "without an event"),
        ("sse-retry-0", "UPSTREAM_UNAVAILABLE", "broke off"),
        ("sse-retry-huge", "TOOL_TIMEOUT", "3000 ms"),
    ] {
        let stage = Stage::http_with(&["http", mode], |server| until(server, code));
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed(code, &[part]);
                if code == "TOOL_TIMEOUT" {
                    called.within(deadline());
                }
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        assert_eq!(stage.noted("executed target"), 1, "{mode}: {}", stage.notes());
        assert!(stage.noted("resumed") <= 20, "{mode}: {} reconnections", stage.noted("resumed"));
        stage.close().await;
    }
}

#[tokio::test]
async fn up_223_a_stream_that_is_cut_may_be_taken_up_again() {
    let stage = Stage::http(&["http", "sse-cut", "resumes"]);
    stage
        .beside(async {
            stage.target().await.returned("well");
        })
        .await;
    assert_eq!(stage.noted("executed target"), 1);
    stage.close().await;
}

#[tokio::test]
async fn up_223_events_twice() {
    let stage = Stage::http(&["http", "sse-duplicate-ids"]);
    stage
        .beside(async {
            stage.target().await.returned("well");
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn up_223_the_old_transport_when_its_stream_goes_wrong() {
    for (mode, part, executed) in [("sse-cut", "unknown", 1), ("no-endpoint", "did not answer", 0)] {
        let stage = Stage::http_with(&["sse", mode], |server| {
            if executed == 0 { server.connect_timeout(CONNECT_TIME) } else { server }
        });
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed("UPSTREAM_UNAVAILABLE", &[part]);
                if executed == 0 {
                    called.within(CONNECT_TIME + deadline());
                }
            })
            .await;
        assert_eq!(stage.noted("executed target"), executed, "{mode}");
        stage.close().await;
    }
}

#[tokio::test]
async fn up_224_no_listener() {
    let (_unheard, address) = crate::support::unheard_address();
    let url = format!("http://{address}/mcp");
    let stage = Stage::stdio_with(&[], |_| McpServer::http("faulty", url.parse().unwrap()));
    stage
        .beside(async {
            let called = stage.target().await;
            called.failed("UPSTREAM_UNAVAILABLE", &[]);
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn up_225_invalid_session_ids() {
    for (mode, refusal) in [
        ("session-crlf", Some("invalid HTTP header")),
        ("session-1mb", Some("head is too large")),
        ("session-changing", None),
    ] {
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                match refusal {
                    Some(part) => called.failed("UPSTREAM_UNAVAILABLE", &[part]),
                    None => called.returned("well"),
                };
            })
            .await;
        assert_eq!(
            stage.noted("executed target"),
            usize::from(refusal.is_none()),
            "{mode}: {}",
            stage.notes()
        );
        stage.close().await;
    }
}

#[tokio::test]
async fn faults_of_the_protocol_are_the_same_over_http() {
    for (mode, code) in [
        ("wrong-types", "UPSTREAM_PROTOCOL"),
        ("hang-call", "TOOL_TIMEOUT"),
        ("string-id", ""),
        ("wrong-id", ""),
    ] {
        let stage = Stage::http_with(&["http", mode], |server| until(server, code));
        stage
            .beside(async {
                let called = stage.target().await;
                assert_eq!(called.code, code, "{mode}: {called:?}");
                if code == "TOOL_TIMEOUT" {
                    called.within(deadline());
                }
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        stage.close().await;
    }
}

#[tokio::test]
async fn up_207_silence_over_http() {
    let stage = Stage::http_with(&["http", "silent"], |server| server.connect_timeout(CONNECT_TIME));
    stage
        .beside(async {
            let called = stage.target().await;
            called.failed("UPSTREAM_UNAVAILABLE", &["faulty"]).within(CONNECT_TIME + deadline());
        })
        .await;
    stage.close().await;
}

#[tokio::test]
async fn up_209_a_server_that_is_gone_in_a_call() {
    for mode in ["dies-in-call", "dies-after-executing"] {
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed("UPSTREAM_UNAVAILABLE", &["unknown"]);
                let called = stage.call("tools.faulty.echo({})").await;
                called.failed("UPSTREAM_UNAVAILABLE", &[]);
            })
            .await;
        assert_eq!(stage.noted("executed target"), 1, "{mode}: {}", stage.notes());
        stage.close().await;
    }
}

#[tokio::test]
async fn up_217_floods_over_http() {
    for (mode, is_too_much) in [
        ("flood-pings", true),
        ("flood-sampling-requests", true),
        ("flood-notifications", false),
        ("flood-list-changed", false),
    ] {
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                stage.call("tools.faulty.echo({})").await;
                let called = stage.call("tools.faulty.target({ count: 5_000 })").await;
                if is_too_much {
                    called.failed("UPSTREAM_UNAVAILABLE", &["asked too much at once"]);
                } else {
                    called.returned("well");
                }
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        // The list is not requested for each announcement, and not each question is answered.
        assert!(stage.noted("list") <= 10, "{mode}: {} lists", stage.noted("list"));
        assert!(stage.noted("answered") <= 5_000, "{mode}: {} answers", stage.noted("answered"));
        stage.close().await;
    }
}
