use std::collections::BTreeMap;

use super::*;

fn features(files: &[(&str, &str)]) -> SandboxFeatures {
    let files: BTreeMap<PathBuf, String> =
        files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    SandboxFeatures::read(Some(6), &|path| files.get(path).cloned())
}

#[test]
fn switches_of_distributions_forbid_user_namespaces() {
    assert!(features(&[]).user_namespaces);
    assert!(features(&[("/proc/sys/user/max_user_namespaces", "127\n")]).user_namespaces);
    for (path, value) in USER_NAMESPACE_SWITCHES {
        assert!(!features(&[(path, &format!("{value}\n"))]).user_namespaces, "{path}");
    }
}

#[test]
fn the_group_of_version_2_is_found_beside_those_of_version_1() {
    assert_eq!(features(&[]).cgroup_v2, None);
    let files = [
        ("/proc/self/cgroup", "5:memory:/a\n0::/user.slice/b\n"),
        (
            "/proc/self/mountinfo",
            "30 20 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             31 20 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        ),
        ("/sys/fs/cgroup/unified/user.slice/b/cgroup.controllers", "cpu memory pids\n"),
    ];
    let group = features(&files).cgroup_v2.unwrap();
    assert_eq!(group.directory, Path::new("/sys/fs/cgroup/unified/user.slice/b"));
    assert_eq!(group.controllers, ["cpu", "memory", "pids"]);
    assert!(!group.is_delegated, "the directory does not exist");
}

#[test]
fn the_kernel_is_asked() {
    let features = SandboxFeatures::of_kernel();
    assert!(features.landlock_abi.is_none_or(|version| version < 1_000), "{features:?}");
}
