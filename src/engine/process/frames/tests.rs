use super::*;

/// A message of each kind of part that real ones have.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Message {
    Text { number: u64, text: String },
    Numbers(Vec<Option<f64>>),
    Nothing,
}

const RUN: RunNumber = RunNumber(0x0123_4567_89ab_cdef);
const MAX_BYTES: usize = 100_000;

fn messages() -> Vec<Message> {
    vec![
        Message::Nothing,
        Message::Text { number: u64::MAX, text: "ä\0\n".to_owned() },
        Message::Numbers(vec![None, Some(1.5), Some(f64::INFINITY)]),
        Message::Text { number: 0, text: "x".repeat(90_000) },
        Message::Nothing,
    ]
}

fn encoded() -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages() {
        append(&mut out, RUN, &message, MAX_BYTES).unwrap();
    }
    out
}

/// Feeds `bytes` in pieces of at most `piece`, and returns what was decoded until the end or the first error.
fn decode(bytes: &[u8], piece: usize) -> (Vec<Message>, Option<FrameError>) {
    let mut decoder = Decoder::new(MAX_BYTES);
    let (mut rest, mut found) = (bytes, Vec::new());
    loop {
        loop {
            match decoder.next(RUN) {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(error) => return (found, Some(error)),
            }
        }
        if rest.is_empty() {
            return (found, None);
        }
        let space = decoder.space();
        assert!(!space.is_empty());
        let count = piece.min(rest.len()).min(space.len());
        space[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        decoder.filled(count);
        assert!(decoder.buffer.len() <= MAX_BYTES + HEADER + 2 * CHUNK, "{}", decoder.buffer.len());
    }
}

/// A small generator of numbers, so that a failure can be repeated.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[test]
fn frames_come_back_in_any_pieces() {
    for piece in [1, 2, 11, 12, 13, 1_000, 16_384, 1 << 20] {
        assert_eq!(decode(&encoded(), piece), (messages(), None), "pieces of {piece}");
    }
}

#[test]
fn a_cut_frame_is_awaited_and_nothing_is_made_up() {
    let bytes = encoded();
    for cut in (0..200).chain([bytes.len() - 1]) {
        let (found, error) = decode(&bytes[..cut], 4_096);
        assert_eq!(error, None, "cut at {cut}");
        assert_eq!(found, messages()[..found.len()]);
        assert!(found.len() < messages().len());
    }
}

#[test]
fn a_length_beyond_the_bound_is_refused_before_anything_is_allocated() {
    for length in [MAX_BYTES as u32 + 1, u32::MAX] {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend_from_slice(&RUN.0.to_le_bytes());
        let mut decoder = Decoder::new(MAX_BYTES);
        let before = decoder.space().len();
        decoder.space()[..bytes.len()].copy_from_slice(&bytes);
        decoder.filled(bytes.len());
        let refused = decoder.next::<Message>(RUN);
        assert_eq!(refused, Err(FrameError::TooLong { bytes: length as usize, max_bytes: MAX_BYTES }));
        assert_eq!(decoder.buffer.len(), before);
    }
    // A length within the bound takes no memory either until its bytes arrive.
    let mut bytes = (MAX_BYTES as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&RUN.0.to_le_bytes());
    let mut decoder = Decoder::new(MAX_BYTES);
    decoder.space()[..bytes.len()].copy_from_slice(&bytes);
    decoder.filled(bytes.len());
    assert_eq!(decoder.next::<Message>(RUN), Ok(None));
    assert!(decoder.space().len() <= 2 * CHUNK);
}

#[test]
fn a_frame_of_another_run_is_refused() {
    let mut out = Vec::new();
    append(&mut out, RunNumber(7), &Message::Nothing, MAX_BYTES).unwrap();
    assert_eq!(decode(&out, 100), (Vec::new(), Some(FrameError::OtherRun)));
    out.clear();
    append(&mut out, RunNumber::NONE, &Message::Nothing, MAX_BYTES).unwrap();
    assert_eq!(decode(&out, 100), (Vec::new(), Some(FrameError::OtherRun)));
}

#[test]
fn a_message_with_bytes_to_spare_is_refused() {
    let mut out = Vec::new();
    append(&mut out, RUN, &Message::Nothing, MAX_BYTES).unwrap();
    out[0] += 1;
    out.push(0);
    assert_eq!(decode(&out, 100), (Vec::new(), Some(FrameError::Malformed)));
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    let mut out = vec![1, 2, 3];
    let long = Message::Text { number: 1, text: "x".repeat(MAX_BYTES) };
    assert!(matches!(append(&mut out, RUN, &long, MAX_BYTES), Err(FrameError::TooLong { .. })));
    assert_eq!(out, [1, 2, 3]);
}

/// Whatever arrives, the decoder ends with messages or an error: no panic, and no more memory than the bound.
#[test]
fn random_and_damaged_bytes_are_refused_or_understood() {
    let mut seed = 18;
    let whole = encoded();
    for _ in 0..20_000 {
        let length = (random(&mut seed) % 400) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| random(&mut seed) as u8).collect();
        if random(&mut seed).is_multiple_of(2) && bytes.len() >= HEADER {
            // With a header that is right, so that the message is looked at.
            let inner = (bytes.len() - HEADER) as u32;
            bytes[..4].copy_from_slice(&inner.to_le_bytes());
            bytes[4..HEADER].copy_from_slice(&RUN.0.to_le_bytes());
        }
        decode(&bytes, 1 + (random(&mut seed) % 64) as usize);
    }
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random(&mut seed) % 4 {
            let at = (random(&mut seed) % 200) as usize;
            bytes[at] = random(&mut seed) as u8;
        }
        let (found, _error) = decode(&bytes, 10_000);
        assert!(found.len() <= bytes.len());
    }
}
