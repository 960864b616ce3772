use super::*;

#[test]
fn bytes_never_say_less_than_tokens() {
    // All that decides in the scanner, and what surrounds it in scripts.
    const PIECES: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        "\"",
        "'''",
        "\"\"\"",
        "f'",
        "f\"",
        "rb'",
        "f'''",
        "\\",
        "\n",
        "\r\n",
        "\n    ",
        "\n        ",
        "\t",
        "#",
        ",",
        ";",
        ":",
        ".",
        "=",
        "==",
        "+",
        "**",
        "not ",
        "lambda a,b: ",
        "yield ",
        "await ",
        "if x:",
        "else ",
        "x",
        "x1",
        "1",
        "1.5",
        "0x1f",
        "{{",
        "}}",
        "'a'",
        "\"b\"",
        "f'{x}'",
        "f'{x:>3}'",
        "f'{x[\"a\"]}'",
        "r'\\'",
        "a(b, c)",
        "for a, b in c",
        " ",
        "é",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    };
    let (mut clear, mut unpaired) = (0, 0);
    for _ in 0..60_000 {
        let source: String = (0..1 + random(14)).map(|_| PIECES[random(PIECES.len())]).collect();
        match bytes::measure(&source) {
            Measured::Depth(depth) => {
                let tokens =
                    tokens::depth(&source).unwrap_or_else(|| panic!("{source:?} has unpaired tokens"));
                assert!(depth >= tokens, "{source:?}: {depth} of bytes, {tokens} of tokens");
                clear += 1;
            }
            Measured::Unpaired { at } => {
                assert!(b"()[]{}".contains(&source.as_bytes()[at]), "{source:?} at {at}");
                assert_eq!(tokens::depth(&source), None, "{source:?}");
                unpaired += 1;
            }
            Measured::Unclear => {}
        }
    }
    assert!(clear > 5_000 && unpaired > 5_000, "{clear} clear, {unpaired} unpaired");
}

#[test]
fn what_scripts_have_is_clear() {
    for source in [
        "x = f'{a} and {b[\"c\"]:>10} {d!r}'\n",
        "def f(a, *, b: int = 1) -> str:\n    '''Doc.'''\n    return f\"{a}\"  # why (\n",
        "x = {'a': [1, 2.5, -3], \"b\": r'\\d+'}\nif x and not y:\n    print(len(x) ** 2, end='')\n",
        "t = \"\"\"a\n'b' (\n\"\"\"\n",
    ] {
        assert!(
            matches!(bytes::measure(source), Measured::Depth(1..30)),
            "{source}: {:?}",
            bytes::measure(source)
        );
    }
    assert_eq!(check("x = (\ny = [1]\n"), Err(Bound::Unpaired { at: 4 }));
    assert_eq!(check("x = [1)\n"), Err(Bound::Unpaired { at: 4 }));
    assert_eq!(check("x = 1)\n"), Err(Bound::Unpaired { at: 5 }));
}

#[test]
fn what_has_commas_in_it_is_bounded_too() {
    let many = 1_000;
    for source in [
        format!("x = {}1", "lambda a, b: ".repeat(many)),
        format!("x = ({}1)", "yield a, ".repeat(many)),
        format!("x = {}", "[), ".repeat(many)),
        (0..many).map(|level| format!("x = f(a b\n{}with a, b:\n", " ".repeat(level % 127))).collect(),
    ] {
        assert!(check(&source).is_err(), "{source}");
    }
}

/// A block that the tokens do not have has an indentation of its own.
#[test]
fn different_indentations_are_bounded() {
    let with = |count: u32| -> String {
        (0..count).map(|width| format!("{}x\n", " ".repeat(width as usize))).collect()
    };
    assert_eq!(indentations(&with(MAX_INDENTATIONS)), MAX_INDENTATIONS);
    // Every kind of line end.
    assert_eq!(indentations("a\r b\r\n  c\n   d"), 4);
    assert_eq!(check(&with(MAX_INDENTATIONS)), Ok(()));
    assert_eq!(check(&with(MAX_INDENTATIONS + 1)), Err(Bound::TooDeep));
    // More columns than can be told apart.
    assert_eq!(check(&format!("if x:\n{}y", " ".repeat(128))), Err(Bound::TooDeep));
}
