//! The types of [`crate::sync`] in tests. On threads of a model each operation is a step; on other
//! threads it only calls the wrapped type. One object must not be used by both kinds of threads at
//! once.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{self, Ordering};
use std::time::{Duration, Instant};

use futures::future::Either;
use tokio::sync::AcquireError;
pub(crate) use tokio::sync::OwnedSemaphorePermit;

use super::{Reason, Timeouts, current};

/// The time of the model, or the real time.
pub(crate) fn now() -> Instant {
    let Some(me) = current() else { return Instant::now() };
    let mut state = me.execution.state.lock();
    if state.timeouts == Timeouts::Random && state.random.below(8) == 0 {
        // Each step is longer than one of the constants in use, so that every timeout passes at
        // some time.
        let passed = [1, 15, 60, 500][state.random.below(4)];
        state.now += Duration::from_millis(passed);
    }
    state.now
}

pub(crate) fn sleep(duration: Duration) -> impl Future<Output = ()> {
    let Some(me) = current() else { return Either::Left(tokio::time::sleep(duration)) };
    let until = now() + duration;
    Either::Right(std::future::poll_fn(move |_| {
        let mut state = me.execution.state.lock();
        if state.now >= until {
            return std::task::Poll::Ready(());
        }
        let timer = &mut state.tasks[me.task].timer;
        *timer = Some(timer.map_or(until, |timer| timer.min(until)));
        std::task::Poll::Pending
    }))
}

pub(crate) fn spawn(name: String, task: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    if current().is_some() {
        super::thread(&name, task);
        return Ok(());
    }
    std::thread::Builder::new().name(name).spawn(task).map(drop)
}

#[derive(Default)]
pub(crate) struct Mutex<T> {
    inner: parking_lot::Mutex<T>,
}

/// `None` only while a condition variable has released the lock.
pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    inner: Option<parking_lot::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { inner: parking_lot::Mutex::new(value) }
    }

    #[track_caller]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        if let Some(me) = current() {
            me.step("lock", Location::caller());
        }
        MutexGuard { mutex: self, inner: Some(self.acquire()) }
    }

    pub(crate) fn into_inner(self) -> T {
        self.inner.into_inner()
    }

    fn key(&self) -> Reason {
        Reason::Lock(std::ptr::from_ref(self).addr())
    }

    fn acquire(&self) -> parking_lot::MutexGuard<'_, T> {
        let Some(me) = current() else { return self.inner.lock() };
        loop {
            if let Some(guard) = self.inner.try_lock() {
                return guard;
            }
            me.wait(self.key(), None);
        }
    }

    /// Releases the lock without a step.
    fn release(&self, guard: Option<parking_lot::MutexGuard<'_, T>>) {
        drop(guard);
        if let Some(me) = current() {
            me.wake(self.key(), usize::MAX);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

impl<T> MutexGuard<'_, T> {
    #[track_caller]
    pub(crate) fn unlocked<U>(guard: &mut Self, run: impl FnOnce() -> U) -> U {
        guard.mutex.release(guard.inner.take());
        if let Some(me) = current() {
            me.step("unlock", Location::caller());
        }
        let output = run();
        guard.inner = Some(guard.mutex.acquire());
        output
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("it is locked")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("it is locked")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        self.mutex.release(self.inner.take());
        if let Some(me) = current() {
            me.step("unlock", Location::caller());
        }
    }
}

#[derive(Default)]
pub(crate) struct Condvar {
    inner: parking_lot::Condvar,
}

pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { inner: parking_lot::Condvar::new() }
    }

    fn key(&self) -> Reason {
        Reason::Notification(std::ptr::from_ref(self).addr())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if current().is_some() {
            self.wait_in_model(guard, None);
        } else if let Some(inner) = &mut guard.inner {
            self.inner.wait(inner);
        }
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, patience: Duration) -> WaitTimeoutResult {
        if current().is_none()
            && let Some(inner) = &mut guard.inner
        {
            return WaitTimeoutResult(self.inner.wait_for(inner, patience).timed_out());
        }
        WaitTimeoutResult(self.wait_in_model(guard, Some(now() + patience)))
    }

    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> WaitTimeoutResult {
        if current().is_none()
            && let Some(inner) = &mut guard.inner
        {
            return WaitTimeoutResult(self.inner.wait_until(inner, until).timed_out());
        }
        WaitTimeoutResult(self.wait_in_model(guard, Some(until)))
    }

    fn wait_in_model<T>(&self, guard: &mut MutexGuard<'_, T>, until: Option<Instant>) -> bool {
        let me = current().expect("in a model");
        // No other thread continues in between, so that releasing and waiting are one step.
        guard.mutex.release(guard.inner.take());
        let timed_out = me.wait(self.key(), until);
        guard.inner = Some(guard.mutex.acquire());
        timed_out
    }

    pub(crate) fn notify_one(&self) {
        match current() {
            Some(me) => me.wake(self.key(), 1),
            None => {
                self.inner.notify_one();
            }
        }
    }

    pub(crate) fn notify_all(&self) {
        match current() {
            Some(me) => me.wake(self.key(), usize::MAX),
            None => {
                self.inner.notify_all();
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct AtomicUsize {
    inner: atomic::AtomicUsize,
}

impl AtomicUsize {
    pub(crate) const fn new(value: usize) -> Self {
        Self { inner: atomic::AtomicUsize::new(value) }
    }

    #[track_caller]
    pub(crate) fn load(&self, order: Ordering) -> usize {
        step("load", Location::caller());
        self.inner.load(order)
    }

    #[track_caller]
    pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
        step("add", Location::caller());
        self.inner.fetch_add(value, order)
    }

    #[track_caller]
    pub(crate) fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
        step("subtract", Location::caller());
        self.inner.fetch_sub(value, order)
    }
}

fn step(what: &'static str, location: &'static Location<'static>) {
    if let Some(me) = current() {
        me.step(what, location);
    }
}

/// tokio's semaphore, with a step before each operation.
pub(crate) struct Semaphore {
    inner: Arc<tokio::sync::Semaphore>,
}

impl Semaphore {
    pub(crate) const MAX_PERMITS: usize = tokio::sync::Semaphore::MAX_PERMITS;

    pub(crate) fn new(permits: usize) -> Self {
        Self { inner: Arc::new(tokio::sync::Semaphore::new(permits)) }
    }

    pub(crate) fn available_permits(&self) -> usize {
        self.inner.available_permits()
    }

    pub(crate) fn add_permits(&self, permits: usize) {
        self.inner.add_permits(permits);
    }

    pub(crate) fn forget_permits(&self, permits: usize) -> usize {
        self.inner.forget_permits(permits)
    }

    pub(crate) async fn acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        step("acquire", Location::caller());
        Arc::clone(&self.inner).acquire_many_owned(permits).await
    }
}
