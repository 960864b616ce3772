//! Runs that wait, workers that are hung, and executors on other threads.

use super::*;

#[test]
fn ld_240_runs_that_are_stopped_while_they_wait_leave_nothing_open() {
    let mut client = Start::new().server("hangs", &["hang-call"]).spawn().shaken();
    // This many at once need threads that end again.
    let stopped = |client: &mut Client, tool: &str, code: &str, cancel: bool| {
        let timeout = if cancel { 25_000 } else { 100 };
        let arguments = json!({ "code": code, "timeoutMs": timeout });
        let calls: Vec<_> = (0..10).map(|_| client.begin_call(tool, arguments.clone())).collect();
        for id in calls {
            if cancel {
                let params = json!({ "requestId": id });
                client.send(
                    &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
                );
            } else {
                let answer = client.answer(&id);
                assert_eq!(answer["result"]["isError"], true, "{answer:#}");
            }
        }
        client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    };
    let all = |client: &mut Client| {
        for cancel in [false, true] {
            stopped(client, TYPESCRIPT, "await new Promise((done) => setTimeout(done, 20_000))", cancel);
            stopped(client, TYPESCRIPT, "await tools.hangs.target({})", cancel);
            stopped(client, PYTHON, "import asyncio\nawait asyncio.sleep(20)", cancel);
        }
        settled(client)
    };
    let before = all(&mut client);
    for _ in 0..5 {
        all(&mut client);
    }
    let after = settled(&mut client);
    assert!(
        after.is_within(&before, f64::INFINITY, SLACK),
        "{} threads and {} descriptors, of {} and {}",
        after.threads,
        after.descriptors,
        before.threads,
        before.descriptors
    );
    client.end();
}

#[test]
fn ld_247_a_hung_worker_and_load_in_both_languages() {
    let mut client = Client::plain();
    let begun = Instant::now();
    // On a busy machine a script may end before it has come to the call that does not end.
    while client.health()["engines"]["typescript"]["hung"] == 0 {
        assert!(begun.elapsed() < WATCHDOG, "no worker hangs");
        let wedged = client.call(TYPESCRIPT, json!({ "code": WEDGE, "timeoutMs": 4_000 }));
        assert!(failed(&wedged, "TIMEOUT"), "{wedged:#}");
    }
    assert_eq!(client.health()["engines"]["typescript"]["hung"], 1);
    for number in 0..50_u64 {
        // Four of each language at a time.
        let calls: Vec<_> = (0..8_u64)
            .map(|place| {
                let (tool, code) =
                    if place % 2 == 0 { (TYPESCRIPT, "return input * 2") } else { (PYTHON, "inputs * 2") };
                let input = number * 8 + place;
                (input, client.begin_call(tool, json!({ "code": code, "input": input })))
            })
            .collect();
        for (input, id) in calls {
            let answer = client.answer(&id);
            assert!(returned(&answer["result"], input * 2), "{answer:#}");
        }
    }
    let health = client.health();
    assert_eq!(health["engines"]["typescript"]["hung"], 1, "{health:#}");
    assert_eq!(health["engines"]["python"]["hung"], 0, "{health:#}");
    client.end();
}

/// V8 needs its isolates on threads that descend from the one that made its platform; on others, the processor's memory
/// protection keys end the process. The thread from which an embedder calls must make no difference.
#[test]
fn ld_243_executors_on_threads_from_before_and_after_the_platform() {
    const CHILD: &str = "CX_LD_243";
    if std::env::var_os(CHILD).is_none() {
        // In a process of its own: this one may already have the platform, and the test may end the process.
        let name = own_name(module_path!(), "ld_243_executors_on_threads_from_before_and_after_the_platform");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{}: {said}", child.status);
        return;
    }
    let work = |number: u32| {
        let executor = Executor::builder().warm_instances(1).build().unwrap();
        let run = executor.run(Script::typescript(format!("return {number} + 1")));
        let result = futures::executor::block_on(run).unwrap();
        assert_eq!(result.value(), Some(&json!(number + 1)));
        executor
    };
    let (wake, woken) = std::sync::mpsc::channel::<u32>();
    let (give, given) = std::sync::mpsc::channel();
    let early = std::thread::spawn(move || {
        for number in woken {
            give.send(work(number)).unwrap();
        }
    });
    for number in 0..250 {
        let late = std::thread::spawn(move || work(number)).join().unwrap();
        wake.send(number).unwrap();
        let made_early = given.recv_timeout(Duration::from_secs(60)).unwrap();
        // Each is dropped on another thread than the one that made it.
        drop(made_early);
        let dropped = std::thread::spawn(move || drop(late));
        dropped.join().unwrap();
    }
    drop(wake);
    early.join().unwrap();
}
