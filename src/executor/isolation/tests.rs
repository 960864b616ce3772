//! Worker processes on kernels that lack what confines them.

use super::*;

fn program_on(landlock_abi: Option<u32>, seccomp: bool, require: bool) -> Result<WorkerProgram, Error> {
    let has = SandboxFeatures { landlock_abi, seccomp, user_namespaces: false, cgroup_v2: None };
    let workers =
        WorkerProcesses { program: Some("/bin/true".into()), require, ..WorkerProcesses::default() };
    worker_program(&workers, &has)
}

#[test]
fn what_is_required_and_missing_is_an_error() {
    for (landlock_abi, seccomp, missing) in
        [(None, true, "Landlock"), (Some(6), false, "seccomp"), (None, false, "Landlock, seccomp")]
    {
        let error = program_on(landlock_abi, seccomp, true).unwrap_err();
        let Error::InvalidOptions { option, problem } = &error else { panic!("{error}") };
        assert_eq!(*option, OptionName::Isolation);
        assert!(problem.ends_with(&format!(": {missing}")), "{problem}");
        let program = program_on(landlock_abi, seccomp, false).unwrap();
        assert!(!program.requires_sandbox, "{missing}");
    }
    // A worker looks again, because a service manager may forbid what the kernel has.
    assert!(program_on(Some(1), true, true).unwrap().requires_sandbox);
}
