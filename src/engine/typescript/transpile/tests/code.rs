//! Source to code.

use super::{body, run};

/// Asserts the body that `source` is transpiled to.
#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(body(source), expected, "source: {source}");
}

#[test]
fn value_is_what_returns_else_the_default_export_else_main_else_the_last_expression() {
    check("const x: number = 1; return x + 1", "const x = 1; return x + 1;");
    check("if (a) return 1; f()", "if (a) return 1; f();");
    check("const x = 1; x * 2", "const x = 1; return x * 2;");
    check("x; function f() {} interface I {} ;", "return x; function f() {}");
    check("x; class A {}", "const result = x; let A = class A { }; return result;");
    check(
        "const result = 1; result; class A {}",
        "const result = 1; const result1 = result; let A = class A { }; return result1;",
    );
    check("for (;;) {}", "for(;;){}");
    check("for (;;) f()", "for(;;)f();");
    check("\"use strict\"; 1", "\"use strict\"; return 1;");
    check("'only'", "return 'only';");
    check("", "");
    check(
        "async function main(i: I) { return i } const y = 2",
        "async function main(i) { return i; } const y = 2; return main(globalThis.input);",
    );
    check(
        "const run = async () => 1; let z = 1",
        "const run = async ()=>1; let z = 1; return run(globalThis.input);",
    );
    check("function main() { return main } main()", "function main() { return main; } return main();");
    check(
        "function main() {} function f(main) { return main } 1",
        "function main() {} function f(main) { return main; } 1; return main(globalThis.input);",
    );
    check("function* main() {} 1", "function* main() {} return 1;");
    check("export { main }; function main() {}", "function main() {} return main(globalThis.input);");
}

#[test]
fn sole_function_is_called_with_the_input() {
    check("async (x) => x", "return (async (x)=>x)(globalThis.input);");
    check("(async (x: number) => x)", "return (async (x)=>x)(globalThis.input);");
    check(
        "function f(input) { return input }",
        "function f(input) { return input; } return f(globalThis.input);",
    );
    check("async function (x) { return x }", "return async function(x) { return x; }(globalThis.input);");
    check("type T = 1; const f = () => 1", "const f = ()=>1; return f(globalThis.input);");
    check("function a() {} function b() {}", "function a() {} function b() {}");
}

#[test]
fn default_export_is_called_if_it_is_a_function() {
    check("export default async (x) => x", "return (async (x)=>x)(globalThis.input);");
    check("export default function f(x) {} f.y = 1", "function f(x) {} f.y = 1; return f(globalThis.input);");
    check("export default class A {}", "let A = class A { }; return A;");
    let code = body("export default make(1); const y = 2");
    assert!(code.starts_with("(async () => (async () => {\"use strict\"; const result = make(1); const y = 2; return result; })().then((value) =>"), "{code}");
    assert!(body("const x = 1; export { x as default }").contains("return x; })().then("));
    assert!(
        body("export default interface I {} export const x = 1; x").starts_with("const x = 1; return x;")
    );
}

#[test]
fn imports_are_awaited_at_the_top_unless_only_types_use_them() {
    check(
        "f(); import { a, b as c, default as d } from \"mcp:s\"; return a + c + d",
        "const { a: a, b: c, default: d } = await import(\"mcp:s\"); f(); return a + c + d;",
    );
    check("import * as ns from 'mcp:s'; ns.x", "const ns = await import('mcp:s'); return ns.x;");
    check("import d from 'mcp:s'; d", "const { default: d } = await import('mcp:s'); return d;");
    check("import 'mcp:s'; 1", "await import('mcp:s'); return 1;");
    check("import type { T } from 'lodash'; import { U } from 'lodash'; let u: U; 1", "let u; return 1;");
    check("import { unused } from 'mcp:s'; 1", "return 1;");
    check("export { type A } from 'lodash'; export { type B, type C as D } from 'x'; 1", "return 1;");
    let imports = run("import { a, b as c } from 'mcp:s'; a; c").expect("transpiles").imports;
    assert_eq!(imports.len(), 1);
    assert_eq!(imports[0].specifier, "mcp:s");
    assert_eq!((imports[0].location.line, imports[0].location.column), (1, 27));
    let names: Vec<_> =
        imports[0].names.iter().map(|name| (name.name.as_str(), name.location.column)).collect();
    assert_eq!(names, [("a", 10), ("b", 13)]);
}

#[test]
fn v_785_computed_specifiers_are_bounded() {
    let code = body("const f = async (x) => (await import(x)).y; 1");
    assert!(code.starts_with("const __specifier = (value)=>({ __proto__: null, toString: ()=>"), "{code}");
    assert!(code.ends_with("const f = async (x)=>(await import(__specifier(x))).y; return 1;"), "{code}");
    let code = body("const __specifier = 1; import(`mcp:${__specifier}`)");
    assert!(
        code.contains("`mcp:${__specifier") && !code.contains("import(__specifier(`mcp:${__specifier}`))"),
        "{code}"
    );
    check("import('mcp:s')", "return import('mcp:s');");
    assert!(body(&format!("import('mcp:{}')", "x".repeat(5_000))).contains("import(__specifier('mcp:x"));
}

#[test]
fn types_leave_and_what_they_held_together_keeps_its_parentheses() {
    check("(x as any)()", "return x();");
    check("(<T>x).y; (a satisfies B)!.c", "x.y; return a.c;");
    check("const f = () => ({ a: 1 } as T)", "const f = ()=>({ a: 1 }); return f(globalThis.input);");
    check("(function () {} as any)()", "return function() {}();");
    check("({} as any).x", "return ({}).x;");
    check(
        "declare const y: unique symbol; let z!: number; function f(this: T, a?: A): a is B {} z",
        "let z; function f(a) {} return z;",
    );
    check(
        "abstract class A { declare b: 1; abstract c(): void; [k: string]: any; d = 1; private e!: 2 } 1",
        "let A = class A { d = 1; e; }; return 1;",
    );
    check("function f(): 1; function f(a?) { return a } 1; 2", "function f(a) { return a; } 1; return 2;");
    assert!(
        body("class P { y = this.x; constructor(public x: number) {} }")
            .contains("x; y = this.x; constructor(x){ this.x = x; }")
    );
}

#[test]
fn completion_value_is_that_of_the_statement_which_ends_the_script() {
    check(
        "if (a) { f() } else g()",
        "let result; if (a) { result = f(); } else result = g(); return result;",
    );
    check(
        "try { 1; if (a) 2 } catch (e) { 3 } finally { 4 }",
        "let result; try { result = 1; result = void 0; if (a) result = 2; } \
         catch (e) { result = void 0; result = 3; } finally{ 4; } return result;",
    );
    check(
        "{ a: for (;;) { 1; if (b) break a } }",
        "let result; { result = void 0; a: for(;;){ result = 1; result = void 0; if (b) break a; } }return result;",
    );
    check("if (a) if (b) 1", "let result; if (a) { result = void 0; if (b) result = 1; } return result;");
    check(
        "const result = 1; { result } class A {}",
        "const result = 1; let result1; { result1 = result; }let A = class A { }; return result1;",
    );
    check(
        "{ switch (a) { case 1: 2 } function f() { 3 } }",
        "let result; { result = void 0; switch(a){ case 1: result = 2; } function f() { 3; } }return result;",
    );
    check("if (a) { let b }", "if (a) { let b; }");
    check("if (a) { return 1 } 2", "if (a) { return 1; } 2;");
}

#[test]
fn enums_are_objects_whose_members_are_read_at_run_time() {
    check(
        "enum E { A = 1, B = A << 1, C, D = 'x', F = `${D}`, G = f(), H, 'I-J' = -3, K } return E.B",
        "(function(E) { E[E[\"A\"] = 1] = \"A\"; E[E[\"B\"] = E.A << 1] = \"B\"; \
         E[E[\"C\"] = E[\"B\"] + 1] = \"C\"; E[\"D\"] = 'x'; E[\"F\"] = `${E.D}`; \
         typeof (E[\"G\"] = f()) === \"string\" || (E[E[\"G\"]] = \"G\"); \
         E[E[\"H\"] = E[\"G\"] + 1] = \"H\"; E[E[\"I-J\"] = -3] = \"I-J\"; E[E[\"K\"] = -2] = \"K\"; \
         })(E || (E = {})); return E.B; var E;",
    );
    check(
        "enum A { Cat = 1 } const Cat = 10, Bird = 2; enum A { Both = Cat | Bird, f = ((Cat) => Cat)(3) } A",
        "(function(A) { A[A[\"Cat\"] = 1] = \"Cat\"; })(A || (A = {})); const Cat = 10, Bird = 2; \
         (function(A) { A[A[\"Both\"] = A.Cat | Bird] = \"Both\"; \
         typeof (A[\"f\"] = ((Cat)=>Cat)(3)) === \"string\" || (A[A[\"f\"]] = \"f\"); \
         })(A || (A = {})); return A; var A;",
    );
    check("enum E {} return E", "(function(E) { E; })(E || (E = {})); return E; var E;");
    check("declare enum E { A } return 1", "return 1;");
}

#[test]
fn const_enums_are_kept_and_may_be_used_above() {
    check(
        "return E.A; const enum E { A = 'a' }",
        "(function(E) { E[\"A\"] = 'a'; })(E || (E = {})); return E.A; var E;",
    );
    check(
        "declare const enum E { A = 2 } E",
        "(function(E) { E[E[\"A\"] = 2] = \"A\"; })(E || (E = {})); return E; var E;",
    );
    check(
        "const a = 1; const enum E { A = a } return E.A",
        "const a = 1; (function(E) { typeof (E[\"A\"] = a) === \"string\" || (E[E[\"A\"]] = \"A\"); \
         })(E || (E = {})); return E.A; var E;",
    );
}

#[test]
fn namespaces_see_what_their_other_blocks_export() {
    check(
        "const a = 1; namespace N { export const a = 2 } namespace N { f(a, (a) => a) }",
        "const a = 1; (function(N) { N.a = 2; })(N || (N = {})); \
         (function(N) { f(N.a, (a)=>a); })(N || (N = {})); var N;",
    );
}

#[test]
fn source_that_the_parser_refuses_is_repaired() {
    check(
        "class A { static declare readonly x: 1; static y = 2 } 1",
        "let A = class A { static y = 2; }; return 1;",
    );
    check(
        "class A { override m() {} readonly override x = 1 } 1",
        "let A = class A { m() {} x = 1; }; return 1;",
    );
    check(
        "a: for (using x = f(), y = g(); h(); ) { continue a }",
        "{ using x = f(), y = g(); a: for(; h();){ continue a; } }",
    );
    check("for (await using x = f();;) { break }", "{ await using x = f(); for(;;){ break; } }");
    check("class C extends (() => {}) {} 1", "let C = class C extends (()=>{}) { }; return 1;");
    check("class C extends (a, b) {} 1", "let C = class C extends (a, b) { }; return 1;");
    check("class C extends a.b {} 1", "let C = class C extends a.b { }; return 1;");
    check("import type X = require('x'); 1", "return 1;");
    check(
        "function f(asserts: any): asserts is string { return true } 1; 2",
        "function f(asserts) { return true; } 1; return 2;",
    );
    check("f<<T>() => T>(); 1", "f(); return 1;");
    check(
        "class A { static constructor() {} static async constructor() {} static *constructor() {} \
         static get constructor() { return 1 } constructor() {} } 1",
        "let A = class A { static constructor() {} static async constructor() {} static *constructor() {} \
         static get constructor() { return 1; } constructor(){} }; return 1;",
    );
    check(
        "function f(await) { await = await + 1; return [await] } 1; 2",
        "function f(await) { await = await + 1; return [ await ]; } 1; return 2;",
    );
    check(
        "const o = { m() { await: for (;;) { break await } } }; 1",
        "const o = { m () { await: for(;;){ break await; } } }; return 1;",
    );
    check("let a; a\n/ 2; /x/g", "let a; a / 2; return /x/g;");
}

#[test]
fn namespaces_do_not_capture_names_of_inner_scopes() {
    let code =
        body("namespace N { export let x = 1; export function f(N: number) { return x + N } } return N.f(2)");
    assert!(code.contains("function f(N1) { return N.x + N1; }"), "{code}");
    check(
        "namespace A.B { export const c = 1 } return A.B.c",
        "(function(A) { (function(B) { B.c = 1; })(A.B || (A.B = {})); })(A || (A = {})); return A.B.c; var A;",
    );
}

#[test]
fn decorators_bring_their_helpers_along() {
    let code = body("function d(v, c) { return v } @d class A { @d m() {} accessor x = 1 } return new A().x");
    assert!(
        code.starts_with("((__decorate) => ((__decorate) => (async () => {") && !code.contains("@d"),
        "{code}"
    );
    assert!(body("function d(v, c) { return v } export default @d class A {}").contains("then((value)"));
    check(
        "class A { accessor x = 1; accessor #y = () => 2 } 1",
        "let A = class A { #_1 = 1; get x() { return this.#_1; } set x(value) { this.#_1 = value; } \
         #_2 = ({ [\"#y\"]: ()=>2 })[\"#y\"]; get #y() { return this.#_2; } set #y(value) { this.#_2 = value; } }; return 1;",
    );
    // The author's names are kept apart from what is generated.
    let code =
        body("const state = 1, __decorate = 2; class A { #_1 = 3; @d m() { return state + __decorate } } 1");
    assert!(code.contains("__decorate1 = 2") && code.contains("return state + __decorate1"), "{code}");
}

#[test]
fn fences_and_marks_are_taken_off() {
    check("```ts\nconst x: T = 1\nx\n```\n", "const x = 1; return x;");
    check("Here is the code:\n\n```typescript\nreturn 1\n```\nIt returns one.", "return 1;");
    check("Two blocks:\n```sh\nls\n```\n```js\nreturn 2\n```", "return 2;");
    check("return `a\n\\`\\`\\`ts\nno\n\\`\\`\\`\n`.length", "return `a \\`\\`\\`ts no \\`\\`\\` `.length;");
    check("return `a${'```'}`", "return `a${'```'}`;");
    check("Code:\n```ts\nlet x: T = 1\nx\n```", "let x = 1; return x;");
    check("\u{feff}#!/usr/bin/env node\r\nlet x = 1\r\nx\r\n", "let x = 1; return x;");
}
