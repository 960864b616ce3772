use std::fs::{self, OpenOptions};

use super::{AuditReader, LISTINGS, MAX_LINE_BYTES};

/// The numbers in the lines that a reader of the last `bytes` finds.
fn read(directory: &std::path::Path, bytes: u64) -> Vec<u64> {
    let mut reader = AuditReader::near_end(directory, bytes).unwrap();
    let mut found = Vec::new();
    while let Some(line) = reader.next_line(false).unwrap() {
        found.push(line.fields.unwrap()["n"].as_u64().unwrap());
    }
    found
}

#[test]
fn the_end_of_a_trail_begins_with_a_whole_line() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(read(directory.path(), 100), Vec::<u64>::new(), "there is no file");
    // Lines of 8 bytes: 24 and 16.
    fs::write(directory.path().join("2026-01-01.jsonl"), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n").unwrap();
    fs::write(directory.path().join("2026-01-02.jsonl"), "{\"n\":4}\n{\"n\":5}\n").unwrap();
    fs::write(directory.path().join("key.pub"), "no lines").unwrap();
    for (bytes, expected) in [
        (1_000, vec![1, 2, 3, 4, 5]),
        (40, vec![1, 2, 3, 4, 5]),
        // A line that begins before the bound is left out, also if it is almost whole.
        (39, vec![2, 3, 4, 5]),
        (32, vec![2, 3, 4, 5]),
        (31, vec![3, 4, 5]),
        (17, vec![4, 5]),
        (16, vec![4, 5]),
        (15, vec![5]),
    ] {
        assert_eq!(read(directory.path(), bytes), expected, "{bytes}");
    }
    // What is appended later is read too.
    let mut reader = AuditReader::near_end(directory.path(), 8).unwrap();
    assert!(reader.next_line(false).unwrap().is_some() && reader.next_line(false).unwrap().is_none());
    fs::write(directory.path().join("2026-01-03.jsonl"), "{\"n\":6}\n").unwrap();
    assert_eq!(reader.next_line(false).unwrap().unwrap().text, "{\"n\":6}");
}

/// Threat 798: somebody puts the file of today somewhere else.
#[test]
fn v_798_a_file_that_takes_the_place_of_another_is_read_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("2026-01-01.jsonl");
    let away = directory.path().join("away");
    let mut reader = AuditReader::new(directory.path());
    let mut next = || reader.next_line(false).unwrap().map(|line| line.text);
    fs::write(&path, "{\"n\":1}\n{\"n\"").unwrap();
    assert_eq!(next().as_deref(), Some("{\"n\":1}"));
    assert_eq!(next(), None);
    fs::rename(&path, &away).unwrap();
    assert_eq!(next(), None, "there is no other one yet");
    // What was written to the first one comes first.
    fs::write(&away, "{\"n\":1}\n{\"n\":2}\n").unwrap();
    fs::write(&path, "{\"n\":3}\n").unwrap();
    assert_eq!(next().as_deref(), Some("{\"n\":2}"));
    assert_eq!(next().as_deref(), Some("{\"n\":3}"));
    assert_eq!(next(), None);
    // Nor is it passed over if the reader looks only when the next day has begun.
    fs::rename(&path, &away).unwrap();
    fs::write(&path, "{\"n\":4}\n").unwrap();
    fs::write(directory.path().join("2026-01-02.jsonl"), "{\"n\":5}\n").unwrap();
    assert_eq!(next().as_deref(), Some("{\"n\":4}"));
    assert_eq!(next().as_deref(), Some("{\"n\":5}"));
    assert_eq!(next(), None);
}

/// Threat 830: somebody empties the file of today, as programs do that rotate files by copying them.
#[test]
fn v_830_a_file_that_is_emptied_in_place_is_read_from_its_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("2026-01-01.jsonl");
    let mut reader = AuditReader::new(directory.path());
    let mut next = || reader.next_line(false).unwrap().map(|line| (line.number, line.text));
    let line = |number: u64, text: &str| Some((number, text.to_owned()));
    fs::write(&path, "{\"n\":1}\n{\"n\":2}\n").unwrap();
    assert_eq!([next(), next(), next()], [line(1, "{\"n\":1}"), line(2, "{\"n\":2}"), None]);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(next(), None, "nothing is written to it yet");
    fs::write(&path, "{\"n\":3}\n").unwrap();
    assert_eq!([next(), next()], [line(1, "{\"n\":3}"), None]);
    // It has more lines than before when the reader looks again.
    fs::write(&path, "{\"n\":4}\n{\"n\":5}\n").unwrap();
    assert_eq!([next(), next(), next()], [line(1, "{\"n\":4}"), line(2, "{\"n\":5}"), None]);
    // Nor is it passed over if the reader looks only when the next day has begun.
    fs::write(&path, "{}\n").unwrap();
    fs::write(directory.path().join("2026-01-02.jsonl"), "{\"n\":6}\n").unwrap();
    assert_eq!([next(), next(), next()], [line(1, "{}"), line(1, "{\"n\":6}"), None]);
}

/// A writer whose disk is full removes the lines of which it could write a part only.
#[test]
fn a_file_whose_last_lines_are_removed_is_not_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("2026-01-01.jsonl");
    let mut reader = AuditReader::new(directory.path());
    let mut next = || reader.next_line(false).unwrap().map(|line| line.text);
    // It is opened before anything is written to it.
    fs::write(&path, "").unwrap();
    assert_eq!(next(), None);
    fs::write(&path, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n").unwrap();
    while next().is_some() {}
    OpenOptions::new().write(true).open(&path).unwrap().set_len(16).unwrap();
    assert_eq!(next(), None);
    fs::write(&path, "{\"n\":1}\n{\"n\":2}\n{\"n\":4}\n").unwrap();
    assert_eq!([next().as_deref(), next().as_deref()], [Some("{\"n\":4}"), None]);
}

/// Threat 725: what follows a line that is too long is not hidden by it, and its end is no line.
#[test]
fn v_725_a_line_that_is_too_long_hides_no_later_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = |day: u32| directory.path().join(format!("2026-01-0{day}.jsonl"));
    // Objects, so that the start of a line or its end could be taken for a line.
    let long = |bytes: u64| format!("{{}}{}{{}}", " ".repeat(usize::try_from(bytes).unwrap() - 4));
    let lines = [MAX_LINE_BYTES, MAX_LINE_BYTES + 100, 3 * MAX_LINE_BYTES].map(|bytes| {
        let line = long(bytes);
        format!("{{\"n\":{bytes}}}\n{line}\n")
    });
    fs::write(file(1), lines.concat() + "{\"n\":1}\n").unwrap();
    fs::write(file(2), "{\"n\":2}\n").unwrap();
    let mut reader = AuditReader::new(directory.path());
    let mut found = Vec::new();
    while let Some(line) = reader.next_line(false).unwrap() {
        assert!(line.is_complete, "line {} of {}", line.number, line.file);
        found.push(line.fields.map(|fields| fields["n"].as_u64().unwrap()));
    }
    let numbers = [MAX_LINE_BYTES, MAX_LINE_BYTES + 100, 3 * MAX_LINE_BYTES].map(Some);
    let expected = [numbers[0], None, numbers[1], None, numbers[2], None, Some(1), Some(2)];
    assert_eq!(found, expected);
}

/// Threat 725: a file without a line end, which can have terabytes, is not read to its end.
#[test]
fn v_725_a_line_without_an_end_is_read_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let file = |day: u32| directory.path().join(format!("2026-01-0{day}.jsonl"));
    fs::write(file(1), "{\"n\":1}\n").unwrap();
    OpenOptions::new().write(true).open(file(1)).unwrap().set_len(1 << 40).unwrap();
    fs::write(file(2), "{\"n\":2}\n").unwrap();
    let mut reader = AuditReader::new(directory.path());
    let mut next = || reader.next_line(false).unwrap().map(|line| line.fields);
    assert!(next().unwrap().is_some());
    assert_eq!(next(), Some(None));
    assert_eq!(next().unwrap().unwrap()["n"], 2);
    assert_eq!(next(), None);
}

/// Threat 725.
#[test]
fn v_725_the_end_of_a_trail_is_found_within_a_line_that_is_too_long() {
    let directory = tempfile::tempdir().unwrap();
    let long = " ".repeat(2 << 20);
    fs::write(directory.path().join("2026-01-01.jsonl"), format!("{{\"n\":1}}\n{long}\n{{\"n\":2}}\n"))
        .unwrap();
    let mut reader = AuditReader::near_end(directory.path(), (2 << 20) - 100).unwrap();
    assert_eq!(reader.next_line(false).unwrap().unwrap().fields, None);
    assert_eq!(reader.next_line(false).unwrap().unwrap().fields.unwrap()["n"], 2);
}

/// Threat 726.
#[test]
fn v_726_many_files_are_listed_once() {
    let directory = tempfile::tempdir().unwrap();
    for day in 10..=99 {
        fs::write(directory.path().join(format!("2026-01-{day}.jsonl")), format!("{{\"n\":{day}}}\n"))
            .unwrap();
    }
    // One of them is removed after it was listed.
    let before = LISTINGS.get();
    let mut reader = AuditReader::new(directory.path());
    assert_eq!(reader.next_line(false).unwrap().unwrap().text, "{\"n\":10}");
    fs::remove_file(directory.path().join("2026-01-12.jsonl")).unwrap();
    let mut count = 1;
    while reader.next_line(false).unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 89);
    // At the beginning, and where there is no later file.
    assert_eq!(LISTINGS.get() - before, 2);
}

/// Threat 610: a reader has found the end of a day's file, then its last line is written, then the next day's.
#[test]
fn v_610_the_last_line_of_a_day_is_not_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let file = |day: u32| directory.path().join(format!("2026-01-0{day}.jsonl"));
    fs::write(file(1), "{\"n\":1}\n").unwrap();
    let mut reader = AuditReader::new(directory.path());
    assert_eq!(reader.next_line(false).unwrap().unwrap().text, "{\"n\":1}");
    let line = reader.next_line_with(false, || {
        fs::write(file(1), "{\"n\":1}\n{\"n\":2}\n").unwrap();
        fs::write(file(2), "{\"n\":3}\n").unwrap();
    });
    assert_eq!(line.unwrap().unwrap().text, "{\"n\":2}");
    assert_eq!(reader.next_line(false).unwrap().unwrap().text, "{\"n\":3}");
    assert_eq!(reader.next_line(false).unwrap().map(|line| line.text), None);
}

/// Threat 590.
#[test]
fn v_590_a_line_of_many_values_is_no_line_of_a_trail() {
    let directory = tempfile::tempdir().unwrap();
    let many = format!("{{\"seq\":1,\"a\":[{}]}}\n", vec![r#"{"":0}"#; 100_000].join(","));
    let long = format!("{{\"seq\":2,\"a\":\"{}\"}}\n", "a".repeat(700_000));
    fs::write(directory.path().join("2026-01-01.jsonl"), many + &long).unwrap();
    let mut reader = AuditReader::new(directory.path());
    assert_eq!(reader.next_line(false).unwrap().unwrap().fields, None);
    assert_eq!(reader.next_line(false).unwrap().unwrap().fields.unwrap()["seq"], 2);
}
