use super::*;

#[test]
fn the_default_and_the_ceiling_are_valid() {
    Limits::default().validate().unwrap();
    Limits::CEILING.validate().unwrap();
}

/// Promises 90 and 135 of docs/promises.md, and those of the documents: 128 MiB, 30 s, a thousand calls.
#[test]
fn the_defaults_are_those_that_are_promised() {
    let Limits { wall_time, memory_bytes, tool_calls, .. } = Limits::default();
    assert_eq!((wall_time, memory_bytes, tool_calls), (Duration::from_secs(30), 128 << 20, 1_000));
}

#[test]
fn a_value_out_of_bounds_is_named() {
    let check = |limits: Limits, expected: &str| {
        let message = limits.validate().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    let default = Limits::default();
    check(Limits { wall_time: Duration::ZERO, ..default }, "`wall_time`");
    check(Limits { wall_time: Duration::from_secs(601), ..default }, "`wall_time`");
    check(Limits { cpu_time: Duration::MAX, ..default }, "`cpu_time`");
    check(Limits { fuel: Some(0), ..default }, "`fuel`");
    check(Limits { fuel: Some(u64::MAX), ..default }, "`fuel`");
    check(Limits { memory_bytes: 1, ..default }, "`memory_bytes`");
    check(Limits { calls_in_flight: 0, ..default }, "`calls_in_flight`");
    check(Limits { source_bytes: usize::MAX, ..default }, "`source_bytes`");
    check(Limits { argument_bytes: 0, ..default }, "`argument_bytes`");
    check(Limits { result_bytes: usize::MAX, ..default }, "`result_bytes`");
    check(Limits { output_bytes: usize::MAX, ..default }, "`output_bytes`");
    check(Limits { answer_time: Duration::ZERO, ..default }, "`answer_time`");
    check(Limits { answer_time: Duration::from_secs(601), ..default }, "`answer_time`");
    check(Limits { paused_time: Duration::from_secs(3_601), ..default }, "`paused_time`");
    check(Limits { questions: 1_001, ..default }, "`questions`");
    Limits { paused_time: Duration::ZERO, questions: 0, ..default }.validate().unwrap();
}
