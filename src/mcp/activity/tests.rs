use super::*;

#[test]
fn what_counts_as_work() {
    let idle = Activity { stderr_bytes: 1, processes: vec![1, 2], ticks: 5, bytes: 10_000 };
    let with = |change: fn(&mut Activity)| {
        let mut activity = idle.clone();
        change(&mut activity);
        activity.differs(&idle)
    };
    assert!(!idle.differs(&idle));
    assert!(with(|activity| activity.stderr_bytes += 1));
    assert!(with(|activity| activity.processes.push(3)) && with(|activity| activity.processes[1] = 3));
    assert!(
        with(|activity| activity.ticks += MIN_TICKS) && !with(|activity| activity.ticks += MIN_TICKS - 1)
    );
    assert!(
        with(|activity| activity.bytes += MIN_BYTES) && !with(|activity| activity.bytes += MIN_BYTES - 1)
    );
    // A descendant that has ended takes its bytes along.
    assert!(!with(|activity| activity.bytes -= 5_000));
}

/// In a process of its own with a descendant, since other tests are in this one.
#[cfg(target_os = "linux")]
#[test]
fn a_process_is_read_with_its_descendants() {
    use std::io::Write as _;
    use std::os::unix::process::CommandExt as _;

    const READ: usize = 4_096;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a\n".repeat(READ / 2)).unwrap();
    // The descendant ends by itself if this test fails.
    let script = "read line; (while read line; do :; done < \"$0\"; \
                  n=0; while [ $n -lt 100000000 ]; do n=$((n+1)); done); read line";
    #[expect(clippy::disallowed_methods, reason = "the process that is examined")]
    let mut shell = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(file.path())
        .stdin(std::process::Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let process = i32::try_from(shell.id()).unwrap();
    let before = Activity::read(process, 0);
    shell.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let began = Instant::now();
    loop {
        let after = Activity::read(process, 0);
        let has_read = after.bytes >= before.bytes + READ as u64;
        if has_read && after.ticks >= before.ticks + MIN_TICKS && after.processes.len() == 2 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{before:?} {after:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    let group = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    shell.wait().unwrap();
    assert_eq!(
        Activity::read(i32::MAX, 3),
        Activity { stderr_bytes: 3, processes: vec![i32::MAX], ..Activity::default() }
    );
}
