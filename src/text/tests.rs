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

/// Threat 840.
#[test]
fn v_840_a_word_of_a_command_is_one_word_of_a_shell() {
    for (text, word) in [
        (".mcp.json", ".mcp.json"),
        ("docs.read_file", "docs.read_file"),
        ("--header=a", "--header=a"),
        ("", "''"),
        ("=ls", "'=ls'"),
        ("~/.mcp.json", "'~/.mcp.json'"),
        ("[::1]", "'[::1]'"),
        ("Übung", "'Übung'"),
        ("my files/.mcp.json", "'my files/.mcp.json'"),
        ("s.x; touch y", "'s.x; touch y'"),
        ("s.$(touch y)", "'s.$(touch y)'"),
        ("s.'; touch y; '", r"'s.'\''; touch y; '\'''"),
        ("s.x\ntouch y", r"'s.x\u{a}touch y'"),
        ("s.x\0y", r"'s.x\u{0}y'"),
        (r"s.\", r"'s.\'"),
    ] {
        assert_eq!(shell_word(text), word);
    }
}

#[test]
fn a_start_ends_between_characters() {
    for (text, max, characters, bytes) in [
        ("", 0, "", ""),
        ("ab", 2, "ab", "ab"),
        ("abc", 2, "ab", "ab"),
        ("äöü", 2, "äö", "ä"),
        ("äöü", 3, "äöü", "ä"),
        ("🎉🎉", 1, "🎉", ""),
        ("🎉🎉", 7, "🎉🎉", "🎉"),
        ("abc", 0, "", ""),
        ("abc", usize::MAX, "abc", "abc"),
    ] {
        assert_eq!((start(text, max), start_bytes(text, max)), (characters, bytes), "{text} {max}");
        let ellipsis = |start: &str| if start == text { String::new() } else { "…".to_owned() };
        assert_eq!(preview(text, max), characters.to_owned() + &ellipsis(characters));
        assert_eq!(preview_bytes(text, max), bytes.to_owned() + &ellipsis(bytes));
    }
}
