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
