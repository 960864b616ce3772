//! A file for each day, and how long they are kept.

use super::*;

fn yesterday() -> String {
    date(SystemTime::now() - Duration::from_hours(24))
}

#[test]
fn old_files_are_removed_and_the_trail_says_so() {
    let place = Place::new();
    let (first, second) = (place.file("2020-01-01"), place.file(&yesterday()));
    for file in [&first, &second] {
        place.write(0, 3);
        fs::rename(place.today(), file).unwrap();
    }
    place.write(3, 6);
    assert!(!first.exists() && second.exists());
    let found = place.verify();
    assert!(found.is_ok(), "{:?}", found.problems);
    assert!(found.notices.iter().any(|notice| notice.contains("5 lines were removed")), "{found:?}");
    // Another file that is removed is not explained by that.
    fs::remove_file(second).unwrap();
    let found = place.verify();
    assert!(found.problems[0].problem.contains("lines before it are missing"), "{found:?}");
}

/// Threat 734.
#[test]
fn v_734_a_clock_that_is_ahead_for_a_moment_removes_no_file() {
    let place = Place::new();
    let old = ["2020-01-01", "2020-01-02"].map(|day| place.file(day));
    for file in &old {
        place.write(0, 3);
        fs::rename(place.today(), file).unwrap();
    }
    place.write(3, 6);
    assert!(old.iter().all(|file| file.exists()) && place.verify().is_ok());
    // On the next day they are.
    fs::rename(place.today(), place.file(&yesterday())).unwrap();
    place.write(6, 9);
    assert!(!old.iter().any(|file| file.exists()) && place.verify().is_ok());
}

/// A clock that was ahead does not make a trail whose files are out of order.
#[test]
fn a_clock_that_goes_back_keeps_the_order() {
    let place = Place::new();
    place.write(0, 3);
    let later = place.trail().join("2999-01-01.jsonl");
    fs::rename(place.today(), &later).unwrap();
    place.write(3, 6);
    assert!(!place.today().exists());
    let found = place.verify();
    // With a checkpoint.
    assert!(found.is_ok() && found.lines == 11, "{found:?}");
    let mut appender = Appender::new(place.options());
    for at in ["2999-01-01T00:00:00.000Z", "2026-11-22T00:00:00.000Z"] {
        let mut records = Records::default();
        records.push(&[("at", at.into()), ("event", "test".into()), ("writer", "w".into())]);
        appender.append(&records, "w").unwrap();
    }
    let found = place.verify();
    assert!(found.is_ok() && found.notices[0].contains("the time goes back"), "{found:?}");
}
