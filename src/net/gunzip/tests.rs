use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use super::*;

/// Decompresses pieces of this size, and says in how many steps.
fn unpack(packed: &[u8], size: usize) -> io::Result<(Vec<u8>, usize)> {
    let (mut gunzip, mut pieces) = (Gunzip::new(), packed.chunks(size));
    let (mut unpacked, mut steps) = (Vec::new(), 0);
    loop {
        steps += 1;
        match gunzip.step()? {
            Step::Output(bytes) => {
                assert!((1..=MAX_OUTPUT).contains(&bytes.len()));
                unpacked.extend_from_slice(&bytes);
            }
            Step::Nothing => {}
            Step::Wanted => match pieces.next() {
                Some(piece) => gunzip.put(Bytes::copy_from_slice(piece)),
                None => gunzip.end(),
            },
            Step::End => return Ok((unpacked, steps)),
        }
    }
}

fn pack(builder: GzBuilder, text: &[u8]) -> Vec<u8> {
    let mut packer = builder.write(Vec::new(), Compression::default());
    packer.write_all(text).unwrap();
    packer.finish().unwrap()
}

/// Text that is compressed to a third, and a million zeros.
fn texts() -> [Vec<u8>; 4] {
    let numbers = (0..20_000).map(|number: u32| number.wrapping_mul(2_654_435_761).to_string());
    [Vec::new(), b"a".to_vec(), numbers.collect::<String>().into_bytes(), vec![0; 1 << 20]]
}

#[test]
fn what_was_packed_comes_back_in_any_pieces() {
    for text in texts() {
        let plain = pack(GzBuilder::new(), &text);
        let named = GzBuilder::new().filename("a.txt").comment("of a test").extra(vec![1; 300]);
        let all = [plain.clone(), pack(named, &text), plain].concat();
        let expected = [&*text, &text, &text].concat();
        for size in [1, 7, 1_000, all.len()] {
            let unpacked = unpack(&all, size).unwrap().0;
            assert!(unpacked == expected, "{} bytes in pieces of {size}", text.len());
        }
    }
    // The response to `HEAD` has the header of the body that it has not.
    assert!(unpack(&[], 1).unwrap().0.is_empty());
}

#[test]
fn what_is_cut_changed_or_something_else_is_an_error() {
    let packed = pack(GzBuilder::new(), b"some text, some text, some text");
    for length in 1..packed.len() {
        let error = unpack(&packed[..length], 5).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{length}");
    }
    for position in [0, 1, 2, packed.len() - 8, packed.len() - 1] {
        let mut changed = packed.clone();
        changed[position] ^= 1;
        assert_eq!(unpack(&changed, 5).unwrap_err().kind(), ErrorKind::InvalidData, "{position}");
    }
    assert!(unpack(b"<html>no gzip</html>", 100).is_err());
    assert!(unpack(&[&packed[..], &[0x1f, 0x8b, 0]].concat(), 100).is_err());
    // A name without an end.
    let endless = [&[0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0][..], &[b'a'; 2 * MAX_HEADER]].concat();
    assert_eq!(unpack(&endless, 100).unwrap_err().kind(), ErrorKind::InvalidData);
}

/// Some servers pad a body.
#[test]
fn what_follows_the_members_is_ignored() {
    let packed = pack(GzBuilder::new(), b"some text");
    for rest in [&[0_u8; 600][..], b"and more bytes", &[0x1f, 0]] {
        for size in [1, 7, 1_000] {
            let unpacked = unpack(&[&packed[..], rest].concat(), size).unwrap().0;
            assert_eq!(unpacked, b"some text", "{rest:?} in pieces of {size}");
        }
    }
}

/// Threat 819.
#[test]
fn v_819_blocks_without_output_are_read_in_steps() {
    // A header, and stored blocks of no bytes.
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let blocks = [0, 0, 0, 0xff, 0xff].repeat(20 * MAX_INPUT / 5);
    let mut gunzip = Gunzip::new();
    assert_eq!(gunzip.step().unwrap(), Step::Wanted);
    gunzip.put(Bytes::from([&header[..], &blocks].concat()));
    assert_eq!(gunzip.step().unwrap(), Step::Nothing);
    for step in 1..=20 {
        assert_eq!(gunzip.step().unwrap(), Step::Nothing);
        assert_eq!(gunzip.input.len(), blocks.len() - step * MAX_INPUT, "{step}");
    }
    assert_eq!(gunzip.step().unwrap(), Step::Wanted);
    // And so is much output.
    let packed = pack(GzBuilder::new(), &vec![0; 1 << 20]);
    let (unpacked, steps) = unpack(&packed, packed.len()).unwrap();
    assert_eq!(unpacked.len(), 1 << 20);
    assert!(steps > (1 << 20) / MAX_OUTPUT, "{steps}");
}

#[test]
fn gzip_has_two_names_in_any_case() {
    for (coding, expected) in [
        ("gzip", true),
        (" GZip ", true),
        ("X-GZIP", true),
        ("", false),
        ("identity", false),
        ("br", false),
        ("gzip, br", false),
    ] {
        assert_eq!(is_gzip(coding.as_bytes()), expected, "{coding}");
    }
}
