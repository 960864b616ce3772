//! Which cursors are followed.

use super::*;

#[test]
fn v_328_cursors_are_followed_within_bounds() {
    let mut pages = Pages::new();
    assert_eq!(pages.number(), 1);
    let longest = "x".repeat(MAX_CURSOR_BYTES);
    assert_eq!(pages.follow(longest.clone()), Ok(longest.clone()));
    assert_eq!(pages.follow(longest.clone() + "x"), Err(ListCut::LongCursor { bytes: MAX_CURSOR_BYTES + 1 }));
    assert_eq!(pages.follow(longest), Err(ListCut::RepeatedCursor));
    // An empty cursor is a valid cursor.
    assert_eq!(pages.follow(String::new()), Ok(String::new()));
    for page in 3..MAX_PAGES {
        assert_eq!(pages.number(), page);
        pages.follow(page.to_string()).unwrap();
    }
    assert_eq!(pages.follow("last".to_owned()), Err(ListCut::ManyPages));
    assert_eq!(pages.number(), MAX_PAGES);
    // The set of hashes is bounded, whatever was sent.
    assert_eq!(pages.followed.len(), MAX_PAGES - 1);
}
