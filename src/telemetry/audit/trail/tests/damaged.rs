//! Files that end with something else than lines, as after a power failure.

use super::*;
use crate::telemetry::audit::read::AuditReader;

/// Appends that many zeros to today's file.
fn append_zeros(place: &Place, bytes: u64) {
    let file = fs::OpenOptions::new().append(true).open(place.today()).unwrap();
    file.set_len(file.metadata().unwrap().len() + bytes).unwrap();
}

/// Zeros, which are set aside, or lines that are none, which stay.
#[test]
fn v_720_the_chain_goes_on_after_megabytes_of_garbage() {
    const BYTES: u64 = 3 << 20;
    let place = Place::new();
    place.write(0, 3);
    append_zeros(&place, BYTES);
    place.write(3, 6);
    let found = place.verify();
    assert!(found.is_ok() && found.lines == found.last, "{found:?}");
    assert!(found.notices[0].contains("set aside: damaged-"), "{found:?}");
    let aside = fs::read_dir(place.trail()).unwrap().map(Result::unwrap);
    let aside = aside.into_iter().find(|entry| entry.file_name().to_string_lossy().starts_with("damaged-"));
    assert_eq!(aside.unwrap().metadata().unwrap().len(), BYTES);
    let last = found.last;
    let garbage = format!("{}\n", "x".repeat(1_023)).repeat(3 << 10);
    fs::write(place.today(), fs::read_to_string(place.today()).unwrap() + &garbage).unwrap();
    place.write(6, 7);
    let found = place.verify();
    assert_eq!((found.problem_count, found.last), (3 << 10, last + 3), "{:?}", found.problems.last());
}

/// Neither the last line nor the beginning of the incomplete one is within the bytes that are searched.
#[test]
fn v_720_no_line_is_a_part_of_garbage_before_it() {
    let place = Place::new();
    place.write(0, 3);
    append_zeros(&place, (64 << 20) + (512 << 10));
    place.write(3, 6);
    let mut reader = AuditReader::new(place.trail());
    let mut numbers = Vec::new();
    while let Some(line) = reader.next_line(false).unwrap() {
        numbers.extend(line.fields.and_then(|fields| fields.get("number")?.as_u64()));
    }
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    assert!(!place.verify().is_ok());
}
