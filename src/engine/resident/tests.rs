use super::*;

/// A guard of a process with the resident memory that a test writes to this file, and of one run on this thread. The
/// memory of the tests' own process changes with every other test.
fn guard_of(limit: usize, statm: &tempfile::NamedTempFile) -> (ResidentGuard, Arc<Stop>) {
    let guard = ResidentGuard {
        statm: Some(statm.reopen().unwrap()),
        page_bytes: rustix::param::page_size(),
        fault_bytes: max_fault_bytes(Path::new(HUGE_PAGES)),
        state: Mutex::default(),
    };
    let stop = Arc::new(Stop::default());
    let entry = Entry {
        limit,
        stop: Arc::clone(&stop),
        thread: rustix::thread::gettid(),
        faults_before: own_faults(),
    };
    guard.state.lock().runs.push(Arc::new(entry));
    (guard, stop)
}

/// Writes so many resident bytes to the file.
fn set_resident(statm: &tempfile::NamedTempFile, bytes: usize) {
    std::fs::write(statm.path(), format!("1 {:020} 0", bytes / rustix::param::page_size())).unwrap();
}

#[test]
fn memory_that_no_meter_counts_stops_the_run_that_touched_it() {
    let statm = tempfile::NamedTempFile::new().unwrap();
    let (guard, stop) = guard_of(16 << 20, &statm);
    let began = Instant::now();
    // Large enough that the allocator maps new memory for it.
    let touched = vec![1_u8; 64 << 20];
    set_resident(&statm, SLACK_BYTES + (16 << 20));
    guard.check(began);
    assert_eq!(stop.reason(), None, "all runs together may have as much");
    set_resident(&statm, SLACK_BYTES + (17 << 20));
    guard.check(began + INTERVAL);
    assert_eq!(stop.reason(), Some(StopReason::Memory));
    drop(touched);
}

#[test]
fn memory_that_others_touch_is_not_blamed_on_a_run() {
    let statm = tempfile::NamedTempFile::new().unwrap();
    let (mut guard, stop) = guard_of(16 << 20, &statm);
    // With larger ones the few faults of this thread could be its whole limit.
    guard.fault_bytes = guard.page_bytes;
    let within = vec![1_u8; 4 << 20];
    let beyond = std::thread::spawn(|| vec![1_u8; 64 << 20]).join().unwrap();
    set_resident(&statm, SLACK_BYTES + (16 << 20) + (256 << 20));
    guard.check(Instant::now());
    assert_eq!(stop.reason(), None);
    drop((within, beyond));
}

/// It may hold that until the process ends: each check would stop it again, or another run in its place.
#[test]
fn v_652_what_an_abandoned_run_holds_stops_no_run() {
    let statm = tempfile::NamedTempFile::new().unwrap();
    let (guard, abandoned) = guard_of(16 << 20, &statm);
    let check = |resident: usize, at: Instant| {
        set_resident(&statm, resident);
        guard.check(at);
    };
    abandoned.abandon();
    let held = vec![1_u8; SLACK_BYTES + (256 << 20)];
    let began = Instant::now();
    check(held.len(), began);
    assert_eq!(abandoned.reason(), None, "it has stopped, as far as it can");
    let stop = Arc::new(Stop::default());
    let (limit, thread) = (16 << 20, rustix::thread::gettid());
    let entry = Entry { limit, stop: Arc::clone(&stop), thread, faults_before: own_faults() };
    guard.state.lock().runs.push(Arc::new(entry));
    // Large enough that the allocator maps new memory for it.
    let touched = vec![1_u8; 64 << 20];
    check(held.len() + touched.len(), began + INTERVAL);
    assert_eq!(stop.reason(), None, "the other one holds the memory");
    check(1 << 50, began + 2 * INTERVAL);
    assert_eq!((stop.reason(), abandoned.reason()), (Some(StopReason::Memory), None));
    drop((held, touched));
}

/// A worker that seems to have no memory is killed. Before Linux 6.16 the kernel counts resident pages late, and says
/// so of a process that has just started.
#[test]
fn v_684_only_a_process_without_mapped_memory_has_none() {
    let statm = tempfile::NamedTempFile::new().unwrap();
    let page = rustix::param::page_size();
    for (text, bytes) in [
        ("619 363 337 1 0 89 0\n", Some(363 * page)),
        ("619 0 0 1 0 89 0\n", Some(page)),
        ("0 0 0 0 0 0 0\n", Some(0)),
        ("", None),
    ] {
        std::fs::write(statm.path(), text).unwrap();
        assert_eq!(resident_bytes(statm.as_file()), bytes, "{text}");
    }
}

#[test]
fn a_thread_counts_its_own_faults() {
    let before = own_faults();
    // Large enough that the allocator maps new memory for it.
    let touched = vec![1_u8; 64 << 20];
    let faults = (64 << 20) / max_fault_bytes(Path::new(HUGE_PAGES));
    assert!(own_faults() - before >= faults, "{} of {faults}", own_faults() - before);
    assert!(thread_faults(rustix::thread::gettid()).unwrap() >= own_faults() - 64);
    drop(touched);
}

#[test]
fn memory_of_ended_runs_is_released_once() {
    let statm = tempfile::NamedTempFile::new().unwrap();
    let (guard, _stop) = guard_of(16 << 20, &statm);
    let set_resident = |bytes: usize| set_resident(&statm, bytes);
    let asked = std::cell::Cell::new(0);
    let idle = || guard.idle(|| asked.set(asked.get() + 1));
    set_resident(64 << 20);
    idle();
    assert_eq!(asked.get(), 1, "there was nothing before");
    set_resident((64 << 20) + LEFT_BEHIND_BYTES);
    idle();
    assert_eq!(asked.get(), 1, "a little more, which is not worth it");
    set_resident((65 << 20) + 2 * LEFT_BEHIND_BYTES);
    idle();
    idle();
    assert_eq!(asked.get(), 2, "much more, and then nothing more");
}

#[test]
fn a_fault_maps_what_the_kernel_says() {
    let place = tempfile::tempdir().unwrap();
    let page = rustix::param::page_size();
    assert_eq!(max_fault_bytes(&place.path().join("none")), PAGES_OF_A_FAULT * page);
    let enable = |size: &str, text: &str| {
        let directory = place.path().join(size);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("enabled"), text).unwrap();
    };
    enable("", "always [madvise] never\n");
    assert_eq!(max_fault_bytes(place.path()), page);
    enable("hugepages-64kB", "always inherit madvise [never]\n");
    enable("hugepages-2048kB", "always [inherit] madvise never\n");
    assert_eq!(max_fault_bytes(place.path()), page);
    enable("hugepages-64kB", "[always] inherit madvise never\n");
    assert_eq!(max_fault_bytes(place.path()), 64 << 10);
    enable("", "[always] madvise never\n");
    assert_eq!(max_fault_bytes(place.path()), 2 << 20);
}
