//! Patterns of regular expressions for which V8 computes for long, or takes much memory.

use super::*;

#[test]
fn v_752_patterns_with_many_characters_in_classes() {
    let scripts = [
        r"new RegExp('[\\0-\\uffff]'.repeat(20_000), 'i')",
        r"new RegExp('(?i:' + '[\\0-\\uffff]'.repeat(20_000) + ')')",
        r"'a'.search('(?i:' + '[\\0-\\uffff]'.repeat(20_000) + ')')",
        r"new RegExp('\\p{RGI_Emoji}'.repeat(200), 'iv')",
    ];
    refused(&scripts);
    let literals = [
        format!("/{}/i", r"[\0-\uffff]".repeat(20_000)),
        format!("/{}/iv", r"\p{RGI_Emoji}".repeat(200)),
        format!("/{}/", "a|".repeat(300_000)),
    ];
    let literals = literals.each_ref().map(String::as_str);
    all_end_with("TRANSPILE_ERROR", Stage::new(false).with_wall_ms(ENOUGH), &literals);
}
