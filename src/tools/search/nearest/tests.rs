use super::*;

#[test]
fn names_that_share_letters_are_found_best_first() {
    let names = ["list_issues", "read_file", "take_screenshot", "readFiles", "文件"];
    let check = |query: &str, expected: &[usize]| {
        assert_eq!(nearest(names.iter().copied(), query, 3, |_| true), expected, "{query}");
    };
    check("fileish", &[1, 3]);
    check("screenshooting", &[2]);
    check("", &[]);
    check("qqqq", &[]);
    check("of the", &[]);
    assert_eq!(nearest(names.iter().copied(), "fileish", 1, |_| true), [1]);
    assert_eq!(nearest(names.iter().copied(), "fileish", 3, |position| position != 1), [3]);
}

/// Threat 526.
#[test]
fn v_526_each_pair_of_a_name_is_looked_up_once() {
    let word = |start: char| (start..='z').chain('a'..='z').take(40).collect::<String>();
    let query: String = ('a'..='z').map(word).collect::<Vec<_>>().join(" ");
    let wanted = WantedWords::new(&query);
    assert_eq!(wanted.pairs.len(), MAX_WORDS);
    // All words have the same pairs.
    assert!(wanted.words.len() <= 26, "{}", wanted.words.len());
    assert!((wanted.resemblance(&words(&word('a'))[0]) - 1.0).abs() < f32::EPSILON);
}
