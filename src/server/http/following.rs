//! Polls a source while the server runs, and applies each new value.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::reading::TokenReading;
use crate::error::Error;
use crate::run::observer::{TokenEvent, TokenOwner};
use crate::server::metrics;
use crate::server::shared::Shared;

/// The pause between two reads.
const INTERVAL: Duration = Duration::from_secs(2);

/// Time after which a read that has not ended is reported. A read takes milliseconds, or a second while a file is being
/// written.
const MAX_READ: Duration = Duration::from_secs(10);

/// Reads a value again. May block.
type Reader<T> = Arc<dyn Fn() -> TokenReading<T> + Send + Sync>;

/// Called with each new problem, and with `None` when the problem is gone.
pub(super) type OnProblem = Box<dyn FnMut(Option<&str>) + Send>;

/// Applies the values that are read.
pub(super) trait Target: Send {
    /// The type of the values.
    type Value: Clone + Send + 'static;

    /// Replaces the last value by a new one. The next value is not read until this has ended.
    ///
    /// # Errors
    ///
    /// If the value cannot be used. The last one stays in force.
    fn replace(&mut self, value: Self::Value) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A source of values, the target that they are applied to, and why the last value stays in force if a newer one cannot
/// be used.
pub(super) struct Followed<T: Target> {
    read: Reader<T::Value>,
    target: T,
    on_problem: OnProblem,
    problem: Option<String>,
    /// The last value that was read, if it could not be used. It is tried again, because whether it can be used may
    /// depend on something else.
    refused: Option<T::Value>,
}

impl<T: Target> Followed<T> {
    pub(super) fn new(read: Reader<T::Value>, target: T, on_problem: OnProblem) -> Self {
        Self { read, target, on_problem, problem: None, refused: None }
    }

    /// Polls until it is dropped.
    pub(super) async fn follow(mut self) {
        loop {
            sleep(INTERVAL).await;
            self.look().await;
        }
    }

    /// Reads once and applies a new value. Waits for the reader however long that takes: a second reader would block in
    /// the same place.
    async fn look(&mut self) {
        let read = Arc::clone(&self.read);
        let mut reading = spawn_blocking(move || read());
        let earlier = self.problem.clone();
        let read = match timeout(MAX_READ, &mut reading).await {
            Ok(read) => read,
            Err(_elapsed) => {
                self.report(&format!("they could not be read within {} s", MAX_READ.as_secs()));
                reading.await
            }
        };
        match read {
            // Nothing has changed: what was wrong before a slow reading still is, and nothing else.
            Ok(TokenReading::Unchanged) => {
                self.restore(earlier);
                if let Some(value) = self.refused.take() {
                    self.replace(value).await;
                }
            }
            Ok(TokenReading::Changed(value)) => self.replace(value).await,
            Ok(TokenReading::Failed(problem)) => {
                self.refused = None;
                self.report(&problem);
            }
            // The panic hook has logged the rest.
            Err(_panic) => {
                self.refused = None;
                self.report("the reader of the tokens panicked");
            }
        }
    }

    async fn replace(&mut self, value: T::Value) {
        self.refused = None;
        match self.target.replace(value.clone()).await {
            Ok(()) => self.clear(),
            Err(error) => {
                self.refused = Some(value);
                self.report(&error.to_string());
            }
        }
    }

    /// Reports a problem, once as long as it stays the same.
    fn report(&mut self, problem: &str) {
        if self.problem.as_deref() != Some(problem) {
            (self.on_problem)(Some(problem));
            self.problem = Some(problem.to_owned());
        }
    }

    /// Restores an earlier problem, which was reported already.
    fn restore(&mut self, earlier: Option<String>) {
        match earlier {
            Some(_) => self.problem = earlier,
            None => self.clear(),
        }
    }

    fn clear(&mut self) {
        if self.problem.take().is_some() {
            (self.on_problem)(None);
        }
    }
}

/// Returns a callback that reports why newer tokens of `owner` cannot be used: in the log, `health`, the metrics and
/// the audit trail.
pub(super) fn problem_reporter(shared: &Arc<Shared>, owner: TokenOwner) -> OnProblem {
    let shared = Arc::clone(shared);
    let mut failing = None;
    Box::new(move |problem: Option<&str>| {
        let Some(problem) = problem else {
            failing = None;
            return;
        };
        let of = owner.as_str();
        tracing::warn!(problem, of, "the last tokens stay in force, newer ones cannot be used");
        if failing.is_none() {
            failing = Some(FailingTokens::new(&shared));
        }
        shared.executor.observe_tokens(&TokenEvent::Refused { owner, reason: problem });
    })
}

/// Marks that newer tokens of one source cannot be used, until it is dropped.
struct FailingTokens(Arc<Shared>);

impl FailingTokens {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.begin_failing_tokens();
        metrics::set_tokens_failing(true);
        Self(Arc::clone(shared))
    }
}

impl Drop for FailingTokens {
    fn drop(&mut self) {
        self.0.end_failing_tokens();
        metrics::set_tokens_failing(self.0.tokens_failing());
    }
}

#[cfg(test)]
mod tests;
