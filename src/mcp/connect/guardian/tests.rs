use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpid};

use super::*;

/// A process group: a shell and a process that it has started, which ignores what a terminal sends.
fn group() -> Pid {
    #[expect(clippy::disallowed_methods, clippy::zombie_processes, reason = "the test kills and reaps it")]
    let child = Command::new("/bin/sh")
        .args(["-c", "trap '' HUP INT TERM; sleep 300 & exec sleep 300"])
        .process_group(0)
        .spawn()
        .unwrap();
    Pid::from_child(&child)
}

fn is_there(group: Pid) -> bool {
    // The leader is a child of this process, and a zombie is a part of its group.
    let _reaped = waitpid(Some(group), WaitOptions::NOHANG);
    test_kill_process_group(group).is_ok()
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "it takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_watched_is_killed_at_the_end_and_nothing_else() {
    let groups: Vec<Pid> = (0..4).map(|_| group()).collect();
    let GuardianState::Running { mut child, mut stdin } = spawn().unwrap() else { panic!("it does not run") };
    for group in &groups {
        writeln!(stdin, "+ {}", group.as_raw_nonzero()).unwrap();
    }
    for forgotten in [&groups[1], &groups[3]] {
        writeln!(stdin, "- {}", forgotten.as_raw_nonzero()).unwrap();
    }
    // A terminal and a supervisor signal groups; this one ignores it, once it has begun.
    let ignored = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
        u64::from_str_radix(line, 16).unwrap()
    };
    let wanted = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
    let wanted = wanted.iter().fold(0, |bits, signal| bits | 1 << (signal.as_raw() - 1));
    wait_until(|| ignored() & wanted == wanted);
    for signal in [Signal::INT, Signal::HUP, Signal::TERM] {
        kill_process_group(Pid::from_child(&child), signal).unwrap();
    }
    assert!(groups.iter().all(|group| is_there(*group)));
    drop(stdin);
    assert!(child.wait().unwrap().success());
    wait_until(|| !is_there(groups[0]) && !is_there(groups[2]));
    for left in [groups[1], groups[3]] {
        assert!(is_there(left));
        kill_process_group(left, Signal::KILL).unwrap();
        wait_until(|| !is_there(left));
    }
}
