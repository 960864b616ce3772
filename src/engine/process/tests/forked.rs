//! Workers that a fork server has made: what they must not have in common, and what its end costs.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::{Stage, printed, text};
#[cfg(feature = "python")]
use crate::run::script::Language;

/// The parent of a process.
fn parent(pid: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.unwrap().trim().to_owned()
}

/// The process of a worker, and its parent.
async fn worker_and_parent(stage: &Stage) -> (String, String) {
    let result = stage.run("// hostile: parent\nreturn 1").await;
    let printed = printed(&result);
    let (pid, parent) = printed.split_once(' ').unwrap();
    (pid.to_owned(), parent.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_forked_of_one_process() {
    let stage = Stage::new(1, 1);
    let mut workers = BTreeSet::new();
    let mut parents = BTreeSet::new();
    for _ in 0..4 {
        let (worker, parent) = worker_and_parent(&stage).await;
        workers.insert(worker);
        parents.insert(parent);
    }
    assert_eq!((workers.len(), parents.len()), (4, 1), "{workers:?} {parents:?}");
    let server = parents.pop_first().unwrap();
    assert_eq!(parent(&server), std::process::id().to_string());
}

/// Over the connection of its fork server a worker could read who else gets one.
#[tokio::test(flavor = "multi_thread")]
async fn a_forked_worker_has_no_connection_but_its_own() {
    let stage = Stage::new(1, 1);
    let (_worker, parent) = worker_and_parent(&stage).await;
    assert_ne!(parent, std::process::id().to_string());
    assert_eq!(printed(&stage.run("// hostile: sockets\nreturn 1").await), "1");
}

/// The memory of its first run is one that the fork server has made, and is used again. What is restored is what this
/// process has written.
#[cfg(feature = "python")]
#[tokio::test(flavor = "multi_thread")]
async fn a_run_leaves_nothing_in_the_memory_that_its_worker_was_forked_with() {
    let cache = tempfile::tempdir().unwrap();
    let stage = Stage::of_language(Language::Python, 4, 1, vec![cache.path().to_owned()]);
    let modules =
        "import sys\nmodules = [m for m in list(sys.modules.values()) if isinstance(m, type(sys))]\n";
    let leave = format!(
        "# hostile: parent\n{modules}for module in modules:\n    vars(module)['left'] = 1\nreturn len(modules) > 20"
    );
    let find =
        format!("# hostile: parent\n{modules}return sum('left' in vars(module) for module in modules)");
    let left = stage.run(&leave).await;
    let found = stage.run(&find).await;
    assert_eq!((text(&left), text(&found)), ("true".to_owned(), "0".to_owned()));
    assert_eq!(printed(&left), printed(&found), "the same worker");
}

/// Each value is drawn once: by workers of one run, whose instance is the fork server's, and of two, whose second one
/// is not.
async fn draws(stage: Stage, source: &str) {
    let mut drawn = BTreeSet::new();
    let mut count = 0;
    for _ in 0..6 {
        let values: Vec<String> = serde_json::from_str(&text(&stage.run(source).await)).unwrap();
        count += values.len();
        drawn.extend(values);
    }
    assert_eq!(drawn.len(), count, "{drawn:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v_693_forked_workers_draw_random_numbers_of_their_own() {
    let source = "return [String(Math.random()), String(Math.random()), crypto.randomUUID(), \
                  String(crypto.getRandomValues(new Uint32Array(2)))]";
    draws(Stage::new(1, 1), source).await;
    draws(Stage::new(2, 1), source).await;
}

#[cfg(feature = "python")]
#[tokio::test(flavor = "multi_thread")]
async fn v_693_forked_workers_of_python_draw_random_numbers_of_their_own() {
    let cache = tempfile::tempdir().unwrap();
    let source = "import os, random, secrets, tempfile, uuid\n\
                  return [str(random.random()), str(random.Random().random()), os.urandom(8).hex(), \
                  secrets.token_hex(8), str(uuid.uuid1()), str(uuid.uuid4()), tempfile.mktemp()]";
    let stage = |runs| Stage::of_language(Language::Python, runs, 1, vec![cache.path().to_owned()]);
    draws(stage(1), source).await;
    draws(stage(2), source).await;
}

/// Runs go on without it, in workers that are started as processes of their own.
#[tokio::test(flavor = "multi_thread")]
async fn v_694_a_fork_server_that_is_killed_costs_no_later_run() {
    let stage = Stage::new(1, 1);
    let (_worker, server) = worker_and_parent(&stage).await;
    kill_process(Pid::from_raw(server.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    // The kernel ends its idle worker with it, which a run may get before the pool knows.
    let own = std::process::id().to_string();
    super::wait_until(async || {
        let result = stage.run("// hostile: parent\nreturn 1").await;
        printed(&result).split_once(' ').is_some_and(|(_worker, parent)| parent == own)
    })
    .await;
    assert_eq!(text(&stage.run("return 'after'").await), "\"after\"");
}
