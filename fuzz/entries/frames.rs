//! Target of the frames between an executor and a worker process that a script has taken over.
//!
//! The first byte chooses: the rest is a stream of frames, or the message of one frame whose header is right. Otherwise
//! almost every input would end at a header.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Decoder, FrameError, RunNumber, append};
use crate::engine::process::wire::{FromWorker, ToWorker};
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, Outcome};

const RUN: RunNumber = RunNumber(1);

/// Maximum bytes of a message here, more than any input has.
const MOST: usize = 64 << 10;

pub(crate) fn frames(data: &[u8]) {
    let Some((mode, rest)) = data.split_first() else { return };
    let stream = if mode % 2 == 0 { rest.to_vec() } else { framed(rest) };
    let (messages, end) = read::<FromWorker>(&stream, stream.len().max(1));
    for size in [1, 7, 100] {
        assert_eq!(read::<FromWorker>(&stream, size), (messages.clone(), end), "chunks of {size}");
    }
    for message in &messages {
        assert_eq!(read::<FromWorker>(message, message.len()), (vec![message.clone()], None));
        check_end(message);
    }
    let (messages, _) = read::<ToWorker>(&stream, stream.len().max(1));
    for message in &messages {
        assert_eq!(read::<ToWorker>(message, message.len()), (vec![message.clone()], None));
    }
}

/// One frame with this message.
fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(message.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    frame.extend(RUN.0.to_le_bytes());
    frame.extend(message);
    frame
}

/// The messages of a stream, as frames again, and why no more can be read.
fn read<M: Serialize + DeserializeOwned>(stream: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let mut decoder = Decoder::new(MOST);
    let mut found = Vec::new();
    for mut chunk in stream.chunks(size) {
        while !chunk.is_empty() {
            let space = decoder.space();
            let bytes = space.len().min(chunk.len());
            assert!(bytes > 0 && space.len() <= 2 * MOST, "space for {} bytes", space.len());
            space[..bytes].copy_from_slice(&chunk[..bytes]);
            decoder.filled(bytes);
            chunk = &chunk[bytes..];
            loop {
                match decoder.next::<M>(RUN) {
                    Ok(Some(message)) => {
                        let mut frame = Vec::new();
                        append(&mut frame, RUN, &message, MOST).expect("what was read can be written");
                        found.push(frame);
                    }
                    Ok(None) => break,
                    Err(error) => return (found, Some(error)),
                }
            }
        }
    }
    (found, None)
}

/// A worker's report of the run's end must not give it one of the executor's codes.
fn check_end(frame: &[u8]) {
    let mut decoder = Decoder::new(MOST);
    decoder.space()[..frame.len()].copy_from_slice(frame);
    decoder.filled(frame.len());
    let Ok(Some(FromWorker::Done(done))) = decoder.next(RUN) else { return };
    let limits = Limits { result_bytes: 1_000, ..Limits::default() };
    let Ok(outcome) = done.outcome(&limits, &[]) else { return };
    match outcome {
        Outcome::Returned(value) => assert!(value.text().len() <= limits.result_bytes),
        Outcome::Failed(error) => {
            let codes_of_the_executor = [
                ErrorCode::Timeout,
                ErrorCode::CpuLimit,
                ErrorCode::MaxToolCallsExceeded,
                ErrorCode::QueueFull,
                ErrorCode::EngineUnavailable,
                ErrorCode::EngineCrashed,
            ];
            assert!(!codes_of_the_executor.contains(&error.code), "{error:?}");
            assert_eq!(error.tool_code, None, "no call has failed");
        }
    }
}

#[test]
fn v_414_frames_of_a_worker_that_was_taken_over() {
    crate::fuzzing::smoke("frames", 20_000, frames);
}
