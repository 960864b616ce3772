//! Runs that are recorded, and replays of them.

use std::sync::Arc;

use super::core::Executor;
use crate::error::Error;
use crate::run::context::Purpose;
use crate::run::observer::Observation;
use crate::run::recording::Recording;
use crate::run::result::ExecuteResult;
use crate::run::script::Script;
use crate::run::tape::{Difference, Tape};
use crate::text::ids::random_bytes;

/// The replay of a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replay {
    /// The result. If there is no difference it is that of the recorded run, but for
    /// [`usage`](ExecuteResult::usage); at a difference the script was stopped.
    pub result: ExecuteResult,
    /// The first difference from the recorded run.
    pub difference: Option<Difference>,
}

impl Executor {
    /// Runs a script as [`run`](Self::run) does, and records what it gets from its host. There is no
    /// recording of a run that was not started, because the queue was full for example.
    ///
    /// A recorded run gets one answer at a time, when its event loop has nothing else to do. The recording may contain
    /// secrets: [`Recording::to_text`] masks them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), cx::Error> {
    /// use cx::Executor;
    ///
    /// let executor = Executor::builder().build()?;
    /// let (result, recording) = executor.record("return Math.random()").await?;
    /// let recording = recording.expect("the run was started");
    /// let replay = executor.replay(&recording).await?;
    /// assert_eq!(replay.difference, None);
    /// assert_eq!(replay.result.value(), result.value());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping the future stops the script, and there is no recording.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); [`Error::Start`] if the system has no random numbers.
    pub async fn record(
        &self,
        script: impl Into<Script>,
    ) -> Result<(ExecuteResult, Option<Recording>), Error> {
        let seed = random_bytes().map_err(|source| Error::Start { what: "a recording", source })?;
        let tape = Tape::recording(seed);
        let cancel = self.inner.closed.child_token();
        let result = self.run_with(script.into(), Some(Arc::clone(&tape)), cancel).await?;
        let recording = tape.finish_recording(&result);
        Ok((result, recording))
    }

    /// Runs the script of a recording again, with the answers of the recorded run. No server, tool, model
    /// or state is reached, whatever this executor has, because the recording is untrusted.
    ///
    /// [`replay_with`](Self::replay_with) takes an edited script. Dropping the future stops the replay.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn replay(&self, recording: &Recording) -> Result<Replay, Error> {
        self.replay_with(recording, |script| script).await
    }

    /// As [`replay`](Self::replay), with a script that `edit` has made of the recorded one: with another
    /// [source](Script::source_text), other limits, or a listener. Dropping the future stops the replay.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn replay_with(
        &self,
        recording: &Recording,
        edit: impl FnOnce(Script) -> Script,
    ) -> Result<Replay, Error> {
        let tape = Tape::replaying(Arc::new(recording.clone()));
        let script = edit(recording.script());
        let cancel = self.inner.closed.child_token();
        let run = self.prepare_without_grants(script)?;
        let played = Some(Arc::clone(&tape));
        let mut result = self.perform(run, Purpose::Run, Observation::none(), played, cancel).await?;
        let difference = tape.complete(&mut result);
        Ok(Replay { result, difference })
    }
}
