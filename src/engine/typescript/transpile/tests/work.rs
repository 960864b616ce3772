//! Sources whose passes would take minutes or all memory: each bound obeyed and violated.

use std::cell::Cell;
use std::fmt::Write as _;

use super::super::positions::{FIRST_BYTE, LocationIndex, location_of};
use super::super::{
    STACK_BYTES, TranspileError, TranspileErrorKind, Transpiled, Untranspiled, bounds, transpile, work,
};
use super::{body, run};
use crate::growth::assert_linear;

/// Concatenates `count` texts, each made from its index.
fn repeated(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

/// Asserts that `source` is refused because of the work, and returns the error.
#[track_caller]
fn too_much(source: &str) -> TranspileError {
    let error = run(source).expect_err("it must be refused");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (TranspileErrorKind::Transpile, work::MESSAGE),
        "{error:?}"
    );
    assert!(error.hint.is_some(), "{error:?}");
    error
}

/// As [`too_much`], for sources that are refused because of the parser's work.
#[track_caller]
fn too_much_work(source: &str) {
    let error = run(source).expect_err("it must be refused");
    assert_eq!(
        (error.kind, error.message.as_str()),
        (TranspileErrorKind::Transpile, work::MESSAGE),
        "{error:?}"
    );
}

/// Asserts that to transpile what `make` makes takes linear time. It is measured on the thread that
/// does it.
fn linear(what: &str, small: usize, make: impl Fn(usize) -> String + Send) {
    linear_until(true, what, small, make);
}

/// As [`linear`], for sources that are accepted or not.
fn linear_until(is_accepted: bool, what: &str, small: usize, make: impl Fn(usize) -> String + Send) {
    let transpiled =
        |source: &String| assert_eq!(transpile(source, usize::MAX, &|| false).is_ok(), is_accepted, "{what}");
    std::thread::scope(|scope| {
        let measure = || assert_linear(what, small, make, transpiled);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, measure);
        thread.expect("a thread starts").join().expect("the time is linear");
    });
}

/// swc's own pass for enums takes 23 seconds for the first of these.
#[test]
fn v_295_enums_take_linear_time() {
    let enums = |count| repeated(count, |number| format!("enum E{{a{number}={number}}}"));
    let code = body(&format!("{} return E.a299", enums(300)));
    assert!(code.contains("E[E[\"a299\"] = 299] = \"a299\""));
    linear("an enum in parts", 3_000, enums);
    linear("enums", 1_250, |count| repeated(count, |number| format!("const enum E{number}{{a}}")));
    linear("enums beside a large one", 125, |count| {
        let large = format!("enum Large{{{}}}", repeated(20 * count, |n| format!("a{n},")));
        format!("{large}{}", repeated(count, |n| format!("enum E{n}{{}}")))
    });
}

#[test]
fn v_296_decorators_and_accessors_are_counted() {
    let class = |count, member: &str| {
        format!("class A{{{}}}", repeated(count, |n| member.replace('N', &n.to_string())))
    };
    for member in ["@d aN;", "accessor aN=1;", "@d mN(){}", "@d accessor #aN;"] {
        assert!(run(&class(100, member)).is_ok(), "{member}");
        let error = too_much(&class(4_100, member));
        assert!(error.hint.is_some_and(|hint| hint.contains("decorators")), "{member}");
    }
    too_much(&format!("{}class A{{}}", "@d ".repeat(70_000)));
}

#[test]
fn v_368_type_arguments_in_type_arguments_are_counted() {
    let invalid = Err(TranspileErrorKind::Syntax);
    for (open, close, few) in [
        ("a<(b=", ")", Ok(())),
        ("async<((b=", "))", Ok(())),
        ("a<b<c<(d=", ")", Ok(())),
        ("a<({b=", "})", invalid),
        ("a<{[", "]}", invalid),
        ("a<([", "])", Ok(())),
    ] {
        let source = |levels| format!("{}1{}", open.repeat(levels), close.repeat(levels));
        too_much_work(&source(24));
        // Comparisons as people write them nest a little.
        assert_eq!(run(&source(2)).map(drop).map_err(|error| error.kind), few, "{open}");
    }
    let compared = "if (a < (b) && c < (d + (e < (f) ? { g: [h < (i)] } : j))) { k(l < (m), () => { return { n: [o < (p)] } }) }\n";
    assert!(run(&format!("let a,b,c,d,e,f,h,i,j,k,l,m,o,p;\n{}", compared.repeat(200))).is_ok());
}

#[test]
fn v_297_constants_and_members_are_not_evaluated() {
    check_member("const a = 1 + 2 * 3;", "typeof (E[\"m\"] = a) === \"string\"");
    // Each is twice as long as the one before; the last would be 2^60 bytes.
    let doubled = repeated(60, |n| format!("const a{} = a{n} + a{n};", n + 1));
    check_member(&format!("const a0 = 'x'; {doubled} const a = a60;"), "typeof (E[\"m\"] = a)");
    let doubled = repeated(60, |n| format!("a{} = a{n} + a{n},", n + 1));
    assert!(body(&format!("enum E {{ a0 = 'x', {doubled} }}")).contains("E[\"a60\"] = E.a59 + E.a59"));
    let templates = repeated(60, |n| format!("a{} = `${{a{n}}}${{E.a{n}}}`,", n + 1));
    assert!(run(&format!("enum E {{ a0 = 'x', {templates} }}")).is_ok());
    for unit in ["+'b'", "+1"] {
        linear(unit, 1_875, |count| format!("const a='b'{}", unit.repeat(count)));
    }
}

#[track_caller]
fn check_member(constants: &str, expected: &str) {
    let code = body(&format!("{constants} enum E {{ m = a }} return E.m"));
    assert!(code.contains(expected), "{expected} in {}", &code[code.len().saturating_sub(200)..]);
}

#[test]
fn v_298_what_is_written_is_bounded() {
    let name = "N".repeat(20_000);
    assert!(run(&format!("enum {name} {{ {} }}", "a,".repeat(50))).is_ok());
    for source in [
        format!("enum {name} {{ {} }}", "a,".repeat(2_000)),
        format!("namespace {name} {{ export let a = 1; {} }}", "a;".repeat(2_000)),
    ] {
        let error = too_much(&source);
        assert!(error.hint.is_some_and(|hint| hint.contains("bytes: shorten")), "{}", &source[..30]);
    }
}

#[test]
fn v_299_every_location_is_found_by_a_search_as_by_reading() {
    let mut text = String::new();
    for line in 0..200 {
        let end = ["\n", "\r\n", "\r", "\u{2028}", "\u{2029}", "\n\n"][line % 6];
        let _ = write!(text, "{}é{}{end}", "a".repeat(line * 7 % 50), "😀".repeat(line % 40));
    }
    text.push_str(&"ü😀x".repeat(3_000));
    let index = LocationIndex::new(&text, 7);
    for byte in (0..=u32::try_from(text.len()).expect("short") + 3).step_by(3) {
        let byte = FIRST_BYTE + swc_common::BytePos(byte);
        assert_eq!(index.location(&text, byte), location_of(&text, 7, byte), "{byte:?}");
    }
    let empty = LocationIndex::new("", 0);
    assert_eq!(empty.location("", FIRST_BYTE), location_of("", 0, FIRST_BYTE));
}

/// These were quadratic in the number of statements, and would take minutes and hours in an
/// unoptimized build.
#[test]
fn v_299_returns_and_imports_are_looked_up_and_not_searched() {
    assert!(run(&"return a;".repeat(100_000)).is_ok());
    let imports = repeated(20_000, |n| format!("import {{ a as b{n} }} from 'mcp:s'; b{n};"));
    let imports = run(&imports).expect("transpiles").imports;
    assert_eq!(imports.len(), 20_000);
    assert!(imports.windows(2).all(|pair| pair[0].location.column < pair[1].location.column));
}

#[test]
fn v_300_names_of_one_spelling_and_deep_scopes_are_counted() {
    let functions = |count| format!("enum E {{ a }} {}", "x=>x;".repeat(count));
    assert!(run(&functions(2_000)).is_ok());
    let error = too_much(&functions(20_000));
    assert!(error.hint.is_some_and(|hint| hint.contains("the same name")));
    let nested =
        |levels: usize, names| format!("{}{}{}", "{".repeat(levels), "a;".repeat(names), "}".repeat(levels));
    assert!(run(&nested(40, 50_000)).is_ok());
    assert!(run(&nested(900, 1_000)).is_ok());
    let error = too_much(&nested(900, 300_000));
    assert_eq!(error.location.map(|location| location.line), Some(1));
    let arrows = format!("{}[{}]", "a=>".repeat(1_500), "b,".repeat(300_000));
    too_much(&arrows);
}

#[test]
fn v_301_no_pass_begins_after_the_run_was_stopped() {
    let source = "function d(v, c) { return v }\n@d class A { accessor x = 1 }\nenum E { a }\n\
        namespace N { export const y = 1 } namespace N { export const z = y }\n1";
    let stopped_at = |last: usize| -> (Result<Transpiled, Box<Untranspiled>>, usize) {
        std::thread::scope(|scope| {
            let task = move || {
                let asked = Cell::new(0);
                let result = transpile(source, 1 << 20, &|| {
                    asked.set(asked.get() + 1);
                    asked.get() > last
                });
                (result, asked.get())
            };
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, task);
            thread.expect("a thread starts").join().expect("no panic crosses `transpile`")
        })
    };
    let (result, all) = stopped_at(usize::MAX);
    assert!(result.is_ok());
    // Before and after `bounds`, and between parsing, the checks, resolver, constants, decorators,
    // TypeScript, renaming, parentheses and printing.
    assert!(all >= 10, "asked {all} times");
    for last in 0..all {
        let (result, asked) = stopped_at(last);
        let kind = result.map_err(|failed| failed.error.kind).err();
        assert_eq!((kind, asked), (Some(TranspileErrorKind::Stopped), last + 1), "stopped at {last}");
    }
    // No other form of the source is tried either.
    let fenced = "no code here\n```ts\n1\n```\n```ts\n2\n```\n";
    let asked = Cell::new(0);
    let result = transpile(fenced, 1 << 20, &|| {
        asked.set(asked.get() + 1);
        asked.get() > 3
    });
    assert_eq!(result.map_err(|failed| failed.error.kind).err(), Some(TranspileErrorKind::Stopped));
    assert_eq!(asked.get(), 4);
}

/// Errors times lines: what each says depends on the language of the whole text.
#[test]
fn v_525_thousands_of_syntax_errors_are_read_in_linear_time() {
    linear_until(false, "octal numbers", 2_500, |count| format!("{}(", "01\n".repeat(count)));
}

/// swc makes an error for each pair of labels that have one name and of which one is in the statement of the other,
/// before anything can interrupt it: 2,000 levels are 4 KB of source and 480 MB of errors.
#[test]
fn v_660_labels_in_labeled_statements_are_counted() {
    too_much_work(&format!("{}1", "a:".repeat(1_900)));
    for (open, close) in [
        ("a:", ""),
        ("ä:", ""),
        ("\u{2118}:", ""),
        ("a:{", "}"),
        ("a:/*=*/{", "}"),
        ("a://=\n{", "}"),
        ("{return\n{a:", "}}"),
        ("a:if(x)y;else{", "}"),
        ("a:if(x){}else{", "}"),
        ("a:try{}catch{", "}"),
        ("a:try{}finally{", "}"),
        ("a:for(;;){switch(x){case 1:", "}}"),
    ] {
        let nested = |levels: usize| format!("{}1;{}\n", open.repeat(levels), close.repeat(levels));
        too_much_work(&nested(100).repeat(80));
        let error = run(&nested(20)).expect_err("a label is there twice");
        assert_eq!(error.kind, TranspileErrorKind::Syntax, "{open}: {error:?}");
    }
}

#[test]
fn v_660_a_colon_that_follows_no_label_costs_nothing() {
    for source in [
        format!("switch(x){{{}}}", "case 1:".repeat(700)),
        format!("x={}1", "a?b:".repeat(900)),
        format!("x={}1{}", "{a:".repeat(900), "}".repeat(900)),
        format!("return [{}]", "{a:{b:{c:{d:1,e:2}}}},\n".repeat(40_000)),
        format!("export default {{{}}}", "a:{b:{c:1}},\n".repeat(60_000)),
        format!("const data:any={{{}}}", "k:{a:1,b:{c:[1,2],d:x?{e:1}:{f:2}}},\n".repeat(25_000)),
        "a:{b;}\n".repeat(90_000),
        "let a:number=1\n".repeat(50_000),
        "f({a:1,b:{c:(x)=>{return {d:x,e:{f:1}}}}});\n".repeat(14_000),
        format!(
            "interface A{{{}}}",
            "a:string;b?:{c:number;d:Array<string>};m(a:number):void;\n".repeat(9_000)
        ),
    ] {
        assert_eq!(bounds::check(&source), Ok(()), "{}", &source[..40]);
    }
}

/// The survey copied the arguments of each optional call: 200 KB took 3 s.
#[test]
fn v_662_optional_calls_in_each_other_take_linear_time() {
    linear("optional calls", 110, |levels| {
        let calls = format!("{}1{};\n", "a?.(".repeat(levels), ")".repeat(levels));
        format!("await tools.a.b();\n{}", calls.repeat(20))
    });
}

/// Each level doubles what swc reads, or does more: 30 levels in 400 bytes would take an hour.
#[test]
fn v_663_types_that_swc_reads_ahead_are_counted() {
    for (open, close, levels) in [
        // Whether the parenthesis of a type begins parameters.
        ("a as ({a=", "})=>c", 18),
        ("a as ({a=", "})", 18),
        ("a as ({[", "]:a})=>c", 18),
        ("a as ({[", "]:b})", 11),
        ("a as (({[", "](){}}))", 11),
        ("a satisfies ([a=", "])=>c", 18),
        ("a as (public {a=", "})=>c", 18),
        ("let a:({c=()=>{", "}})=>d;", 18),
        ("type A=({a=()=>{", "}})=>c;", 18),
        ("`${a as ({b=", "})=>c}`", 18),
        ("function f():asserts a is ({b=()=>{", "}})=>c{}", 18),
        // Whether it is an accessor of an object type.
        ("a as {get\n[", "]:b}", 18),
        ("a as {set\n[", "]:b}", 18),
        // Whether a type follows that an arrow function returns.
        ("switch(x){case (a):{[(()=>{", "})()]:1}}", 18),
        ("x?(a):{[", "]:1}", 18),
        ("x?(a):({a=", "})", 10),
        ("x?(a):({[", "]:a})", 10),
        ("x?async(a):({a=", "})=>1", 10),
        ("switch(x){case(a):({a=()=>{", "}})=>b}", 10),
    ] {
        let source = |levels| format!("{}1{}", open.repeat(levels), close.repeat(levels));
        too_much_work(&source(levels));
        let few = run(&source(2)).map_err(|error| error.kind);
        assert!(!matches!(few, Err(TranspileErrorKind::Transpile)), "{open}: {few:?}");
    }
    for written in [
        "list.map((a) => ({ b: a.c.map((d: string): number => ({ e: [1, { f: (g) }] })) }));\n",
        "const f = async (a: number): Promise<{ b: string }> => {\n  const g = (h: string): void => { k({ l: [m] }); };\n  x ? (y) : { z: 1 };\n};\n",
        "const a = b ? (c) : { d: [e, { f: 1 }] };\n",
        "class A {\n  get x(): number { return (this.y as { z: number }).z }\n  set [k](v) { this.y = v as (a: string) => { b: c } }\n}\n",
        "const s = z.object({ a: z.array(z.object({ b: z.object({ c: z.union([z.string(), z.object({ d: z.array(z.object({ e: 1 })) })]) }) })) });\n",
        "x = a.map((b) => ({ c: b.map((d) => ({ e: d.map((f) => ({ g: f.map((h) => ({ i: 1 })) })) })) }));\n",
    ] {
        assert_eq!(bounds::check(&written.repeat(1_000)), Ok(()), "{written}");
    }
}

/// swc tries what follows as the constraint of an inferred type, and reads it again if a `?` follows or if it has a
/// mistake: 20 levels take a second, and each more doubles that.
#[test]
fn v_689_constraints_of_inferred_types_are_counted() {
    for (before, open, close) in [
        ("type X=", "A extends [infer B extends ", "?c:d]?e:f"),
        ("type X=", "A extends [infer B extends (a)=>", "?c:d]?e:f"),
        ("type X=", "infer A extends [...a:", ""),
        ("let x:", "infer A extends (", ") in b"),
        ("x=", "(...a:infer A extends ", ")=1"),
        ("type X=", "infer\n// =\nA/*=*/extends (", ") in b"),
        ("type X=", "infer ä extends (", ") in b"),
        ("type X=", "infer \u{2118} extends (", ") in b"),
        ("type X=", "inf\\u{65}r A extends (", ") in b"),
        ("type X=", "infer A \\u0065xtends (", ") in b"),
        // A `?` in the constraint, and not behind it.
        ("type X=", "infer A extends ()=>B extends C?[", "]:d"),
        ("type X=", "A extends [infer B extends C<D extends E?[", "]:f>]?g:h"),
    ] {
        let source = |levels| format!("{before}{}a{}", open.repeat(levels), close.repeat(levels));
        too_much_work(&source(20));
        let few = run(&source(2)).map_err(|error| error.kind);
        assert!(!matches!(few, Err(TranspileErrorKind::Transpile)), "{open}: {few:?}");
    }
    for written in [
        "type A<T> = T extends [infer B extends string, infer C extends number, ...infer D extends any[]] ? D : E;\n",
        "type A<T> = T extends `${infer B extends number}.${infer C extends number}` ? [B, C] : never;\n",
        "type A<T> = T extends infer B extends string ? B : T extends infer C extends D<E> ? C : never;\n",
        "type A<T> = T extends (infer B)[] ? B : T extends Promise<infer C> ? C : T extends D<infer E> ? E : F;\n",
    ] {
        assert_eq!(bounds::check(&written.repeat(1_000)), Ok(()), "{written}");
    }
}

/// Each constraint ends before its `?`, so swc reads what follows once.
#[test]
fn a_chain_of_conditional_types_with_inferred_ones_may_be_long() {
    for link in [
        "T extends infer A extends string ? A : ",
        "T extends infer A extends B<C> | { d?: E } ? F<A> : ",
        "T extends [infer A extends string, ...infer B extends string[]] ? A : ",
        "infer A extends string ? A : ",
    ] {
        linear(link, 14, |links| format!("type X<T> = {}never", link.repeat(links)));
    }
}
