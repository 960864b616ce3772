//! Tests of the scanner alone: text that it must not count, and code that it must not miss.

use super::{SourceRefusal, check};

fn refused(source: &str) -> bool {
    matches!(check(source), Err(SourceRefusal::TooDeep { .. }))
}

#[test]
fn strings_comments_templates_and_regular_expressions_are_not_code() {
    let brackets = "([{".repeat(2_000);
    for source in [
        format!("\"{brackets}\""),
        format!("'{brackets}'"),
        format!("// {brackets}\n1"),
        format!("/* {brackets}\n{brackets} */ 1"),
        format!("`{brackets}`"),
        format!("`${{1}}{brackets}`"),
        format!("x = /[{brackets}]/"),
        format!("if (x) /\\{}/.test(y)", "(".repeat(2_000).replace('(', "\\(")),
        "const s = 'it\\'s'; ".repeat(5_000),
        "a / b; // it's\n".repeat(5_000),
    ] {
        assert_eq!(check(&source), Ok(()), "{}", &source[..30]);
    }
}

#[test]
fn both_readings_of_a_slash_are_followed() {
    let deep = "(".repeat(2_000);
    for before in [
        "{}/\"/;",
        "({})/1;\"/\";",
        "a\n/\"/;",
        "x++ /\"/;",
        "type A = B\n/`/;",
        "1 <!-- /*\n",
        "\n--> `\n",
        "f<T>/'/;",
    ] {
        assert!(refused(&format!("{before}{deep}")), "{before}");
        assert!(refused(&format!("{before}{deep}/*\"'`*/")), "{before}");
    }
    assert!(matches!(check(&"}/".repeat(100)), Err(SourceRefusal::Unclear { .. })));
    assert!(matches!(check(&"{}/`/;\n".repeat(100)), Err(SourceRefusal::Unclear { .. })));
}

/// Each reading inside another takes stack: 1 MB of these took 150 MB of it, and in an unoptimized build all there was.
#[test]
fn v_664_readings_inside_each_other_are_few() {
    for unit in ["}/", "]/", "}/a/"] {
        let refusal = check(&unit.repeat(1_000));
        assert!(matches!(refusal, Err(SourceRefusal::Unclear { at }) if at < 600), "{unit}: {refusal:?}");
    }
}

#[test]
fn readings_that_agree_at_the_end_of_the_line_may_be_many() {
    for line in ["a = i++ / 2;\n", "b = set / of;\n", "c = x! / y! / z!;\n", "d = a\n  / b\n  / c;\n"] {
        assert_eq!(check(&line.repeat(10_000)), Ok(()), "{line}");
    }
}

/// The work of the reading that turns out right counts, whichever that is.
#[test]
fn readings_are_not_a_way_around_the_bound_on_work() {
    let hidden = format!("x++ /\"/; {}1; //\";\n", "a?(b):c=>".repeat(8));
    assert!(matches!(check(&hidden.repeat(8_000)), Err(SourceRefusal::TooMuchWork { .. })));
}

#[test]
fn flat_source_is_never_too_deep() {
    for source in [
        format!("[{}]", "1.5,-2,".repeat(100_000)),
        format!("[{}]", "{\"a\":[1,{\"b\":null}],\"c\":\"d\"},\n".repeat(20_000)),
        "x = 1 + 2 * y\n".repeat(20_000),
        "const a = (b) => b.c\nfoo(a ? 1 : 2)\n".repeat(10_000),
        "if (a) { b() } else { c() } ".repeat(20_000),
        "if (x) { y } else ".repeat(500) + "{}",
        format!("a{}", ".b(x => x + 1)\n".repeat(5_000)),
        format!("'a'{}", " + 'b'".repeat(15_000)),
        "class A<T extends B> extends C { @d x = 1; @d m(a?: string): void { } }\n".repeat(5_000),
        "interface A { a: Map<string, number>; b?: Array<{ c: string }> }\n".repeat(8_000),
        "enum E { A = 1 << 0, B = 1 << 1, C = A | B }\n".repeat(5_000),
    ] {
        assert_eq!(check(&source), Ok(()), "{}", &source[..30]);
    }
}

#[test]
fn braces_of_escapes_are_no_brackets() {
    assert_eq!(check(&"a\\u{61}b; ".repeat(10_000)), Ok(()));
    assert_eq!(check(&format!("a\\u{{{}61}}", "0".repeat(10_000))), Ok(()));
    // What is no escape is a block, which the parser refuses.
    assert_eq!(check(&"a\\u{61 }; ".repeat(10_000)), Ok(()));
    assert!(refused(&"a\\u{61 ".repeat(2_000)));
}
