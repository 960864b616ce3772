//! The request that a run stops: its reasons, and how it reaches the engine.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use crate::sync::Mutex;

/// Why a run has to stop. The first reason is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StopReason {
    Timeout = 1,
    Cpu = 2,
    Memory = 3,
    Cancelled = 4,
}

/// Makes an engine compare its memory with a limit in bytes.
type Measure = Box<dyn Fn(usize) + Send>;

/// The stop request, shared by the engine's callbacks, the watchdog and the run's thread.
#[derive(Default)]
pub(crate) struct Stop {
    reason: AtomicU8,
    is_abandoned: AtomicBool,
    interrupt: Mutex<Option<Box<dyn Fn() + Send>>>,
    measure: Mutex<Option<Measure>>,
    cpu_time: Mutex<Option<Box<dyn Fn() -> Duration + Send>>>,
}

impl Stop {
    /// Sets the function that interrupts the engine. An engine that polls [`reason`](Self::reason)
    /// often enough needs none.
    pub(crate) fn attach(&self, interrupt: impl Fn() + Send + 'static) {
        *self.interrupt.lock() = Some(Box::new(interrupt));
    }

    /// Sets the function that makes the engine compare its memory with a limit in bytes, which is at most the one that
    /// the run started with. Where an engine can be measured only on its own thread, the function requests the
    /// comparison and returns.
    pub(crate) fn attach_measure(&self, measure: impl Fn(usize) + Send + 'static) {
        *self.measure.lock() = Some(Box::new(measure));
    }

    /// Sets the function that returns the CPU time which the run has used in another process.
    pub(crate) fn attach_cpu_time(&self, cpu_time: impl Fn() -> Duration + Send + 'static) {
        *self.cpu_time.lock() = Some(Box::new(cpu_time));
    }

    /// CPU time that the run has used in another process; zero if it has none.
    pub(super) fn cpu_time(&self) -> Duration {
        self.cpu_time.lock().as_ref().map_or(Duration::ZERO, |cpu_time| cpu_time())
    }

    /// Removes the function that interrupts the engine, which from here on serves another run.
    pub(crate) fn detach(&self) {
        *self.interrupt.lock() = None;
    }

    /// Makes the engine compare its memory with `limit`, in bytes, as soon as it can.
    pub(super) fn measure(&self, limit: usize) {
        if let Some(measure) = &*self.measure.lock() {
            measure(limit);
        }
    }

    /// Requests that the run stops. Safe to call from the engine's callbacks: it only sets flags
    /// that the engine checks later.
    pub(crate) fn request(&self, reason: StopReason) {
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::Relaxed, Ordering::Relaxed);
        if let Some(interrupt) = &*self.interrupt.lock() {
            interrupt();
        }
    }

    /// Notes that the run was answered without its thread, which has not stopped in time.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// Whether the run was answered without its thread.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Why the run has to stop, or `None` if it need not.
    pub(crate) fn reason(&self) -> Option<StopReason> {
        match self.reason.load(Ordering::Relaxed) {
            1 => Some(StopReason::Timeout),
            2 => Some(StopReason::Cpu),
            3 => Some(StopReason::Memory),
            4 => Some(StopReason::Cancelled),
            _ => None,
        }
    }
}
