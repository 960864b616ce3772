use super::snapshot::ALLOWED_OPS;
use super::*;
use crate::engine::typescript::ops::WEB_OPS;
use crate::engine::typescript::platform;

/// Runs `test` on a thread that may hold isolates, with an isolate that still has its engine's
/// namespace.
fn with_bare_runtime<T: Send + 'static>(test: impl FnOnce(&mut JsRuntime) -> T + Send + 'static) -> T {
    let (answer, answered) = std::sync::mpsc::channel();
    let task = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let meter = Arc::new(MemoryMeter::new(64 << 20, Arc::default()));
        let mut bare = restore(&meter, &Rc::default(), 64 << 20).unwrap();
        answer.send(test(&mut bare)).unwrap();
    };
    platform::spawn("bare".to_owned(), Box::new(task)).unwrap();
    answered.recv().unwrap()
}

fn evaluate(runtime: &mut JsRuntime, source: impl Into<String>) -> String {
    let value = runtime.execute_script("test", source.into()).unwrap();
    deno_core::scope!(scope, runtime);
    v8::Local::new(scope, value).to_rust_string_lossy(scope)
}

/// Threat 61: an upgrade that adds an op must be reviewed.
#[test]
fn the_ops_are_the_checked_in_list() {
    let mut names = with_bare_runtime(|runtime| runtime.op_names());
    names.sort_unstable();
    names.dedup();
    let expected: Vec<&str> = include_str!("../../../../js/ops.txt").lines().collect();
    assert_eq!(
        names, expected,
        "js/ops.txt has the list; ALLOWED_OPS and WEB_OPS say which of them scripts get"
    );
    for name in ALLOWED_OPS.iter().chain(WEB_OPS) {
        assert!(expected.contains(name), "{name} is allowed but does not exist");
    }
}

/// Threat 60: every op that is not needed throws, even if a script finds a way to call it.
#[test]
fn every_other_op_is_dead() {
    // Allowed ops are not called, because some of them rely on checks by their callers.
    let allowed = serde_json::to_string(&[ALLOWED_OPS, WEB_OPS].concat()).unwrap();
    let source = format!(
        r#"
        const allowed = {allowed};
        const tried = [];
        const alive = [];
        for (const name of Object.keys(Deno.core.ops)) {{
            if (!name.startsWith("op_") || allowed.includes(name)) continue;
            tried.push(name);
            try {{
                const answer = Deno.core.ops[name]("x", "x", "x");
                // An async op's wrapper makes a rejected promise of what it throws.
                const [state, reason] = Deno.core.ops.op_cx_details(answer);
                if (state !== 2) throw new Error("it answers");
                answer.catch(() => {{}});
                throw reason;
            }} catch (error) {{
                if (!String(error?.message).includes("not available to scripts")) alive.push(name + " " + error);
            }}
        }}
        JSON.stringify([tried.length, alive])
    "#
    );
    // These print, abort or evaluate, so the test must not call them even if they were enabled.
    let dangerous = [
        "op_panic",
        "op_print",
        "op_close",
        "op_read_sync",
        "op_write_sync",
        "op_import_sync",
        "op_eval_context",
        "op_compile_function",
        "op_load_ext_script",
        "op_lazy_load_esm",
        "op_dispatch_exception",
        "op_set_promise_hooks",
        "op_get_extras_binding_object",
        "op_serialize",
        "op_deserialize",
        "op_memory_usage",
    ];
    for name in dangerous {
        assert!(!ALLOWED_OPS.contains(&name) && !WEB_OPS.contains(&name), "{name}");
    }
    let answer = with_bare_runtime(move |runtime| evaluate(runtime, source));
    let (tried, alive): (usize, Vec<String>) = serde_json::from_str(&answer).unwrap();
    assert!(tried > 60, "{answer}");
    assert!(alive.is_empty(), "{alive:?}");
}

#[test]
fn nothing_of_the_engine_is_left_on_the_global_object() {
    let left = with_bare_runtime(|runtime| {
        assert_eq!(evaluate(runtime, "typeof Deno.core.ops.op_panic"), "function");
        take_entry_points(runtime).unwrap();
        evaluate(runtime, "[typeof Deno, typeof __bootstrap, typeof __cx, typeof WebAssembly].join()")
    });
    assert_eq!(left, "undefined,undefined,undefined,undefined");
}

/// ICU has one default for the process, which others change while their runs begin.
#[test]
fn an_isolate_keeps_its_time_zone_whatever_the_default_is() {
    const SOURCE: &str = "[new Date(0).getHours(), new Date(0).toLocaleTimeString('en-GB'), \
        Intl.DateTimeFormat().resolvedOptions().timeZone].join()";
    for (own, expected) in [("UTC", "0,00:00:00,UTC"), ("America/New_York", "19,19:00:00,America/New_York")] {
        let (answer, answered) = std::sync::mpsc::channel();
        let task = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _entered = runtime.enter();
            let mut isolate = Isolate::new(64 << 20).unwrap();
            let (own, other) = (TimeZone::find(own).unwrap(), TimeZone::find("Asia/Tokyo").unwrap());
            if own != TimeZone::UTC {
                isolate.set_time_zone(own).unwrap();
            }
            let seen = platform::with_default_time_zone(other, || evaluate(&mut isolate.runtime, SOURCE));
            answer.send(seen).unwrap();
        };
        platform::spawn("own".to_owned(), Box::new(task)).unwrap();
        assert_eq!(answered.recv().unwrap(), Ok(expected.to_owned()));
    }
}

/// V8 would look for the termination of such a loop only after many more turns.
#[test]
fn v_652_the_thread_of_an_abandoned_run_that_takes_memory_is_parked() {
    let (ended, end) = std::sync::mpsc::channel();
    let before = memory::parked();
    let task = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let stop = Arc::new(Stop::default());
        let meter = Arc::new(MemoryMeter::new(64 << 20, Arc::clone(&stop)));
        let mut bare = restore(&meter, &Rc::default(), 64 << 20).unwrap();
        memory::watch_heap(&mut bare, &meter);
        stop.abandon();
        let grows = "const k = []; for (let i = 0; i < 20; i++) { k.push('x'.repeat(2 ** 25) + i); k[i][0] } k.length";
        ended.send(evaluate(&mut bare, grows)).unwrap();
    };
    platform::spawn("grows".to_owned(), Box::new(task)).unwrap();
    while memory::parked() == before {
        let ended = end.recv_timeout(std::time::Duration::from_millis(10));
        assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "it took all that it wanted");
    }
}

/// The text comes from the guest's heap: what is wrong with it ends a run, and not the thread of all isolates.
#[test]
fn an_outcome_without_a_known_mark_is_broken() {
    assert!(matches!(marked_outcome("+12".to_owned(), 2), RawOutcome::Value(json) if json == "12"));
    assert!(matches!(marked_outcome("-{}".to_owned(), 2), RawOutcome::Threw(report) if report == "{}"));
    assert!(matches!(marked_outcome("+123".to_owned(), 2), RawOutcome::TooLarge(3)));
    for text in ["", "12", "é"] {
        assert!(matches!(marked_outcome(text.to_owned(), 2), RawOutcome::Broken(_)), "{text:?}");
    }
}
