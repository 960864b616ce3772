//! What a script reports while it runs on another machine, and what stops it there. With a real `nats-server`;
//! `support/nats.rs` says how to leave these tests out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{CancellationToken, ErrorCode, Executor, Isolation, Limits, NatsWorkers, RemoteWorkers, Script};
use serde_json::json;

use crate::support::nats::NatsServer;
use crate::support::serve::Start;
use crate::support::serve_http::{Server, TOKEN};
use crate::support::write_secret;

/// Cancels the run at the second of the two reports of its script.
fn hear(told: &AtomicUsize, cancel: &CancellationToken) {
    if told.fetch_add(1, Ordering::SeqCst) == 1 {
        cancel.cancel();
    }
}

/// Each script prints a line, reports progress, and waits: the reports must come meanwhile, or the run times out.
async fn tells_and_is_cancelled(isolation: Isolation) {
    let long = Duration::from_secs(100);
    let executor = Executor::builder()
        .isolation(isolation)
        .warm_instances(1)
        .limits(Limits { wall_time: long, cpu_time: long, ..Limits::default() })
        .build()
        .unwrap();
    for script in [
        Script::typescript(
            "progress(1, 2, 'half'); console.log('begun');
             await new Promise((done) => setTimeout(done, 600_000))",
        ),
        Script::python("import asyncio\nprogress(1, 2, 'half')\nprint('begun')\nawait asyncio.sleep(600)"),
    ] {
        let (told, cancel) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let (of_reports, of_output) = (Arc::clone(&told), Arc::clone(&told));
        let (after_report, after_output) = (cancel.clone(), cancel.clone());
        let script = script
            .on_report(move |report| {
                assert_eq!((report.progress, report.total), (1.0, Some(2.0)));
                hear(&of_reports, &after_report);
            })
            .on_output(move |_entry| hear(&of_output, &after_output))
            .cancel_with(cancel);
        let result = executor.run(script).await.unwrap();
        assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Cancelled), "{result:?}");
        assert_eq!((result.printed().as_str(), told.load(Ordering::SeqCst)), ("begun", 2));
        // The slot that it had there is free again.
        assert_eq!(executor.run_ts("return 1").await.unwrap().value(), Some(&json!(1)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_and_progress_come_over_nats_while_a_script_runs() {
    let Some(server) = NatsServer::start() else { return };
    let _worker = server.worker(1);
    let mut workers = NatsWorkers::new(server.url(), server.key());
    workers.program = Some(env!("CARGO_BIN_EXE_cx").into());
    tells_and_is_cancelled(Isolation::Nats(workers)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_and_progress_come_from_another_machine_while_a_script_runs() {
    let lender = Start::new().variable("CX_HTTP_TOKEN", TOKEN).arguments(&["--compute", "8"]);
    let server = Server::start(lender);
    let token = server.directory().join("token-of-the-lender");
    write_secret(&token, TOKEN);
    let mut workers = RemoteWorkers::new(format!("http://{}", server.address));
    workers.token_file = Some(token);
    workers.program = Some(env!("CARGO_BIN_EXE_cx").into());
    tells_and_is_cancelled(Isolation::Remote(workers)).await;
}
