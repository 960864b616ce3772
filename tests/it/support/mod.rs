//! What tests of several folders use: executors, servers, clients, and processes that may die.

/// Whether answers have the fields that the output schemas name, and no others.
pub(crate) mod answers;
/// A process that may die of the script that it runs.
pub(crate) mod canary;
/// Certificates of servers on this machine.
pub(crate) mod certificates;
/// An upstream server that breaks one rule beside one that breaks none.
pub(crate) mod chaos;
/// A collector of OpenTelemetry.
pub(crate) mod collector;
/// A web server on loopback for scripts that fetch.
pub(crate) mod http_host;
/// Third-party servers and clients, where they are installed.
pub(crate) mod interop;
/// A dispatcher with every kind of result, and every way to give none.
pub(crate) mod mock;
/// A real NATS server, and the machines that execute the runs of its queue.
pub(crate) mod nats;
/// Accounts and credentials files of a NATS server.
pub(crate) mod nats_accounts;
/// Providers of language models over HTTP on loopback.
pub(crate) mod provider;
/// Executors that run Python, and a process that may die of it.
pub(crate) mod python_executor;
/// The scripts of `tests/scripts`, and their outcomes.
pub(crate) mod script_suite;
/// A client of `cx serve` over stdio.
pub(crate) mod serve;
/// `cx serve --http`, and requests to it.
pub(crate) mod serve_http;
/// A dispatcher that answers nothing.
pub(crate) mod silent;
/// Bounds on time that are promises.
pub(crate) mod stopwatch;
/// `cx ui`, its requests, and the page in a browser.
pub(crate) mod ui;

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cx::{ErrorCode, ExecuteResult, Executor, Language, Script};
use serde_json::Value;
use tokio::sync::OnceCell;

/// Ten times the same text.
macro_rules! ten {
    ($($text:tt)+) => {
        concat!(
            $($text)+, $($text)+, $($text)+, $($text)+, $($text)+, $($text)+, $($text)+, $($text)+, $($text)+, $($text)+
        )
    };
}

/// A script that does not come back for minutes after its time is over: 10,000 statements in which V8 makes two numbers
/// of a text of 16 MB. Each takes 20 ms, and longer on a slow machine. That is syntax, which can have no guard, and V8
/// looks for a termination only where a function begins and a turn of a loop ends. The reply still comes, and the
/// thread counts as a hung worker.
pub(crate) const WEDGE: &str = concat!("const s = ' '.repeat(2 ** 24);", ten!(ten!(ten!(ten!("s-s;")))));

/// An executor with the mock server.
pub(crate) fn executor() -> (Executor, mock::Mock) {
    let mock = mock::Mock::default();
    let executor = Executor::builder().dispatcher(mock.clone()).build().expect("an executor");
    (executor, mock)
}

/// As [`executor`], with a Python that starts at once: the compiled interpreter, which all executors of a process
/// share, is kept for the next process, so that only the first test ever compiles.
pub(crate) async fn python() -> (Executor, mock::Mock) {
    static COMPILED: OnceCell<()> = OnceCell::const_new();
    COMPILED
        .get_or_init(|| async {
            let compiling = Executor::builder().cache_directory(python_cache()).build().expect("an executor");
            compiling.warm(Language::Python).await.expect("Python starts");
        })
        .await;
    executor()
}

/// Where tests keep compiled interpreters.
pub(crate) fn python_cache() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    // Machine code is loaded only from directories that no other user can write to.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .expect("a directory for the cache");
    directory
}

/// Writes a file with a secret, which only its owner can read.
pub(crate) fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// The person's directories are in a temporary one.
pub(crate) fn own_files<'a>(command: &'a mut Command, directory: &Path) -> &'a mut Command {
    command
        .current_dir(directory)
        .env("HOME", directory)
        .env("XDG_STATE_HOME", directory)
        .env("XDG_CONFIG_HOME", directory)
        .env("XDG_CACHE_HOME", python_cache())
        .env_remove("CX_HTTP_TOKEN")
        .stdin(Stdio::null())
}

/// The person's directories are in a temporary one, and so is what is stored: a server whose list an earlier test has
/// stored would not be asked for it.
pub(crate) fn alone<'a>(command: &'a mut Command, directory: &Path) -> &'a mut Command {
    own_files(command, directory).env("XDG_CACHE_HOME", directory)
}

/// Runs one script on a separate executor.
pub(crate) async fn run(script: impl Into<Script>) -> ExecuteResult {
    executor().0.run(script).await.expect("the executor works")
}

/// Runs one script and returns its value.
pub(crate) async fn value(source: &str) -> Value {
    let result = run(source).await;
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

/// Runs one script and returns the code and the message of its failure.
pub(crate) async fn failure(source: &str) -> (ErrorCode, String) {
    let result = run(source).await;
    let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
    (error.code, error.message.clone())
}

/// The child processes of a process of this machine, and theirs, from `/proc`: of an executor these are the fork servers
/// and the workers.
pub(crate) fn descendants_of(process: u32) -> Vec<PathBuf> {
    let children = |process: &Path| -> Vec<PathBuf> {
        let Ok(threads) = std::fs::read_dir(process.join("task")) else { return Vec::new() };
        let of_thread =
            |thread: PathBuf| std::fs::read_to_string(thread.join("children")).unwrap_or_default();
        let all = threads.flatten().map(|thread| of_thread(thread.path())).collect::<Vec<_>>().join(" ");
        all.split_whitespace().map(|child| Path::new("/proc").join(child)).collect()
    };
    let mut found = children(&Path::new("/proc").join(process.to_string()));
    let theirs: Vec<PathBuf> = found.iter().flat_map(|child| children(child)).collect();
    found.extend(theirs);
    found
}

/// An address at which nobody listens, and nobody else will as long as the socket is there.
pub(crate) fn unheard_address() -> (tokio::net::TcpSocket, SocketAddr) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Waits for something that another thread brings about.
pub(crate) async fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..24_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it never happened");
}

/// The name by which this binary runs a test of `module`, which is the caller's `module_path!()`.
pub(crate) fn own_name(module: &str, test: &str) -> String {
    let (_crate_name, module) = module.split_once("::").expect("a module below the root");
    format!("{module}::{test}")
}

/// Runs `body` in its own process, because other tests of this one have memory and threads too, or because the process
/// may end: there the test of this name in `module` is started again, and then it runs the body.
pub(crate) fn in_its_own_process(module: &str, test: &str, body: impl Future<Output = ()>) {
    const ALONE: &str = "CX_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(body);
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &own_name(module, test)])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{output}{}", String::from_utf8_lossy(&child.stderr));
    assert!(output.contains("1 passed"), "{output}");
}
