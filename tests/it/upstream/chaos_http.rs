//! Servers behind an address that go wrong: THREATS UP 221 to 223 and 225.

use std::time::Duration;

use cx::{HttpKind, McpServer, McpTransport};
use serde_json::json;

use crate::support::chaos::{CALL_TIME, CONNECT_TIME, Stage, measured_http};
use crate::support::stopwatch::LATE;

/// When a call has an answer or an error: at its timeout, whatever the server does.
fn deadline() -> Duration {
    CALL_TIME + LATE
}

/// A header that must reach nobody but the server.
const SECRET: &str = "Bearer chaos-secret";

fn with_secret(server: McpServer) -> McpServer {
    server.header("Authorization", SECRET)
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
async fn both_eras_are_spoken_over_http() {
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
    for mode in ["401", "403", "408", "409", "500", "502", "503", "204"] {
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed_with_one_of(&["UPSTREAM_UNAVAILABLE", "UPSTREAM_PROTOCOL", "RATE_LIMITED"]);
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        let posts = stage.noted("request POST /mcp tools/call target");
        assert_eq!(posts, 1, "{mode}: a call is not repeated: {}", stage.notes());
        stage.close().await;
    }
}

#[tokio::test]
async fn up_221_too_many_requests_says_when_to_come_back() {
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
            // What was answered with 404 has not been executed, so either is right.
            let called = stage.target().await;
            assert!(called.code.is_empty() || called.code == "UPSTREAM_UNAVAILABLE", "{called:?}");
            stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        })
        .await;
    assert!(stage.noted("executed target") <= 1);
    assert_eq!(stage.noted("initialize"), 2);
    stage.close().await;
}

#[tokio::test]
async fn up_221_no_credentials_for_another_origin() {
    for mode in ["redirect-301", "redirect-302", "redirect-307"] {
        for at in ["call", "all"] {
            let stage = Stage::http_with(&["http", mode, "--at", at], with_secret);
            stage
                .beside(async {
                    let called = stage.target().await;
                    called.failed_with_one_of(&["UPSTREAM_UNAVAILABLE", "UPSTREAM_PROTOCOL"]);
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
            called.failed_with_one_of(&["UPSTREAM_UNAVAILABLE", "UPSTREAM_PROTOCOL"]);
        })
        .await;
    assert_eq!(stage.noted("elsewhere"), 0, "{}", stage.notes());
    stage.close().await;
}

#[tokio::test]
async fn up_222_bodies_that_are_no_answers() {
    for (mode, variant) in [
        ("wrong-content-type", ""),
        ("html-error", ""),
        ("html-error", "502"),
        ("truncated-chunked", ""),
        ("endless-body", ""),
        ("slow-loris", ""),
        ("gzip-bomb", ""),
    ] {
        let stage = Stage::http(&["http", mode, variant]);
        stage
            .beside(async {
                let called = stage.target().await;
                called
                    .failed_with_one_of(&[
                        "UPSTREAM_PROTOCOL",
                        "UPSTREAM_UNAVAILABLE",
                        "RESULT_TOO_LARGE",
                        "TOOL_TIMEOUT",
                    ])
                    .within(deadline());
                assert!(called.message.len() < 4_096, "{mode}: a page is no message");
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        assert_eq!(stage.noted("executed target"), 1, "{mode}: {}", stage.notes());
        stage.close().await;
    }
}

/// Each of them sends gigabytes; the longest message is 34 MB.
#[test]
fn up_222_floods_over_http_take_little_memory() {
    for mode in ["endless-body", "gzip-bomb", "sse-comment-flood"] {
        let measured = measured_http(&["http", mode], "tools.faulty.target({})");
        assert!(measured.peak_megabytes < 250 && measured.seen != "well", "{mode}: {measured:?}");
    }
}

#[tokio::test]
async fn up_223_streams_that_go_wrong() {
    for mode in
        ["sse-cut", "sse-no-end", "sse-huge-event", "sse-comment-flood", "sse-retry-0", "sse-retry-huge"]
    {
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                called
                    .failed_with_one_of(&[
                        "UPSTREAM_PROTOCOL",
                        "UPSTREAM_UNAVAILABLE",
                        "RESULT_TOO_LARGE",
                        "TOOL_TIMEOUT",
                    ])
                    .within(deadline());
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
            let called = stage.target().await;
            assert!(
                called.value == "well" || called.code == "UPSTREAM_UNAVAILABLE",
                "the answer or the news that it is lost: {called:?}"
            );
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
    for mode in ["sse-cut", "no-endpoint"] {
        let stage = Stage::http(&["sse", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                called.failed_with_one_of(&["UPSTREAM_UNAVAILABLE", "UPSTREAM_PROTOCOL", "TOOL_TIMEOUT"]);
                called.within(CONNECT_TIME + deadline());
            })
            .await;
        assert!(stage.noted("executed target") <= 1, "{mode}");
        stage.close().await;
    }
}

#[tokio::test]
async fn up_224_nobody_listens() {
    // Bound and closed again, so that the port is free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
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
async fn up_225_session_names_that_are_none() {
    for mode in ["session-crlf", "session-1mb", "session-changing"] {
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                assert!(
                    called.value == "well"
                        || ["UPSTREAM_PROTOCOL", "UPSTREAM_UNAVAILABLE"].contains(&&*called.code),
                    "{mode}: {called:?}"
                );
                called.within(CONNECT_TIME + deadline());
            })
            .await;
        assert!(stage.noted("executed target") <= 1, "{mode}: {}", stage.notes());
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
        let stage = Stage::http(&["http", mode]);
        stage
            .beside(async {
                let called = stage.target().await;
                assert_eq!(called.code, code, "{mode}: {called:?}");
                called.within(deadline());
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        stage.close().await;
    }
}

#[tokio::test]
async fn up_207_silence_over_http() {
    let stage = Stage::http(&["http", "silent"]);
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
    for mode in ["flood-pings", "flood-sampling-requests", "flood-notifications", "flood-list-changed"] {
        let stage = Stage::http_with(&["http", mode], |server| server.call_timeout(Duration::from_secs(10)));
        stage
            .beside(async {
                stage.call("tools.faulty.echo({})").await;
                let called = stage.call("tools.faulty.target({ count: 5_000 })").await;
                assert!(
                    called.code.is_empty()
                        || ["UPSTREAM_UNAVAILABLE", "UPSTREAM_PROTOCOL"].contains(&&*called.code),
                    "{mode}: {called:?}"
                );
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        // Neither one list for each announcement nor one answer for each question.
        assert!(stage.noted("list") <= 10, "{mode}: {} lists", stage.noted("list"));
        assert!(stage.noted("answered") <= 5_000, "{mode}: {} answers", stage.noted("answered"));
        stage.close().await;
    }
}
