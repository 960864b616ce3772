use super::*;
use crate::growth::assert_linear;

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
    // All words have the same pairs, each of them once.
    assert_eq!(wanted.pairs, [26; MAX_WORDS]);
    let all: Vec<usize> = (0..MAX_WORDS).collect();
    assert!(wanted.words.len() == 26 && wanted.words.values().all(|words| *words == all));
    assert!((wanted.resemblance(&words(&word('a'))[0]) - 1.0).abs() < f32::EPSILON);
    // Words of a query times names: the pairs of a name are not compared with all of the query. No two words of the query
    // have a pair in common.
    let letter = |number: usize| char::from_u32(u32::from('а') + (number % 31) as u32).unwrap();
    let word = |stride: usize| (0..31).map(|at| letter(at * stride)).collect::<String>();
    let name: String = ('a'..='z').chain(('a'..='z').step_by(2)).chain(('a'..='z').step_by(3)).collect();
    let make = |count: usize| {
        let query = (1..=count).map(word).collect::<Vec<_>>().join(" ");
        assert_eq!(WantedWords::new(&query).words.len(), 30 * count);
        (query, vec![&*name; 1_000 * count])
    };
    assert_linear("names and words", MAX_WORDS / 8, make, |(query, names)| {
        assert!(nearest(names.iter().copied(), query, 3, |_| true).is_empty());
    });
}
