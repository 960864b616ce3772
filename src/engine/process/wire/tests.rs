use super::*;

impl Start {
    /// The start of a short run that may take a minute.
    pub(in crate::engine::process) fn of_test(number: u64, depth: u8) -> Self {
        Self {
            number,
            depth,
            is_check: false,
            source: "return 1".to_owned(),
            name: "a.ts".to_owned(),
            input: None,
            servers: Vec::new(),
            time_zone: "UTC".to_owned(),
            clock_resolution_ns: 1_000_000,
            has_tape: false,
            has_network: false,
            is_alone: false,
            is_last: false,
            directories: Vec::new(),
            time_left_ns: 60_000_000_000,
            limits: WireLimits::from_limits(&Limits::default()),
        }
    }
}

fn outcome(error: WireError, given: &[ToolErrorCode]) -> ScriptError {
    let done = Done { outcome: Err(error), memory_bytes: 0, fuel: None };
    match done.outcome(&Limits::default(), given) {
        Ok(Outcome::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// A process that stands for a worker elsewhere chooses its slot by the depth, and need not wait for a source of
/// megabytes.
#[test]
fn the_depth_of_a_run_is_at_the_beginning_of_its_message() {
    let start = ToWorker::Start(Box::new(Start::of_test(u64::MAX, 3)));
    let mut orders = Vec::new();
    // Instead of the first message, which has any length.
    frames::append(&mut orders, frames::RunNumber::NONE, &ToWorker::Proceed, 1 << 10).unwrap();
    let first = orders.len();
    frames::append(&mut orders, frames::RunNumber::NONE, &start, 1 << 20).unwrap();
    // The header, which message it is, and a number of ten bytes.
    let depth = first + 12 + 1 + 10;
    for end in 0..=orders.len() {
        assert_eq!(depth_of_run(&orders[..end]), (end > depth).then_some(3), "{end}");
    }
    assert_eq!(depth_of_run(&[&orders[..first], &orders[..first]].concat()), None);
    // Another message, which has the same behind its kind.
    let mut other = orders[..first].to_vec();
    frames::append(&mut other, frames::RunNumber::NONE, &(2_u32, u64::MAX, 3_u8), 1 << 10).unwrap();
    assert_eq!(depth_of_run(&other), None);
}

#[test]
fn v_475_every_part_of_a_workers_error_is_bounded() {
    let long = || "ü".repeat(1 << 20);
    let error = WireError {
        code: long(),
        message: long(),
        name: Some(long()),
        stack: Some(long()),
        line: Some(u32::MAX),
        column: Some(u32::MAX),
        source_line: Some(long()),
        hint: Some(long()),
        tool_code: Some(long()),
    };
    let error = outcome(error, ToolErrorCode::ALL);
    assert_eq!((error.code, error.tool_code), (ErrorCode::RuntimeError, None));
    let ellipsis = "…".len();
    for text in [Some(&error.message), error.stack.as_ref()] {
        assert_eq!(text.unwrap().len(), MAX_TEXT + ellipsis);
    }
    for text in [&error.name, &error.source_line, &error.hint] {
        assert_eq!(text.as_ref().unwrap().chars().count(), MAX_SAID + 1);
    }
}

#[test]
fn v_475_codes_are_those_that_a_worker_may_report() {
    let of_the_executor = [
        ErrorCode::Timeout,
        ErrorCode::CheckFailed,
        ErrorCode::QueueFull,
        ErrorCode::EngineUnavailable,
        ErrorCode::EngineCrashed,
    ];
    for code in WORKER_CODES.into_iter().chain(of_the_executor) {
        let said = WireError { code: code.as_str().to_owned(), ..WireError::default() };
        let found = outcome(said, &[]).code;
        let may_say = WORKER_CODES.contains(&code) && code != ErrorCode::MaxToolCallsExceeded;
        assert_eq!(found, if may_say { code } else { ErrorCode::RuntimeError }, "{code}");
    }
    let denied = || WireError { tool_code: Some("TOOL_DENIED".to_owned()), ..WireError::default() };
    assert_eq!(outcome(denied(), &[ToolErrorCode::ToolError]).tool_code, None);
    let given = [ToolErrorCode::ToolDenied];
    assert_eq!(outcome(denied(), &given).tool_code, Some(ToolErrorCode::ToolDenied));
}

#[test]
fn v_475_a_value_is_within_its_limit() {
    let limits = Limits { result_bytes: 10, ..Limits::default() };
    let end = |text: &str| Done { outcome: Ok(text.to_owned()), memory_bytes: 0, fuel: None };
    assert!(matches!(end("12345").outcome(&limits, &[]), Ok(Outcome::Returned(_))));
    assert!(end("12345678901").outcome(&limits, &[]).is_err());
    assert!(end("[1").outcome(&limits, &[]).is_err());
}

/// Threat 810. During a run a message may have many megabytes, and this one is refused only after it was decoded.
#[test]
fn v_810_a_worker_has_as_many_measures_as_a_sandbox_has() {
    let read = |count| {
        let texts = || vec![String::new(); count];
        let ready = FromWorker::Ready { protocol: PROTOCOL, active: texts(), missing: texts() };
        let (mut frame, max) = (Vec::new(), message_bytes(&Limits::default()));
        frames::append(&mut frame, frames::RunNumber::NONE, &ready, max).unwrap();
        let mut decoder = frames::Decoder::new(max);
        let mut rest = &frame[..];
        while !rest.is_empty() {
            let space = decoder.space();
            let (part, left) = rest.split_at(rest.len().min(space.len()));
            space[..part.len()].copy_from_slice(part);
            decoder.filled(part.len());
            rest = left;
        }
        decoder.next::<FromWorker>(frames::RunNumber::NONE).map(|message| match message {
            Some(FromWorker::Ready { active, missing, .. }) => active.len() + missing.len(),
            _ => 0,
        })
    };
    assert_eq!(read(20), Ok(40));
    assert_eq!(read(measures::MAX_MEASURES), Ok(2 * measures::MAX_MEASURES));
    assert_eq!(read(measures::MAX_MEASURES + 1), Err(frames::FrameError::Malformed));
    assert_eq!(read(4 << 20), Err(frames::FrameError::Malformed));
}
