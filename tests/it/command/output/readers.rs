//! Readers that stall or are slow.

use super::*;
use crate::support::serve::status_bytes;

/// A run whose stdout is a pipe that is not read.
struct Stalled {
    child: Child,
    _reader: PipeReader,
    _home: tempfile::TempDir,
}

impl Stalled {
    /// `with_stderr`: both streams are that pipe.
    fn start(arguments: &[&str], with_stderr: bool) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = cx(home.path(), arguments);
        command.stderr(if with_stderr { writer.try_clone().unwrap().into() } else { Stdio::piped() });
        let child = command.stdout(writer).spawn().unwrap();
        Self { child, _reader: reader, _home: home }
    }

    /// Waits until the pipe is full: its writer is blocked.
    fn wait_until_full(&self) {
        let threads = format!("/proc/{}/task", self.child.id());
        let is_blocked = || {
            fs::read_dir(&threads).unwrap().flatten().any(|thread| {
                let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
                read("comm").trim() == "cx-output" && read("wchan").contains("pipe_write")
            })
        };
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while !is_blocked() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Where the system does not say what a thread waits for, the test waits for a fixed time.
    }

    fn end(mut self) -> (Option<i32>, String) {
        let status = wait_for_end(&mut self.child, WATCHDOG);
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut said).unwrap();
        }
        (status.code(), said)
    }
}

#[test]
fn a_reader_that_stalls_does_not_outlast_the_timeout() {
    let flood = "for (;;) console.error('x'.repeat(100))";
    for (source, with_stderr) in
        [(ENDLESS, false), (ENDLESS, true), (flood, true), (MEGABYTE_OF_OUTPUT, false)]
    {
        // Long enough for the pipe to be full, also on a busy machine.
        let (status, said) = Stalled::start(&["run", "-e", source, "--timeout", "6s"], with_stderr).end();
        assert_eq!(status, Some(3), "{source}: {said}");
        let is_told = said.contains("error[TIMEOUT]") && said.contains(" bytes of output were not written");
        // Nobody reads stderr where it is that pipe too.
        assert_eq!(is_told, !with_stderr, "{said}");
    }
    // The result itself, which is written when the script has ended.
    let arguments = ["run", "-e", "return 'x'.repeat(1_000_000)", "--timeout", "6s", "--json"];
    let (status, said) = Stalled::start(&arguments, false).end();
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains(" bytes of output were not written: stdout is not read"), "{said}");
}

#[test]
fn a_reader_that_stalls_does_not_outlast_a_signal() {
    let result = "return 'x'.repeat(1_000_000)";
    for (signal, source, with_stderr) in [
        (Signal::INT, ENDLESS, false),
        (Signal::TERM, ENDLESS, true),
        (Signal::INT, result, false),
        (Signal::TERM, MEGABYTE_OF_OUTPUT, true),
    ] {
        let stalled = Stalled::start(&["run", "-e", source, "--timeout", "100s"], with_stderr);
        stalled.wait_until_full();
        kill_process(Pid::from_child(&stalled.child), signal).unwrap();
        let (status, said) = stalled.end();
        // That of a signal, long before the run's own limit.
        assert_eq!(status, Some(130), "{source}: {said}");
        assert_eq!(said.contains(" bytes of output were not written"), !with_stderr, "{said}");
    }
}

/// The script waits for the reader: its output is not buffered.
#[test]
fn a_reader_that_stalls_costs_no_memory() {
    let peak = |source: &str| {
        let stalled = Stalled::start(&["run", "-e", source, "--timeout", "60s"], false);
        stalled.wait_until_full();
        // This grows if the output is buffered.
        std::thread::sleep(Duration::from_secs(4));
        let peak = status_bytes(stalled.child.id(), "VmHWM:");
        kill_process(Pid::from_child(&stalled.child), Signal::INT).unwrap();
        stalled.end();
        peak >> 20
    };
    let ordinary = peak(MEGABYTE_OF_OUTPUT);
    let hostile =
        peak("const line = 'x'.repeat(1_000_000); for (;;) { console.log(line); console.error('\\x1b') }");
    assert!(hostile < ordinary + 24, "{hostile} MB, and {ordinary} MB of an ordinary run");
}

/// A reader that reads late gets everything: without `--timeout` the time of a run is that of its script.
#[test]
fn a_slow_reader_gets_everything() {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("slow.ts");
    fs::write(&script, MEGABYTE_OF_OUTPUT.replace("1_000_000", "200_000")).unwrap();
    let mut command = cx(home.path(), &["run", "slow.ts"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, format!("{}\n1\n", "x".repeat(200_000)));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A pipe that another program has made non-blocking works.
#[test]
fn a_stdout_that_does_not_block_is_written() {
    let home = tempfile::tempdir().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut command = cx(home.path(), &["run", "-e", MEGABYTE_OF_OUTPUT]);
    let mut child = command.stdout(writer).spawn().unwrap();
    drop(command);
    std::thread::sleep(Duration::from_millis(500));
    let mut printed = String::new();
    reader.read_to_string(&mut printed).unwrap();
    assert_eq!(printed.len(), 1_000_000 + 1 + 2);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
