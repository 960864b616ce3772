use super::*;

#[test]
fn the_last_words_are_bounded_and_clean() {
    let mut tail = Tail::default();
    assert_eq!(tail.render(), "");
    tail.push(b"\x1b[1;31mred\x1b[0m\x07\r\n\ttab \xff\x1b[");
    assert_eq!(tail.render(), "red\n\ttab \u{fffd}");
    for number in 0..100_000 {
        tail.push(format!("line {number}\n").as_bytes());
    }
    assert!(tail.bytes.len() <= MAX_TAIL_BYTES);
    let shown = tail.render();
    assert!(shown.len() <= MAX_RENDERED_BYTES && shown.starts_with("line ") && shown.ends_with("line 99999"));
    tail.push(&vec![b'x'; 3 * MAX_TAIL_BYTES]);
    assert_eq!(tail.bytes.len(), MAX_TAIL_BYTES);
}
