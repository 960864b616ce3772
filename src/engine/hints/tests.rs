use super::*;
use crate::run::ledger::CallFacts;

mod awaits;
mod foreign;
mod of_models;

fn failure<'a>(name: &'a str, message: &'a str, line: &'a str) -> Failure<'a> {
    let facts = CallFacts { has_returned: true, ..CallFacts::default() };
    Failure { name, message, line, source: line, facts, has_input: true, has_text: false }
}

fn typescript(name: &str, message: &str, line: &str) -> Option<String> {
    failure(name, message, line).typescript()
}

fn python(name: &str, message: &str) -> Option<String> {
    failure(name, message, "").python(&|field| field == "items")
}

#[test]
fn an_answer_that_is_taken_for_something_else() {
    for (name, message, line) in [
        ("TypeError", "Cannot read properties of undefined (reading '0')", "const t = r.content[0].text;"),
        ("TypeError", "Cannot read properties of undefined (reading '0')", "const t = r?.[\"content\"][0]"),
        ("TypeError", "Cannot read properties of undefined (reading 'items')", "r.structuredContent.items"),
        ("TypeError", "Cannot read properties of undefined (reading 'map')", "r.data.map((x) => x)"),
        (
            "TypeError",
            "Cannot destructure property 'items' of 'r.structuredContent' as it is undefined.",
            "const { items } = r.structuredContent;",
        ),
        ("TypeError", "dirs.split is not a function", ""),
        ("TypeError", "(intermediate value).trim is not a function", ""),
        ("TypeError", "r is not iterable", ""),
        ("SyntaxError", "\"[object Object]\" is not valid JSON", ""),
        ("SyntaxError", "\"undefined\" is not valid JSON", ""),
        ("SyntaxError", "Unexpected token 'h', \"hello\" is not valid JSON", ""),
        ("SyntaxError", "Unexpected non-whitespace character after JSON at position 2 (line 1 column 3)", ""),
    ] {
        assert_eq!(typescript(name, message, line).as_deref(), Some(ANSWER), "{message}");
        let none = Failure { facts: CallFacts::default(), ..failure(name, message, line) };
        assert_eq!(none.typescript(), None, "no tool has returned: {message}");
    }
    for (name, message) in [
        ("TypeError", "the JSON object must be str, bytes or bytearray, not dict"),
        ("TypeError", "string indices must be integers, not 'str'"),
        ("TypeError", "list indices must be integers or slices, not str"),
        ("AttributeError", "'dict' object has no attribute 'split'"),
        ("AttributeError", "'str' object has no attribute 'get'. Did you mean: 'join'?"),
        ("AttributeError", "'list' object has no attribute 'content'"),
        ("KeyError", "'structuredContent'"),
        ("KeyError", "'content'; the keys are 'a'"),
        ("KeyError", "0"),
        ("JSONDecodeError", "Expecting value: line 1 column 1 (char 0)"),
    ] {
        assert_eq!(python(name, message).as_deref(), Some(ANSWER), "{message}");
        let none = Failure { facts: CallFacts::default(), ..failure(name, message, "") };
        assert_eq!(none.python(&|_| true), None, "no tool has returned: {message}");
    }
    let of_field =
        python("AttributeError", "'dict' object has no attribute 'items_'. Did you mean: 'items'?");
    assert_eq!(of_field.as_deref(), Some(ANSWER));
    let of_field = failure("AttributeError", "'dict' object has no attribute 'name'", "")
        .python(&|field| field == "name");
    assert_eq!(of_field, Some(format!("{ANSWER}; of a dict write `[\"name\"]`")));
}

#[test]
fn a_field_that_has_the_name_of_a_method_of_dicts() {
    for (name, message, line, expected) in [
        ("TypeError", "'builtin_function_or_method' object is not iterable", "for i in r.items:", true),
        ("TypeError", "'builtin_function_or_method' object is not subscriptable", "r.items[0]", true),
        ("TypeError", "object of type 'builtin_function_or_method' has no len()", "len(r.items)", true),
        ("AttributeError", "'builtin_function_or_method' object has no attribute 'x'", "r.items.x", true),
        ("TypeError", "'builtin_function_or_method' object is not iterable", "for i in r.values:", false),
        ("TypeError", "'builtin_function_or_method' object is not iterable", "for i in print:", false),
        ("TypeError", "'int' object is not iterable", "for i in r.items:", false),
    ] {
        let hint = failure(name, message, line).python(&|field| field == "items");
        assert_eq!(hint, expected.then(|| of_dict("items")), "{message}: {line}");
    }
}

#[test]
fn what_call_tool_returns() {
    let get = "r = call_tool('a', 'b')\nr['title']";
    for (name, message, source, expected) in [
        ("KeyError", "'title'", get, true),
        ("AttributeError", "'dict' object has no attribute 'title'", get, true),
        ("KeyError", "'result'", "call_tools([])[0]['result']", true),
        (
            "KeyError",
            "'result'; the keys are 'ok', 'error'",
            "r['result'] if call_tool('a', 'b') else 0",
            true,
        ),
        ("KeyError", "'title'", "call_tool('a', 'b')['result']['title']", false),
        ("KeyError", "'title'", "await mcp.runtime.call_tool('a', 'b')", false),
        ("IndexError", "list index out of range", get, false),
    ] {
        let hint =
            Failure { facts: CallFacts::default(), ..failure(name, message, source) }.python(&|_| false);
        assert_eq!(hint.as_deref(), expected.then_some(OUTCOME), "{message}: {source}");
    }
}

/// Whatever the script's tools have returned, if there were any.
#[test]
fn habits_of_python_programs() {
    for (name, message, line, expected) in [
        ("KeyError", "'API_KEY'", "key = os.environ[\"API_KEY\"]", Some(habits::ENVIRONMENT)),
        ("KeyError", "'API_KEY'", "key = row[\"API_KEY\"]", None),
        ("IndexError", "list index out of range", "path = sys.argv[1]", Some(habits::ARGUMENTS)),
        ("IndexError", "list index out of range", "path = rows[1]", None),
        ("RuntimeError", "Could not determine home directory.", "Path.home()", Some(habits::HOME)),
        (
            "JSONDecodeError",
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
            "json.loads(text)",
            Some(habits::LITERAL),
        ),
        (
            "TypeError",
            "Object of type datetime is not JSON serializable",
            "json.dumps(row)",
            Some(habits::SERIALIZABLE),
        ),
        ("TypeError", "Object of type coroutine is not JSON serializable", "json.dumps(row)", Some(AWAIT)),
        (
            "TypeError",
            "'State' object does not support item assignment",
            "state[\"a\"] = 1",
            Some(habits::STATE),
        ),
        ("AttributeError", "'State' object has no attribute 'a'", "print(state.a)", Some(habits::STATE)),
        ("TypeError", "'State' object is not subscriptable", "machine.state[0]", None),
        (
            "AttributeError",
            "'McpToolError' object has no attribute 'status_code'",
            "print(error.status_code)",
            Some(habits::TOOL_ERROR),
        ),
        ("ValueError", "'McpToolError' object has no attribute 'status_code'", "", None),
        (
            "AttributeError",
            "'Response' object has no attribute 'status_code'. Did you mean: 'status_text'?",
            "print(response.status_code)",
            Some(habits::RESPONSE),
        ),
        (
            "TypeError",
            "fetch() got an unexpected keyword argument 'data'",
            "await fetch(url, data=1)",
            Some(habits::FETCH),
        ),
        ("TypeError", "main() missing 1 required positional argument: 'b'", "", Some(habits::ENTRY)),
        ("TypeError", "main() missing 1 required positional argument: 'b'", "main(1)", None),
        ("TypeError", "'Server' object is not callable", "github('text')", Some(habits::SERVER)),
    ] {
        let none = Failure { facts: CallFacts::default(), ..failure(name, message, line) };
        assert_eq!(none.python(&|_| false).as_deref(), expected, "{message}: {line}");
    }
}

#[test]
fn other_errors_get_none() {
    for (name, message, line) in [
        ("Error", "Cannot read properties of undefined (reading '0')", "r.content[0]"),
        ("TypeError", "Cannot read properties of undefined (reading '0')", "rows[7][0] + contents"),
        ("TypeError", "Cannot read properties of null (reading 'x')", "r.content.x"),
        ("TypeError", "frobnicate is not a function", ""),
        ("RangeError", "r is not iterable", ""),
        ("SyntaxError", "Invalid regular expression", ""),
    ] {
        assert_eq!(typescript(name, message, line), None, "{message}");
    }
    for (name, message) in [
        ("ValueError", "'dict' object has no attribute 'split'"),
        ("AttributeError", "'Point' object has no attribute 'split'"),
        ("AttributeError", "'str' object has no attribute 'frobnicate'"),
        ("AttributeError", "module 'os' has no attribute 'fork'"),
        ("KeyError", "'oslo'"),
        ("TypeError", "unsupported operand type(s) for +: 'int' and 'str'"),
    ] {
        assert_eq!(python(name, message), None, "{message}");
    }
}

#[test]
fn servers_and_tools_are_listed_by_their_keys() {
    let names = "`Object.keys(tools.files)` has the names";
    assert_eq!(typescript("TypeError", "tools.files is not iterable", "").as_deref(), Some(names));
    let names = "`Object.keys(tools)` has the names";
    assert_eq!(typescript("TypeError", "tools is not iterable", "").as_deref(), Some(names));
    let answer = typescript("TypeError", "tools.files.read is not iterable", "");
    assert_eq!(answer.as_deref(), Some(ANSWER));
}

#[test]
fn a_forgotten_await() {
    for message in [
        "'coroutine' object is not subscriptable",
        "object of type 'coroutine' has no len()",
        "Object of type coroutine is not JSON serializable",
        "the JSON object must be str, bytes or bytearray, not coroutine",
        "can only concatenate str (not \"coroutine\") to str",
    ] {
        let none = Failure { facts: CallFacts::default(), ..failure("TypeError", message, "") };
        assert_eq!(none.python(&|_| false).as_deref(), Some(AWAIT), "{message}");
    }
    let unfinished = CallFacts { has_unfinished: true, ..CallFacts::default() };
    for (name, message, facts) in [
        ("TypeError", "found.map is not a function", unfinished.clone()),
        ("TypeError", "Cannot read properties of undefined (reading 'length')", unfinished),
        ("SyntaxError", "\"[object Promise]\" is not valid JSON", CallFacts::default()),
    ] {
        let failed = Failure { facts, ..failure(name, message, "") };
        assert_eq!(failed.typescript().as_deref(), Some(AWAIT), "{message}");
    }
    // A call that is awaited later, and an input without this field.
    let facts = CallFacts { has_unfinished: true, ..CallFacts::default() };
    let message = "Cannot read properties of undefined (reading 'length')";
    let of_input = Failure { facts, ..failure("TypeError", message, "const n = input.rows.length;") };
    assert_eq!(of_input.typescript(), None);
}

#[test]
fn a_variable_that_keeps_a_call_is_read() {
    let message = "Cannot read properties of undefined (reading 'length')";
    for (source, line, expected) in [
        ("const r = callMCPTool('mcp__a__b');\nreturn r.rows.length;", "return r.rows.length;", true),
        ("let r = tools.a.b({});\n  return r.rows.length;", "  return r.rows.length;", true),
        ("const r: any = tools.a.b({});\nreturn r.rows.length;", "return r.rows.length;", true),
        ("const r = await tools.a.b({});\nreturn r.rows.length;", "return r.rows.length;", false),
        ("if (a == tools.b({})) {}\nreturn a.rows.length;", "return a.rows.length;", false),
        // What failed is another variable, or an answer.
        ("const r = tools.a.b({});\nreturn rows.all.length;", "return rows.all.length;", false),
        ("const r = tools.a.b({});\nreturn x.r.all.length;", "return x.r.all.length;", false),
        ("const r = tools.a.b({});\nreturn (await r).rows.length;", "return (await r).rows.length;", false),
        ("let r = tools.a.b({});\nr = await r;\nreturn r.rows.length;", "return r.rows.length;", false),
        ("let r = tools.a.b({});\nawait rows;\nreturn r.rows.length;", "return r.rows.length;", true),
        (
            "const r = tools.a.b({}).then((x) => x.rows.length);",
            "const r = tools.a.b({}).then((x) => x.rows.length);",
            false,
        ),
        (
            "const p = tools.a.b({});\nconst [x] = await Promise.all([p]);\nreturn x.rows.length;",
            "return x.rows.length;",
            false,
        ),
        // A server, a tool, and a comment are no calls.
        ("const r = tools.a;\nreturn r.rows.length;", "return r.rows.length;", false),
        ("const r = tools.a.b;\nreturn r.rows.length;", "return r.rows.length;", false),
        ("// const r = tools.a.b();\nreturn r.rows.length;", "return r.rows.length;", false),
    ] {
        let found = Failure { source, ..failure("TypeError", message, line) }.typescript();
        assert_eq!(found.as_deref(), expected.then_some(AWAIT), "{source}");
    }
}

#[test]
fn imports_of_other_programs() {
    for (name, message) in [
        ("ModuleNotFoundError", "No module named 'mcp.servers'"),
        ("ModuleNotFoundError", "No module named 'servers': besides the standard library there are"),
        ("ModuleNotFoundError", "No module named 'mcp.client'"),
        ("ModuleNotFoundError", "No module named 'tools': besides the standard library there are"),
        ("ImportError", "cannot import name 'ClientSession' from 'mcp' (unknown location)"),
        ("NameError", "name 'list_tools' is not defined"),
        ("NameError", "name 'default_api' is not defined"),
        ("AttributeError", "module 'mcp' has no attribute 'call_tool'"),
        ("NameError", "name 'session' is not defined. Did you mean: 'sessions'?"),
    ] {
        assert!(failure(name, message, "").looks_for_server(), "{message}");
    }
    for (name, message) in [
        ("ModuleNotFoundError", "No module named 'numpy': use math"),
        ("ImportError", "cannot import name 'x' from 'json' (/python/json/__init__.py)"),
        ("ValueError", "No module named 'mcp.servers'"),
        ("NameError", "name 'sessions' is not defined"),
    ] {
        assert!(!failure(name, message, "").looks_for_server(), "{message}");
    }
}

#[test]
fn an_input_that_was_not_given() {
    let reads =
        |message, line, has_input| Failure { has_input, ..failure("TypeError", message, line) }.typescript();
    let message = "Cannot read properties of null (reading 'tz')";
    let destructured = "Cannot destructure property 'tz' of 'input' as it is null.";
    assert_eq!(reads(message, "f(input.tz)", false), Some(input::none("input")));
    assert_eq!(reads(destructured, "const { tz } = input;", false), Some(input::none("input")));
    assert_eq!(reads(message, "JSON.parse(input).tz", false), Some(input::none("input")));
    let parameter = "Cannot destructure property 'tz' of 'object null' as it is null.";
    assert_eq!(reads(parameter, "export function run({ tz }) {", false), Some(input::none("input")));
    assert_eq!(reads(parameter, "rows.map(({ tz }) => tz)", false), None);
    assert_eq!(reads(parameter, "export function run({ tz }) {", true), None);
    assert_eq!(reads(message, "f(input.tz)", true), None);
    assert_eq!(reads(message, "f(row.input.tz, inputs)", false), None);
    for (message, line, expected) in [
        ("'NoneType' object is not subscriptable", "print(inputs[\"x\"])", Some(input::none("inputs"))),
        ("'NoneType' object has no attribute 'get'", "inputs.get(\"x\")", Some(input::none("inputs"))),
        ("'NoneType' object has no attribute 'get'", "row.get(\"x\")", None),
        ("'function' object is not subscriptable", "input[\"x\"]", Some(INPUTS.to_owned())),
        ("'function' object is not subscriptable", "f[\"x\"]", None),
    ] {
        let failed =
            Failure { has_input: false, facts: CallFacts::default(), ..failure("TypeError", message, line) };
        assert_eq!(failed.python(&|_| false), expected, "{message}: {line}");
    }
}

#[test]
fn functions_that_other_programs_have() {
    for (message, line, expected) in [
        ("fs.readFileSync is not a function", "", FILES),
        ("crypto.createHash is not a function", "", HASHES),
        (
            "Cannot read properties of undefined (reading 'digest')",
            "await crypto.subtle.digest(a, b)",
            HASHES,
        ),
        ("mcp.callTool is not a function", "", CONNECTED),
    ] {
        assert_eq!(typescript("TypeError", message, line).as_deref(), Some(expected), "{message}");
    }
    for (message, line, expected) in [
        (
            "cannot use 'list' as a dict key (unhashable type: 'list')",
            "await asyncio.gather(r)",
            Some(GATHER),
        ),
        (
            "An asyncio.Future, a coroutine or an awaitable is required",
            "await asyncio.gather(r)",
            Some(GATHER),
        ),
        (
            "cannot use 'list' as a dict key (unhashable type: 'list')",
            "await asyncio.gather([a.b(), a.c()])",
            Some(GATHER),
        ),
        ("An asyncio.Future, a coroutine or an awaitable is required", "await asyncio.gather(*r)", None),
        (
            "An asyncio.Future, a coroutine or an awaitable is required",
            "await asyncio.gather(f(1), f(2))",
            None,
        ),
        ("An asyncio.Future, a coroutine or an awaitable is required", "await asyncio.gather(", None),
        ("cannot use 'list' as a dict key (unhashable type: 'list')", "d[[1]] = 2", None),
    ] {
        let found = failure("TypeError", message, line).python(&|_| false);
        assert_eq!(found.as_deref(), expected, "{message}: {line}");
    }
}

#[test]
fn names_that_are_taken_for_servers() {
    for (name, message, line, expected) in [
        ("ReferenceError", "github is not defined", "const r = await github.list({});", true),
        ("NameError", "name 'github' is not defined", "r = await github.list()", true),
        ("ReferenceError", "github is not defined", "return github.list;", false),
        ("NameError", "name 'json' is not defined. Did you forget to import 'json'?", "json.loads(x)", false),
        ("TypeError", "github is not defined", "await github.list({})", false),
    ] {
        assert_eq!(failure(name, message, line).calls_unknown_name(), expected, "{message}: {line}");
    }
    let message = "Cannot read properties of undefined (reading 'list')";
    for (name, line, expected) in [
        ("TypeError", "const r = await mcp.github.list({});", true),
        ("TypeError", "const r = await list.github.list({});", false),
        ("TypeError", "return (await mcp.readResource(a, b)).list[0];", false),
        ("Error", "const r = await mcp.github.list({});", false),
    ] {
        assert_eq!(failure(name, message, line).takes_name_for_server(), expected, "{line}");
    }
}

#[test]
fn values_without_data() {
    for json in ["null", "{}", "[null]", "[null,null]", "[{},{}]", "{}"] {
        assert!(has_no_data(json), "{json}");
    }
    for json in ["[]", "[[],[]]", "{\"a\":[]}", "0", "\"\"", "\"null\"", "[null,1]", "{\"a\":null}", "false"]
    {
        assert!(!has_no_data(json), "{json}");
    }
    for (source, expected) in [
        ("return r.structuredContent", Some("structuredContent")),
        ("return r.content", None),
        ("return r.content[0].text", Some("content[0].text")),
        ("const { content } = r; return content?.[0]?.text", Some("content[0].text")),
        ("return r[\"content\"][0][\"text\"]", Some("content[0].text")),
        ("return r.content[0]", None),
        ("return r.content.text", None),
    ] {
        assert_eq!(envelope_field(source, &|field| field == "content"), expected, "{source}");
    }
    assert_eq!(envelope_field("return r.content[0].text", &|_| false), Some("content"));
}

#[test]
fn fields_are_taken_in_these_forms() {
    for text in [
        "r.content",
        "r.content[0]",
        "r?.content?.[0]",
        "r[\"content\"]",
        "r['content'][0]",
        "r.get(\"content\")",
    ] {
        assert!(takes_field(text, "content"), "{text}");
    }
    for text in [
        "content",
        "r.contents",
        "r.content_type",
        "{\"content\": 1}",
        "r.content(1)",
        "\"content\"",
        "x.mycontent",
    ] {
        assert!(!takes_field(text, "content"), "{text}");
    }
}

#[test]
fn codes_that_do_not_exist() {
    for (source, wrong) in [
        ("if (error.code === \"RATE_LIMIT\") retry();", "RATE_LIMIT"),
        ("if error.code == 'TIMEOUT':", "TIMEOUT"),
        ("if e.code in (\"TOOL_TIMEOUT\", \"ECONNRESET\"):", "ECONNRESET"),
        ("const RETRY = [\"ETIMEDOUT\"];\nif (RETRY.includes(e.code)) {}", "ETIMEDOUT"),
        ("switch (e.code) {\n  case \"NOT_FOUND\":\n}", "NOT_FOUND"),
        ("if (e.code === 429) {}", "429"),
        ("if (result.error[\"code\"] !== \"RATE_LIMIT_EXCEEDED\") {}", "RATE_LIMIT_EXCEEDED"),
        ("match e.code:\n    case \"THROTTLED\":", "THROTTLED"),
    ] {
        let found = codes::hint(ToolErrorCode::RateLimited, source).unwrap_or_else(|| panic!("{source}"));
        assert!(found.starts_with(&format!(
            "`{wrong}` is not a code of a failed call; this one has `RATE_LIMITED`; "
        )));
        assert!(found.contains("CIRCUIT_OPEN") && found.len() < 500, "{found}");
    }
    for source in [
        "",
        "if (error.code === \"RATE_LIMITED\") retry();",
        "const method = \"POST\";",
        "error.code = 429; call(error.code);",
        "const decode = \"UTF8\"; x.codes = [\"ABCD\"]",
        "return { code: \"FAILED_HERE\" }",
        "return {\"code\": \"FAILED_HERE\"}",
        "it's an odd 'line",
    ] {
        assert_eq!(codes::hint(ToolErrorCode::RateLimited, source), None, "{source}");
    }
}
