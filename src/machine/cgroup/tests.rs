use super::*;
use std::collections::BTreeMap;

/// The limit with these contents of files.
fn limit(files: &[(&str, &str)]) -> Option<u64> {
    let files: BTreeMap<&Path, &str> = files.iter().map(|(path, text)| (Path::new(*path), *text)).collect();
    super::limit(&MEMORY, &|path| files.get(path).map(|text| (*text).to_owned()))
}

const GROUPS: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

const MOUNTS_OF_V2: &str = "\
22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
";

const MOUNTS_OF_V1: &str = "\
31 23 0:28 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
";

#[test]
fn version_2_with_groups_above() {
    let limits = |own: &str, parent: &str, top: &str| {
        limit(&[
            (GROUPS, "0::/user.slice/app.service\n"),
            (MOUNTS, MOUNTS_OF_V2),
            ("/sys/fs/cgroup/user.slice/app.service/memory.max", own),
            ("/sys/fs/cgroup/user.slice/memory.max", parent),
            ("/sys/fs/cgroup/memory.max", top),
        ])
    };
    assert_eq!(limits("1073741824\n", "max\n", "max\n"), Some(1 << 30));
    assert_eq!(limits("max\n", "536870912\n", "max\n"), Some(512 << 20));
    assert_eq!(limits("1073741824\n", "536870912\n", "max\n"), Some(512 << 20));
    // In a container the group of the container is what is mounted.
    assert_eq!(limits("max\n", "max\n", "268435456\n"), Some(256 << 20));
    assert_eq!(limits("max\n", "max\n", "max\n"), None);
}

#[test]
fn version_2_delays_beyond_its_second_limit() {
    let files = [
        (GROUPS, "0::/a\n"),
        (MOUNTS, MOUNTS_OF_V2),
        ("/sys/fs/cgroup/a/memory.max", "2000\n"),
        ("/sys/fs/cgroup/a/memory.high", "1000\n"),
    ];
    assert_eq!(limit(&files), Some(1000));
    assert_eq!(limit(&files[..3]), Some(2000));
}

#[test]
fn version_1() {
    let limits = |group: &str, files: &[(&str, &str)]| {
        let groups = format!("9:name=systemd:/\n4:memory:{group}\n2:cpu,cpuacct:/other\n");
        limit(&[&[(GROUPS, groups.as_str()), (MOUNTS, MOUNTS_OF_V1)], files].concat())
    };
    let own = ("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1000\n");
    let parent = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    let top = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000\n");
    assert_eq!(limits("/a/b", &[own, parent, top]), Some(1000));
    assert_eq!(limits("/a", &[own, parent, top]), Some(3000));
    // The path is another controller's.
    assert_eq!(limits("/", &[("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "7\n")]), None);
    // Files of the other version say nothing.
    assert_eq!(limits("/", &[("/sys/fs/cgroup/memory/memory.max", "7\n")]), None);
}

/// systemd's hybrid mode: the hierarchy of version 2 has no controllers, those of version 1 have the
/// limits. Or the other way round.
#[test]
fn both_versions() {
    let mounts = format!(
        "{MOUNTS_OF_V1}41 31 0:38 / /sys/fs/cgroup/unified rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    );
    let groups = "4:memory:/a\n1:cpu:/a\n0::/a\n";
    let in_v1 = ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000");
    let in_v2 = ("/sys/fs/cgroup/unified/a/memory.max", "2000");
    assert_eq!(limit(&[(GROUPS, groups), (MOUNTS, &mounts), in_v1]), Some(1000));
    assert_eq!(limit(&[(GROUPS, groups), (MOUNTS, &mounts), in_v2]), Some(2000));
    assert_eq!(limit(&[(GROUPS, groups), (MOUNTS, &mounts), in_v1, in_v2]), Some(1000));
}

/// A container without a namespace of groups: the path is the machine's, and the mount shows the
/// container's group as its root.
#[test]
fn a_container_sees_a_part_of_the_hierarchy() {
    let mounts = "35 31 0:32 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let container = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000");
    let inner = ("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "500");
    let limits = |group: &str| limit(&[(GROUPS, group), (MOUNTS, mounts), container, inner]);
    assert_eq!(limits("4:memory:/docker/1f\n"), Some(1000));
    assert_eq!(limits("4:memory:/docker/1f/inner\n"), Some(500));
    // The group cannot be seen: what can be is the best guess.
    assert_eq!(limits("4:memory:/docker/1fa\n"), Some(1000));
    assert_eq!(limits("4:memory:/elsewhere/inner\n"), Some(1000));
    // Outside of the namespace of groups. Nothing above the mount is read.
    let mounts = "35 31 0:32 / /a/b rw - cgroup2 cgroup2 rw\n";
    let outside = [(GROUPS, "0::/../..\n"), (MOUNTS, mounts), ("/memory.max", "1"), ("/a/b/memory.max", "5")];
    assert_eq!(limit(&outside), Some(5));
}

#[test]
fn of_several_mounts_that_which_shows_the_group() {
    let mounts = "\
        35 31 0:32 /other /elsewhere rw - cgroup cgroup rw,memory\n\
        36 31 0:32 / /with\\040space\\134 rw,relatime shared:1 master:2 - cgroup cgroup rw,memory\n\
        37 31 0:32 /third /third rw - cgroup cgroup rw,memory\n";
    let files = [
        (GROUPS, "4:memory:/a:b\n"),
        (MOUNTS, mounts),
        ("/elsewhere/memory.limit_in_bytes", "1"),
        ("/third/memory.limit_in_bytes", "2"),
        ("/with space\\/a:b/memory.limit_in_bytes", "1000"),
    ];
    assert_eq!(limit(&files), Some(1000));
}

/// Nothing of what cannot be understood is a limit, and nothing of it is an error.
#[test]
fn damaged_files() {
    let whole = ("/sys/fs/cgroup/a/memory.max", "1000");
    for groups in ["", "\n\n", "0", "0:", "0::", "x:y:z", "::", "0:memory:/a", "-1::/a", "0::a\0b"] {
        let found = limit(&[(GROUPS, groups), (MOUNTS, MOUNTS_OF_V2), whole]);
        assert_eq!(found, None, "{groups:?}");
    }
    for mounts in ["", " - ", "- cgroup2", "1 2 3", "1 2 3 / /sys/fs/cgroup rw - ", "1 2 3 - cgroup2 x rw"] {
        assert_eq!(limit(&[(GROUPS, "0::/a"), (MOUNTS, mounts), whole]), None, "{mounts:?}");
    }
    for value in ["", "max", "-1", "1e9", "1000 2000", "18446744073709551616", "0x10", "\0"] {
        let file = ("/sys/fs/cgroup/a/memory.max", value);
        assert_eq!(limit(&[(GROUPS, "0::/a"), (MOUNTS, MOUNTS_OF_V2), file]), None, "{value:?}");
    }
    assert_eq!(limit(&[(MOUNTS, MOUNTS_OF_V2), whole]), None);
    assert_eq!(limit(&[(GROUPS, "0::/a"), whole]), None);
    // One that is whole counts beside those that are not.
    let groups = "damaged\n4:memory\n0::/a\n";
    let mounts = format!("damaged\n{MOUNTS_OF_V2}");
    assert_eq!(limit(&[(GROUPS, groups), (MOUNTS, &mounts), whole]), Some(1000));
    // A path that is deeper than any real one ends.
    let deep = format!("0::{}", "/a".repeat(100_000));
    assert_eq!(limit(&[(GROUPS, &deep), (MOUNTS, MOUNTS_OF_V2), whole]), None);
}

#[test]
fn escapes_of_paths() {
    let check = |text: &str, path: &str| assert_eq!(unescape(text), Path::new(path), "{text}");
    check(r"/a\040b", "/a b");
    check(r"\011\012\134\043", "\t\n\\#");
    check(r"/a\04", r"/a\04");
    check(r"/a\", r"/a\");
    check(r"/a\048", r"/a\048");
    check(r"/a\400", r"/a\400");
    check(r"/\303\251", "/é");
}

#[test]
fn each_controller_has_its_own_hierarchy_and_files() {
    let files = |path: &Path| {
        let text = match path.to_str()? {
            GROUPS => "8:pids:/p\n4:memory:/m\n0::/u\n",
            MOUNTS => {
                "1 2 0:1 / /pids rw - cgroup cgroup rw,pids\n1 2 0:2 / /memory rw - cgroup cgroup rw,memory\n\
                 1 2 0:3 / /unified rw - cgroup2 cgroup2 rw\n"
            }
            "/pids/p/pids.max" => "100",
            "/pids/pids.max" => "max",
            "/memory/m/memory.limit_in_bytes" => "1000",
            "/unified/u/pids.max" => "90",
            // The kernel has no such files.
            "/memory/m/pids.max" | "/pids/p/memory.limit_in_bytes" => "1",
            _ => return None,
        };
        Some(text.to_owned())
    };
    assert_eq!(super::limit(&PIDS, &files), Some(90));
    assert_eq!(super::limit(&MEMORY, &files), Some(1000));
}
