//! Each construct that nests: at the bound it works on the required stack, beyond it is refused
//! quickly.

use super::super::bounds::check as bounded;
use super::super::{STACK_BYTES, TranspileErrorKind, transpile, work};
use crate::growth::assert_linear;

/// How to nest: a prefix, the start of a level, the innermost text, the end of a level, a suffix.
type Construct = (&'static str, &'static str, &'static str, &'static str, &'static str);

const CONSTRUCTS: &[Construct] = &[
    ("", "(", "1", ")", ""),
    ("", "[", "", "]", ""),
    ("x = ", "{a:", "1", "}", ""),
    ("", "{", "", "}", ""),
    ("", "a?b:", "c", "", ""),
    ("", "a?", "b", ":c", ""),
    ("", "a?(", "b", "):c", ""),
    ("", "a?(b):c=>", "d", "", ""),
    ("1", "+1", "", "", ""),
    ("a", ".b", "", "", ""),
    ("f", "()", "", "", ""),
    ("a", "[0]", "", "", ""),
    ("f", "`a`", "", "", ""),
    ("", "a=>", "a", "", ""),
    ("", "(a)=>", "a", "", ""),
    ("", "a=>{", "", "}", ""),
    ("", "async a=>", "a", "", ""),
    ("", "(a=", "1", ")=>1", ""),
    ("", "<T>(", "a", ")", ""),
    ("", "<T>", "a", "", ""),
    ("", "`${", "1", "}`", ""),
    ("", "!", "1", "", ""),
    ("", "- ", "1", "", ""),
    ("", "typeof ", "1", "", ""),
    ("a", "!", "", "", ""),
    ("type T=", "A<", "B", ">", ""),
    ("type T=", "A<1,", "B", ">", ""),
    ("", "a<", "b", "", ""),
    ("", "a<(", "b", ")", ""),
    ("", "if(x){}else ", "{}", "", ""),
    ("", "if(x)y;else ", "z", "", ""),
    ("", "if(x)", "y", "", ""),
    ("", "if(x)\n", "y", "", ""),
    ("", "for(;;)", "y", "", ""),
    ("", "do ", "y;", "while(x);", ""),
    ("", "try{", "", "}finally{}", ""),
    ("", "function f(){", "", "}", ""),
    ("", "(()=>{", "", "})()", ""),
    ("", "f(", "1", ")", ""),
    ("", "await ", "1", "", ""),
    ("", "await\u{a0}", "1", "", ""),
    ("", "new ", "A", "", ""),
    ("", "void-", "1", "", ""),
    ("", "a**", "b", "", ""),
    ("", "a=", "b", "", ""),
    ("x", " as any", "", "", ""),
    ("x", " satisfies any", "", "", ""),
    ("", "(class extends ", "A", "{})", ""),
    ("", "class A{m(){", "", "}}", ""),
    ("", "(@d class{m(){", "", "}})", ""),
    ("let ", "{a:", "b", "}", "=c"),
    ("let ", "[", "b", "]", "=c"),
    ("a", "??b", "", "", ""),
    ("a", "&&b", "", "", ""),
    ("type T=A", "|A", "", "", ""),
    ("type T=", "A extends B?C:", "D", "", ""),
    ("type T=", "()=>", "D", "", ""),
    ("type T=", "keyof\n", "A", "", ""),
    ("type T=A", "[]", "", "", ""),
    ("type T=", "{a:", "b", "}", ""),
    ("type T=", "[", "b", "]", ""),
    ("", "namespace N{", "export const a=1", "}", ""),
    ("namespace N", ".N", "", "", "{export const a=1}"),
    ("enum E{A=1", "+1", "", "", "}"),
    ("", "switch(a){case 1:", "", "}", ""),
    ("function*f(){", "yield*", "1", "", "}"),
];

/// The first two texts of those that are refused because of the parser's work, before they are too
/// deep.
const TOO_MUCH_WORK: &[(&str, &str)] = &[
    ("", "a?(b):c=>"),
    ("", "<T>("),
    ("", "<T>"),
    ("type T=", "A<"),
    ("type T=", "A<1,"),
    ("", "a<"),
    ("", "a<("),
    ("", "(class extends "),
    ("", "class A{m(){"),
    ("", "(@d class{m(){"),
    ("enum E{A=1", "+1"),
];

fn source(construct: &Construct, levels: usize) -> String {
    let (before, open, inside, close, after) = construct;
    format!("{before}{}{inside}{}{after}", open.repeat(levels), close.repeat(levels))
}

/// The maximum number of levels that is accepted.
fn most_levels(construct: &Construct) -> usize {
    let (mut passes, mut fails) = (1, 200_000);
    while fails - passes > 1 {
        let middle = usize::midpoint(passes, fails);
        if bounded(&source(construct, middle)).is_ok() { passes = middle } else { fails = middle }
    }
    passes
}

fn on_promised_stack(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        thread.expect("a thread starts").join().expect("no panic crosses `transpile`");
    });
}

#[test]
fn every_construct_works_at_its_bound() {
    on_promised_stack(|| {
        for construct in CONSTRUCTS {
            let levels = most_levels(construct);
            let result = transpile(&source(construct, levels), usize::MAX, &|| false);
            // A source that swc refuses for another reason was still parsed to its full depth.
            if let Err(error) = result {
                panic!("{construct:?} at {levels}: {error:?}");
            }
        }
    });
}

#[test]
fn every_construct_is_refused_far_above_its_bound() {
    on_promised_stack(|| {
        for construct in CONSTRUCTS {
            let make = |levels| source(construct, levels);
            let refused =
                |source: &String| transpile(source, usize::MAX, &|| false).expect_err("refused").error;
            assert_linear(format_args!("{construct:?}"), 25_000, make, refused);
            let error = refused(&make(200_000));
            let expected = if TOO_MUCH_WORK.contains(&(construct.0, construct.1)) {
                (TranspileErrorKind::Transpile, work::MESSAGE)
            } else {
                (TranspileErrorKind::Syntax, "nested too deeply")
            };
            assert_eq!((error.kind, error.message.as_str()), expected, "{construct:?}: {error:?}");
        }
    });
}

/// Each level doubles what swc would read again: without a bound the last of them would never end.
#[test]
fn what_swc_reads_again_after_a_mistake_ends_soon() {
    on_promised_stack(|| {
        for open in ["f<T>(", "x?.f<T>(a ?.", "<T>(", "async<T>(", "a?(b):c=>(", "f<T>`${"] {
            for levels in [10, 20, 900] {
                assert!(transpile(&open.repeat(levels), usize::MAX, &|| false).is_err(), "{open} {levels}");
            }
        }
    });
}
