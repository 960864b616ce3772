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

/// V8 and cx make other expressions of one, with flags that the script says.
#[test]
fn v_758_an_expression_that_gets_other_flags() {
    let expression = r"const r = new RegExp('[' + '\\w'.repeat(40_000) + ']', 'g');";
    let own = "Object.defineProperty(r, 'flags', { value: 'uig' });";
    let inherited = "for (const name of ['unicode', 'ignoreCase'])
        Object.defineProperty(RegExp.prototype, name, { get: () => true });";
    let without = "RegExp.prototype.constructor = undefined;";
    let species = "Object.defineProperty(RegExp, Symbol.species, { value: undefined });";
    let scripts = [
        format!("{own} r.constructor = undefined; r[Symbol.matchAll]('a')"),
        format!("{own} r.constructor = undefined; r[Symbol.split]('a')"),
        format!("{inherited} {without} 'a'.split(r)"),
        format!("{inherited} {without} 'a'.matchAll(r)"),
        format!("{inherited} {species} 'a'.split(r)"),
        format!("{inherited} {species} 'a'.matchAll(r)"),
    ]
    .map(|script| format!("{expression} {script}"));
    refused(&scripts);
    let clone = format!(
        "{expression} Object.defineProperties(r, {{ unicode: {{ value: true }}, ignoreCase: {{ value: true }} }});
         return structuredClone(r).flags"
    );
    assert_eq!(ends(Stage::new(false).with_wall_ms(ENOUGH), &[clone.as_str()]), ["g"]);
}

/// The guards of what makes other expressions, where they do more than to call V8.
#[tokio::test]
async fn v_758_matches_are_those_of_v8() {
    let source = "
        const r = /a(.)/gd;
        r.lastIndex = 2;
        r.own = 1;
        class E extends RegExp {}
        const found = [...'abacad'.matchAll(r)].map((match) => [match[1], match.index, match.indices[0][1]]);
        return [found, r.lastIndex, new E('a', 'g')[Symbol.matchAll]('ba').next().value.index,
                [...'a\u{1f600}'.matchAll(new E('', 'gu'))].length, String('a'.matchAll(r)),
                'a1b2c'.split(new E('[0-9]')), structuredClone(/x/dgimsuy).flags]";
    let expected = json!([
        [["c", 2, 4], ["d", 4, 6]],
        2,
        1,
        3,
        "[object RegExp String Iterator]",
        ["a", "b", "c"],
        "dgimsuy",
    ]);
    assert_eq!(value(source).await, expected);
}
