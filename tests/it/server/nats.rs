//! `cx worker` and `cx run --nats`: scripts are executed by the machines of a queue, and their tools are here. With a
//! real `nats-server`; `support/nats.rs` says how to leave these tests out.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cx::{ErrorCode, Executor, Isolation, Language, Limits, NatsWorkers, Outcome, Script};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::nats::{Front, KEY, NatsServer, Worker, end};
use crate::support::serve::Start;
use crate::support::serve_http::{Server, wait_for, wait_within};
use crate::support::write_secret;

/// The maximum time of a run on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// A script that runs until it is stopped, after a call that the test can see.
const ENDLESS: &str =
    "await tools.here.echo({ text: 'a' }); for (;;) await new Promise((done) => setTimeout(done, 50))";

#[test]
fn the_script_runs_there_and_its_tools_are_here() {
    let Some(server) = NatsServer::start() else { return };
    let (_worker, front) = (server.worker(2), Front::new(&server, "well"));
    let result = front.run(&["-e", "console.log('there'); return await tools.here.echo({ text: 'a' })"]);
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("there")), "{result}");
    assert_eq!(result["toolCallsMade"], 1);
    assert_eq!(front.notes().matches("executed echo").count(), 1);
    let python = "print('there')\nr = await tools.here.echo(text='b')\ninputs['n'] * 7";
    let result = front.run(&["--lang", "py", "--input", "{\"n\": 6}", "-e", python]);
    assert_eq!((&result["value"], &result["output"]), (&json!(42), &json!("there")), "{result}");
    let kept = front.run(&[
        "-e",
        "await state.set('k', 7); return [await state.get('k'), (await searchTools('echo')).length]",
    ]);
    assert_eq!(kept["value"], json!([7, 1]), "{kept}");
    let failed = front.run(&["-e", "const a = 1;\nthrow new TypeError('no')"]);
    assert_eq!(
        (&failed["error"]["name"], &failed["error"]["line"]),
        (&json!("TypeError"), &json!(2)),
        "{failed}"
    );
    // More than is sent at once, in both directions.
    let long = "const text = 'x'.repeat(3e6); return JSON.stringify(await tools.here.echo({ text })).length + input.length";
    let input = front.path("input.json");
    std::fs::write(&input, json!("y".repeat(2_000_000)).to_string()).unwrap();
    let moved = front.run(&["--input", &format!("@{}", input.display()), "-e", long]);
    assert!(moved["value"].as_u64().is_some_and(|length| length >= 5_000_000), "{moved}");
}

/// Rules, budgets and limits are those of the front end; the worker's operator bounds what a run may use there.
#[test]
fn calls_and_limits_are_decided_on_both_machines() {
    let Some(server) = NatsServer::start() else { return };
    let mut worker = server.worker(1);
    let front = Front::new(&server, "well");
    let call = "return await tools.here.echo({ text: 'a' })";
    assert_eq!(front.run(&["--deny", "here.*", "-e", call])["error"]["toolCode"], "TOOL_DENIED");
    let twice = "await tools.here.echo({ text: 'a' }); return await tools.here.echo({ text: 'b' })";
    let counted = front.run(&["--max-tool-calls", "1", "-e", twice]);
    assert_eq!(counted["error"]["code"], "MAX_TOOL_CALLS_EXCEEDED", "{counted}");
    let late = front.run(&["--timeout", "500ms", "-e", "for (;;);"]);
    assert_eq!(late["error"]["code"], "TIMEOUT", "{late}");
    // The worker was told to stop: its only slot is free.
    assert_eq!(front.run(&["-e", "return 1"])["value"], 1);
    worker.signal("TERM");
    assert!(worker.wait(LONG).success(), "{}", worker.said());
    let worker = server.worker_with(1, &["--cpu-time", "2s", "--timeout", "30s"]);
    let ended = front.run(&[
        "--timeout",
        "60s",
        "--cpu-time",
        "60s",
        "-e",
        &format!("{call}; for (;;);").replace("return", ""),
    ]);
    assert_eq!(ended["error"]["code"], "ENGINE_CRASHED", "{ended}");
    assert!(!worker.said().contains("panicked"), "{}", worker.said());
}

#[test]
fn a_front_end_that_dies_ends_its_run() {
    let Some(server) = NatsServer::start() else { return };
    let (worker, front) = (server.worker(1), Front::new(&server, "well"));
    let mut run = front.spawn(&["--timeout", "600s", "-e", ENDLESS]);
    wait_for(|| front.notes().contains("executed echo").then_some(()));
    run.kill().unwrap();
    run.wait().unwrap();
    // Its only slot is free again, long before the run's limit.
    assert_eq!(front.run(&["--timeout", "100s", "-e", "return 1"])["value"], 1);
    drop(worker);
}

#[test]
fn a_worker_that_dies_costs_the_runs_that_have_had_an_effect() {
    let Some(server) = NatsServer::start() else { return };
    let first = server.worker_with(2, &["--metrics", "127.0.0.1:0"]);
    let front = Front::new(&server, "well");
    let seen = front.spawn(&["--timeout", "600s", "-e", ENDLESS]);
    wait_for(|| front.notes().contains("executed echo").then_some(()));
    // The script only computes, so it has had no effect: another machine can run it.
    let unseen = "const until = Date.now() + 2500; while (Date.now() < until); return 'done'";
    let unseen = front.spawn(&["--timeout", "100s", "-e", unseen]);
    wait_for(|| first.metrics().contains("cx_queue_runs_taken_total 2").then_some(()));
    first.signal("KILL");
    let second = server.worker(2);
    let seen = end(seen, LONG);
    assert_eq!(seen["error"]["code"], "ENGINE_CRASHED", "{seen}");
    let message = seen["error"]["message"].as_str().unwrap();
    assert!(message.contains("its machine does not answer"), "{message}");
    let unseen = end(unseen, LONG);
    assert_eq!(unseen["value"], "done", "{unseen}");
    assert_eq!(front.run(&["-e", "return 1"])["value"], 1);
    assert_eq!(front.notes().matches("executed echo").count(), 1);
    drop(second);
}

/// The process that stands in for the worker here has not failed, and no message says that it has.
#[test]
fn a_worker_process_that_dies_on_its_machine_is_said() {
    let Some(server) = NatsServer::start() else { return };
    let (worker, front) = (server.worker(1), Front::new(&server, "well"));
    let run = front.spawn(&["--timeout", "60s", "-e", ENDLESS]);
    wait_for(|| front.notes().contains("executed echo").then_some(()));
    // Workers first: with their fork server they end by themselves.
    for process in worker.processes().into_iter().rev() {
        let id = process.file_name().unwrap().to_str().unwrap().to_owned();
        // One that the end of another one has ended is gone.
        let _killed = std::process::Command::new("kill").args(["-KILL", &id]).status().unwrap();
    }
    let result = end(run, LONG);
    assert_eq!(result["error"]["code"], "ENGINE_CRASHED", "{result}");
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains("has ended on its machine"), "{message}");
}

/// Another client of the NATS server can neither read a run, nor have one executed, nor have one executed twice.
#[test]
fn other_clients_of_the_nats_server_are_not_trusted() {
    let Some(server) = NatsServer::start() else { return };
    let (worker, front) = (server.worker(3), Front::new(&server, "well"));
    let (stop, replayed) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::<u8>::new())));
    let mut outsider = server.outsider();
    outsider.subscribe("cx.queue");
    outsider.subscribe("cx.run.>");
    let replaying = {
        let (stop, replayed) = (Arc::clone(&stop), Arc::clone(&replayed));
        std::thread::spawn(move || {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let Some((subject, payload)) = outsider.next() else { continue };
                let mut changed = payload.clone();
                if let Some(last) = changed.last_mut() {
                    *last ^= 1;
                }
                for again in [&payload, &changed, &payload, &Vec::new(), &vec![0xff; 70_000]] {
                    outsider.publish(&subject, again);
                }
                replayed.lock().extend(&payload);
                count += 1;
            }
            count
        })
    };
    let script = "const before = await tools.here.echo({ text: 'secret-of-the-call' });\n\
        await new Promise((done) => setTimeout(done, 2500));\n\
        return [before !== null, 'secret-of-the-script'.length]";
    let result = front.run(&["-e", script]);
    assert_eq!(result["value"], json!([true, 20]), "{result}");
    assert_eq!(front.notes().matches("executed echo").count(), 1);
    stop.store(true, Ordering::Relaxed);
    assert!(replaying.join().unwrap() > 8);
    let replayed = replayed.lock();
    for secret in ["secret-of-the", "echo", KEY] {
        assert!(!replayed.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "{secret}");
    }
    // The remaining offers in the queue are refused, and the next run is taken.
    assert_eq!(front.run(&["-e", "return 1"])["value"], 1);
    assert!(!worker.said().contains("panicked"), "{}", worker.said());
}

#[test]
fn another_key_is_refused() {
    let Some(server) = NatsServer::start() else { return };
    let front = Front::new(&server, "well");
    let other = front.path("other");
    write_secret(&other, &KEY.replace('a', "b"));
    let outsider = Worker::start(&server.url(), &other, 2, &[]);
    let refused = front.run(&["-e", "return 1"]);
    assert_eq!(refused["error"]["code"], "ENGINE_UNAVAILABLE", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("cannot read the run"), "{refused}");
    // A worker with the key takes the run, although the other one gets offers too.
    let worker = server.worker(1);
    let run = || Some(front.run(&["-e", "return 1"])).filter(|result| result["value"] == 1);
    wait_within(LONG, run);
    drop((outsider, worker));
}

#[test]
fn what_is_wrong_is_said() {
    let Some(mut server) = NatsServer::start() else { return };
    let front = Front::new(&server, "well");
    let said = |url: &str, problem: &str| {
        let output = front.command_at(url, &server.key(), &["-e", "return 1"]).output().unwrap();
        let all =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && all.contains(problem), "{url}: {all}");
    };
    said("http://nats.example.com", "invalid `--nats`: expected the address of a NATS server");
    said("nats://user:pass@127.0.0.1:1", "expected the address of a NATS server");
    said("nats://127.0.0.1:1", "cannot be reached");
    said(&server.url(), "no `cx worker` has ever joined it");
    let output = front.command_at(&server.url(), &front.path("none"), &["-e", "return 1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("cannot be read"), "{output:?}");
    write_secret(&front.path("short"), "short");
    let output = front.command_at(&server.url(), &front.path("short"), &["-e", "return 1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("at least 32 characters"), "{output:?}");
    // A worker reports it too, and retries after errors that may be temporary.
    let url = server.url();
    server.kill();
    let worker = Worker::start_unjoined(&url, &server.key(), 1, &[]);
    worker.wait_for_line("no scripts are taken");
    server.restart();
    worker.wait_for_line("taking scripts from");
    assert_eq!(front.run(&["-e", "return 1"])["value"], 1);
    let mut wrong = Worker::start_unjoined("nats://", &server.key(), 1, &[]);
    assert_eq!(wrong.wait(LONG).code(), Some(2), "{}", wrong.said());
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    let Some(server) = NatsServer::start() else { return };
    let (_worker, front) = (server.worker_with(1, &["--max-queued", "2"]), Front::new(&server, "well"));
    let mut busy = front.spawn(&["--timeout", "600s", "-e", ENDLESS]);
    wait_for(|| front.notes().contains("executed echo").then_some(()));
    let mut runs: Vec<Child> =
        (0..4).map(|_| front.spawn(&["--timeout", "200s", "-e", "return 2"])).collect();
    let began = Instant::now();
    while runs.len() > 2 {
        assert!(began.elapsed() < LONG, "the queue is not full");
        std::thread::sleep(Duration::from_millis(20));
        let Some(ended) = runs.iter_mut().position(|run| run.try_wait().unwrap().is_some()) else { continue };
        let result = end(runs.remove(ended), LONG);
        assert_eq!(result["error"]["code"], "ENGINE_UNAVAILABLE", "{result}");
        assert!(result["error"]["message"].as_str().unwrap().contains("the queue is full"), "{result}");
    }
    assert!(busy.try_wait().unwrap().is_none(), "the run that is executed goes on");
    busy.kill().unwrap();
    busy.wait().unwrap();
    for run in runs {
        assert_eq!(end(run, LONG)["value"], 2);
    }
}

/// A run survives a restart of the server, because lost messages are sent again; new runs are refused meanwhile.
#[test]
fn a_server_that_goes_comes_back() {
    let Some(mut server) = NatsServer::start() else { return };
    let (_worker, front) = (server.worker(2), Front::new(&server, "well"));
    let calls = "let sum = 0; for (let i = 0; i < 60; i++) {\n\
        await tools.here.echo({ text: String(i) }); sum += i; await new Promise((done) => setTimeout(done, 50)); }\n\
        return sum";
    let run = front.spawn(&["--timeout", "100s", "-e", calls]);
    wait_for(|| (front.notes().matches("executed echo").count() > 10).then_some(()));
    server.kill();
    let refused = front.run(&["-e", "return 1"]);
    assert_eq!(refused["error"]["code"], "ENGINE_UNAVAILABLE", "{refused}");
    server.restart();
    let result = end(run, LONG);
    assert_eq!(result["value"], 1770, "{result}");
    assert_eq!(front.notes().matches("executed echo").count(), 60);
    assert_eq!(front.run(&["-e", "return 1"])["value"], 1);
}

#[test]
fn a_worker_that_is_asked_to_end_finishes_its_runs() {
    let Some(server) = NatsServer::start() else { return };
    let (mut worker, front) = (server.worker(2), Front::new(&server, "well"));
    let slow =
        "await tools.here.echo({ text: 'a' }); await new Promise((done) => setTimeout(done, 6000)); return 5";
    let run = front.spawn(&["--timeout", "60s", "-e", slow]);
    wait_for(|| front.notes().contains("executed echo").then_some(()));
    worker.signal("TERM");
    worker.wait_for_line("taking no more scripts");
    // No worker takes this one until another worker starts.
    let waiting = front.spawn(&["--timeout", "200s", "-e", "return 6"]);
    assert_eq!(end(run, LONG)["value"], 5);
    assert!(worker.wait(LONG).success());
    let second = server.worker(1);
    assert_eq!(end(waiting, LONG)["value"], 6);
    drop(second);
}

/// Two servers of one configuration, which share the workers.
#[test]
fn two_front_ends_share_the_workers() {
    let Some(server) = NatsServer::start() else { return };
    let worker = server.worker_with(2, &["--metrics", "127.0.0.1:0"]);
    let isolation = json!({ "mode": "nats", "url": server.url(), "keyFile": server.key() });
    let start =
        || Server::start(Start::new().server("well", &["well"]).config("isolation", isolation.clone()));
    let fronts = [start(), start()];
    std::thread::scope(|scope| {
        for (number, front) in fronts.iter().enumerate() {
            scope.spawn(move || {
                let session = front.session();
                for round in 0..5 {
                    let result = session
                        .run(&format!("await tools.well.echo({{ text: 'a' }}); return [{number}, {round}]"));
                    assert_eq!(result["value"], json!([number, round]), "{result}");
                }
                assert_eq!(front.notes("well").matches("executed echo").count(), 5);
            });
        }
    });
    wait_for(|| {
        let page = worker.metrics();
        let is_taken = page.contains("cx_queue_runs_taken_total 10");
        (is_taken && page.contains("cx_queue_runs_waiting 0")).then_some(())
    });
    // `cx serve --nats` does the same as the configuration.
    let (url, key) = (server.url(), server.key());
    let front =
        Server::start(Start::new().arguments(&["--nats", &url, "--nats-key-file", key.to_str().unwrap()]));
    assert_eq!(front.session().run("return 1")["value"], 1);
    drop(worker);
    let result = front.session().run("return 1");
    assert_eq!(result["error"]["code"], "ENGINE_UNAVAILABLE", "{result}");
}

/// Five workers that are killed at random moments. Each run ends, and calls its tool once if it succeeds, and never
/// twice. `make nats-kills` is the long form.
#[test]
fn workers_that_are_killed_lose_and_repeat_nothing() {
    let Some(server) = NatsServer::start() else { return };
    let runs: usize = std::env::var("CX_NATS_RUNS").map_or(60, |count| count.parse().unwrap());
    let workers: Vec<Mutex<Worker>> = (0..5).map(|_| Mutex::new(server.worker(2))).collect();
    let calls: Arc<Mutex<BTreeMap<u64, u32>>> = Arc::default();
    let mut nats = NatsWorkers::new(server.url(), server.key());
    nats.program = Some(env!("CARGO_BIN_EXE_cx").into());
    let counted = Arc::clone(&calls);
    let executor = Executor::builder()
        .languages([Language::TypeScript])
        .isolation(Isolation::Nats(nats))
        .limits(Limits { wall_time: Duration::from_secs(240), ..Limits::default() })
        .tool("native.note", json!({ "type": "object" }), move |arguments: Value| {
            let calls = Arc::clone(&counted);
            async move {
                *calls.lock().entry(arguments["run"].as_u64().unwrap_or_default()).or_default() += 1;
                Ok::<_, String>(true)
            }
        })
        .build()
        .unwrap();
    let (next, finished, kills) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes: Mutex<BTreeMap<String, u32>> = Mutex::default();
    // Each side waits for the other, unless that one has failed.
    let (began, most) = (Instant::now(), 5 * LONG + Duration::from_secs(runs as u64));
    let is_late = || began.elapsed() > most;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
            while finished.load(Ordering::Relaxed) < runs || kills.load(Ordering::Relaxed) < 3 {
                assert!(!is_late(), "the runs do not end");
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                std::thread::sleep(Duration::from_millis(100 + (random >> 33) % 900));
                let worker = &workers[usize::try_from((random >> 20) % 5).unwrap()];
                worker.lock().signal("KILL");
                kills.fetch_add(1, Ordering::Relaxed);
                *worker.lock() = server.worker(2);
            }
        });
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs && (kills.load(Ordering::Relaxed) > 2 || is_late()) {
                        return;
                    }
                    let code = format!(
                        "const until = Date.now() + {}; while (Date.now() < until);\n\
                         await tools.native.note({{ run: {number} }});\n\
                         await new Promise((done) => setTimeout(done, {})); return {number}",
                        number * 7 % 60,
                        number * 11 % 90
                    );
                    let result = executor.run_blocking(Script::typescript(code)).unwrap();
                    let called = calls.lock().get(&(number as u64)).copied().unwrap_or_default();
                    let outcome = match &result.outcome {
                        Outcome::Returned(value) => {
                            assert_eq!(value.text(), number.to_string());
                            assert_eq!(called, 1, "run {number}");
                            "returned".to_owned()
                        }
                        Outcome::Failed(error) => {
                            let known = [ErrorCode::EngineCrashed, ErrorCode::EngineUnavailable];
                            assert!(known.contains(&error.code), "run {number}: {error:?}");
                            assert!(called <= 1, "run {number}");
                            if error.code == ErrorCode::EngineUnavailable {
                                assert_eq!(called, 0, "run {number}: {error:?}");
                            }
                            format!("{:?}", error.code)
                        }
                        other => panic!("run {number}: {other:?}"),
                    };
                    *outcomes.lock().entry(outcome).or_default() += 1;
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let outcomes = outcomes.lock();
    let runs = finished.load(Ordering::Relaxed);
    report(&format!("{runs} runs, {} kills: {outcomes:?}", kills.load(Ordering::Relaxed)));
    assert_eq!(outcomes.values().sum::<u32>() as usize, runs);
    assert!(calls.lock().values().all(|&count| count == 1), "a run was executed twice");
    assert!(kills.load(Ordering::Relaxed) > 2);
    assert!(outcomes["returned"] as usize > runs / 2, "{outcomes:?}");
}

#[expect(clippy::print_stderr, reason = "the long form has figures")]
fn report(text: &str) {
    eprintln!("{text}");
}

/// A command whose arguments are refused, and what is said of them.
#[test]
fn the_arguments_belong_together() {
    let (nats, key) = (["--nats", "nats://127.0.0.1:1"], ["--nats-key-file", "key"]);
    let (run, remote) = (["run", "-e", "return 1"], ["--remote", "http://127.0.0.1:1"]);
    let (here, together) = (["--isolation", "in-process"], "cannot be used with");
    for (arguments, part) in [
        (vec!["worker"], "there is no queue"),
        ([&["worker"][..], &nats].concat(), "--nats-key-file <FILE>"),
        ([&run[..], &nats].concat(), "--nats-key-file <FILE>"),
        ([&run[..], &key].concat(), "--nats <URL>"),
        ([&run[..], &nats, &key, &remote].concat(), together),
        // Each says where scripts are executed.
        ([&run[..], &nats, &key, &here].concat(), together),
        ([&run[..], &remote, &here].concat(), together),
        ([&["serve"][..], &nats, &key, &here].concat(), together),
        ([&["worker"][..], &nats, &key, &["--concurrency", "0"]].concat(), "'--concurrency <N>'"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cx"))
            .args(&arguments)
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .env("XDG_CONFIG_HOME", directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}
