//! What the survey reads from TypeScript.

use super::super::{STACK_BYTES, transpile};
use super::run;
use crate::run::check::survey::{Literal, MAX_VALUES, Mistake};

fn read(source: &str) -> String {
    let survey = run(source).unwrap_or_else(|error| panic!("{source:?} must transpile: {error:?}")).survey;
    survey.render_uses().join(" ")
}

fn check(source: &str, expected: &str) {
    assert_eq!(read(source), expected, "{source}");
}

#[test]
fn calls_are_found_in_every_form() {
    check("await tools.a.b({ x: 1 })", "a.b!");
    check("await tools['a-b']['c d']()", "a-b.c d!");
    check("await a.b()", "a?.b!");
    check("return (tools.a.b as any)({})", "a.b!");
    check("import { b, c as d } from 'mcp:a';\nawait b(); return await d();", "a! a.b! a.c! a.b! a.c!");
    check("import a from 'mcp:x';\nreturn await a.b();", "x! x.b!");
    check("import * as a from 'mcp:x';\nreturn await a.b();", "x! x.b!");
    check("import { b } from 'mcp:a';\nreturn 1;", "a a.b");
    check("const { b } = await import('mcp:a');\nreturn await b();", "a! a.b!");
    check("await callMCPTool('mcp__a__b', {})", "mcp__a__b!");
    check("await callMCPTool(`mcp__a__b`)", "mcp__a__b!");
    check("await callMCPTool(name)", "?!");
    check("await tools.mcp__a__b({})", "mcp__a__b!");
    check("await tools['mcp__a__b']({})", "mcp__a__b!");
    check("await tools.mcp__a.b({})", "mcp__a.b!");
    check("const { mcp__a__b } = tools; return await mcp__a__b()", "mcp__a__b!");
    check("call_tool('a', 'b', {}); return 1", "a.b");
    check("call_tools([{ server: 'a', tool: 'b' }, { server: s, tool: 'b' }]); return 1", "a.b ?");
    check("call_tools(l.map((x) => ({ server: 'a', tool: 'b', args: { x } }))); return 1", "l?.map a.b");
    check("call_tools(Array.from(l, (x) => { return { server: 'a', tool: 'b' } })); return 1", "a.b");
    check("const l = [{ server: 'a', tool: 'b' }];\ncall_tools(l); return 1", "a.b ?");
    check("const l = [];\nl.push({ server: 'a', tool: 'b' });\ncall_tools([...l]); return 1", "a.b ?");
    check("let l; l = [{ server: 'a', tool: 'b' }];\ncall_tools(l.filter(x)); return 1", "a.b ?");
    check("const l = [{ server: 'a', tool: 'b' }];\nreturn l", "");
    check("const gh = tools.a;\nreturn await gh.b();", "a.b!");
    check("const { a: x } = tools; const { b } = x;\nreturn await b();", "a.b!");
    check("return await tools[name].b()", "");
    check("return await tools.a[name]()", "?");
    check("return await Promise.all([tools.a.b(), tools.a.c()])", "a.b! a.c!");
    check("return await Promise.allSettled([tools.a.b()])", "a.b");
    check("return await mcp.readResource('a', 'x:y')", "a!");
}

#[test]
fn only_what_every_run_reaches_is_certain() {
    check("if (x) await tools.a.b();\nawait tools.a.c()", "a.b a.c!");
    check("if (x) return 1;\nawait tools.a.b()", "a.b");
    check("if (x) throw new Error();\nreturn await tools.a.b()", "a.b!");
    check("try { await tools.a.b() } catch {}\nreturn await tools.a.c()", "a.b a.c!");
    check("for (const x of await tools.a.b()) await tools.a.c();\nreturn 1", "a.b! a.c");
    check("while (await tools.a.b()) { await tools.a.c() }\nreturn 1", "a.b! a.c");
    check("switch (await tools.a.b()) { case 1: await tools.a.c() }\nreturn 1", "a.b! a.c");
    check("const x = y && await tools.a.b();\nreturn x", "a.b");
    check("const x = y ?? await tools.a.b();\nreturn x", "a.b");
    check("const x = y ? await tools.a.b() : 1;\nreturn x", "a.b");
    check("const x = await tools.a?.b();\nreturn x", "a.b");
    check("return await tools.a.b().catch(() => 1)", "a.b");
    check("const p = tools.a.b(); return p", "a.b");
    check("return list.map((x) => tools.a.b({ x }))", "a.b list?.map!");
    check("async function f() { await tools.a.b() }\nawait f(); return 1", "a.b!");
    check("async function f() { await tools.a.b() }\nf(); return 1", "a.b");
    check(
        "async function f() { if (x) return; await tools.a.b() }\nawait f();\nreturn await tools.a.c()",
        "a.b a.c!",
    );
    check("const f = async () => tools.a.b();\nreturn await f()", "a.b!");
    check("async function main() { await tools.a.b() }", "a.b!");
    check("async () => { return await tools.a.b() }", "a.b!");
    check("export default async function () { return await tools.a.b() }", "a.b!");
    check("await (async () => { await tools.a.b() })(); return 1", "a.b!");
    check("{ await tools.a.b() }\nreturn 1", "a.b!");
    check("out: { if (x) break out; await tools.a.b() }\nreturn 1", "a.b");
    check("return 1; await tools.a.b()", "a.b");
    check("globalThis.tools = 1;\nreturn await tools.a.b()", "a.b");
    check("let f = async () => tools.a.b(); f = 1;\nreturn await f()", "a.b");
}

#[test]
fn loops_over_lists_that_are_written_out_are_certain() {
    check("return await Promise.all([1, 2].map((x) => tools.a.b({ x })))", "a.b!");
    check("const f = (x) => tools.a.b(x);\nreturn await Promise.all([1].map(f))", "a.b!");
    check("const l = [1];\nreturn await Promise.all(l.map(async (x) => { await tools.a.b(x) }))", "a.b!");
    check("for (const x of [1, 2]) { await tools.a.b(x) }\nreturn await tools.a.c()", "a.b! a.c!");
    check(
        "for (const x of [1]) { if (x) return 1; await tools.a.b(x) }\nreturn await tools.a.c()",
        "a.b a.c",
    );
    check(
        "for (const x of [1]) { if (x) continue; await tools.a.b(x) }\nreturn await tools.a.c()",
        "a.b a.c!",
    );
    check("for (const x of [1]) { if (x) break; await tools.a.b(x) }\nreturn await tools.a.c()", "a.b a.c!");
    check("for (const x of [1]) { switch (x) { case 1: break } await tools.a.b(x) }\nreturn 1", "a.b!");
    check("for (const x of [1]) { for (const y of [2]) { break } await tools.a.b(x) }\nreturn 1", "a.b!");
    check("for (const x of [1]) { switch (x) { case 1: continue } await tools.a.b(x) }\nreturn 1", "a.b");
    check("out: for (const x of [1]) { await tools.a.b(x) }\nreturn await tools.a.c()", "a.b a.c!");
    check("for (const x of []) { await tools.a.b(x) }\nreturn 1", "a.b");
    check("for (const x of [...y]) { await tools.a.b(x) }\nreturn 1", "a.b");
    check("for await (const x of [y]) { await tools.a.b(x) }\nreturn 1", "a.b");
    check("return await Promise.all([1].filter((x) => x > 1).map((x) => tools.a.b({ x })))", "a.b");
    for before in ["l.pop();", "l.length = 0;", "l = [];", "f(l);", "l.map((x, i, all) => all.pop());"] {
        check(
            &format!("let l = [1]; {before}\nfor (const x of l) {{ await tools.a.b(x) }}\nreturn 1"),
            "a.b",
        );
    }
    for before in ["", "print(l.join(','));", "l.forEach((x) => print(x));"] {
        check(
            &format!("let l = [1]; {before}\nfor (const x of l) {{ await tools.a.b(x) }}\nreturn 1"),
            "a.b!",
        );
    }
    // Lists that are made of others.
    for list in [
        "[1].map((x) => x + 1)",
        "Array.from({ length: 2 }, (_, x) => x)",
        "Array.from([1])",
        "'a,b'.split(',')",
        "[1].concat(y)",
        "[1].entries()",
    ] {
        check(&format!("for (const x of {list}) {{ await tools.a.b(x) }}\nreturn 1"), "a.b!");
        check(&format!("return await Promise.all({list}.map((x) => tools.a.b({{ x }})))"), "a.b!");
        check(&format!("const l = {list};\nfor (const x of l) {{ await tools.a.b(x) }}\nreturn 1"), "a.b!");
    }
    for list in [
        "[1].filter((x) => x)",
        "Array.from({ length: 0 })",
        "Array.from(y)",
        "''.split(',')",
        "y.map((x) => x)",
        "[].concat(y)",
        "[1].slice(1)",
    ] {
        check(&format!("const y = [];\nfor (const x of {list}) {{ await tools.a.b(x) }}\nreturn 1"), "a.b");
    }
    check(
        "const Array = { from() {} };\nfor (const x of Array.from([1])) { await tools.a.b(x) }\nreturn 1",
        "a.b",
    );
    check("var l = [1]; var l = [];\nfor (const x of l) { await tools.a.b(x) }\nreturn 1", "a.b");
}

#[test]
fn what_cannot_be_transpiled_is_read_as_far_as_possible() {
    let read = |source: &str| {
        std::thread::scope(|scope| {
            let task = || transpile(source, 1 << 20, &|| false).map(|_| ()).expect_err("refused").survey;
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, task);
            thread.expect("a thread starts").join().expect("no panic crosses `transpile`")
        })
    };
    for (source, lines, uses) in [
        ("const x = ;\nawait tools.a.b();", "1", "a.b!"),
        ("await tools.a.b();\nfoo(1, 2));\nawait tools.a.c();", "2", "a.b! a.c!"),
        ("if (x {\n  await tools.a.b();\n}\nawait tools.a.c();", "1", "a.b! a.c!"),
        ("const = f({\n  x: 1,\n  y: g(2),\n});\nawait tools.a.c();", "1", "a.c!"),
        ("function f() {\n  await g();\n}\nawait tools.a.c();", "2", "a.c!"),
        ("async function main() {\n  await tools.a.b();\n", "3", "a.b!"),
        ("export default 1; await tools.a.b();\nexport default 2;", "2", "a.b!"),
        ("Text.\n```ts\nconst x = ;\nawait tools.a.b();\n```\n", "3", "a.b!"),
        // What is taken out may await it.
        ("const p = tools.a.b();\nawait p p;", "2", "a.b"),
        ("def f(x):\n    a = x\n    b = x\n    return a\nawait f(1)\n", "1", ""),
    ] {
        let survey = read(source);
        let line = |mistake: &Mistake| (source[..mistake.at.start].matches('\n').count() + 1).to_string();
        let found: Vec<String> = survey.mistakes.iter().map(line).collect();
        assert_eq!(
            (found.join(" ").as_str(), survey.render_uses().join(" ").as_str()),
            (lines, uses),
            "{source}"
        );
    }
}

#[test]
fn names_that_the_script_binds_are_not_ours() {
    for source in [
        "const tools = { a: { b() {} } }; return tools.a.b()",
        "function f(tools) { return tools.a.b() }\nreturn f({})",
        "const a = { b() {} }; return a.b()",
        "console.log(1); return JSON.parse('1')",
        "class a { static b() {} }\nreturn a.b()",
        "const callMCPTool = (x) => x; return callMCPTool('mcp__a__b')",
        "return await tools.then",
        "return 'text'.split('')",
    ] {
        check(source, "");
    }
    // A server's global that gets another value.
    check("github = { b() {} };\nreturn github.b()", "");
}

#[test]
fn calls_that_are_not_awaited_are_reported() {
    check("tools.a.b();\nreturn 1", "a.b~");
    check("tools.a.b().then((x) => x);\nreturn 1", "a.b");
    check("const p = tools.a.b();\nreturn 1", "a.b~");
    check("const p = tools.a.b();\nreturn eval('p')", "a.b");
    check("void tools.a.b();\nreturn 1", "a.b");
    // Nothing awaits a list of promises, or a promise of several.
    check("Promise.all([tools.a.b(), tools.a.c()]);\nreturn 1", "a.b~ a.c~");
    check("Promise.allSettled(l.map((x) => tools.a.b(x)));\nreturn 1", "a.b~ l?.map");
    check("const p = Promise.all([tools.a.b()]);\nreturn 1", "a.b~");
    check("const [p] = Promise.all([tools.a.b()]);\nreturn p", "a.b~");
    check("[1].map((x) => tools.a.b(x));\nreturn 1", "a.b~");
    check("[1].forEach((x) => tools.a.b(x));\nreturn 1", "a.b~");
    check("const l = [tools.a.b()];\nreturn 1", "a.b~");
    check("x && tools.a.b();\nreturn 1", "a.b~");
    check("let p; p = tools.a.b();\nreturn 1", "a.b~");
    check("const p = { q: tools.a.b() };\nreturn 1", "a.b~");
    check("if (tools.a.b()) return 2;\nreturn 1", "a.b~");
    check("return tools.a.b() === 1", "a.b~");
    check("return !tools.a.b()", "a.b~");
    check("return `${tools.a.b()}`", "a.b~");
    // What promises do not have is read.
    check("return await tools.a.b().items", "a.b~");
    check("return tools.a.b()[0]", "a.b~");
    check("for (const x of tools.a.b()) print(x);\nreturn 1", "a.b~");
    check("const { items } = tools.a.b();\nreturn items", "a.b~");
    check("const p = tools.a.b();\nreturn p.items.length", "a.b~");
    check("const p = tools.a.b();\nfor (const x of p) print(x);\nreturn 1", "a.b~");
    check("const p = tools.a.b();\nreturn p.map((x) => x.y)", "a.b~");
    // Each of these waits, or may.
    for source in [
        "const p = tools.a.b();\nreturn (await p).items",
        "const p = tools.a.b();\nif (p.items) return 1;\nreturn p",
        "const p = tools.a.b();\nreturn p.then((x) => x.items)",
        "let p = tools.a.b();\np = await p;\nreturn p.items",
        "const l = [tools.a.b()];\nreturn await l[0]",
        "const l = [1].map((x) => tools.a.b(x));\nfor (const p of l) await p;\nreturn l.length",
        "const [p] = [tools.a.b()];\nreturn p",
        "const { then } = tools.a.b();\nreturn then",
        "const { ...p } = { p: tools.a.b() };\nreturn p.p",
        "return tools.a.b().catch((error) => error.code)",
        "const [l, done] = [[1], []];\nl.forEach((x) => { done.push(tools.a.b(x)) });\nreturn await Promise.all(done)",
        "const r = new Promise((done) => { tools.a.b().then(done) });\nreturn await r",
        "return { p: tools.a.b() }.p",
        "return call_tool('a', 'b').value",
        "return callMCPTool('a').then((x) => x)",
    ] {
        assert!(!read(source).contains('~'), "{source}: {}", read(source));
    }
    // The value of the script is awaited.
    check("tools.a.b()", "a.b!");
    check("if (x) { tools.a.b() }", "a.b");
    check("{ tools.a.b(); 1 }", "a.b");
}

#[test]
fn locations_are_those_of_the_whole_source() {
    for before in ["", "\u{feff}", "Here it is:\n\n```ts\n", "  \n```typescript\n"] {
        let after = if before.contains("```") { "\n```\n" } else { "" };
        let source = format!("{before}// ü\nawait tools.a.b({{ field: 'x' }}){after}");
        let survey = run(&source).expect("it transpiles").survey;
        let one = &survey.uses[0];
        assert_eq!(&source[one.at.clone()], "tools.a.b({ field: 'x' })", "{before:?}");
        assert_eq!(&source[one.server_at.clone()], "a");
        assert_eq!(&source[one.tool_at.clone()], "b");
        let Some(Literal::Object(object)) = &one.arguments else { panic!("{one:?}") };
        assert_eq!(&source[object.fields[0].at.clone()], "field");
        assert_eq!(&source[object.fields[0].value_at.clone()], "'x'");
    }
}

#[test]
fn values_are_read_as_far_as_they_are_written() {
    let arguments = |source: &str| {
        let survey = run(source).expect("it transpiles").survey;
        survey.uses.into_iter().next().and_then(|one| one.arguments)
    };
    let unknown = Literal::Unknown { may_be_absent: true };
    assert_eq!(arguments("return await tools.a.b()"), Some(Literal::Null));
    assert_eq!(arguments("return await tools.a.b(x)"), Some(unknown.clone()));
    assert_eq!(arguments("return await tools.a.b(...x)"), Some(unknown.clone()));
    assert_eq!(arguments("return await tools.a.b({ toJSON() {} })"), Some(unknown.clone()));
    let Some(Literal::Object(object)) = arguments(
        "return await tools.a.b({ n: -1, s: `t`, l: [1, x], o: { a: null }, x, ['k']: true, a: 1, ...r, z: 2.5 })",
    ) else {
        panic!("it is an object")
    };
    assert!(object.is_open);
    // What is before the spread may be replaced by it.
    let known: Vec<&str> = object
        .fields
        .iter()
        .filter(|field| field.value != unknown)
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(known, ["z"]);
}

/// Whatever the values are: those that are not written out count too.
#[test]
fn v_482_arguments_of_too_many_values_are_unknown() {
    let arguments = |written: &str| {
        let source = format!("const x = 1; return await tools.a.b({{ n: 1, o: {written} }})");
        let survey = run(&source).expect("it transpiles").survey;
        survey.uses.into_iter().next().and_then(|one| one.arguments).unwrap()
    };
    for (before, item, after) in [
        ("[", "1,", "]"),
        ("[", "x,", "]"),
        ("[", ",", "]"),
        ("{", "...x,", "}"),
        ("{", "x,", "}"),
        ("{", "a: 1,", "}"),
        ("{", "a() {},", "}"),
        ("{", "get a() { return 1 },", "}"),
        ("{", "set a(v) {},", "}"),
        ("[", "[x],", "]"),
    ] {
        let of = |count| arguments(&format!("{before}{}{after}", item.repeat(count)));
        assert!(matches!(of(MAX_VALUES / 2 - 10), Literal::Object(_)), "{item}");
        assert_eq!(of(MAX_VALUES), Literal::Unknown { may_be_absent: true }, "{item}");
    }
}
