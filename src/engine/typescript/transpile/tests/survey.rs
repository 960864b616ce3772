//! What the survey reads from TypeScript.

use super::run;
use crate::run::check::survey::Literal;

fn read(source: &str) -> String {
    let survey = run(source).unwrap_or_else(|error| panic!("{source:?} must transpile: {error:?}")).survey;
    survey.shown().join(" ")
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
    check("call_tool('a', 'b', {}); return 1", "a.b");
    check("call_tools([{ server: 'a', tool: 'b' }, { server: s, tool: 'b' }]); return 1", "a.b ?");
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
    check("const p = tools.a.b(); return 1", "a.b");
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
fn calls_that_nobody_awaits_are_forgotten() {
    check("tools.a.b();\nreturn 1", "a.b~");
    check("tools.a.b().then((x) => x);\nreturn 1", "a.b");
    check("void tools.a.b();\nreturn 1", "a.b");
    // The value of the script is awaited.
    check("tools.a.b()", "a.b!");
    check("if (x) { tools.a.b() }", "a.b");
    check("{ tools.a.b(); 1 }", "a.b");
}

#[test]
fn places_are_those_of_the_whole_source() {
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
