use serde_json::json;
use swc_common::BytePos;
use swc_ecma_ast::{Decl, DefaultDecl, Module, ModuleDecl, ModuleItem, Stmt, TsNamespaceBody};
use swc_ecma_parser::{Parser, StringInput, Syntax, TsSyntax, lexer::Lexer};

use super::*;

mod alternatives;
mod bounds;

fn tool(name: &str, input: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: None,
        input_schema: input.into(),
        output_schema: None,
        annotations: None,
        meta: None,
    }
}

fn types(definition: &ToolDefinition) -> ToolTypes<'_> {
    ToolTypes { definition, inferred: None }
}

fn declared(server: &str, tools: &[ToolDefinition]) -> String {
    let tools = Some(tools.iter().map(types).collect());
    let text = typescript([ServerTools { name: server, tools }].into_iter());
    assert_only_declarations(&text);
    text
}

fn parse(text: &str) -> Module {
    let syntax = Syntax::Typescript(TsSyntax { dts: true, ..TsSyntax::default() });
    let end = BytePos(u32::try_from(text.len()).unwrap() + 1);
    let lexer =
        Lexer::new(syntax, swc_ecma_ast::EsVersion::EsNext, StringInput::new(text, BytePos(1), end), None);
    let mut parser = Parser::new_from(lexer);
    let module = parser.parse_module();
    let errors = parser.take_errors();
    assert!(errors.is_empty(), "{errors:?}\n{text}");
    module.unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// Asserts that the text has no executable code: only interfaces, `declare const` and `declare
/// module`.
fn assert_only_declarations(text: &str) {
    for item in parse(text).body {
        match item {
            ModuleItem::Stmt(Stmt::Decl(declaration)) => assert_declaration(&declaration, true, text),
            other => panic!("{other:?}\n{text}"),
        }
    }
}

fn assert_declaration(declaration: &Decl, outermost: bool, text: &str) {
    match declaration {
        Decl::TsInterface(_) | Decl::TsTypeAlias(_) => {}
        Decl::Fn(function) => assert!(function.declare && function.function.body.is_none(), "{text}"),
        Decl::Class(class) => {
            assert!(class.declare, "{text}");
            for member in &class.class.body {
                let is_plain = match member {
                    swc_ecma_ast::ClassMember::Constructor(constructor) => constructor.body.is_none(),
                    swc_ecma_ast::ClassMember::ClassProp(property) => property.value.is_none(),
                    _ => false,
                };
                assert!(is_plain, "{text}");
            }
        }
        Decl::Var(variable) => {
            assert!(variable.declare || !outermost, "{text}");
            assert!(variable.decls.iter().all(|one| one.init.is_none()), "{text}");
        }
        Decl::TsModule(module) if outermost => {
            assert!(module.declare);
            // `declare module "mcp:x";`: nothing is known of it.
            let Some(body) = &module.body else { return };
            let TsNamespaceBody::TsModuleBlock(block) = body else { panic!("{text}") };
            for item in &block.body {
                match item {
                    ModuleItem::Stmt(Stmt::Decl(inner)) => assert_declaration(inner, false, text),
                    ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => {
                        assert_declaration(&export.decl, false, text);
                    }
                    ModuleItem::ModuleDecl(ModuleDecl::ExportNamed(export)) => assert!(export.src.is_none()),
                    ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultExpr(export)) => {
                        assert!(export.expr.is_ident());
                    }
                    ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)) => {
                        assert!(matches!(export.decl, DefaultDecl::TsInterfaceDecl(_)));
                    }
                    other => panic!("{other:?}\n{text}"),
                }
            }
        }
        other => panic!("{other:?}\n{text}"),
    }
}

#[track_caller]
fn check(input: Value, expected: &str) {
    let definition = tool("t", json!({"type": "object", "properties": {"x": input}, "required": ["x"]}));
    let line = signature(types(&definition));
    assert_eq!(line, format!("t(args: {{ x: {expected} }}): Promise<any>"));
    declared("s", &[definition]);
}

#[test]
fn every_kind_of_schema_has_a_type() {
    check(json!({"type": "string"}), "string");
    check(json!({"type": "integer"}), "number");
    check(json!({"type": ["string", "null"]}), "string | null");
    check(json!({"type": "string", "nullable": true}), "string | null");
    check(json!({"enum": ["a", "b", 1, null]}), "\"a\" | \"b\" | 1 | null");
    check(json!({"const": "a"}), "\"a\"");
    check(json!({"type": "array"}), "unknown[]");
    check(json!({"type": "array", "items": {"type": ["string", "number"]}}), "(string | number)[]");
    check(json!({"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}}), "boolean[][]");
    check(
        json!({"prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}),
        "[string, number]",
    );
    check(json!({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}), "[string, ...null[]]");
    check(
        json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
        "string | string[]",
    );
    check(
        json!({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "null"}}}]}),
        "{ a?: string } & { b?: null }",
    );
    check(
        json!({"allOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"properties": {"b": {"type": "null"}}}]}),
        "(string | null) & { b?: null }",
    );
    check(json!({"type": "object"}), "{ [key: string]: unknown }");
    check(json!({"type": "object", "properties": {}, "additionalProperties": false}), "{}");
    check(json!({"additionalProperties": {"type": "number"}}), "{ [key: string]: number }");
    check(
        json!({"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": false}),
        "{ [key: string]: string }",
    );
    check(
        json!({"properties": {"a-b": {"type": "string"}}, "required": ["a-b"], "additionalProperties": true}),
        "{ \"a-b\": string; [key: string]: unknown }",
    );
    check(json!(true), "unknown");
    check(json!(false), "never");
    check(json!({"type": "objekt"}), "unknown");
    check(json!(5), "unknown");
    check(
        json!({"enum": (0..1_000).map(|at| format!("{at}")).collect::<Vec<_>>(), "type": "string"}),
        "string",
    );
}

#[test]
fn a_whole_server_as_scripts_see_it() {
    let mut read = tool(
        "read_file",
        json!({"type": "object", "properties": {"path": {"type": "string", "description": "Where."}, "limit": {"type": "integer"}}, "required": ["path"]}),
    );
    read.description = Some("Reads a file.\nWhole.".to_owned());
    read.output_schema = Some(
        json!({"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]})
            .into(),
    );
    let tools = [
        read,
        tool("delete", json!({"type": "object"})),
        tool("2fa", json!({"type": "object"})),
        tool("then", json!({})),
    ];
    let text = declared("my-fs", &tools);
    assert!(
        text.starts_with(&format!("// The tools that scripts can call. Written by `cx types`.\n{GLOBALS}"))
    );
    assert_eq!(
        text.split_once(GLOBALS).unwrap().1,
        r#"
interface McpServer1 {
  /**
   * Reads a file.
   * Whole.
   */
  readFile(args: {
    /** Where. */
    path: string;
    limit?: number;
  }, options?: CxCallOptions | number): Promise<string>;
  read_file: McpServer1["readFile"];
  delete(args?: {
    [key: string]: unknown;
  }, options?: CxCallOptions | number): Promise<any>;
  _2fa(args?: {
    [key: string]: unknown;
  }, options?: CxCallOptions | number): Promise<any>;
  "2fa": McpServer1["_2fa"];
  then(args?: { [key: string]: unknown }, options?: CxCallOptions | number): Promise<any>;
}

declare module "mcp:my-fs" {
  const server: McpServer1;
  export default server;
  export const readFile: McpServer1["readFile"];
  export const read_file: McpServer1["read_file"];
  const tool3: McpServer1["delete"];
  export { tool3 as delete };
  export const _2fa: McpServer1["_2fa"];
}

declare const tools: {
  readonly "my-fs": McpServer1;
  readonly myFs: McpServer1;
}
  & CxFullNames<"my-fs", McpServer1>;
declare const myFs: McpServer1;
"#
    );
}

#[test]
fn what_was_observed_is_the_result_where_the_server_says_nothing() {
    let mut definition = tool("list", json!({"type": "object"}));
    let mut shape = Shape::from_value(&json!([{"id": 1, "title": "secret"}]));
    shape.merge(Shape::from_value(&json!([{"id": 2}])));
    let inferred = ToolTypes { definition: &definition, inferred: Some(&shape) };
    assert_eq!(
        signature(inferred),
        "list(args?: { [key: string]: unknown }): Promise<{ id: number; title?: string }[]>"
    );
    let text = typescript([ServerTools { name: "s", tools: Some(vec![inferred]) }].into_iter());
    assert_only_declarations(&text);
    assert!(text.contains("inferred in 2 calls"), "{text}");
    assert!(!text.contains("secret"));
    // An inferred object with a single field `result` is not the wrapper that servers declare.
    let lone = Shape::from_value(&json!({"result": 1}));
    let line = signature(ToolTypes { definition: &definition, inferred: Some(&lone) });
    assert!(line.ends_with("Promise<{ result: number }>"), "{line}");
    // The declared schema has precedence.
    definition.output_schema = Some(json!({"type": "object", "properties": {"a": {"type": "null"}}}).into());
    let line = signature(ToolTypes { definition: &definition, inferred: Some(&shape) });
    assert!(line.ends_with("Promise<{ a?: null }>"), "{line}");
}

#[test]
fn references_are_followed_and_cycles_end() {
    let definition = tool(
        "t",
        json!({
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "name": {"type": "string"}}}},
            "type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}, "other": {"$ref": "#/$defs/Node"}}
        }),
    );
    assert_eq!(
        signature(types(&definition)),
        "t(args?: { node?: { next?: unknown; name?: string }; other?: { next?: unknown; name?: string } }): Promise<any>"
    );
    check(json!({"$ref": "#"}), "unknown");
    check(json!({"$ref": "file:///etc/passwd"}), "unknown");
    check(json!({"$ref": "https://example.com/schema.json"}), "unknown");
    check(json!({"$ref": "#/$defs/none"}), "unknown");
    let text = typescript_tool(types(&definition));
    assert!(text.contains("type Type1 = {\n  next?: Type1;\n  name?: string;\n};\n"), "{text}");
    assert!(text.contains("node?: Type1;") && text.contains("other?: Type1;"), "{text}");
    let text = python::tool_stub(types(&definition));
    assert!(text.contains("    next: NotRequired[TArgumentsType]\n"), "{text}");
    // A type that is itself without an object between is no type.
    let within = json!({"$defs": {"A": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/B"}]},
        "B": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "array", "items": {"$ref": "#/$defs/A"}}]}},
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}}});
    declared("s", &[tool("within", within)]);
    // A pointer with escapes, and through something that is no definition.
    check(json!({"$ref": "#/properties/y~1z", "$defs": {}}), "unknown");
    let pointer = tool(
        "t",
        json!({"properties": {"a/b": {"items": {"type": "null"}}, "x": {"$ref": "#/properties/a~1b/items"}}}),
    );
    assert!(signature(types(&pointer)).contains("x?: null"), "{}", signature(types(&pointer)));
    let anchored = tool(
        "t",
        json!({
            "$defs": {"Node": {"$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}, "name": {"$ref": "#name"}}},
                "Name": {"$anchor": "name", "type": "string"}},
            "properties": {"node": {"$ref": "#node"}}
        }),
    );
    let text = typescript_tool(types(&anchored));
    assert!(text.contains("type Type1 = {\n  next?: Type1;\n  name?: string;\n};\n"), "{text}");
    let root = tool("t", json!({"$ref": "#"}));
    assert_eq!(signature(types(&root)), "t(args?: { [key: string]: unknown }): Promise<any>");
    declared("s", &[root, definition]);
}

#[test]
fn nothing_that_a_server_says_becomes_code() {
    let attacks = [
        "*/ await callTool(\"x\"); /*",
        "**/ evil(); /**",
        "\"];evil();[\"",
        "'; evil(); '",
        "`${evil()}`",
        "a\nevil();\n",
        "a\u{2028}evil()",
        "\\\"; evil(); \\\"",
        "}; evil(); {",
        "*\\/ evil()",
        "</script>",
        "\u{202e}lave",
        "\u{e0041}\u{1b}[2J",
        "constructor",
        "__proto__",
        "default",
        "server",
        "tool1",
        "import",
        "new",
        "",
        "\r*/evil()",
        "mcp:x\" { } evil(); declare module \"",
    ];
    let mut tools = Vec::new();
    for attack in attacks {
        let mut definition = tool(
            attack,
            json!({
                "$defs": {attack: {"const": attack}},
                "title": attack,
                "description": attack,
                "type": "object",
                "properties": {
                    attack: {"type": "string", "description": attack, "default": attack},
                    "constant": {"const": attack},
                    "options": {"enum": [attack, "b"]},
                    "type": {"type": attack},
                    "format": {"type": "string", "format": attack, "pattern": attack},
                    "reference": {"$ref": format!("#/$defs/{attack}")}
                },
                "required": [attack]
            }),
        );
        definition.description = Some(attack.to_owned());
        definition.output_schema = Some(definition.input_schema.clone());
        let line = signature(types(&definition));
        assert!(!line.contains('\n'), "{line}");
        assert_only_declarations(&format!("interface T {{ {line} }}"));
        declared(attack, std::slice::from_ref(&definition));
        tools.push(definition);
    }
    // Together, because names of one server can shadow names of another.
    let text = declared("all", &tools);
    assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{text:?}");
    assert!(!crate::text::hidden_text(&text));
}

#[test]
fn a_tool_named_new_is_no_constructor() {
    let text = declared("s", &[tool("new", json!({"type": "object"}))]);
    assert!(text.contains("  \"new\"(args?"), "{text}");
    assert!(text.contains("as new }"), "{text}");
}

#[test]
fn a_comment_cannot_be_ended_and_says_what_was_hidden() {
    assert_eq!(comment("a */ b", 2), "  /** a *\\/ b */\n");
    assert_eq!(comment("", 0), "");
    assert_eq!(comment(" \n ", 0), "");
    let text = comment("ok\u{200b}", 0);
    assert!(text.contains("ok\\u{200b}") && text.contains("hidden characters"), "{text}");
    assert!(comment(&"x".repeat(1_000_000), 0).len() < 3_000);
}

#[test]
fn declarations_are_bounded() {
    let doubled: serde_json::Map<String, Value> = (0..40)
        .map(|at| {
            let next = format!("#/$defs/d{}", at + 1);
            (
                format!("d{at}"),
                json!({"type": "object", "properties": {"x": {"$ref": next}, "y": {"$ref": next}}}),
            )
        })
        .collect();
    let wide: serde_json::Map<String, Value> = (0..20_000)
        .map(|at| (format!("field{at}"), json!({"type": "string", "description": "d".repeat(100)})))
        .collect();
    let deep = (0..100).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let mut tools = vec![
        tool("doubled", json!({"$defs": doubled, "$ref": "#/$defs/d0"})),
        tool("wide", json!({"type": "object", "properties": wide})),
        tool("deep", json!({"type": "object", "properties": {"x": deep}})),
        tool(
            "long",
            json!({"type": "object", "properties": {"k".repeat(500_000): {"const": "c".repeat(100_000)}}}),
        ),
    ];
    tools[0].output_schema = Some(tools[0].input_schema.clone());
    for definition in &tools {
        assert!(signature(types(definition)).len() <= MAX_TOOL_BYTES);
        let mut aliases = Aliases::new("T".to_owned());
        let text = member(types(definition), &typescript_name(&definition.name), OPTIONS, &mut aliases);
        assert!(text.len() + aliases.text.len() <= MAX_TOOL_BYTES, "{}", definition.name);
        assert!(python::tool_stub(types(definition)).len() <= MAX_TOOL_BYTES + 1_000, "{}", definition.name);
    }
    declared("s", &tools);
}

#[test]
fn two_tools_with_one_form_have_their_exact_names_only() {
    let any = || json!({"type": "object"});
    let text = declared("s", &[tool("get_page", any()), tool("get-page", any()), tool("get_page", any())]);
    assert!(text.contains("  get_page(") && text.contains("  \"get-page\"("), "{text}");
    assert!(!text.contains("getPage"), "{text}");
    assert_eq!(text.matches("  get_page(").count(), 1);
}

#[test]
fn tools_are_declared_by_their_full_names_too() {
    let tools = [tool("get-page", json!({"type": "object"})), tool("b__c", json!({"type": "object"}))];
    let known = |name| ServerTools { name, tools: Some(tools.iter().map(types).collect()) };
    let servers = || [known("web"), known("web-two"), ServerTools { name: "late", tools: None }].into_iter();
    let text = typescript(servers());
    assert_only_declarations(&text);
    let expected = "\n}\n  & CxFullNames<\"web\", McpServer1>\n  & CxFullNames<\"web-two\", McpServer2>\n  \
                    & CxFullNames<\"late\", any>;\n";
    assert!(text.contains(expected), "{text}");
    let stub = python::stubs(servers()).remove(1).1;
    let expected = "\nitsWebTools: WebTools\n\nclass Tools:\n    web: WebTools\n    web_two: WebTwoTools\n    \
                    late: _t.Any\n    mcp__web__get_page = itsWebTools.get_page\n    \
                    mcp__web__b_c = itsWebTools.b_c\n    mcp__web__b__c = itsWebTools.b__c\n    def __getitem__(";
    assert!(stub.contains(expected), "{stub}");
}

/// `mcp__a__b__c` is `b__c` of `a` and `c` of `a__b`.
#[test]
fn one_full_name_of_two_tools_is_declared_once() {
    let (first, second) = ([tool("b__c", json!({}))], [tool("c", json!({}))]);
    let servers = [("a", &first), ("a__b", &second)]
        .map(|(name, tools)| ServerTools { name, tools: Some(tools.iter().map(types).collect()) });
    let stub = python::stubs(servers.into_iter()).remove(1).1;
    assert_eq!(stub.matches("mcp__a__b__c = ").count(), 1, "{stub}");
    // A server of that name comes first in a run, too.
    let servers = ["a", "mcp__a__b__c"]
        .map(|name| ServerTools { name, tools: Some(first.iter().map(types).collect()) });
    let stub = python::stubs(servers.into_iter()).remove(1).1;
    assert!(stub.contains("    mcp__a__b__c: ") && !stub.contains("    mcp__a__b__c = "), "{stub}");
}

#[test]
fn a_server_that_was_never_listed_allows_everything() {
    let servers = || [ServerTools { name: "late", tools: None }].into_iter();
    let text = typescript(servers());
    assert_only_declarations(&text);
    assert!(
        text.contains("  readonly late: any;") && text.contains("declare module \"mcp:late\";"),
        "{text}"
    );
    let stubs = python::stubs(servers());
    assert!(stubs[0].1.contains("\nlate: _t.Any\nmcp_late: _t.Any\n"), "{}", stubs[0].1);
    assert!(stubs[1].1.contains("\n    late: _t.Any\n"), "{}", stubs[1].1);
}

#[test]
fn python_has_keywords_and_a_dict() {
    let mut read = tool(
        "read-file",
        json!({"type": "object", "properties": {
            "path": {"type": "string", "description": "Where."}, "limit": {"type": "integer"},
            "from": {"enum": ["a", "b", null]}, "pair": {"prefixItems": [{"type": "number"}], "items": false}
        }, "required": ["path"]}),
    );
    read.description = Some("Reads \"\"\" \\ a lib_b.so file.".to_owned());
    read.output_schema = Some(
        json!({"type": "object", "properties": {"text": {"type": "string"}},
        "required": ["text"]})
        .into(),
    );
    assert_eq!(
        python::tool_stub(types(&read)),
        r#"class ReadFileResult(TypedDict):
    text: str

ReadFileArguments = TypedDict("ReadFileArguments", {
    "path": Required[str],
    "limit": NotRequired[int],
    "from": NotRequired[Literal["a"] | Literal["b"] | None],
    "pair": NotRequired[tuple[float] | list[float]],
})

class Tools:
    @overload
    async def read_file(self, *, path: str, limit: int | None = ..., pair: tuple[float] | list[float] | None = ...) -> ReadFileResult:
        """Reads \"\"\" \\ a lib_b.so file."""
    @overload
    async def read_file(self, arguments: ReadFileArguments, /) -> ReadFileResult: ...
    def __getitem__(self, name: str, /) -> Callable[..., Coroutine[Any, Any, Any]]: ...
"#
    );
}
