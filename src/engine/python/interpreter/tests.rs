//! Hand-written components, for what a guest other than CPython could do. Threats 118, 120 and 135.

use super::*;
use crate::run::context::{ExecutionContext, RunEnvironment};
use crate::run::limits::Limits;

/// A component that implements the guest's world. `module` is added to its core module, `imports`
/// is inserted before that, and `with` is passed to the module. `load` and `run` are the bodies of
/// these functions, each of which returns an address.
struct Guest<'a> {
    imports: &'a str,
    with: &'a str,
    module: &'a str,
    load: &'a str,
    run: &'a str,
}

impl Default for Guest<'_> {
    fn default() -> Self {
        // At 64 the text `+7`. At 16 zeros, which are the option `none`.
        Self { imports: "", with: "", module: "", load: "(i32.const 16)", run: "(i32.const 32)" }
    }
}

impl Guest<'_> {
    fn interpreters(&self) -> wasmtime::Result<Interpreters> {
        let Self { imports, with, module, load, run } = self;
        let text = format!(
            r#"(component
                {imports}
                (core module $m
                    {module}
                    (memory (export "memory") 1)
                    (global $free (mut i32) (i32.const 8192))
                    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                        (local $at i32)
                        (local.set $at (global.get $free))
                        (global.set $free (i32.and (i32.add (i32.add (global.get $free) (local.get 3)) (i32.const 15)) (i32.const -8)))
                        (local.get $at))
                    (func (export "prepare"))
                    (func (export "load") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) {load})
                    (func (export "run") (result i32) {run})
                    (data (i32.const 32) "\40\00\00\00\02\00\00\00")
                    (data (i32.const 64) "+7")
                    (data (i32.const 128) "\ff\fe\80")
                )
                (core instance $i (instantiate $m {with}))
                (type $script (record
                    (field "source" string) (field "name" string) (field "input" string) (field "servers" string)
                    (field "argument-bytes" u32) (field "result-bytes" u32) (field "time-zone" (option string)) (field "network" bool)))
                (export $named "script" (type $script))
                (func $prepare (canon lift (core func $i "prepare")))
                (func $load (param "script" $named) (result (option string))
                    (canon lift (core func $i "load") (memory $i "memory") (realloc (func $i "realloc"))))
                (func $run (result string) (canon lift (core func $i "run") (memory $i "memory")))
                (export "prepare" (func $prepare))
                (export "load" (func $load))
                (export "run" (func $run))
            )"#
        );
        let engine = PythonEngine::with_component(
            &wat::parse_str(&text).map_err(wasmtime::Error::new)?,
            CodeForm::Plain,
        )?;
        let linked = link(&engine)?;
        Ok(Interpreters { engine, linked, memory_bytes: 64 << 20 })
    }

    /// Runs it once, as a worker of the pool does.
    async fn outcome(&self) -> Outcome {
        let interpreters = self.interpreters().unwrap();
        let mut interpreter = interpreters.make().await.unwrap();
        let environment = RunEnvironment::empty(Limits::default(), tokio::runtime::Handle::current());
        let host: Arc<dyn RunHost> =
            Arc::new(ExecutionContext::new(crate::run::script::Script::python("source"), environment));
        interpreter.execute(&host, "source", ()).await
    }

    /// Checks that the run ends with a script error whose text contains `expected`.
    async fn fails(&self, expected: &str) {
        match self.outcome().await {
            Outcome::Failed(error) => {
                assert_eq!(error.code, ErrorCode::RuntimeError, "{error:?}");
                assert!(error.message.contains(expected), "{expected}: {error:?}");
            }
            Outcome::Returned(value) => panic!("{expected}: {value}"),
        }
    }
}

/// Makes sure that the tests below fail for the reason that they test.
#[tokio::test]
async fn a_component_made_by_hand_runs() {
    let outcome = Guest::default().outcome().await;
    assert!(matches!(&outcome, Outcome::Returned(value) if value.text() == "7"), "{outcome:?}");
}

/// Threat 135: what the guest returns is checked before it is used.
#[tokio::test]
async fn bad_values() {
    // Writes the result of `run`: a text with this `address` and `length`.
    let text = |address: &str, length: &str| {
        format!(
            "(i32.store (i32.const 32) (i32.const {address})) (i32.store (i32.const 36) (i32.const {length})) (i32.const 32)"
        )
    };
    for (run, expected) in [
        (text("128", "3"), "utf-8"),
        (text("64", "-1"), "pointer"),
        (text("-8", "64"), "pointer"),
        (text("65530", "100"), "pointer"),
        (text("64", "0"), "cannot be read"),
        (text("65", "1"), "cannot be read"),
        ("(i32.const -4)".to_owned(), "pointer"),
        ("(i32.const 33)".to_owned(), "aligned"),
        ("(unreachable)".to_owned(), "aborted its interpreter"),
        ("(i32.div_u (i32.const 1) (i32.const 0))".to_owned(), "zero"),
        ("(i32.load (i32.const -1))".to_owned(), "memory"),
    ] {
        Guest { run: &run, ..Guest::default() }.fails(expected).await;
    }
    // An option with an invalid discriminant.
    Guest { load: "(i32.store8 (i32.const 16) (i32.const 7)) (i32.const 16)", ..Guest::default() }
        .fails("discriminant")
        .await;
    Guest { load: "(i32.const 65535)", ..Guest::default() }.fails("not aligned").await;
}

/// The module has no limit of its own: the stack limit of WebAssembly ends the recursion.
#[tokio::test]
async fn endless_recursion() {
    let module = "(func $f (param i32) (result i32) (i32.add (call $f (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))";
    Guest { module, run: "(call $f (i32.const 0))", ..Guest::default() }.fails("nested too deeply").await;
}

/// Threat 120: the limit applies to all memories together, and the number of memories is bounded.
#[tokio::test]
async fn several_memories_and_tables() {
    let refused = async |module: &str, expected: &str| {
        let made = match (Guest { module, ..Guest::default() }).interpreters() {
            Ok(interpreters) => interpreters.make().await.map(drop),
            Err(error) => Err(format!("{error:#}")),
        };
        let message = made.unwrap_err();
        assert!(message.contains(expected), "{message}");
    };
    // 100 MB in two memories, where 64 MB are allowed.
    Guest { module: "(memory 500)", ..Guest::default() }
        .interpreters()
        .unwrap()
        .make()
        .await
        .map(drop)
        .unwrap();
    refused("(memory 1600)", "memory").await;
    refused(&"(memory 1)".repeat(20), "memor").await;
    refused(&"(table 1 funcref)".repeat(20), "table").await;
    refused("(table 1000000 funcref)", "table").await;
}

const CLOCK: &str = r#"
    (import "wasi:io/poll@0.2.0" (instance $poll (export "pollable" (type (sub resource)))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $p))
        (export "pollable" (type $q (eq $p)))
        (export "subscribe-duration" (func (param "when" u64) (result (own $q))))))
    (core func $subscribe (canon lower (func $clock "subscribe-duration")))
    (core instance $clocks (export "subscribe" (func $subscribe)))"#;

/// Threat 118: the number of handles that are never dropped is bounded.
#[tokio::test]
async fn leaked_handles() {
    let guest = |count: &str| {
        format!(
            "(local $n i32)
             (loop $again
                (drop (call $subscribe (i64.const 1000000)))
                (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const {count}))))
             (i32.const 32)"
        )
    };
    let few = guest("50");
    let guest_of = |run| Guest {
        imports: CLOCK,
        with: r#"(with "clocks" (instance $clocks))"#,
        module: r#"(import "clocks" "subscribe" (func $subscribe (param i64) (result i32)))"#,
        run,
        ..Guest::default()
    };
    let outcome = guest_of(&few).outcome().await;
    assert!(matches!(&outcome, Outcome::Returned(value) if value.text() == "7"), "{outcome:?}");
    guest_of(&guest("1000000")).fails("no free keys").await;
}

/// An import that CPython does not use cannot be linked.
#[tokio::test]
async fn unknown_imports() {
    for imports in [
        r#"(import "wasi:http/outgoing-handler@0.2.0" (instance (export "handle" (func))))"#,
        r#"(import "host" (func))"#,
    ] {
        let error = Guest { imports, ..Guest::default() }.interpreters().map(drop).unwrap_err();
        assert!(format!("{error:#}").contains("a matching implementation was not found"), "{error:#}");
    }
}

/// The imports of the host interface and those of WASI that take numbers, for a guest that is not
/// CPython. They are lowered with a memory of their own, which holds all texts and lists.
const RAW_IMPORTS: &str = r#"
    (type $operation-type (enum "tool" "full-name" "query" "emit"))
    (import "operation" (type $operation (eq $operation-type)))
    (type $completion-type (record (field "call" u64) (field "answer" string)))
    (import "completion" (type $completion (eq $completion-type)))
    (type $stream-type (enum "stdout" "stderr"))
    (import "output-stream" (type $stream (eq $stream-type)))
    (import "start-call" (func $start (param "operation" $operation) (param "server" string) (param "name" string)
        (param "arguments" string) (result (tuple u64 (option string)))))
    (import "wait" (func $wait (param "timeout-ms" (option f64)) (result (list $completion))))
    (import "log" (func $log (param "to" $stream) (param "text" string)))
    (import "wasi:io/poll@0.2.0" (instance $poll
        (export "pollable" (type $p (sub resource)))
        (export "poll" (func (param "in" (list (borrow $p))) (result (list u32))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
        (alias outer 1 $pollable (type $p))
        (export "pollable" (type $q (eq $p)))
        (export "subscribe-duration" (func (param "when" u64) (result (own $q))))))
    (import "wasi:random/random@0.2.0" (instance $random
        (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
    (core module $memory-module
        (memory (export "memory") 640)
        (global $bad (export "bad") (mut i32) (i32.const 0))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32)
            (select (global.get $bad) (i32.const 1024) (global.get $bad)))
        (func (export "fill") (param i32)
            (local $at i32)
            (loop $again
                (i32.store (local.get $at) (local.get 0))
                (br_if $again
                    (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (i32.const 41943040))))))
    (core instance $memory (instantiate $memory-module))
    (core func $start-core (canon lower (func $start) (memory $memory "memory") (realloc (func $memory "realloc"))))
    (core func $wait-core (canon lower (func $wait) (memory $memory "memory") (realloc (func $memory "realloc"))))
    (core func $log-core (canon lower (func $log) (memory $memory "memory")))
    (core func $poll-core (canon lower (func $poll "poll") (memory $memory "memory") (realloc (func $memory "realloc"))))
    (core func $subscribe-core (canon lower (func $clock "subscribe-duration")))
    (core func $random-core
        (canon lower (func $random "get-random-bytes") (memory $memory "memory") (realloc (func $memory "realloc"))))
    (core instance $raw
        (export "start" (func $start-core)) (export "wait" (func $wait-core)) (export "log" (func $log-core))
        (export "poll" (func $poll-core)) (export "subscribe" (func $subscribe-core))
        (export "random" (func $random-core)))"#;

const RAW_MODULE: &str = r#"
    (import "raw" "start" (func $start (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "raw" "wait" (func $wait (param i32 f64 i32)))
    (import "raw" "log" (func $log (param i32 i32 i32)))
    (import "raw" "poll" (func $poll (param i32 i32 i32)))
    (import "raw" "subscribe" (func $subscribe (param i64) (result i32)))
    (import "raw" "random" (func $random (param i64 i32)))
    (import "memory" "fill" (func $fill (param i32)))
    (import "memory" "bad" (global $bad (mut i32)))"#;

/// A guest that took over its interpreter can call every import with any numbers. Each call
/// returns: the guest continues or is stopped, and the host neither panics nor blocks.
#[tokio::test]
async fn v_318_raw_imports_with_hostile_numbers() {
    // 41,943,040 bytes are available.
    const ALL: &str = "(i32.const 0) (i32.const 41943040)";
    // Each group with what becomes of its runs: `7` is the guest's own value, anything else a part of
    // the error with which it was stopped.
    let groups: [(&str, &[&str]); 9] = [
        // The whole memory as a query's text, invalid timeouts, and the whole memory as output.
        (
            "7",
            &[
                "(call $start (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) ALL (i32.const 8))",
                "(call $start (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) ALL (i32.const 8))",
                "(call $wait (i32.const 1) (f64.const nan) (i32.const 8))",
                "(call $wait (i32.const 1) (f64.const -inf) (i32.const 8))",
                "(call $wait (i32.const 1) (f64.const -1e308) (i32.const 8))",
                "(call $log (i32.const 0) ALL)",
            ],
        ),
        // Numbers that are not those of an operation, an option or a stream.
        (
            "discriminant",
            &[
                "(call $start (i32.const 99) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8))",
                "(call $wait (i32.const 7) (f64.const 0) (i32.const 8))",
                "(call $log (i32.const 2) (i32.const 0) (i32.const 0))",
            ],
        ),
        // Texts, lists and results beyond the memory.
        (
            "out of bounds",
            &[
                "(call $start (i32.const 0) (i32.const -1) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8))",
                "(call $start (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 8))",
                "(call $start (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const -8))",
                "(call $wait (i32.const 0) (f64.const 0) (i32.const -8))",
                "(call $log (i32.const 0) (i32.const 8) (i32.const -8))",
                "(call $poll (i32.const 0) (i32.const -4) (i32.const 8))",
            ],
        ),
        (
            "not aligned",
            &[
                "(call $start (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 9))",
            ],
        ),
        // The whole memory as every text, and one handle ten million times.
        (
            "too much data",
            &[
                "(call $start (i32.const 0) ALL ALL ALL (i32.const 8))",
                "(call $start (i32.const 1) ALL ALL ALL (i32.const 8))",
                "(call $fill (call $subscribe (i64.const 0))) (call $poll ALL_HANDLES (i32.const 8))",
            ],
        ),
        // The guest's allocator returns an address that is out of bounds for the answer.
        (
            "beyond end of memory",
            &[
                "(global.set $bad (i32.const -16)) (call $start (i32.const 2) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 8))",
                "(global.set $bad (i32.const -16)) (call $random (i64.const 64) (i32.const 8))",
            ],
        ),
        ("unknown handle", &["(call $poll (i32.const 0) (i32.const 1) (i32.const 8))"]),
        ("empty poll list", &["(call $poll (i32.const 0) (i32.const 0) (i32.const 8))"]),
        (
            "more than 65536 random bytes at once",
            &[
                "(call $random (i64.const -1) (i32.const 8))",
                "(call $random (i64.const 1099511627776) (i32.const 8))",
            ],
        ),
    ];
    let mut wrong = Vec::new();
    let runs = groups.iter().flat_map(|(expected, bodies)| bodies.iter().map(move |body| (expected, body)));
    for (expected, body) in runs {
        let run =
            format!("{} (i32.const 32)", body.replace("ALL_HANDLES", "(i32.const 0) (i32.const 10485760)"));
        let run = run.replace("ALL", ALL);
        let guest = Guest {
            imports: RAW_IMPORTS,
            with: r#"(with "raw" (instance $raw)) (with "memory" (instance $memory))"#,
            module: RAW_MODULE,
            run: &run,
            ..Guest::default()
        };
        // It continues and returns its value, or is stopped with a script error.
        let found = match guest.outcome().await {
            Outcome::Returned(value) => value.text().to_owned(),
            Outcome::Failed(error) => format!("{}: {}", error.code, error.message),
        };
        let is_expected = if *expected == "7" { found == "7" } else { found.contains(expected) };
        if !is_expected {
            wrong.push(format!("{body}\n    expected {expected}, found {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
