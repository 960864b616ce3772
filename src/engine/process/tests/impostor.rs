//! A process in the place of a worker, which speaks when it should not, or asks for what no engine does.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{Stage, WATCHDOG, argument_after, code, program, text};
use crate::engine::process::forks::ForkReport;
use crate::engine::process::frames::{self, Decoder, RunNumber};
use crate::engine::process::wire::{self, Done, FromWorker, PROTOCOL, Reply, ToWorker};
use crate::engine::process::{WorkerProgram, WorkerRole, end_process, own_socket};
use crate::run::context::RunEnvironment;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, Outcome};
use crate::run::script::{Language, Script};
use crate::run::tape::Tape;

/// The name of the test that is the process, and the beginning of the argument that says what it does.
const IMPOSTOR: &str = "engine::process::tests::impostor::impostor";
const MARK: &str = "--skip=this-is-an-impostor-";

/// What one says that cannot start, and cannot be written to when it says so.
pub(in crate::engine::process) const DEAF: &str = "it lacks everything";

/// That process.
pub(in crate::engine::process) fn deaf() -> WorkerProgram {
    program(IMPOSTOR, &format!("{MARK}failed-deaf"), 1)
}

/// What one is called that never warms up, as a fork server.
pub(in crate::engine::process) const COLD: &str = "cold";

/// That process.
pub(in crate::engine::process) fn cold() -> WorkerProgram {
    as_fork_server(COLD)
}

/// A process of this kind that is taken for a fork server.
fn as_fork_server(kind: &str) -> WorkerProgram {
    let role = WorkerRole::Worker { forks: true };
    WorkerProgram { role, ..program(IMPOSTOR, &format!("{MARK}{kind}"), 1) }
}

/// A process that has ended, with a last message, before it is told that its run may go on.
pub(in crate::engine::process) fn ended() -> WorkerProgram {
    program(IMPOSTOR, &format!("{MARK}surveyed-ended"), 1)
}

/// Not a test: the process, if this program was started as one.
#[test]
fn impostor() {
    if let Some(kind) = argument_after(MARK) {
        let (socket, _closed) = own_socket().unwrap();
        let mut impostor = Impostor { stream: socket.into(), decoder: Decoder::new(wire::MAX_START_BYTES) };
        impostor.act(&kind);
        // Until the executor has gone.
        impostor.stream.read_to_end(&mut Vec::new()).unwrap();
    }
}

struct Impostor {
    stream: UnixStream,
    decoder: Decoder,
}

impl Impostor {
    fn receive(&mut self, run: RunNumber) -> ToWorker {
        loop {
            if let Some(message) = self.decoder.next(run).unwrap() {
                return message;
            }
            let count = self.stream.read(self.decoder.space()).unwrap();
            assert!(count > 0, "the executor has gone");
            self.decoder.filled(count);
        }
    }

    fn send(&mut self, run: RunNumber, message: &FromWorker) {
        let mut bytes = Vec::new();
        frames::append(&mut bytes, run, message, wire::MAX_START_BYTES).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    fn end(&mut self, run: RunNumber, value: &str) {
        let done = Done { outcome: Ok(value.to_owned()), memory_bytes: 0, fuel: None };
        self.send(run, &FromWorker::Done(done));
    }

    fn act(&mut self, kind: &str) {
        let ToWorker::Hello(hello) = self.receive(RunNumber::NONE) else { panic!("no greeting") };
        if hello.forks {
            return self.act_as_fork_server(kind);
        }
        if kind == "survey-unready" {
            return self.send(RunNumber::NONE, &surveyed());
        }
        if kind == "failed" {
            return self.send(RunNumber::NONE, &FromWorker::Failed("x".repeat(60_000)));
        }
        if kind == "failed-deaf" {
            self.stream.shutdown(Shutdown::Read).unwrap();
            self.send(RunNumber::NONE, &FromWorker::Failed(DEAF.to_owned()));
            // As if it had gone, but it cannot be seen to have ended.
            return std::thread::sleep(WATCHDOG);
        }
        if kind == "end-unready" {
            return self.end(RunNumber::NONE, "1");
        }
        if kind == "silent" {
            return;
        }
        let ready = || FromWorker::Ready { protocol: PROTOCOL, active: Vec::new(), missing: Vec::new() };
        self.send(RunNumber::NONE, &ready());
        let ToWorker::Start(start) = self.receive(RunNumber::NONE) else { panic!("no run") };
        let run = RunNumber(start.number);
        match kind {
            "ready-twice" => return self.send(run, &ready()),
            "call-unsurveyed" => {
                let query = FromWorker::Query { call: 1, text: "{}".to_owned() };
                return self.send(run, &query);
            }
            "line-unsurveyed" => {
                return self.send(run, &FromWorker::Log { level: 1, text: "early".to_owned() });
            }
            "random-unsurveyed" => return self.send(run, &FromWorker::Random(1)),
            "not-admitted" => return self.send(run, &FromWorker::Failed("all are taken".to_owned())),
            _ => {}
        }
        self.send(run, &surveyed());
        if kind == "surveyed-at-once" {
            // Before the executor has said that the run may go on.
            return self.send(run, &surveyed());
        }
        if kind == "surveyed-ended" {
            // Not together with the survey, with which it would be read.
            std::thread::sleep(Duration::from_millis(100));
            self.end(run, "1");
            end_process();
        }
        let ToWorker::Proceed = self.receive(run) else { panic!("the run does not go on") };
        match kind {
            "surveyed-twice" => self.send(run, &surveyed()),
            "random" => {
                self.send(run, &FromWorker::Random(u32::try_from(wire::MAX_RANDOM).unwrap() + 1));
                let ToWorker::Reply(Reply::Random(bytes)) = self.receive(run) else { panic!("no bytes") };
                self.end(run, &bytes.len().to_string());
            }
            _ => self.end(run, "\"honest\""),
        }
    }
}

impl Impostor {
    /// In the place of a fork server, it forks nothing.
    fn act_as_fork_server(&mut self, kind: &str) {
        match kind {
            COLD => {}
            "garbled" => self.stream.write_all(&[0xff; 64]).unwrap(),
            _ => self.stream.write_all(&ForkReport::Warm.encode()).unwrap(),
        }
    }
}

fn surveyed() -> FromWorker {
    FromWorker::Surveyed { survey: String::new(), took_ns: 0 }
}

async fn run(kind: &str, has_tape: bool) -> ExecuteResult {
    run_on(&Stage::with_worker(IMPOSTOR, &format!("{MARK}{kind}"), 1, 0), has_tape).await
}

async fn run_on(stage: &Stage, has_tape: bool) -> ExecuteResult {
    run_for(stage, has_tape, Duration::from_secs(50)).await
}

async fn run_for(stage: &Stage, has_tape: bool, wall_time: Duration) -> ExecuteResult {
    let limits = Limits { wall_time, ..Limits::default() };
    let mut environment = RunEnvironment::empty(limits, tokio::runtime::Handle::current());
    environment.tape = has_tape.then(|| Tape::recording([1; 32]));
    let running = stage.run_in(environment, Script::typescript("return 1"));
    tokio::time::timeout(Duration::from_secs(120), running).await.unwrap()
}

/// Each message has its time: any other breaks the connection, and nothing of it is used.
#[tokio::test(flavor = "multi_thread")]
async fn v_473_a_worker_that_speaks_out_of_turn_is_killed() {
    assert_eq!(text(&run("honest", false).await), "\"honest\"");
    let mut wrong = Vec::new();
    for (kind, problem) in [
        ("survey-unready", "it speaks before it is ready"),
        ("end-unready", "it speaks before it is ready"),
        ("ready-twice", "it is ready twice"),
        ("not-admitted", "it is ready twice"),
        ("call-unsurveyed", "it asks for something before its script may run"),
        ("line-unsurveyed", "it asks for something before its script may run"),
        ("random-unsurveyed", "it asks for something before its script may run"),
        ("surveyed-at-once", "a second survey"),
        ("surveyed-twice", "a second survey"),
        // The run has no tape.
        ("random", "it asks for a tape, which the run has not"),
    ] {
        let result = run(kind, false).await;
        let is_said = match &result.outcome {
            Outcome::Failed(error) => {
                error.code == ErrorCode::EngineCrashed && error.message.contains(problem)
            }
            Outcome::Returned(_) => false,
        };
        if !is_said || !result.logs.is_empty() {
            wrong.push(format!("{kind}: {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The workers are started without it.
#[tokio::test(flavor = "multi_thread")]
async fn v_696_a_fork_server_that_does_not_answer_or_speaks_nonsense_costs_no_run() {
    for kind in ["unanswering", "garbled"] {
        let stage = Stage::with(as_fork_server(kind), Language::TypeScript, 0, Vec::new());
        let result = run_for(&stage, false, Duration::from_secs(50)).await;
        assert_eq!(text(&result), "\"honest\"", "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn v_475_the_reason_of_a_worker_that_cannot_start_is_short() {
    let result = run("failed", false).await;
    assert_eq!(code(&result), Some(ErrorCode::EngineUnavailable), "{result:?}");
    let Outcome::Failed(error) = &result.outcome else { unreachable!() };
    assert!(error.message.contains("xxx") && error.message.len() < 2_000, "{}", error.message.len());
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("what the machine lacks")), "{error:?}");
}

/// Processes that stand for workers elsewhere.
fn elsewhere(kind: &str) -> Stage {
    let role = WorkerRole::Remote;
    let program = WorkerProgram { role, ..program(IMPOSTOR, &format!("{MARK}{kind}"), 1) };
    Stage::with(program, Language::TypeScript, 0, Vec::new())
}

/// The script is not the reason, so the hint is not about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_no_worker_elsewhere_takes_is_told_so() {
    let short = Duration::from_secs(1);
    for (stage, is_told) in
        [(elsewhere("silent"), true), (Stage::with_worker(IMPOSTOR, &format!("{MARK}silent"), 1, 0), false)]
    {
        let result = run_for(&stage, false, short).await;
        let Outcome::Failed(error) = &result.outcome else { panic!("{result:?}") };
        let hint = error.hint.as_deref().unwrap_or_default();
        assert_eq!(
            (error.code, hint.contains("no worker on another machine")),
            (ErrorCode::Timeout, is_told)
        );
    }
}

/// The machine that lends a worker decides about its run after the worker is ready.
#[tokio::test(flavor = "multi_thread")]
async fn v_611_a_worker_elsewhere_may_not_be_admitted() {
    let result = run_on(&elsewhere("not-admitted"), false).await;
    assert_eq!(code(&result), Some(ErrorCode::EngineUnavailable), "{result:?}");
    let Outcome::Failed(error) = &result.outcome else { unreachable!() };
    assert!(error.message.contains("all are taken"), "{}", error.message);
    // Nothing of this machine is the reason.
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("on other machines")), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v_474_random_bytes_for_a_worker_are_bounded_per_request() {
    let result = run("random", true).await;
    assert_eq!(text(&result), wire::MAX_RANDOM.to_string());
}
