//! The resource limits of one run.

pub(crate) mod call_slots;
pub(crate) mod in_force;

use std::time::Duration;

use crate::error::{Error, OptionName};
use crate::files::FileQuota;

/// Limits of one run.
///
/// The default applies to a script that sets no limits; [`Limits::CEILING`] is the maximum that a
/// run may request. This is plain data: set the fields that matter and take the rest from
/// `..Limits::default()`. Every run checks the values with [`Limits::validate`].
///
/// Durations are rounded down to whole milliseconds; all but [`paused_time`](Self::paused_time) must be at least one.
/// Sizes are in bytes.
///
/// *Not* counted: the host's own data for a run (a few kilobytes and the records of its calls),
/// V8's compiled code and metadata outside the heap, and CPU time that V8's shared helper threads
/// spend on concurrent garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time from the start of the run to its reply, including waits, and the start of its
    /// engine if it is the first run that needs it. Time in the queue for a free isolate is not
    /// counted, nor is [`paused_time`](Self::paused_time).
    pub wall_time: Duration,
    /// CPU time of the script's own thread. Waiting for a tool or a timer costs nothing.
    pub cpu_time: Duration,
    /// Python only: the maximum number of WebAssembly instructions. Unlike `cpu_time` it does not depend on the machine
    /// or its load: a script that reads no clock and no random numbers ends at the same instruction everywhere.
    /// Counting needs separate machine code, which is slower and is compiled when it is first needed. `None` means no
    /// limit; at most [`Self::MAX_FUEL`].
    pub fuel: Option<u64>,
    /// Memory in bytes: in V8 the heap, array buffers and external memory together, in Python the
    /// interpreter's memory. At least [`Self::MIN_MEMORY_BYTES`].
    pub memory_bytes: usize,
    /// Maximum number of tool calls, including refused ones. 0 means no limit.
    pub tool_calls: u32,
    /// Maximum number of concurrent tool calls, at least one. Further calls wait in order of arrival.
    pub calls_in_flight: u32,
    /// Maximum bytes of source, checked before parsing.
    pub source_bytes: usize,
    /// Maximum bytes of one call's arguments, as JSON.
    pub argument_bytes: usize,
    /// Maximum bytes of one call's result as JSON, of the run's value, and of everything that it
    /// emits together.
    pub result_bytes: usize,
    /// Maximum bytes of printed output that are kept for the result. Later output is counted;
    /// [`Script::on_output`](crate::Script::on_output) still hears it.
    pub output_bytes: usize,
    /// Timeout of one approval prompt. When it has passed, the call is refused.
    pub answer_time: Duration,
    /// Total time for which approval prompts may pause the wall clock. Beyond it, waiting counts
    /// against [`wall_time`](Self::wall_time).
    pub paused_time: Duration,
    /// Maximum number of approval prompts of a run. 0 refuses every call that needs one.
    pub questions: u32,
    /// Maximum bytes that a script writes to [granted](crate::Grants) directories in all, including data that is
    /// overwritten or deleted later. The scratch directory counts as memory instead.
    pub written_bytes: u64,
    /// Maximum number of files and directories that a script creates in granted directories in all.
    pub created_files: u64,
    /// Maximum size in bytes of a file in a granted directory that a script writes to.
    pub file_bytes: u64,
}

const MEGABYTE: usize = 1 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Long enough for a few slow upstream calls, short enough for an agent to notice.
            wall_time: Duration::from_secs(30),
            // A script combines tools; ten seconds of computation already indicate a mistake.
            cpu_time: Duration::from_secs(10),
            // Counting costs time, and the CPU time already bounds what a run can compute.
            fuel: None,
            // Several times the largest argument and result together.
            memory_bytes: 128 * MEGABYTE,
            // An agent that needs more has usually written an accidental loop.
            tool_calls: 1_000,
            // Above what upstream servers process in parallel; keeps their queues short.
            calls_in_flight: 64,
            source_bytes: MEGABYTE,
            argument_bytes: 8 * MEGABYTE,
            result_bytes: 16 * MEGABYTE,
            output_bytes: MEGABYTE,
            // Long enough to read a call and think about it. An absent user is not waited for.
            answer_time: Duration::from_mins(2),
            // A few slow answers. The run keeps its slot and its memory meanwhile.
            paused_time: Duration::from_mins(10),
            // Beyond this number users approve without reading.
            questions: 100,
            // Reports and data of a day's work; a script that fills a disk is stopped early.
            written_bytes: 256 << 20,
            created_files: 1_000,
            file_bytes: 64 << 20,
        }
    }
}

impl Limits {
    /// The maximum that a run may request.
    pub const CEILING: Self = Self {
        wall_time: Duration::from_mins(10),
        cpu_time: Duration::from_mins(10),
        fuel: None,
        memory_bytes: 1024 * MEGABYTE,
        tool_calls: 0,
        calls_in_flight: 1_024,
        source_bytes: 16 * MEGABYTE,
        argument_bytes: 64 * MEGABYTE,
        result_bytes: 64 * MEGABYTE,
        output_bytes: 64 * MEGABYTE,
        answer_time: Duration::from_mins(10),
        paused_time: Duration::from_hours(1),
        questions: 1_000,
        written_bytes: 1 << 40,
        created_files: 1_000_000,
        file_bytes: 1 << 40,
    };

    /// These limits for a run that may take `wall_time`. The CPU time limit is raised to the same, up to
    /// `max_cpu_time`: a run that was given more time may also compute for longer.
    #[must_use]
    pub fn with_wall_time(self, wall_time: Duration, max_cpu_time: Duration) -> Self {
        let cpu_time = self.cpu_time.max(wall_time).min(max_cpu_time);
        Self { wall_time, cpu_time, ..self }
    }

    /// The limits that apply to granted directories.
    pub(crate) fn file_quota(&self) -> FileQuota {
        FileQuota {
            written_bytes: self.written_bytes,
            files: self.created_files,
            file_bytes: self.file_bytes,
        }
    }

    /// The maximum of `fuel` if it is limited: the largest integer that JSON can represent exactly. It is years of
    /// computing.
    pub const MAX_FUEL: u64 = (1 << 53) - 1;

    /// The minimum memory in bytes with which an isolate starts and can run a script.
    pub const MIN_MEMORY_BYTES: usize = 8 * MEGABYTE;

    /// Checks every field against its bounds.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] names the first field that is below its minimum or above [`Limits::CEILING`].
    pub fn validate(&self) -> Result<(), Error> {
        let ceiling = Self::CEILING;
        let bounded = |option: OptionName, value: u128, least: u128, most: u128, unit: &str| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::InvalidOptions {
                option,
                problem: format!("must be between {least} and {most} {unit}: {value}"),
            })
        };
        let time = |option, value: Duration, most: Duration| {
            bounded(option, value.as_millis(), 1, most.as_millis(), "milliseconds")
        };
        let size = |option, value: usize, least: usize, most: usize| {
            bounded(option, value as u128, least as u128, most as u128, "bytes")
        };
        time(OptionName::WallTime, self.wall_time, ceiling.wall_time)?;
        time(OptionName::CpuTime, self.cpu_time, ceiling.cpu_time)?;
        let fuel = self.fuel.unwrap_or(Self::MAX_FUEL);
        bounded(OptionName::Fuel, fuel.into(), 1, Self::MAX_FUEL.into(), "units")?;
        size(OptionName::MemoryBytes, self.memory_bytes, Self::MIN_MEMORY_BYTES, ceiling.memory_bytes)?;
        bounded(
            OptionName::CallsInFlight,
            self.calls_in_flight.into(),
            1,
            ceiling.calls_in_flight.into(),
            "calls",
        )?;
        size(OptionName::SourceBytes, self.source_bytes, 1, ceiling.source_bytes)?;
        size(OptionName::ArgumentBytes, self.argument_bytes, 2, ceiling.argument_bytes)?;
        size(OptionName::ResultBytes, self.result_bytes, 2, ceiling.result_bytes)?;
        size(OptionName::OutputBytes, self.output_bytes, 0, ceiling.output_bytes)?;
        time(OptionName::AnswerTime, self.answer_time, ceiling.answer_time)?;
        let paused = self.paused_time.as_millis();
        bounded(OptionName::PausedTime, paused, 0, ceiling.paused_time.as_millis(), "milliseconds")?;
        bounded(OptionName::Questions, self.questions.into(), 0, ceiling.questions.into(), "questions")?;
        bounded(
            OptionName::WrittenBytes,
            self.written_bytes.into(),
            0,
            ceiling.written_bytes.into(),
            "bytes",
        )?;
        bounded(
            OptionName::CreatedFiles,
            self.created_files.into(),
            0,
            ceiling.created_files.into(),
            "files",
        )?;
        bounded(OptionName::FileBytes, self.file_bytes.into(), 0, ceiling.file_bytes.into(), "bytes")
    }
}

#[cfg(test)]
mod tests;
