//! Workers that a fork server has made: what they must not have in common, and what its end costs.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

use super::{Stage, argument_after, children, code, printed, program, short, text, wait_until};
use crate::engine::engines;
use crate::engine::process::sandbox::max_threads;
use crate::engine::process::{WorkerProgram, WorkerRole, own_socket};
use crate::machine::{self, SandboxFeatures};
use crate::run::context::RunEnvironment;
use crate::run::result::{ErrorCode, Outcome, Output};
use crate::run::script::{Language, Script};

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

/// What `look` finds of a worker while its run is in flight: the worker cannot go on before its line was heard.
async fn looked_at<T: Send + 'static>(stage: &Stage, look: impl Fn(&str) -> T + Send + Sync + 'static) -> T {
    let seen = Arc::<Mutex<Option<T>>>::default();
    let kept = Arc::clone(&seen);
    let mut script = Script::typescript("// hostile: pid\nreturn 1");
    script.on_output = Some(Arc::new(move |entry, _cancel| {
        let Output::Log { text, .. } = entry else { return };
        *kept.lock() = Some(look(text));
    }));
    let environment = RunEnvironment::empty(short(), tokio::runtime::Handle::current());
    assert_eq!(text(&stage.run_in(environment, script).await), "1");
    seen.lock().take().unwrap()
}

/// Sends a signal to a fork server.
fn signal(server: &str, signal: Signal) {
    let server = Pid::from_raw(server.parse().unwrap()).unwrap();
    assert_ne!(server, getpid(), "the worker is not forked");
    kill_process(server, signal).unwrap();
}

/// What the descriptors of a process are, such as `socket:[17]`. Of those without a file there is the kind only. `None`
/// if that may not be seen: of a worker it may be by root.
fn descriptors(process: &str) -> Option<Vec<String>> {
    let mut links = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten() {
        match fs::read_link(entry.path()) {
            Ok(link) => links.push(link.to_string_lossy().into_owned()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
            // It was closed meanwhile.
            Err(_) => {}
        }
    }
    links.retain(|link| link != "/dev/null");
    Some(links)
}

fn sockets(descriptors: &[String]) -> BTreeSet<&String> {
    descriptors.iter().filter(|link| link.starts_with("socket:")).collect()
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
    let mut tenant = 0;
    // A worker whose run took long, as on a busy machine, is not used again.
    wait_until(async || {
        tenant += 1;
        let name = format!("tenant-{tenant}");
        let left = stage.run_for(Some(&name), &leave, short()).await;
        let found = stage.run_for(Some(&name), &find, short()).await;
        assert_eq!((text(&left), text(&found)), ("true".to_owned(), "0".to_owned()));
        printed(&left) == printed(&found)
    })
    .await;
}

/// Kilobytes of memory that a process has written and shares with no other one. Of a worker only root may see it.
#[cfg(feature = "python")]
fn own_kilobytes(process: &str) -> std::io::Result<u32> {
    let memory = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let own = memory.lines().find_map(|line| line.strip_prefix("Private_Dirty:"));
    Ok(own.and_then(|own| own.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0))
}

/// To copy a page when a script first writes it would be part of its run.
#[cfg(feature = "python")]
#[tokio::test(flavor = "multi_thread")]
async fn a_forked_worker_has_copied_the_memory_of_a_run_before_it_gets_one() {
    let cache = tempfile::tempdir().unwrap();
    let stage = Stage::of_language(Language::Python, 1, 1, vec![cache.path().to_owned()]);
    let printed = printed(&stage.run("# hostile: parent\nreturn 1").await);
    let (used, server) = printed.split_once(' ').unwrap();
    // Without it a worker that waits has 1,400, and with it 2,500 or more, in a development build 5,500.
    let has_copied = |worker: &String| match own_kilobytes(worker) {
        _ if worker == used => false,
        Ok(own) => own > 2_000,
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    };
    wait_until(async || children(server).iter().any(has_copied)).await;
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

/// A worker that was taken over would reach other workers, or the executor, over what it shares with them.
#[tokio::test(flavor = "multi_thread")]
async fn v_695_a_forked_worker_has_no_descriptor_of_another_process() {
    let stage = Stage::new(1, 2);
    stage.pool.engine().warm().await;
    // The first one was forked while there was no other one.
    assert_eq!(text(&stage.run("return 1").await), "1");
    let (server, own) = looked_at(&stage, |worker| (parent(worker), descriptors(worker))).await;
    let Some(own) = own else { return };
    let mut of_server = Vec::new();
    // While it forks, it has the connection of the new worker.
    wait_until(async || {
        of_server = descriptors(&server).unwrap();
        sockets(&of_server).len() == 1
    })
    .await;
    assert!(
        of_server.iter().all(|link| link.starts_with("socket:") || link.contains("pidfd")),
        "{of_server:?}"
    );
    assert!(own.iter().all(|link| !link.contains("pidfd")), "{own:?}");
    assert!(!sockets(&own).is_empty(), "{own:?}");
    assert!(sockets(&own).is_disjoint(&sockets(&of_server)), "{own:?} {of_server:?}");
}

/// A fork server that has threads, such as this test program or one that had to compile its engine, cannot leave the
/// network, nor the executor's user namespace. Its workers can.
#[tokio::test(flavor = "multi_thread")]
async fn v_698_a_worker_leaves_the_network_that_its_fork_server_could_not_leave() {
    #[expect(clippy::disallowed_methods, reason = "whether the machine permits it")]
    let permitted = Command::new("unshare").args(["--user", "--net", "true"]).stderr(Stdio::null()).status();
    if !permitted.is_ok_and(|status| status.success()) {
        return;
    }
    let (network, limits) = looked_at(&Stage::new(1, 1), |worker| {
        let network = fs::read_link(format!("/proc/{worker}/ns/net"));
        (network, fs::read_to_string(format!("/proc/{worker}/limits")).unwrap())
    })
    .await;
    match network {
        Ok(network) => assert_ne!(network, fs::read_link("/proc/self/ns/net").unwrap()),
        // Of a worker only root may see it.
        Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    }
    if SandboxFeatures::of_kernel().landlock_abi >= Some(2) {
        let most = max_threads(machine::processors()).to_string();
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max processes")).unwrap();
        assert_eq!(limit.split_whitespace().next(), Some(&*most), "{limits}");
    }
}

/// Only the fork server learns how a worker has ended. On a busy machine it may tell that after the run's result.
async fn says_how_a_worker_has_ended(stage: &Stage) {
    let (_worker, server) = worker_and_parent(stage).await;
    assert_ne!(server, std::process::id().to_string(), "the worker is not forked");
    wait_until(async || {
        let result = stage.run("// hostile: abort\nreturn 1").await;
        let Outcome::Failed(error) = &result.outcome else { panic!("{result:?}") };
        assert_eq!(error.code, ErrorCode::EngineCrashed, "{error:?}");
        error.message.contains("aborted (signal 6, SIGABRT)")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_said_how_a_forked_worker_has_ended() {
    says_how_a_worker_has_ended(&Stage::new(1, 1)).await;
}

/// The name of the test that is the worker of the next one, and the argument by which it knows that.
const IGNORING: &str = "engine::process::tests::forked::ignoring";
const IGNORING_MARK: &str = "--skip=this-worker-ignores-its-children";

/// Not a test: the worker of the next one, as if the program that started it ignored the ends of its children.
#[test]
fn ignoring() {
    if argument_after(IGNORING_MARK).is_some() {
        #[expect(unsafe_code, reason = "what another program has done")]
        // SAFETY: no handler is installed, and this process has no children yet.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        engines::work(own_socket().unwrap());
    }
}

/// The system keeps no statuses for a process that ignores the ends of its children, as it does if the program that has
/// started it did.
#[tokio::test(flavor = "multi_thread")]
async fn v_697_a_fork_server_does_not_ignore_the_ends_of_its_workers() {
    let role = WorkerRole::Worker { forks: true };
    let ignoring = WorkerProgram { role, ..program(IGNORING, IGNORING_MARK, 1) };
    says_how_a_worker_has_ended(&Stage::with(ignoring, Language::TypeScript, 1, Vec::new())).await;
}

/// The name of the test that is the process of the next one, and the argument by which it knows that.
const FIRST: &str = "engine::process::tests::forked::first_process";
const FIRST_MARK: &str = "--skip=this-is-the-first-process";

/// Not a test: the process of the next one. Processes whose parent has ended become its children.
#[test]
fn first_process() {
    if argument_after(FIRST_MARK).is_none() {
        return;
    }
    set_child_subreaper(Some(getpid())).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let stage = Stage::new(1, 1);
        let (_worker, server) = worker_and_parent(&stage).await;
        // The executor knows of those that are confined.
        let is_confined = |worker: &String| {
            let status = fs::read_to_string(format!("/proc/{worker}/status")).unwrap_or_default();
            status.lines().any(|line| line == "Seccomp:\t2")
        };
        let mut idle = Vec::new();
        wait_until(async || {
            idle = children(&server);
            !idle.is_empty() && idle.iter().all(is_confined)
        })
        .await;
        signal(&server, Signal::KILL);
        wait_until(async || idle.iter().all(|worker| !Path::new("/proc").join(worker).exists())).await;
    });
}

#[test]
fn v_697_no_worker_stays_as_a_zombie_where_the_executor_is_the_first_process() {
    #[expect(clippy::disallowed_methods, reason = "the process is this test program")]
    let output = Command::new("/proc/self/exe")
        .args(["--exact", FIRST, "--nocapture", "--test-threads=1", FIRST_MARK])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// It cannot tell anything, so nobody waits for what it would tell.
#[tokio::test(flavor = "multi_thread")]
async fn v_696_a_fork_server_that_is_stopped_costs_no_run_and_ends_with_its_executor() {
    let stage = Stage::new(1, 1);
    let (_worker, server) = worker_and_parent(&stage).await;
    signal(&server, Signal::STOP);
    let own = std::process::id().to_string();
    wait_until(async || {
        let result = stage.run("// hostile: parent\nreturn 1").await;
        assert_eq!(code(&result), None, "{result:?}");
        printed(&result).split_once(' ').is_some_and(|(_worker, parent)| parent == own)
    })
    .await;
    drop(stage);
    wait_until(async || !Path::new("/proc").join(&server).exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v_694_a_run_ends_with_the_fork_server_of_its_worker() {
    let stage = Stage::new(1, 1);
    let mut script = Script::typescript("// hostile: kill\nreturn 1");
    script.on_output = Some(Arc::new(|entry, _cancel| {
        let Output::Log { text, .. } = entry else { return };
        signal(&parent(text), Signal::KILL);
    }));
    let environment = RunEnvironment::empty(short(), tokio::runtime::Handle::current());
    let result = stage.run_in(environment, script).await;
    assert_eq!(code(&result), Some(ErrorCode::EngineCrashed), "{result:?}");
}

/// The workers of a fork server have the same addresses. A script that knows a bug of its engine could try one after the
/// other until its worker does not crash.
#[tokio::test(flavor = "multi_thread")]
async fn v_705_after_a_crash_workers_are_forked_from_another_process() {
    let stage = Stage::new(1, 1);
    let (_worker, first) = worker_and_parent(&stage).await;
    let own = std::process::id().to_string();
    assert_ne!(first, own, "the worker is not forked");
    let mut server = first.clone();
    // Not immediately, and those that were forked before are still used.
    wait_until(async || {
        let result = stage.run("// hostile: fault\nreturn 1").await;
        assert_eq!(code(&result), Some(ErrorCode::EngineCrashed), "{result:?}");
        server = worker_and_parent(&stage).await.1;
        server != first
    })
    .await;
    assert_ne!(server, own, "the worker is not forked");
}

/// When the machine has no memory left.
#[tokio::test(flavor = "multi_thread")]
async fn v_694_the_kernel_ends_a_worker_rather_than_its_fork_server() {
    let score = |process: &str| -> i32 {
        fs::read_to_string(format!("/proc/{process}/oom_score_adj")).unwrap().trim().parse().unwrap()
    };
    let look = move |worker: &str| (score(worker), score(&parent(worker)));
    let (of_worker, of_server) = looked_at(&Stage::new(1, 1), look).await;
    assert_eq!(of_worker, (of_server + 100).min(1000));
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
