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

#[cfg(target_os = "linux")]
#[test]
fn a_process_is_read_with_its_descendants() {
    let before = Activity::read(i32::try_from(std::process::id()).unwrap(), 0);
    let text = std::fs::read("/proc/self/maps").unwrap();
    let until = Instant::now() + Duration::from_millis(100);
    while Instant::now() < until {}
    let after = Activity::read(i32::try_from(std::process::id()).unwrap(), 0);
    assert!(after.bytes >= before.bytes + text.len() as u64, "{before:?} {after:?}");
    assert!(after.ticks >= before.ticks + MIN_TICKS, "{before:?} {after:?}");
    assert_eq!(
        Activity::read(i32::MAX, 3),
        Activity { stderr_bytes: 3, processes: vec![i32::MAX], ..Activity::default() }
    );
}
