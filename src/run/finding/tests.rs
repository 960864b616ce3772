use super::*;

#[test]
fn bytes_have_lines_and_columns() {
    let check = |source: &str, byte: usize, expected: (u32, u32), line: &str| {
        let lines = Lines::new(source);
        assert_eq!(lines.position(byte), expected, "{source:?} {byte}");
        assert_eq!(lines.line(expected.0), line);
    };
    check("", 0, (1, 1), "");
    check("ab", 2, (1, 3), "ab");
    check("ab\r\ncd", 4, (2, 1), "cd");
    check("ab\r\ncd", 3, (1, 4), "ab");
    check("a\n", 2, (2, 1), "");
    check("ä𝄞x", 6, (1, 4), "ä𝄞x");
    // A byte within a character, and one behind the end.
    check("ä𝄞x", 3, (1, 2), "ä𝄞x");
    check("ä", 9, (1, 2), "ä");
}

/// Each position is the one that counting from the start comes to.
#[test]
fn positions_in_long_lines_are_right() {
    let source = format!("{}\n{}𝄞\n", "xä𝄞".repeat(1_000), "y".repeat(5_000));
    let lines = Lines::new(&source);
    for (byte, _) in source.char_indices() {
        let before = &source[..byte];
        let line = before.matches('\n').count() + 1;
        let column = before[before.rfind('\n').map_or(0, |end| end + 1)..].encode_utf16().count() + 1;
        assert_eq!(lines.position(byte), (number(line), number(column)), "{byte}");
    }
}
