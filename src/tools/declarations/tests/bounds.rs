//! Schemas and names with which declarations would take minutes, or gigabytes.

use serde_json::{Value, json};

use super::super::{Layout, ServerTools, python, type_of};
use super::{ToolDefinition, tool, types};
use crate::growth::assert_linear;

/// The stubs of the classes of a server's tools.
fn stub(tools: &[ToolDefinition]) -> String {
    let tools = Some(tools.iter().map(types).collect());
    let mut stubs = python::stubs([ServerTools { name: "s", tools }].into_iter());
    stubs.remove(1).1
}

/// References to one list of names: each would be read again.
#[test]
fn v_619_lists_of_names_count_as_often_as_they_are_read() {
    let typed = |names: usize| {
        let one =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": vec!["a"; names]});
        let fields: serde_json::Map<String, Value> =
            (0..50).map(|at| (format!("f{at}"), json!({"$ref": "#/$defs/one"}))).collect();
        let schema = json!({"$defs": {"one": one}, "type": "object", "properties": fields});
        type_of(&schema, Layout::Line, None).matches("{ a: string }").count()
    };
    assert_eq!(typed(200), 50);
    assert_eq!(typed(20_000), 6);
}

/// Each tuple is also a list in Python, so that what is in tuples in tuples doubles at each level.
#[test]
fn v_619_tuples_in_tuples_of_python_are_bounded() {
    let constants: Vec<String> = (0..50).map(|at| format!("{at}{}", "a".repeat(200))).collect();
    let nested =
        (0..10).fold(json!({"enum": constants}), |inner, _| json!({"prefixItems": [inner], "items": false}));
    let both = tool("t", json!({"type": "object", "properties": {"x": nested, "n": {"type": "integer"}}}));
    let stub = python::tool_stub(types(&both));
    assert!(stub.contains("n: int | None = ..."), "{}", crate::text::start(&stub, 2_000));
    let few = tool(
        "t",
        json!({"type": "object", "properties": {"x": {"prefixItems": [{"type": "string"}], "items": false}}}),
    );
    assert!(python::tool_stub(types(&few)).contains("x: tuple[str] | list[str]"));
}

/// Whose class would be looked for among those of all tools before it.
#[test]
fn v_619_thousands_of_tools_have_classes_of_one_form() {
    let input = json!({"type": "object", "properties": {"x": {"type": "string"}}});
    let name = |at: usize| {
        (0..5)
            .fold("a".to_owned(), |name, digit| format!("{name}{}b", "_".repeat(1 + (at >> (3 * digit)) % 8)))
    };
    let tools = |count: usize| -> Vec<ToolDefinition> {
        (0..count).map(|at| tool(&name(at), input.clone())).collect()
    };
    let text = stub(&tools(1_000));
    assert!(text.contains("class SABBBBBArguments(") && text.contains("class SABBBBBArguments1000("));
    assert!(!text.contains("class SABBBBBArguments1001("));
    assert_linear("tools", 1_000, tools, |tools| stub(tools));
}

#[test]
fn the_names_of_a_tool_that_is_too_long_are_free_again() {
    let field = |at: usize| (format!("f{at}"), json!({"type": "string"}));
    let wide: serde_json::Map<String, Value> = (0..1_200).map(field).collect();
    let few: serde_json::Map<String, Value> = (0..1).map(field).collect();
    let [wide, few] = [wide, few].map(|fields| json!({"type": "object", "properties": fields}));
    let text = stub(&[tool("a_b", wide), tool("a__b", few)]);
    let shown = crate::text::start(&text, 2_000);
    assert!(
        text.contains(
            "async def a_b(self, arguments: _t.Mapping[_b.str, _t.Any] = ..., options: CallOptions = "
        ),
        "{shown}"
    );
    assert!(text.contains("class SABArguments(") && !text.contains("SABArguments2"), "{shown}");
}
