//! Walks over the functions of each language.

use super::*;

/// Makes the calls, and returns each function with a finding, and a script that shows it.
fn walk(surface: &Surface, calls: u64, seed: u64) -> BTreeMap<(String, Fault), String> {
    let found = Mutex::new(BTreeMap::new());
    let (next, runs) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CANARIES {
            scope.spawn(|| {
                let mut stage = Stage::new(surface.python);
                loop {
                    let batch = next.fetch_add(1, Ordering::Relaxed);
                    let first = batch * BATCH;
                    if first >= calls {
                        break;
                    }
                    for (key, script) in
                        walk_batch(surface, &mut stage, seed, first, calls.min(first + BATCH))
                    {
                        found.lock().unwrap().entry(key).or_insert(script);
                    }
                    if first.is_multiple_of(BATCH * 256) && calls > SHORT {
                        let (so_far, seconds) = (found.lock().unwrap().len(), started.elapsed().as_secs());
                        write_log(&format!("{first} of {calls} calls after {seconds} s, {so_far} findings"));
                    }
                }
                runs.fetch_add(stage.runs, Ordering::Relaxed);
            });
        }
    });
    let (functions, values, runs) = (surface.functions.len(), surface.values.len(), runs.into_inner());
    let seconds = started.elapsed().as_secs();
    write_log(&format!(
        "{calls} calls of {functions} functions with {values} values, {runs} runs, {seconds} s, seed {seed}"
    ));
    found.into_inner().unwrap()
}

/// Printed with `--nocapture`, which `make walk` sets.
#[expect(clippy::print_stderr, reason = "a test that takes an hour says where it is")]
fn write_log(line: &str) {
    eprintln!("{line}");
}

fn walk_batch(
    surface: &Surface,
    stage: &mut Stage,
    seed: u64,
    first: u64,
    end: u64,
) -> Vec<((String, Fault), String)> {
    let calls: Vec<_> = (first..end).map(|number| surface.call(seed, number)).collect();
    let mut found = Vec::new();
    let mut rest = calls.as_slice();
    while !rest.is_empty() {
        let (faults, begun) = stage.run(&surface.script(rest), rest.len(), false);
        let (made, left) = rest.split_at(begun);
        if !faults.is_empty() {
            found.extend(culprits(surface, stage, made, &faults));
        }
        rest = left;
    }
    found
}

/// Runs each call on its own, because the run of all of them was not as it should be.
fn culprits(
    surface: &Surface,
    stage: &mut Stage,
    calls: &[(&Function, String)],
    faults: &[Fault],
) -> Vec<((String, Fault), String)> {
    let mut found = Vec::new();
    for call in calls {
        let script = surface.script(std::slice::from_ref(call));
        let (once, _) = stage.run(&script, 1, true);
        if once.is_empty() {
            continue;
        }
        // A second time in another process: a finding that does not repeat was caused by the machine.
        let (again, _) = stage.run(&script, 1, true);
        for fault in again {
            if once.iter().any(|first| std::mem::discriminant(first) == std::mem::discriminant(&fault)) {
                found.push(((call.0.expression.clone(), fault), script.clone()));
            }
        }
    }
    if found.is_empty() {
        // No single call causes it; several together may.
        let script = surface.script(calls);
        let (again, _) = stage.run(&script, calls.len(), true);
        for fault in again {
            if faults.iter().any(|first| std::mem::discriminant(first) == std::mem::discriminant(&fault)) {
                // The last call that was begun is the one that did not return.
                let name = match (&fault, calls.last()) {
                    (Fault::Parked, Some((last, _))) => last.expression.clone(),
                    _ => format!("{} calls together", calls.len()),
                };
                found.push(((name, fault), script.clone()));
            }
        }
    }
    found
}

/// Walks, and fails with every finding that is not known, and its script.
async fn check(python: bool, calls: u64) {
    let surface = Surface::read(python).await;
    assert!(!surface.functions.is_empty());
    let seed = setting("CX_WALK_SEED").unwrap_or(1);
    let found = tokio::task::spawn_blocking(move || walk(&surface, calls, seed)).await.unwrap();
    if setting("CX_WALK_WRITE").is_some() {
        Known::write(&found);
    }
    let known = Known::read();
    let mut report = String::new();
    for (index, ((function, fault), script)) in found.iter().enumerate() {
        if known.has(function, fault) {
            continue;
        }
        let name = format!("walk-finding-{index}.{}", if python { "py" } else { "js" });
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, script).unwrap();
        let own: Vec<&str> =
            script.lines().filter(|line| line.contains("call(") || line.contains("use(")).collect();
        let last = own.last().unwrap_or(&"");
        report.push_str(&format!("{function}: {fault:?}\n    {last}\n    {}\n", path.display()));
    }
    assert!(report.is_empty(), "seed {seed}:\n{report}");
}

/// The long form, or the short one, over everything that TypeScript can reach.
#[tokio::test]
async fn v_305_every_function_of_typescript() {
    check(false, setting("CX_WALK_CALLS").unwrap_or(SHORT)).await;
}

/// The same over Python: builtins and every module of the table.
#[tokio::test]
async fn v_306_every_function_of_python() {
    check(true, setting("CX_WALK_CALLS").unwrap_or(SHORT)).await;
}

/// The same seed gives the same call, and another seed another call.
#[test]
fn v_305_calls_are_made_from_the_seed() {
    let functions = (0..7).map(|number| Function {
        expression: format!("f{number}"),
        receiver: "undefined".to_owned(),
        parameters: 2,
    });
    let values = (0..50).map(|number| format!("v{number}")).collect();
    let surface = Surface { python: false, prelude: "", functions: functions.collect(), values };
    let texts = |seed| (0..100).map(|number| surface.call(seed, number).1).collect::<Vec<_>>();
    assert_eq!(texts(1), texts(1));
    assert_ne!(texts(1), texts(2));
}
