//! The limits of a run in flight. Operators can lower the maximum of a limit while scripts run; it
//! then applies to these scripts too.

use tokio::sync::watch;

use super::Limits;

/// The limits that a run started with, lowered where the operator's maximum has been lowered since.
#[derive(Clone, Debug)]
pub(crate) struct RunLimits {
    started: Limits,
    /// The operator's maximum when the run started.
    max_before: Limits,
    /// The operator's maximum.
    max: watch::Receiver<Limits>,
}

impl RunLimits {
    /// Limits that follow `max`. `max_before` is its value when `started` was determined; `max` was subscribed before
    /// that, so that no change is missed.
    pub(crate) fn new(started: Limits, max_before: Limits, max: watch::Receiver<Limits>) -> Self {
        Self { started, max_before, max }
    }

    /// Limits that never change.
    #[cfg(test)]
    pub(crate) fn fixed(limits: Limits) -> Self {
        // A closed channel keeps its last value.
        Self::new(limits, Limits::CEILING, watch::Sender::new(Limits::CEILING).subscribe())
    }

    /// The limits of a run that this run has called, which starts with `limits`.
    pub(crate) fn of_nested(&self, limits: Limits) -> Self {
        let max = *self.max.borrow();
        Self { started: limits, max_before: max, max: self.max.clone() }
    }

    /// The operator's maximum.
    pub(crate) fn max(&self) -> Limits {
        *self.max.borrow()
    }

    /// A receiver that is notified when the operator's maximum changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Limits> {
        self.max.clone()
    }

    /// The limits in force.
    ///
    /// [`source_bytes`](Limits::source_bytes) is that of the start of the run, when the source was measured. A run that
    /// started without a limit of [`fuel`](Limits::fuel) has none, because its machine code does not count
    /// instructions.
    pub(crate) fn now(&self) -> Limits {
        // Every call reads the limits several times, and this makes it one read of a number.
        if matches!(self.max.has_changed(), Ok(false)) {
            return self.started;
        }
        self.started.lowered(&self.max_before, &self.max.borrow())
    }
}

impl Limits {
    /// These limits, at most those of `max` where `max` is lower than `before`.
    fn lowered(self, before: &Self, max: &Self) -> Self {
        fn lower<T: Copy + Ord>(own: T, before: T, max: T) -> T {
            if max < before { own.min(max) } else { own }
        }
        // For tool calls 0 means no limit, so it compares as the largest number.
        let calls = |limits: &Self| limits.tool_calls.wrapping_sub(1);
        let fuel = |limits: &Self| limits.fuel.unwrap_or(u64::MAX);
        Self {
            wall_time: lower(self.wall_time, before.wall_time, max.wall_time),
            cpu_time: lower(self.cpu_time, before.cpu_time, max.cpu_time),
            memory_bytes: lower(self.memory_bytes, before.memory_bytes, max.memory_bytes),
            tool_calls: lower(calls(&self), calls(before), calls(max)).wrapping_add(1),
            argument_bytes: lower(self.argument_bytes, before.argument_bytes, max.argument_bytes),
            result_bytes: lower(self.result_bytes, before.result_bytes, max.result_bytes),
            output_bytes: lower(self.output_bytes, before.output_bytes, max.output_bytes),
            answer_time: lower(self.answer_time, before.answer_time, max.answer_time),
            paused_time: lower(self.paused_time, before.paused_time, max.paused_time),
            questions: lower(self.questions, before.questions, max.questions),
            written_bytes: lower(self.written_bytes, before.written_bytes, max.written_bytes),
            created_files: lower(self.created_files, before.created_files, max.created_files),
            file_bytes: lower(self.file_bytes, before.file_bytes, max.file_bytes),
            fuel: self.fuel.map(|own| lower(own, fuel(before), fuel(max))),
            calls_in_flight: lower(self.calls_in_flight, before.calls_in_flight, max.calls_in_flight),
            source_bytes: self.source_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_lowered_counts_and_nothing_is_raised() {
        let (operator, max) = watch::channel(Limits::CEILING);
        let started = Limits { tool_calls: 5, wall_time: Duration::from_secs(10), ..Limits::default() };
        let limits = RunLimits::new(started, Limits::CEILING, max);
        assert_eq!(limits.now(), started);
        let lowered = Limits { tool_calls: 3, wall_time: Duration::from_secs(60), ..Limits::CEILING };
        operator.send_replace(lowered);
        assert_eq!(limits.now(), Limits { tool_calls: 3, ..started });
        let nested = limits.of_nested(Limits { tool_calls: 4, ..started });
        assert_eq!(nested.now().tool_calls, 4, "it was determined with the maximum in force");
        operator.send_replace(Limits { memory_bytes: 1 << 20, fuel: Some(1), calls_in_flight: 1, ..lowered });
        assert_eq!((nested.now().memory_bytes, nested.now().calls_in_flight), (1 << 20, 1));
        assert_eq!(nested.now().fuel, None, "its code counts none");
        let counting = limits.of_nested(Limits { fuel: Some(9), ..started });
        assert_eq!(counting.now().fuel, Some(9));
        operator.send_replace(Limits { fuel: None, ..lowered });
        let counting = limits.of_nested(Limits { fuel: Some(9), ..started });
        operator.send_replace(Limits { fuel: Some(5), ..lowered });
        assert_eq!(counting.now().fuel, Some(5));
        operator.send_replace(Limits::CEILING);
        assert_eq!(limits.now(), started);
    }

    /// A run that may use more than the maximum, as an embedder's own run may, is not restricted by a maximum that
    /// stays the same.
    #[test]
    fn a_maximum_that_stays_lowers_nothing() {
        let max = Limits { tool_calls: 2, ..Limits::CEILING };
        let (operator, receiver) = watch::channel(max);
        let limits = RunLimits::new(Limits { tool_calls: 0, ..Limits::default() }, max, receiver);
        operator.send_replace(Limits { output_bytes: 7, ..max });
        assert_eq!((limits.now().tool_calls, limits.now().output_bytes), (0, 7));
        operator.send_replace(Limits { tool_calls: 1, ..max });
        assert_eq!(limits.now().tool_calls, 1);
    }
}
