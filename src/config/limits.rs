//! The keys of `limits` in cx's own file, with their bounds, and the values of a file.

use std::time::Duration;

use super::error::Location;
use super::reader::Fields;
use crate::run::limits::Limits;

/// A limit: its key, its bounds, and its field in [`Limits`].
#[derive(Debug)]
pub(super) struct LimitKey {
    pub(super) name: &'static str,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) unit: &'static str,
    pub(super) get: fn(&Limits) -> u64,
    pub(super) set: fn(&mut Limits, u64),
}

impl LimitKey {
    /// The key of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        LIMIT_KEYS.iter().find(|key| key.name == name)
    }

    /// Whether `value` is at least as strict as the current limits. 0 total calls and 0 fuel mean no
    /// limit.
    pub(super) fn restricts(&self, limits: &Limits, value: u64) -> bool {
        let has_none = self.min == 0 && ["calls", "units of fuel"].contains(&self.unit);
        let allowed = |value: u64| if has_none && value == 0 { u64::MAX } else { value };
        allowed(value) <= allowed((self.get)(limits))
    }
}

/// A limit that a file sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitSetting {
    pub(super) key: &'static LimitKey,
    pub(super) value: u64,
    pub(super) role: LimitRole,
    pub(super) location: Option<Location>,
}

/// What a setting limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitRole {
    /// Runs that request nothing, and the maximum that a client may request: cx's own settings.
    Both,
    /// Runs that request nothing. Never above the maximum that a client may request.
    Default,
    /// The maximum that a client may request.
    Max,
}

macro_rules! limit_keys {
    ($($name:literal: $field:ident, $min:expr, $max:expr, $unit:literal, $to:expr, $from:expr;)*) => {
        &[$(LimitKey {
            name: $name,
            min: $min,
            max: $max,
            unit: $unit,
            get: |limits| $to(limits.$field),
            set: |limits, value| limits.$field = $from(value),
        }),*]
    };
}

/// The highest values that cx allows.
const MAX: Limits = Limits::CEILING;

/// Every key of `limits`.
pub(super) const LIMIT_KEYS: &[LimitKey] = limit_keys! {
    "timeoutMs": wall_time, 1, milliseconds(MAX.wall_time), "milliseconds", milliseconds, Duration::from_millis;
    "cpuTimeMs": cpu_time, 1, milliseconds(MAX.cpu_time), "milliseconds", milliseconds, Duration::from_millis;
    "fuel": fuel, 0, Limits::MAX_FUEL, "units of fuel", fuel_or_zero, some_fuel;
    "memoryBytes": memory_bytes, Limits::MIN_MEMORY_BYTES as u64, MAX.memory_bytes as u64, "bytes", bytes, size;
    "maxToolCalls": tool_calls, 0, u32::MAX as u64, "calls", u64::from, number;
    "maxCallsInFlight": calls_in_flight, 1, MAX.calls_in_flight as u64, "calls", u64::from, number;
    "maxSourceBytes": source_bytes, 1, MAX.source_bytes as u64, "bytes", bytes, size;
    "maxArgumentBytes": argument_bytes, 2, MAX.argument_bytes as u64, "bytes", bytes, size;
    "maxResultBytes": result_bytes, 2, MAX.result_bytes as u64, "bytes", bytes, size;
    "maxOutputBytes": output_bytes, 0, MAX.output_bytes as u64, "bytes", bytes, size;
    "answerTimeoutMs": answer_time, 1, milliseconds(MAX.answer_time), "milliseconds", milliseconds,
        Duration::from_millis;
    "maxPausedMs": paused_time, 0, milliseconds(MAX.paused_time), "milliseconds", milliseconds,
        Duration::from_millis;
    "maxQuestions": questions, 0, MAX.questions as u64, "questions", u64::from, number;
    "maxWrittenBytes": written_bytes, 0, MAX.written_bytes, "bytes", u64::from, u64::from;
    "maxCreatedFiles": created_files, 0, MAX.created_files, "files", u64::from, u64::from;
    "maxFileBytes": file_bytes, 0, MAX.file_bytes, "bytes", u64::from, u64::from;
};

const fn milliseconds(time: Duration) -> u64 {
    // No limit comes near the range of 64 bits.
    time.as_secs() * 1_000 + time.subsec_millis() as u64
}

fn fuel_or_zero(fuel: Option<u64>) -> u64 {
    fuel.unwrap_or(0)
}

fn some_fuel(fuel: u64) -> Option<u64> {
    (fuel > 0).then_some(fuel)
}

fn bytes(size: usize) -> u64 {
    size as u64
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn number(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Reads the values in the section `limits`.
pub(super) fn limits(fields: &mut Fields<'_, '_>) -> Vec<LimitSetting> {
    let names: Vec<&str> = LIMIT_KEYS.iter().map(|key| key.name).collect();
    fields.check_names(&names);
    let value = |key: &'static LimitKey| {
        let value = fields.read(&[key.name], |at| at.number(key.min, key.max, key.unit))?;
        let location = fields.find(&[key.name]).and_then(|(_, node)| node.location);
        Some(LimitSetting { key, value, role: LimitRole::Both, location })
    };
    LIMIT_KEYS.iter().filter_map(value).collect()
}
