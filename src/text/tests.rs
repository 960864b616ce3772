use super::*;

#[test]
fn hidden_characters_are_found_and_written_out() {
    for text in ["plain", "größe 搜索 🎉", "two\nlines\tand a tab", ""] {
        assert!(!hidden_text(text), "{text:?}");
        assert_eq!(visible(text), text);
    }
    for (text, shown) in [
        ("a\u{200b}b", "a\\u{200b}b"),
        ("\u{1b}[31mred", "\\u{1b}[31mred"),
        ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
        ("x\u{e0041}\u{e0042}", "x\\u{e0041}\\u{e0042}"),
        ("\u{feff}bom", "\\u{feff}bom"),
        ("a\u{2028}b", "a\\u{2028}b"),
        ("a\u{0}b\u{7f}\u{9b}", "a\\u{0}b\\u{7f}\\u{9b}"),
    ] {
        assert!(hidden_text(text), "{text:?}");
        assert_eq!(visible(text), shown);
        assert!(!hidden_text(&visible(text)));
    }
}
