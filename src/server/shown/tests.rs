use super::*;
use crate::tools::{DirectTools, Schema, ToolDefinition};

fn executor(mode: ToolMode) -> Executor {
    let direct = DirectTools { mode, tools: vec!["native.tool0".to_owned()], ..DirectTools::default() };
    Executor::builder().languages([]).direct(direct).build().unwrap()
}

fn add(executor: &Executor, number: usize) {
    let schema = json!({ "type": "object", "description": "Does something. ".repeat(8) });
    let function = |input: Value| async move { Ok::<_, String>(input) };
    executor.add_tool(&format!("tool{number}"), schema, function).unwrap();
}

async fn list(executor: &Executor, before: Option<&ShownTools>) -> ShownTools {
    executor.list_direct_tools(false).await;
    ShownTools::new(executor, false, before)
}

#[tokio::test]
async fn a_list_that_is_shown_is_kept_a_little_longer() {
    let executor = executor(ToolMode::Auto);
    add(&executor, 0);
    let mut shown = list(&executor, None).await;
    assert_eq!(shown.shown, Shown::All(1));
    let (mut count, mut fits) = (1, 1);
    while shown.shown == Shown::All(count) {
        add(&executor, count);
        count += 1;
        if list(&executor, None).await.shown == Shown::All(count) {
            fits = count;
        }
        shown = list(&executor, Some(&shown)).await;
        assert!(count < 100, "all are shown always");
    }
    // Some 13 tools of average size fit, and a quarter more are kept.
    assert!((8..30).contains(&fits), "{fits}");
    assert!(count > fits + 2, "{count} {fits}");
    // Then those that are named, until all fit again.
    assert_eq!(shown.shown, Shown::Some(1));
    while count > fits + 1 {
        count -= 1;
        assert!(executor.remove_tool(&format!("tool{count}")));
        shown = list(&executor, Some(&shown)).await;
        assert_eq!(shown.shown, Shown::Some(1), "{count}");
    }
    executor.remove_tool(&format!("tool{}", count - 1));
    assert_eq!(list(&executor, Some(&shown)).await.shown, Shown::All(fits));
}

/// Clients do not show output schemas to models, and the break-even was measured without them.
#[tokio::test]
async fn an_output_schema_does_not_count() {
    let long = json!({ "type": "object", "description": "x".repeat(20_000) });
    let mut definition = ToolDefinition::new("demo.tool");
    definition.output_schema = Some(Schema::from(long.clone()));
    let shown = async |definition: ToolDefinition| {
        let direct = DirectTools { mode: ToolMode::Auto, ..DirectTools::default() };
        let function = |input: Value| async move { Ok::<_, String>(input) };
        let builder = Executor::builder().languages([]).direct(direct);
        list(&builder.tool_with_definition(definition, function).build().unwrap(), None).await.shown
    };
    assert_eq!(shown(definition.clone()).await, Shown::All(1));
    definition.input_schema = Schema::from(long);
    assert_eq!(shown(definition).await, Shown::None);
}

#[tokio::test]
async fn the_modes() {
    for (mode, expected) in [(ToolMode::Script, Shown::Some(1)), (ToolMode::Direct, Shown::All(60))] {
        let executor = executor(mode);
        (0..60).for_each(|number| add(&executor, number));
        let tools = list(&executor, None).await;
        assert_eq!(tools.shown, expected);
        assert_eq!(tools.tool("native__tool0").map(|tool| &*tool.tool), Some("tool0"));
        // Only an interface's own server is known by the names of its tools.
        assert!(tools.tool("tool0").is_none());
    }
}

#[test]
fn which_clients_show_interfaces() {
    let client = |extensions: Value| -> ClientCapabilities {
        serde_json::from_value(json!({ "extensions": extensions })).unwrap()
    };
    for (extensions, expected) in [
        (json!({}), false),
        (json!({ INTERFACES: {} }), true),
        (json!({ INTERFACES: { "mimeTypes": [INTERFACE_TYPE] } }), true),
        (json!({ INTERFACES: { "mimeTypes": ["text/plain"] } }), false),
    ] {
        assert_eq!(shows_interfaces(Some(&client(extensions.clone()))), expected, "{extensions}");
    }
    assert!(!shows_interfaces(None));
}

/// Tools of a server times bytes of their schemas: each list would compile all of them.
#[tokio::test]
async fn v_528_schemas_of_tools_that_do_not_fit_are_not_read() {
    let executor = executor(ToolMode::Auto);
    for number in 0..8 {
        // Too long to be shown.
        let schema = json!({ "type": "object", "title": "x".repeat(1 << 20) });
        let function = |input: Value| async move { Ok::<_, String>(input) };
        executor.add_tool(&format!("tool{number}"), schema, function).unwrap();
    }
    executor.list_direct_tools(false).await;
    let lists = executor.listed_tools();
    let known: Vec<_> = lists.iter().filter_map(|(_, tools)| tools.as_ref()).flatten().collect();
    let made = direct_tools(known.iter().map(|tool| (*tool, false)), MAX_BYTES, json_bytes);
    assert_eq!((made.tools.len(), made.left_out, made.problems.len()), (0, 4, 5), "{:?}", made.problems);
    assert!(made.problems[4].starts_with("4 tools: there are too many"), "{:?}", made.problems);
}
