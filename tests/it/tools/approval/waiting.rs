//! What goes on while a person is asked.

use super::*;

/// Threat 159: the deadline counts the run's own time only.
#[tokio::test]
async fn the_clock_stands_still_while_a_person_thinks() {
    let scripts =
        both("return (await notes.delete({ id: 1 })).left", "return (await notes.delete(id=1))['left']");
    // Enough for what a script does beside waiting, also on a busy machine.
    let (short, long) = (8_000, Duration::from_millis(9_000));
    let each = scripts.iter().map(|script| async move {
        let (notes, person) = (Notes::default(), Person::default());
        let executor =
            notes.builder().ask(["*"]).approver(person.saying(&Approval::Approve, long)).build().unwrap();
        let result = run(&executor, script.clone().limits(wall(short))).await;
        assert_eq!(value(&result), &json!(3));
        assert!(result.usage.approval_time >= long && result.usage.wall_time >= long, "{:?}", result.usage);
        assert!(result.to_json()["approvalTimeMs"].as_f64().unwrap() >= 9_000.0);
        // The clock goes on where it stopped.
        let script = Script::typescript(
            "await notes.delete({ id: 1 }); await new Promise((done) => setTimeout(done, 60_000))",
        );
        let result = run(&executor, script.limits(wall(short))).await;
        assert_eq!(code(&result), Some(ErrorCode::Timeout));
        assert!(result.usage.wall_time >= long + Duration::from_millis(short), "{:?}", result.usage);
    });
    futures::future::join_all(each).await;
    // Up to a bound.
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes.builder().ask(["*"]).approver(person.silent()).build().unwrap();
        executor.warm(Language::Python).await.unwrap();
        let limits = Limits { paused_time: Duration::from_millis(300), ..wall(6_000) };
        let result = executor.run(script.limits(limits)).await.unwrap();
        assert_eq!(code(&result), Some(ErrorCode::Timeout), "{}", result.to_json());
        assert!(result.usage.wall_time >= Duration::from_millis(6_300), "{:?}", result.usage);
        assert_eq!(statuses(&result), [ToolCallStatus::AwaitingApproval]);
    }
}

/// An open prompt does not stop the CPU clock.
#[tokio::test]
async fn a_script_that_computes_meanwhile_pays_for_it() {
    let scripts = both(
        "await notes.list({}); notes.delete({ id: 1 }); await new Promise((done) => setTimeout(done, 50)); for (;;);",
        "await notes.list()
call = asyncio.ensure_future(notes.delete(id=1))
await asyncio.sleep(0.05)
while True:
    pass",
    );
    for script in scripts {
        let (notes, person) = (Notes::default(), Person::default());
        let executor = notes.builder().ask(["*.delete"]).approver(person.silent()).build().unwrap();
        // A script that computes has a low priority, and a busy machine little CPU time for it.
        let limits = Limits { cpu_time: Duration::from_millis(300), ..wall(120_000) };
        let result = run(&executor, script.limits(limits)).await;
        assert_eq!(code(&result), Some(ErrorCode::CpuLimit), "{}", result.to_json());
        wait_until(|| person.open.load(Ordering::SeqCst) == 0).await;
    }
    // Nor does an approval that the script has not received keep the clock stopped.
    let (notes, person) = (Notes::default(), Person::default());
    let executor =
        notes.builder().ask(["*"]).approver(person.saying(&Approval::Approve, NOW)).build().unwrap();
    let stopwatch = Stopwatch::start();
    let result = run(
        &executor,
        Script::typescript(
            "notes.delete({ id: 1 }); await new Promise((done) => setTimeout(done, 50)); for (;;);",
        )
        .limits(wall(400)),
    )
    .await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout), "{}", result.to_json());
    stopwatch.promise_of(
        result.usage.wall_time,
        Duration::from_millis(400) + LATE,
        "the limit of the wall clock",
    );
}

/// A call in flight keeps its own time limit: its server does not know of the prompt.
#[tokio::test]
async fn calls_in_flight_go_on_meanwhile() {
    let scripts = both(
        "const calls = [tools.chaos.slow({ ms: 8500 }), notes.delete({ id: 1 }), notes.list({ ms: 8500 })];
         return (await Promise.all(calls)).length",
        "return len(await asyncio.gather(tools.chaos.slow(ms=8500), notes.delete(id=1), notes.list(ms=8500)))",
    );
    for script in scripts {
        let directory = tempfile::tempdir().unwrap();
        let (notes, person) = (Notes::default(), Person::default());
        let builder = notes.builder().ask(["notes.delete"]);
        let executor = builder
            .mcp_server(chaos::stdio("chaos", &["well"], &directory.path().join("notes")))
            .approver(person.saying(&Approval::Approve, Duration::from_millis(9_500)))
            .build()
            .unwrap();
        for (_, connected) in executor.connect_servers().await {
            connected.unwrap();
        }
        let result = run(&executor, script.limits(wall(8_000))).await;
        assert_eq!(value(&result), &json!(3), "{}", result.to_json());
        executor.close().await;
    }
}

/// Its own slot stays taken, and no other one.
#[tokio::test]
async fn a_run_that_waits_for_a_person_holds_up_no_other() {
    let (notes, person) = (Notes::default(), Person::default());
    let builder =
        notes.builder().ask(["notes.delete"]).max_concurrent_runs(2).queue_timeout(Duration::from_millis(50));
    let executor = builder.approver(person.silent()).build().unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for (place, others) in [(1, Ok(json!(1))), (2, Err(ErrorCode::QueueFull))] {
        let executor_of_run = executor.clone();
        asking.spawn(async move { executor_of_run.run_ts("await notes.delete({})").await });
        wait_until(|| person.open.load(Ordering::SeqCst) == place).await;
        let other = executor.run_ts("return 1").await.unwrap();
        assert_eq!(other.value().cloned().ok_or_else(|| code(&other).unwrap()), others);
    }
    asking.shutdown().await;
    wait_until(|| person.open.load(Ordering::SeqCst) == 0).await;
}
