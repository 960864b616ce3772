//! Attackers and honest clients share one server: every client is answered, nothing is lost, nothing grows.
//!
//! `CX_SOAK_SECONDS=1200` gives it the intended length; `make soak-attackers` does that with a release build. Only that
//! long form compares the times of honest runs with and without attackers. A short form runs with the other tests.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::soak::{IDLE_TRIM, Sample};
use crate::support::serve::{Client, Start};
use crate::support::serve_http::{Server, Session};

/// Clients that attack, each with one run after the other, and clients that do not.
const ATTACKERS: usize = 4;
const HONEST: usize = 2;

/// The short form, in seconds.
const SHORT: u64 = 8;

/// The minimum length with which times are compared.
const LONG: u64 = 300;

/// The maximum factor by which attackers may slow down honest runs, at the 99th percentile.
const SLOWER: f64 = 5.0;

/// The maximum factor of idle memory afterwards, and the additional bytes: the server keeps memory of earlier runs up
/// to this bound, and the first runs of a kind load code.
const GROWTH: f64 = 1.2;
const HISTORY_KB: u64 = 64 << 10;
const FIRST_RUNS_KB: u64 = 32 << 10;

/// Time that an attack may take.
const ATTACK_MS: u64 = 300;

const TYPESCRIPT: &str = "executeTypescript";
const PYTHON: &str = "executePython";

/// The attackers' scripts: everything that was found to cost more than it seems to, and that ends.
const ATTACKS: &[(&str, &str)] = &[
    (TYPESCRIPT, "for (;;) {}"),
    (TYPESCRIPT, "const k = []; for (;;) k.push(new Array(1e5).fill(1.5))"),
    (TYPESCRIPT, "const k = [], s = 'x'.repeat(1e6); for (let i = 0; ; i++) k.push(btoa(i + s))"),
    (TYPESCRIPT, "const k = [], s = 'x'.repeat(1e6); for (;;) k.push(new TextEncoder().encode(s))"),
    (TYPESCRIPT, "const k = []; for (;;) k.push(new Uint8Array(1 << 20))"),
    (TYPESCRIPT, "for (;;) console.log('x'.repeat(1000))"),
    (TYPESCRIPT, "for (;;) console.log('')"),
    (TYPESCRIPT, "for (;;) { try { emit({ type: 'text', text: 'x' }) } catch {} }"),
    (TYPESCRIPT, "for (;;) callMCPTool('mcp__none__none').catch(() => {})"),
    (TYPESCRIPT, "for (;;) setTimeout(() => {}, 0)"),
    (TYPESCRIPT, "/(a+)+$/.test('a'.repeat(40) + 'b')"),
    (TYPESCRIPT, "function f() { return f() + f() } f()"),
    (TYPESCRIPT, "for (;;) new Promise(() => {})"),
    (TYPESCRIPT, "(function f() { Promise.resolve().then(f) })(); await new Promise(() => {})"),
    (TYPESCRIPT, "return Array.from({ length: 2.2e6 }, () => ({ '': 0 }))"),
    (TYPESCRIPT, "return structuredClone(Array(60).fill('x'.repeat(2 ** 26))).length"),
    (TYPESCRIPT, "throw { get message() { for (;;) {} } }"),
    (TYPESCRIPT, "let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o"),
    (PYTHON, "while True: pass"),
    (PYTHON, "k = []\nwhile True: k.append(bytes(1 << 20))"),
    (PYTHON, "while True: print('x' * 1000)"),
    (PYTHON, "import re\nre.match('(a+)+$', 'a' * 40 + 'b')"),
    (PYTHON, "[{'': 0} for _ in range(300_000)]"),
    (PYTHON, "import asyncio\nwhile True: asyncio.ensure_future(asyncio.sleep(0))"),
];

const HONEST_RUNS: &[(&str, &str)] = &[(TYPESCRIPT, "return input * 2"), (PYTHON, "inputs * 2")];

fn seconds() -> u64 {
    std::env::var("CX_SOAK_SECONDS").map_or(SHORT, |seconds| seconds.parse().unwrap())
}

fn honest(number: usize) -> (&'static str, Value) {
    let (tool, code) = HONEST_RUNS[number % HONEST_RUNS.len()];
    (tool, json!({ "code": code, "input": number }))
}

fn attack(number: usize) -> (&'static str, Value) {
    let (tool, code) = ATTACKS[number % ATTACKS.len()];
    (tool, json!({ "code": code, "timeoutMs": ATTACK_MS }))
}

/// An attack must get an answer. Any outcome in it is accepted.
fn is_answer(result: &Value) -> bool {
    result["structuredContent"]["success"].is_boolean()
}

fn is_right(result: &Value, number: usize) -> bool {
    result["structuredContent"]["value"] == number * 2
}

/// How long honest runs took, in milliseconds: the median and the 99th percentile.
fn times(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e3;
    (at(50), at(99))
}

#[expect(clippy::print_stdout, reason = "the figures are for people to read")]
fn report(
    transport: &str,
    before: Sample,
    after: Sample,
    alone: (f64, f64),
    beside: (f64, f64),
    attacks: usize,
) {
    let (ratio, length) = (beside.1 / alone.1, seconds());
    println!(
        "{transport}, {length} s, {attacks} attacks: honest p50 {:.2} ms, p99 {:.2} ms; without attackers {:.2}, {:.2}; \
         p99 {ratio:.1} times",
        beside.0, beside.1, alone.0, alone.1
    );
    println!(
        "resident when idle: {} MB before, {} MB after",
        before.resident_kb >> 10,
        after.resident_kb >> 10
    );
    assert!(
        after.resident_kb <= most_at_rest(&before),
        "memory has grown from {} KB to {} KB",
        before.resident_kb,
        after.resident_kb
    );
    if length >= LONG {
        assert!(ratio <= SLOWER, "honest runs take {ratio:.1} times as long beside attackers");
    }
}

/// Waits until there is neither a run nor a hung worker, and until memory is released: until `is_enough`, or until idle
/// engines have trimmed their memory.
fn at_rest(process: u32, health: impl Fn() -> Value, is_enough: impl Fn(&Sample) -> bool) -> Sample {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let health = health();
        let engine = |name: &str| health["engines"][name]["hung"] == 0;
        if health["connectionPool"]["active"] == 0 && engine("typescript") && engine("python") {
            assert_eq!(health["healthy"], true, "{health:#}");
            break;
        }
        assert!(Instant::now() < until, "{health:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(4));
    let trimmed = Instant::now() + IDLE_TRIM;
    loop {
        let sample = Sample::read(process);
        if is_enough(&sample) || Instant::now() > trimmed {
            return sample;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// The maximum of idle resident memory, in kilobytes, for this much memory before.
fn most_at_rest(before: &Sample) -> u64 {
    (before.resident_kb as f64 * GROWTH) as u64 + HISTORY_KB + FIRST_RUNS_KB
}

#[test]
fn v_269_attackers_and_honest_clients_over_http() {
    let server = &Server::start(Start::new());
    let health = || server.health();
    let run = &|session: &Session<'_>, id: usize, (tool, arguments): (&str, Value)| {
        session.begin(id, "tools/call", json!({ "name": tool, "arguments": arguments })).result()
    };
    let warm = server.session();
    for number in 0..20 {
        assert!(is_right(&run(&warm, number, honest(number)), number));
    }
    let before = at_rest(server.process(), health, |_| true);
    let (attacks, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let honest_phase = |length: Duration| {
        let until = Instant::now() + length;
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..HONEST)
                .map(|client| {
                    scope.spawn(move || {
                        let session = server.session();
                        let mut times = Vec::new();
                        let mut number = client;
                        while Instant::now() < until {
                            let started = Instant::now();
                            let result = run(&session, number, honest(number));
                            times.push(started.elapsed());
                            assert!(is_right(&result, number), "{result:#}");
                            number += 1;
                        }
                        times
                    })
                })
                .collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let length = Duration::from_secs(seconds());
    let alone = times(honest_phase(length / 4));
    let beside = std::thread::scope(|scope| {
        for attacker in 0..ATTACKERS {
            let (attacks, over) = (&attacks, &over);
            scope.spawn(move || {
                let session = server.session();
                let mut number = attacker * 7;
                while !over.load(Ordering::Relaxed) {
                    let result = run(&session, number, attack(number));
                    assert!(is_answer(&result), "{:?}: {result:#}", attack(number));
                    attacks.fetch_add(1, Ordering::Relaxed);
                    number += 1;
                }
            });
        }
        let times = times(honest_phase(length));
        over.store(true, Ordering::Relaxed);
        times
    });
    let after = at_rest(server.process(), health, |sample| sample.resident_kb <= most_at_rest(&before));
    report("HTTP", before, after, alone, beside, attacks.into_inner());
}

/// One client whose runs are good and bad in turn.
#[test]
fn v_269_attackers_and_honest_clients_over_pipes() {
    let mut client = Client::plain();
    for number in 0..20 {
        let (tool, arguments) = honest(number);
        assert!(is_right(&client.call(tool, arguments), number));
    }
    let rest = |client: &mut Client, most_kb: u64| {
        let process = client.process();
        let client = std::cell::RefCell::new(client);
        at_rest(process, || client.borrow_mut().health(), |sample| sample.resident_kb <= most_kb)
    };
    let before = rest(&mut client, u64::MAX);
    let mut attacks = 0;
    let mut phase = |client: &mut Client, length: Duration, attackers: usize| {
        let until = Instant::now() + length;
        let mut times = Vec::new();
        let mut open = std::collections::HashMap::new();
        let (mut number, mut good, mut bad) = (0, 0, 0);
        loop {
            let goes_on = Instant::now() < until;
            while goes_on && (good < HONEST || bad < attackers) {
                let is_honest = good < HONEST;
                let (tool, arguments) = if is_honest { honest(number) } else { attack(number) };
                let id = client.begin_call(tool, arguments);
                open.insert(id.to_string(), (is_honest, number, Instant::now()));
                *(if is_honest { &mut good } else { &mut bad }) += 1;
                number += 1;
            }
            if open.is_empty() {
                return times;
            }
            let message = client.receive();
            let (is_honest, number, started) = open.remove(&message["id"].to_string()).expect("a call");
            let result = &message["result"];
            if is_honest {
                good -= 1;
                times.push(started.elapsed());
                assert!(is_right(result, number), "{message:#}");
            } else {
                bad -= 1;
                attacks += 1;
                assert!(is_answer(result), "{:?}: {message:#}", attack(number));
            }
        }
    };
    let length = Duration::from_secs(seconds());
    let alone = times(phase(&mut client, length / 4, 0));
    let beside = times(phase(&mut client, length, ATTACKERS));
    let after = rest(&mut client, most_at_rest(&before));
    report("pipes", before, after, alone, beside, attacks);
    client.end();
}
