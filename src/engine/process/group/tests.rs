//! The files that the kernel has in a group are ordinary files here. `make cgroup-v2` runs workers in real ones.

use std::fs;

use super::*;

fn own_pid() -> Pid {
    rustix::process::getpid()
}

fn read(directory: &Path, file: &str) -> String {
    fs::read_to_string(directory.join(file)).unwrap()
}

#[test]
fn a_group_bounds_the_threads_and_the_memory_of_its_process() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("group");
    fs::create_dir(&directory).unwrap();
    for file in ["pids.max", "memory.max", "memory.swap.max", "cgroup.procs"] {
        fs::write(directory.join(file), "").unwrap();
    }
    let group = Group { directory: directory.clone() };
    group.begin(own_pid()).unwrap();
    group.limit_memory(1 << 20);
    assert_eq!(read(&directory, "pids.max"), max_threads(machine::processors()).to_string());
    assert_eq!(read(&directory, "memory.swap.max"), "0");
    assert_eq!(read(&directory, "memory.max"), "1048576");
    assert_eq!(read(&directory, "cgroup.procs"), own_pid().as_raw_nonzero().to_string());
    for (events, was_out_of_memory) in
        [("low 0\noom 1\noom_kill 0\n", false), ("oom 1\noom_kill 2\n", true), ("", false)]
    {
        fs::write(directory.join("memory.events"), events).unwrap();
        assert_eq!(group.was_out_of_memory(), was_out_of_memory, "{events}");
    }
}

/// A worker without a group has the other limits, so this is no error of its run.
#[test]
fn a_group_that_cannot_be_set_up_is_removed() {
    let place = tempfile::tempdir().unwrap();
    assert!(Group::make(place.path(), own_pid()).is_none(), "the files of a group are not there");
    assert!(Group::make(&place.path().join("absent"), own_pid()).is_none());
    assert_eq!(prepare(place.path().to_owned()), None);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn groups_of_executors_that_have_ended_are_removed() {
    let place = tempfile::tempdir().unwrap();
    // Larger than the numbers that Linux gives to processes (`PID_MAX_LIMIT`).
    let ended = 4_194_305;
    let names = [
        format!("{NAME}{ended}-0"),
        format!("{NAME}{}-1", std::process::id()),
        "another".to_owned(),
        NAME.to_owned(),
    ];
    for name in &names {
        fs::create_dir(place.path().join(name)).unwrap();
    }
    fs::write(place.path().join("cgroup.subtree_control"), "").unwrap();
    assert_eq!(prepare(place.path().to_owned()).as_deref(), Some(place.path()));
    assert_eq!(read(place.path(), "cgroup.subtree_control"), "+memory +pids");
    let remain = names.iter().filter(|name| place.path().join(name).exists()).count();
    assert_eq!((remain, place.path().join(&names[0]).exists()), (3, false));
}
