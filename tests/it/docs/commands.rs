//! The `sh` blocks of documents, run by a real shell at a terminal, with the real command.
//!
//! Each page has its own home directory, of an existing user of cx: a configuration with the servers that the pages are
//! about, and the files that they name. The blocks of a page run in their order, as a reader would type them. Questions
//! are answered with yes. A command that runs until it is stopped gets Ctrl-C after some seconds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use cx::ProviderKind;
use serde_json::json;

use super::{Block, blocks, pages};
use crate::support::provider::{FakeProvider, Reply};

/// The attribute of a fence whose block does not run here, and the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("claude", "needs Claude Code, which the tests do not install; `command/setup.rs` checks the arguments"),
    ("cluster", "needs podman and a Kubernetes cluster; `server/deploy.rs` checks the files"),
    ("compiler", "needs `tsc` or `pyright`; `interop/types.rs` has them"),
    ("elsewhere", "needs a host that is an example; `server/remote.rs` has a real one"),
    ("queue", "needs a NATS server at an address that is an example; `server/nats.rs` has a real one"),
    ("repository", "builds and tests this repository, which takes minutes"),
    ("servers", "downloads servers from npm and PyPI; `recipes.rs` runs the scripts with them"),
    ("sign-in", "needs a browser and an authorization server; `upstream/sign_in.rs` has one"),
    ("system", "changes the system: its services, timers and files"),
];

/// The attribute of a fence whose block needs a server at the address that it names.
const SERVER: &str = "server";

/// The address of that server in the documents.
const ADDRESS: &str = "127.0.0.1:8000";

/// Long enough for any address.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Commands that run until they are stopped get Ctrl-C. They end with status 130 if it came during a run.
const WRAPPER: &str = r#"#!/bin/sh
case "$1 $* " in
    serve\ * | watch\ * | ui\ * | worker\ * | "top top " | *" --watch "*)
        timeout --foreground --preserve-status --kill-after 30 --signal INT 2 "CX" "$@"
        status=$?
        [ "$status" -eq 130 ] && status=0
        exit "$status"
        ;;
esac
exec "CX" "$@"
"#;

/// All attributes of `sh` blocks.
pub(super) fn marks() -> impl Iterator<Item = &'static str> {
    NOT_RUN.iter().map(|(mark, _)| *mark).chain([SERVER])
}

/// The home directory of the reader of one page.
struct Reader {
    home: tempfile::TempDir,
}

impl Reader {
    fn new(provider: &FakeProvider) -> Self {
        let reader = Self { home: tempfile::tempdir().unwrap() };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/issues.py");
        let newer = reader.home.path().join("newer");
        let server = json!({ "command": "python3", "args": [script, newer] });
        let servers = json!({ "github": server, "weather": server });
        let llm = json!({
            "provider": "openai", "url": provider.url(), "model": "fake-model",
            "apiKey": crate::support::provider::KEY,
        });
        reader.write(".config/cx/config.json", &json!({ "mcpServers": servers, "llm": llm }).to_string());
        reader.write("work/mcp.json", &json!({ "mcpServers": servers }).to_string());
        reader.write("work/.cx.json", r#"{ "deny": ["github.delete_*"] }"#);
        reader.write("work/input.json", r#"{ "owner": "octocat", "repo": "hello" }"#);
        reader.write("work/token", TOKEN);
        fs::set_permissions(reader.home.path().join("work/token"), fs::Permissions::from_mode(0o600))
            .unwrap();
        let typescript =
            "const issues = await tools.github.list_issues({ state: 'open' });\nreturn issues.length";
        for name in ["report.ts", "script.ts", "total.ts"] {
            reader.write(&format!("work/{name}"), typescript);
        }
        for name in ["report.py", "summary.py"] {
            reader.write(&format!("work/{name}"), "len(await tools.github.list_issues(state=\"open\"))\n");
        }
        let page = Path::new("docs/skills.md");
        let saved = blocks(page).into_iter().find(|block| block.text.contains("name: open-issues")).unwrap();
        reader.write("work/open-issues.ts", &saved.text);
        for directory in ["reports", "work/data", "work/out"] {
            fs::create_dir(reader.home.path().join(directory)).unwrap();
        }
        reader.write("bin/cx", &WRAPPER.replace("CX", env!("CARGO_BIN_EXE_cx")));
        let wrapper = reader.home.path().join("bin/cx");
        fs::set_permissions(wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        // The server's definitions have changed since it was asked first.
        let (screen, status) =
            reader.run("cx tools list --refresh && touch ~/newer && cx tools list --refresh");
        assert_eq!(status, Some(0), "{screen}");
        reader
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn surroundings<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let bin = self.home.path().join("bin");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        command
            .current_dir(self.home.path().join("work"))
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", path)
            .env("TERM", "xterm-256color")
            .env("TOKEN", TOKEN)
            // Opens nothing on the desktop of the user who runs the tests.
            .env("BROWSER", "true")
            .stdin(Stdio::null())
    }

    /// The screen after a shell has run a text, and the shell's status.
    fn run(&self, text: &str) -> (String, Option<i32>) {
        let terminal = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
        let mut command = Command::new("python3");
        command.arg(terminal).args(["y", "sh", "-euc"]);
        command.arg(format!("stty cols 120 rows 40\n{text}"));
        let output = self.surroundings(&mut command).output().unwrap();
        (String::from_utf8_lossy(&output.stdout).replace('\r', ""), output.status.code())
    }

    /// A server at a free port, and the port.
    fn serve(&self) -> (Served, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        command.args(["serve", "--http", "127.0.0.1:0", "--token-file", "token"]);
        let mut child = self.surroundings(&mut command).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}"));
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        (Served(child), address)
    }
}

/// A server that ends with its test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn of_pages() -> BTreeMap<PathBuf, Vec<Block>> {
    let is_shell = |block: &Block| block.language() == "sh";
    let of = |page: PathBuf| {
        let blocks: Vec<Block> = blocks(&page).into_iter().filter(is_shell).collect();
        (page, blocks)
    };
    pages().into_iter().map(of).filter(|(_, blocks)| !blocks.is_empty()).collect()
}

fn is_run(block: &Block) -> bool {
    !NOT_RUN.iter().any(|(mark, _)| block.has(mark))
}

/// A reason that no block uses any more would excuse a later block without a review.
#[test]
fn every_reason_not_to_run_a_block_is_used() {
    let all: Vec<Block> = of_pages().into_values().flatten().collect();
    for mark in marks() {
        assert!(all.iter().any(|block| block.has(mark)), "no block is `sh,{mark}`");
    }
}

#[test]
fn every_command_runs() {
    let answer = |_: &crate::support::provider::Asked| Reply::Text("yes".to_owned());
    let provider = FakeProvider::start(ProviderKind::OpenAi, answer);
    let mut waiting: Vec<(PathBuf, Vec<Block>)> = of_pages().into_iter().collect();
    waiting.retain(|(_, blocks)| blocks.iter().any(is_run));
    let (waiting, failures, run) = (Mutex::new(waiting), Mutex::new(Vec::new()), Mutex::new(0));
    // Most of the time is spent waiting for commands that are then stopped.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((_, blocks)) = waiting.lock().unwrap().pop() else { break };
                    let reader = Reader::new(&provider);
                    for block in blocks.iter().filter(|block| is_run(block)) {
                        // The port of a page may be in use.
                        let mut text = block.text.replace(":9464", ":0");
                        let mut served = None;
                        if block.has(SERVER) {
                            let (server, address) = reader.serve();
                            text = text.replace(ADDRESS, &address);
                            served = Some(server);
                        }
                        text = text.replace(ADDRESS, "127.0.0.1:0");
                        let (screen, status) = reader.run(&text);
                        drop(served);
                        *run.lock().unwrap() += 1;
                        if status != Some(0) {
                            let failure = format!("{}: status {status:?}\n{text}\n{screen}", block.location);
                            failures.lock().unwrap().push(failure);
                        }
                    }
                }
            });
        }
    });
    let (failures, run) = (failures.into_inner().unwrap(), run.into_inner().unwrap());
    assert!(failures.is_empty(), "{} of {run} blocks:\n{}", failures.len(), failures.join("\n---\n"));
    assert!(run >= 20, "{run} blocks ran");
}
