//! What one run may use, and the names of the limits it can hit.

use std::time::Duration;

use crate::error::Error;

/// Limits of one run.
///
/// The default is what a script gets that asks for nothing; [`Limits::CEILING`] is the most that a
/// run may ask for. Plain data: change the fields that matter and leave the rest to
/// `..Limits::default()`. Values are checked by [`Limits::validate`], which every run passes through.
///
/// What is *not* counted: the host's own bookkeeping for a run (a few kilobytes and the records of
/// its calls), V8's compiled code and metadata outside the heap, and CPU time that V8's shared
/// helper threads spend on concurrent garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from the start of the run to its reply, waiting included. Time in the queue for a free
    /// isolate is not counted, nor [`paused_time`](Self::paused_time).
    pub wall_time: Duration,
    /// CPU time of the script's own thread. Waiting for a tool or a timer costs nothing.
    pub cpu_time: Duration,
    /// Bytes of V8 heap and array buffers together.
    pub memory_bytes: usize,
    /// Tool calls in all, refused ones included. 0 means no limit.
    pub tool_calls: u32,
    /// Tool calls running at the same time. Further calls wait their turn, first come first served.
    pub calls_in_flight: u32,
    /// Bytes of source, checked before the parser sees any of it.
    pub source_bytes: usize,
    /// Bytes of one call's arguments, as JSON.
    pub argument_bytes: usize,
    /// Bytes of one call's result as JSON, of the run's value, and of all that it emits together.
    pub result_bytes: usize,
    /// Bytes of printed output that are kept. What comes later is counted and dropped.
    pub output_bytes: usize,
    /// How long a person has to answer one question. After that the call is refused.
    pub answer_time: Duration,
    /// How much of the run's time in all, while a person is asked, is no wall-clock time. What goes beyond it is.
    pub paused_time: Duration,
    /// How many questions a run may ask a person. 0 refuses every call that would need one.
    pub questions: u32,
}

const MEGABYTE: usize = 1 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Long enough for a few slow upstream calls, short enough that an agent notices.
            wall_time: Duration::from_secs(30),
            // A script glues tools together; ten seconds of arithmetic is already a mistake.
            cpu_time: Duration::from_secs(10),
            // Twice the largest argument and result together, many times over.
            memory_bytes: 128 * MEGABYTE,
            // An agent that needs more has usually written an accidental loop.
            tool_calls: 1_000,
            // Above what upstream servers answer in parallel; keeps their queues short.
            calls_in_flight: 64,
            source_bytes: MEGABYTE,
            argument_bytes: 8 * MEGABYTE,
            result_bytes: 16 * MEGABYTE,
            output_bytes: MEGABYTE,
            // Long enough to read a call and think; who has gone away is not waited for.
            answer_time: Duration::from_secs(120),
            // A few slow answers. The run holds its place and its memory all the while.
            paused_time: Duration::from_secs(600),
            // Nobody reads more than that, and who only clicks protects nothing.
            questions: 100,
        }
    }
}

impl Limits {
    /// The most that a run may ask for.
    pub const CEILING: Self = Self {
        wall_time: Duration::from_secs(600),
        cpu_time: Duration::from_secs(600),
        memory_bytes: 1024 * MEGABYTE,
        tool_calls: 0,
        calls_in_flight: 1_024,
        source_bytes: 16 * MEGABYTE,
        argument_bytes: 64 * MEGABYTE,
        result_bytes: 64 * MEGABYTE,
        output_bytes: 64 * MEGABYTE,
        answer_time: Duration::from_secs(600),
        paused_time: Duration::from_secs(3_600),
        questions: 1_000,
    };

    /// The least memory with which an isolate starts and can run anything.
    pub const MIN_MEMORY_BYTES: usize = 8 * MEGABYTE;

    /// Checks every field against its bounds.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] names the first field that is zero or above [`Limits::CEILING`].
    pub fn validate(&self) -> Result<(), Error> {
        let ceiling = Self::CEILING;
        let bounded = |name: &'static str, value: u128, least: u128, most: u128, unit: &str| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::InvalidOptions {
                option: name,
                problem: format!("must be between {least} and {most} {unit}: {value}"),
            })
        };
        let time = |name, value: Duration, most: Duration| {
            bounded(name, value.as_millis(), 1, most.as_millis(), "milliseconds")
        };
        let size = |name, value: usize, least: usize, most: usize| {
            bounded(name, value as u128, least as u128, most as u128, "bytes")
        };
        time("wall_time", self.wall_time, ceiling.wall_time)?;
        time("cpu_time", self.cpu_time, ceiling.cpu_time)?;
        size("memory_bytes", self.memory_bytes, Self::MIN_MEMORY_BYTES, ceiling.memory_bytes)?;
        bounded("calls_in_flight", self.calls_in_flight.into(), 1, ceiling.calls_in_flight.into(), "calls")?;
        size("source_bytes", self.source_bytes, 1, ceiling.source_bytes)?;
        size("argument_bytes", self.argument_bytes, 2, ceiling.argument_bytes)?;
        size("result_bytes", self.result_bytes, 2, ceiling.result_bytes)?;
        size("output_bytes", self.output_bytes, 0, ceiling.output_bytes)?;
        time("answer_time", self.answer_time, ceiling.answer_time)?;
        let paused = self.paused_time.as_millis();
        bounded("paused_time", paused, 0, ceiling.paused_time.as_millis(), "milliseconds")?;
        bounded("questions", self.questions.into(), 0, ceiling.questions.into(), "questions")
    }
}

#[cfg(test)]
mod tests;
