//! A file for each day, and how long they are kept.

use super::*;

/// The day that many days ago.
fn days_ago(days: u64) -> String {
    date(SystemTime::now() - Duration::from_hours(24 * days))
}

#[test]
fn old_files_are_removed_and_the_trail_says_so() {
    let place = Place::new();
    let (first, second) = (place.file("2020-01-01"), place.file(&days_ago(1)));
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

/// Threat 734. The earlier file is too old now, and was not when the newest one was written.
#[test]
fn v_734_a_clock_that_is_ahead_for_a_moment_removes_no_file() {
    // As the clock is ahead of the retention time of 180 days, or of less.
    for days in [190, 170] {
        let place = Place::new();
        let files = [days_ago(days + 20), days_ago(days)].map(|day| place.file(&day));
        for file in &files {
            place.write(0, 3);
            fs::rename(place.today(), file).unwrap();
        }
        place.write(3, 6);
        assert!(files.iter().all(|file| file.exists()) && place.verify().is_ok(), "{days}");
        // On the next day they are as old as that.
        fs::rename(place.today(), place.file(&days_ago(1))).unwrap();
        place.write(6, 9);
        assert_eq!(files.map(|file| file.exists()), [false, days == 170]);
        assert!(place.verify().is_ok());
    }
}

/// Threat 738. Each file is older than the retention time when the next one begins.
#[test]
fn v_738_a_trail_that_is_rarely_written_is_not_kept_for_ever() {
    let place = Place::new();
    let files = ["2020-01-01", "2021-01-01", "2022-01-01"].map(|day| place.file(day));
    for file in &files {
        place.write(0, 3);
        fs::rename(place.today(), file).unwrap();
    }
    place.write(3, 6);
    assert_eq!(files.map(|file| file.exists()), [false, false, true]);
    assert!(place.verify().is_ok());
}

/// Threat 770. A directory cannot be removed as a file is.
#[test]
fn v_770_lines_that_are_written_are_not_lost_with_a_file_that_cannot_be_removed() {
    let place = Place::new();
    let (old, yesterday) = (place.file("2020-01-02"), place.file(&days_ago(1)));
    for file in [&old, &yesterday] {
        place.write(0, 3);
        fs::rename(place.today(), file).unwrap();
    }
    let obstacle = place.file("2020-01-01");
    fs::create_dir(&obstacle).unwrap();
    place.write(3, 6);
    let lines = place.lines();
    assert!(!lines.iter().any(|line| line.contains("lines.dropped")), "{lines:?}");
    // The others go.
    assert!(obstacle.exists() && !old.exists());
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
