//! The priority of the threads that write the audit trail and export: where all processors are busy, runs come first.

/// By how much the priority of the threads of telemetry is lower than that of the process, which threads of runs have.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// The lowest priority that there is.
#[cfg(target_os = "linux")]
const MAX_NICENESS: i32 = 19;

#[cfg(target_os = "linux")]
thread_local! {
    static YIELDS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Lowers the priority of the current thread, once: where all processors are busy, runs come first.
///
/// The niceness is added to that of the first thread, because each thread inherits that of the one that starts it.
#[cfg(target_os = "linux")]
pub(crate) fn yield_to_runs() {
    if YIELDS.replace(true) {
        return;
    }
    let first = Some(rustix::process::getpid());
    let lowered = rustix::process::getpriority_process(first).and_then(|niceness| {
        let lower = (niceness + NICENESS).min(MAX_NICENESS);
        rustix::process::setpriority_process(Some(rustix::thread::gettid()), lower)
    });
    if let Err(error) = lowered {
        tracing::debug!(%error, "a thread of telemetry keeps its priority");
    }
}

/// Elsewhere a niceness is that of the whole process, with its runs.
#[cfg(not(target_os = "linux"))]
pub(crate) fn yield_to_runs() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// As a thread of a runtime that another of its threads starts.
    #[test]
    fn threads_that_export_lower_their_own_priority_to_one_niceness() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let exporting = std::thread::spawn(move || {
            yield_to_runs();
            let started = std::thread::spawn(move || {
                yield_to_runs();
                niceness()
            });
            [niceness(), started.join().unwrap()]
        });
        assert_eq!(exporting.join().unwrap(), [(before + NICENESS).min(MAX_NICENESS); 2]);
        assert_eq!(niceness(), before);
    }
}
