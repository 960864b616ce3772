use std::io::Read as _;
use std::process::{Command, Stdio};
use std::{env, thread};

use rustix::fs::{OFlags, fcntl_setfl};

use super::*;
use crate::args::LogFormat;
use crate::logging;

/// Each piece of the line is taken in time, and the whole line would take for 13 seconds.
#[test]
fn v_795_a_reader_that_reads_a_little_now_and_then_delays_no_line_for_long() {
    let (mut reader, writer) = io::pipe().unwrap();
    let reading = thread::spawn(move || {
        let mut piece = [0; 4_096];
        while reader.read(&mut piece).is_ok_and(|count| count > 0) {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let mut last = LastLine::Written;
    write_to(writer.as_fd(), &mut last, "a".repeat(1 << 20).as_bytes());
    assert_eq!(last, LastLine::Cut);
    drop(writer);
    reading.join().unwrap();
}

/// In a process of its own, which is this test again: stderr and the hook are those of the process.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts itself, and tells itself so")]
fn v_799_a_thread_that_panics_does_not_wait_for_the_reader_of_stderr() {
    const NAME: &str = "stderr::tests::v_799_a_thread_that_panics_does_not_wait_for_the_reader_of_stderr";
    const IS_CHILD: &str = "CX_TEST_OF_A_PANIC";
    if env::var_os(IS_CHILD).is_some() {
        logging::start_of_service(LogFormat::Json);
        assert!(thread::spawn(|| panic!("as any fault")).join().is_err());
        return;
    }
    let (_unread, writer) = io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[b'.'; 512]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", NAME]).env(IS_CHILD, "1").env_remove("CX_LOG");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("it waits for the reader of its stderr");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
