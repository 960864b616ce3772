//! Attacks of docs/threats.md, group BV on Python, by number: boundary values. Values that both languages have get the
//! outcome of TypeScript.

use cx::{ErrorCode, Script};
use serde_json::{Value, json};

use crate::support::python_executor::{
    BESIDE, attack, executor, failure, small, survive, survives_all, value,
};

#[tokio::test]
async fn bv_080_081_names_of_objects_own() {
    let source = r#"
result = await mock.pollute()
echoed = await mock.echo({"__proto__": {"a": 1}, "constructor": 2, "__class__": 3, "__dict__": {}})
named = await tools["mock"]["with-dashes.and.dots"](c=1)
return [
    result["__proto__"], type(result) is dict, echoed["__class__"], type(echoed) is dict, named,
    (await mock.constructor(c=1)), call_tool("mock", "then", {"t": 1})["ok"], (await tools.other_server.read_file(a=1)),
]"#;
    assert_eq!(
        value(source).await,
        json!([{ "polluted": 1 }, true, 3, true, { "c": 1 }, { "c": 1 }, true, { "a": 1 }])
    );
    // Names with a meaning in Python are never accidentally tools.
    let source = "return [hasattr(mock, name) for name in ('__await__', '__len__x__', '__class_getitem__')] + [hasattr(tools, '__call__')]";
    assert_eq!(value(source).await, json!([false, false, false, false]));
}

/// A lone surrogate has no UTF-8: it is U+FFFD wherever text leaves the guest.
#[tokio::test]
async fn bv_082_lone_surrogate_out() {
    let source = r#"
print("\ud800")
emit("\ud800")
return [await mock.echo(s="\ud800"), call_tool("mock", "echo", {"\udfff": 1}), "\ud800"]"#;
    let (result, _) = attack(source, small()).await;
    let one = "\u{fffd}";
    assert_eq!(
        result.value(),
        Some(&json!([{ "s": one }, { "ok": true, "result": { one: 1 } }, one])),
        "{}",
        result.to_json()
    );
    assert_eq!(result.printed(), one);
    for (source, code) in [
        ("raise ValueError('\\ud800')", ErrorCode::RuntimeError),
        ("await tools['\\ud800'].x()", ErrorCode::CheckFailed),
        ("await tools[chr(0xd800)].x()", ErrorCode::RuntimeError),
        ("await mock['\\ud800']()", ErrorCode::CheckFailed),
    ] {
        assert_eq!(failure(source).await.0, code, "{source}");
    }
}

/// A pair of surrogates that a tool sends is one character.
#[tokio::test]
async fn bv_083_surrogates_in() {
    let script =
        Script::python("r = await mock.text(text=inputs)\nreturn [r, len(r)]").input(json!("\u{1f600}a"));
    let (executor, _) = executor().await;
    let result = executor.run(script).await.unwrap();
    assert_eq!(result.value(), Some(&json!(["\u{1f600}a", 2])), "{}", result.to_json());
    // JSON text of a tool with a lone surrogate is not JSON: it stays text.
    let source = r#"return type(await mock.text(text='{"s": "\\ud800"}')).__name__"#;
    assert_eq!(value(source).await, json!("str"));
}

#[tokio::test]
async fn bv_084_numbers_without_json() {
    let source = "
nan, inf = float('nan'), float('inf')
return [[nan, inf, -0.0], await mock.echo(a=nan, b=-inf), {'deep': [[nan]]}, await mock.echo({1.5: 1, True: 2, None: 3})]";
    assert_eq!(
        value(source).await,
        json!([[null, null, 0], { "a": null, "b": null }, { "deep": [[null]] }, { "1.5": 1, "true": 2, "null": 3 }])
    );
    let (code, message) = failure("return {float('nan'): [object()]}").await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.contains("object"), "{message}");
}

/// Integers are exact up to 64 bits, and beyond as text.
#[tokio::test]
async fn bv_085_large_integers() {
    let source = "return [2 ** 64 - 1, -2 ** 63, 2 ** 70, -2 ** 70]";
    assert_eq!(
        value(source).await,
        json!([u64::MAX, i64::MIN, "1180591620717411303424", "-1180591620717411303424"])
    );
    // An argument is a number with all its digits, and so is a result. The mock returns what it has
    // received as text.
    let source = "
n = 2 ** 70 + 1
sent = await mock.text(rows=[{'n': n}, -n, 1, float('nan'), -0.0], s=str(n))
got = await mock.text(text=f'{{\"n\": {n}, \"f\": [NaN, -Infinity, 1]}}')
return [sent, got['n'] == n, [str(x) for x in got['f']], f'{got[\"n\"]}']";
    assert_eq!(
        value(source).await,
        json!([
            r#"sent {"rows":[{"n":1180591620717411303425},-1180591620717411303425,1,null,0],"s":"1180591620717411303425"}"#,
            true,
            ["nan", "-inf", "1"],
            "1180591620717411303425"
        ])
    );
    let (code, message) = failure("return {'rows': [{'n': 10 ** 5000}]}").await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.contains("value.rows[0].n") && message.contains("4300"), "{message}");
    let source = "
try: await mock.echo(rows=[{'n': 10 ** 5000}])
except McpToolError as error: return [error.code, str(error)]";
    let found = value(source).await;
    assert_eq!(found[0], "INVALID_ARGUMENTS");
    assert!(found[1].as_str().unwrap().starts_with("arguments.rows[0].n is an integer"), "{found}");
}

#[tokio::test]
async fn bv_086_large_numbers() {
    let source = r#"
text = await mock.text(text='{"id": 9007199254740993, "small": 1e-400}')
return [text["id"], text["small"], type(await mock.text(text='{"x": 1e400}')).__name__, (await mock.echo(a=1.5e300))["a"]]"#;
    // Exact here; TypeScript has 9007199254740992.
    assert_eq!(value(source).await, json!([9_007_199_254_740_993_u64, 0.0, "str", 1.5e300]));
}

#[tokio::test]
async fn bv_087_cycle() {
    for source in ["a = []\na.append(a)\nreturn a", "a = {}\na['a'] = {'b': [a]}\nreturn a"] {
        let (code, message) = failure(source).await;
        assert_eq!(code, ErrorCode::RuntimeError);
        assert!(message.contains("circular"), "{message}");
    }
    let source = "
a = {}
a['a'] = a
try: await mock.echo(a)
except McpToolError as error: return [error.code, 'circular' in str(error)]";
    assert_eq!(value(source).await, json!(["INVALID_ARGUMENTS", true]));
}

#[test]
fn bv_088_billion_laughs() {
    let sources = [
        "a = []\nfor i in range(40): a = [a, a]\nreturn a",
        "a = []\nfor i in range(40): a = [a, a]\nawait mock.echo(a=a)",
        "a = []\nfor i in range(40): a = [a, a]\nprint(a)",
    ];
    survive(&sources, 20_000, "MEMORY_LIMIT", BESIDE);
}

#[tokio::test]
async fn bv_089_depth() {
    let nested = |depth: usize| format!("v = 1\nfor i in range({depth}): v = [v]\n");
    let found = value(&format!("{}return v", nested(100))).await;
    assert!(found.is_array());
    assert_eq!(value(&format!("{}return (await mock.echo(v=v))['v'] == v", nested(100))).await, json!(true));
    for depth in [200, 3_000, 200_000] {
        let (code, message) = failure(&format!("{}return v", nested(depth))).await;
        assert_eq!(code, ErrorCode::RuntimeError);
        // The host refuses a value that the guest half could write.
        let said = message.contains("levels") || message.contains("recursion limit");
        assert!(said && message.len() < 1_000, "{message}");
        let source = format!(
            "{}try: await mock.echo(v=v)\nexcept McpToolError as error: return error.code",
            nested(depth)
        );
        assert_eq!(value(&source).await, json!("INVALID_ARGUMENTS"), "{depth}");
    }
    // A tool's text that is too deep for JSON stays text.
    let source = "return type(await mock.text(text='[' * 10_000 + ']' * 10_000)).__name__";
    assert_eq!(value(source).await, json!("str"));
}

/// Arguments and names of the wrong types, among them classes that lie about themselves.
#[tokio::test]
async fn bv_090_wrong_types() {
    let source = "
names = []
class Text(str):
    def encode(self, *a): raise ZeroDivisionError
    def __len__(self): return 0
class Number(int):
    def __repr__(self): return '}'
    __str__ = __repr__
for attempt in [
    lambda: call_mcp_tool(object(), {}), lambda: call_mcp_tool('mcp__mock__echo', {'a': object()}),
    lambda: mock[object()](), lambda: mock.echo(1), lambda: mock.echo({}, 1),
    lambda: mock.echo(a=Number(7), b=Text('text')), lambda: call_mcp_tool(Text('mcp__mock__echo'), {'a': 1}),
]:
    try: names.append(await attempt())
    except Exception as error: names.append(type(error).__name__)
names.append(call_tool(None, 3)['error']['code'])
return names";
    assert_eq!(
        value(source).await,
        json!([
            "TypeError", "McpToolError", "TypeError", "McpToolError", "TypeError",
            { "a": 7, "b": "text" }, { "a": 1 }, "INVALID_ARGUMENTS",
        ])
    );
}

/// Values that are large without taking memory.
#[test]
fn bv_091_large_without_memory() {
    let attacks = [
        ("return range(2 ** 32)", "RUNTIME_ERROR"),
        ("import array; return array.array('b', bytes(30 << 20))", "MEMORY_LIMIT"),
        ("await mock.echo(a=range(2 ** 32))", "RUNTIME_ERROR"),
        ("return [[0] * 10 ** 5] * 10 ** 5", "MEMORY_LIMIT"),
    ];
    survives_all(&attacks, 20_000, BESIDE);
}

#[tokio::test]
async fn bv_092_exotic_objects() {
    let source = "
import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, types, uuid
@dataclasses.dataclass
class Point: x: int; y: list
class Colour(enum.Enum): RED = 'red'
class Level(enum.IntEnum): ONE = 1
Pair = collections.namedtuple('Pair', 'a b')
return {
    'set': {1}, 'frozen': frozenset(['a']), 'tuple': (1, 2), 'pair': Pair(1, 2), 'range': range(3), 'deque': collections.deque([1]),
    'point': Point(1, [Point(2, [])]), 'enum': [Colour.RED, Level.ONE], 'decimal': decimal.Decimal('1.10'),
    'fraction': fractions.Fraction(1, 3), 'day': datetime.date(2026, 1, 2),
    'moment': datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), 'span': datetime.timedelta(minutes=1),
    'uuid': uuid.UUID(int=1), 'path': pathlib.PurePosixPath('/a/b'), 'names': types.SimpleNamespace(a=1),
    'counter': collections.Counter('aab'), 'chain': collections.ChainMap({'a': 1}, {'b': 2}), 'error': ValueError('v'),
    'keys': {1: 'int', None: 'none', Colour.RED: 'enum', datetime.date(2026, 1, 2): 'date'}, 'view': {'a': 1}.keys(),
}";
    assert_eq!(
        value(source).await,
        json!({
            "set": [1], "frozen": ["a"], "tuple": [1, 2], "pair": [1, 2], "range": [0, 1, 2], "deque": [1],
            "point": { "x": 1, "y": [{ "x": 2, "y": [] }] }, "enum": ["red", 1], "decimal": "1.10", "fraction": "1/3",
            "day": "2026-01-02", "moment": "2026-01-02T03:04:05+00:00", "span": 60.0,
            "uuid": "00000000-0000-0000-0000-000000000001", "path": "/a/b", "names": { "a": 1 },
            "counter": { "a": 2, "b": 1 }, "chain": { "a": 1, "b": 2 }, "error": { "name": "ValueError", "message": "v" },
            "keys": { "1": "int", "null": "none", "red": "enum", "2026-01-02": "date" }, "view": ["a"],
        })
    );
    for (expression, said) in [
        ("b'x'", "bytes"),
        ("bytearray(1)", "bytearray"),
        ("(x for x in [])", "generator"),
        ("lambda: 1", "lambda"),
        ("object()", "object"),
        ("int", "class int"),
        ("__import__('json')", "module json"),
        ("1j", "complex"),
        ("mock.echo()", "await"),
        ("open", "open"),
        ("{(1, 2): 3}", "tuple"),
        ("memoryview(b'')", "memoryview"),
    ] {
        let (code, message) = failure(&format!("return {{'at': [{expression}]}}")).await;
        assert_eq!(code, ErrorCode::RuntimeError, "{expression}");
        assert!(message.contains("value.at[0]") && message.contains(said), "{expression}: {message}");
    }
}

#[tokio::test]
async fn bv_093_conversions_that_raise() {
    let source = "
from collections.abc import Mapping
class Bad(Mapping):
    def __getitem__(self, key): raise ValueError('g')
    def __iter__(self): return iter(['a'])
    def __len__(self): return 1
return {'at': Bad()}";
    assert_eq!(failure(source).await, (ErrorCode::RuntimeError, "g".to_owned()));
    let source = "
class Bad(dict):
    def items(self): raise KeyError('k')
    def __iter__(self): raise KeyError('k')
try: await mock.echo(a=Bad(b=1))
except Exception as error: return type(error).__name__
return 'sent'";
    let found = value(source).await;
    assert_eq!(found, "KeyError");
}

/// A script may replace its own encoder: the host's envelope is made in Rust.
#[tokio::test]
async fn bv_094_encoder_hijack() {
    let source = "
import json
json.JSONEncoder.default = lambda self, value: {'hijacked': True}
json.dumps = lambda *a, **k: '{\"server\":\"other\"}'
return await mock.echo(a=1)";
    let (result, _) = attack(source, small()).await;
    assert!(result.value().is_some(), "{}", result.to_json());
    assert_eq!(result.tool_calls.len(), 1);
    assert_eq!((result.tool_calls[0].server.as_str(), result.tool_calls[0].tool.as_str()), ("mock", "echo"));
}

#[tokio::test]
async fn bv_095_odd_exceptions() {
    for thrown in [
        "None",
        "42",
        "int",
        "object()",
        "BaseException()",
        "type('E', (Exception,), {'__str__': lambda self: 1})",
        "type('E', (Exception,), {'__str__': lambda self: 1 / 0, '__repr__': lambda self: 1 / 0})",
        "type('', (Exception,), {})",
        "type('\\ud800', (Exception,), {})('\\ud800\\0')",
        "type('E', (Exception,), {'__init__': lambda self: 1 / 0})",
        "UnicodeDecodeError('a', b'', 0, 1, 'r')",
        "SyntaxError('m', ('f', -1, 10 ** 9, 'text', 0, 0))",
        "SyntaxError('m', (b'f', '1', None, 5))",
        "OSError(1, 2, 3, 4, 5)",
        "KeyError()",
    ] {
        let (code, message) = failure(&format!("raise {thrown}")).await;
        assert_eq!(code, ErrorCode::RuntimeError, "{thrown}: {message}");
    }
}

#[tokio::test]
async fn bv_096_causes_and_groups() {
    let (code, message) = failure("e = ValueError('loop')\ne.__cause__ = e\nraise e").await;
    assert_eq!((code, message.as_str()), (ErrorCode::RuntimeError, "loop"));
    let source = "raise ExceptionGroup('many', [ValueError(f'e{i}') for i in range(10 ** 5)])";
    let (code, message) = failure(source).await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.len() < 10_000 && message.starts_with("many"), "{message}");
    assert!(message.contains("e0; e1; e2; and 99997 more"), "{message}");
}

#[tokio::test]
async fn bv_097_no_value() {
    for source in
        ["return", "", "a = 1", "return None", "None", "pass", "# nothing", "def f(): pass", "import json"]
    {
        assert_eq!(value(source).await, Value::Null, "{source}");
    }
}

#[tokio::test]
async fn bv_098_odd_text_survives() {
    let odd = "\0 \u{2028} \u{2029} \u{feff} \u{1b}[31m \u{202e} \r";
    let source = r#"
s = "\0 \u2028 \u2029 \ufeff \u001b[31m \u202e \r"
print(s)
return [s, (await mock.echo(s=s))["s"] == s]"#;
    let (result, _) = attack(source, small()).await;
    assert_eq!(result.value(), Some(&json!([odd, true])), "{}", result.to_json());
    assert_eq!(result.printed(), odd);
    let (code, message) = failure("raise ValueError('\\0\\x1b[31m\\u202e')").await;
    assert_eq!((code, message.as_str()), (ErrorCode::RuntimeError, "\0\u{1b}[31m\u{202e}"));
}

#[tokio::test]
async fn bv_099_odd_objects_from_a_tool() {
    let keys: Vec<String> = (0..10_000).map(|index| format!("\"k{index}\":{index}")).collect();
    let text = format!("{{\"a\":1,\"\":2,\"a\":3,{}}}", keys.join(","));
    let script =
        Script::python("r = await mock.text(text=inputs)\nreturn [r['a'], r[''], len(r), list(r)[1]]");
    let (executor, _) = executor().await;
    let result = executor.run(script.input(json!(text))).await.unwrap();
    assert_eq!(result.value(), Some(&json!([3, 2, 10_002, ""])), "{}", result.to_json());
}

#[tokio::test]
async fn bv_100_shapes_of_results() {
    let source = "
found = [await mock.structured(value={'a': [1]}), await mock.wrapped(value=[2]), await mock.nothing(),
         await mock.texts(texts=['a', 'b']), await mock.text(text='plain'), await mock.structured(value=None)]
image = await mock.image()
found.append('iVBORw==' in str(image))
try: await mock.fail(message='no luck at all')
except McpToolError as error: found.append([error.code, str(error), error.server, error.tool])
found.append(call_tool('mock', 'fail', {'message': 'm'})['error']['code'])
return found";
    let python = value(source).await;
    // The same calls in TypeScript give the same results.
    let source = "
const found: any[] = [await mock.structured({value: {a: [1]}}), await mock.wrapped({value: [2]}), await mock.nothing(),
    await mock.texts({texts: ['a', 'b']}), await mock.text({text: 'plain'}), await mock.structured({value: null})];
found.push(JSON.stringify(await mock.image()).includes('iVBORw=='));
try { await mock.fail({message: 'no luck at all'}) } catch (e) { found.push([e.code, e.message, e.server, e.tool]) }
found.push(call_tool('mock', 'fail', {message: 'm'}).error.code);
return found";
    assert_eq!(python, crate::support::value(source).await);
    assert_eq!(python[0], json!({ "a": [1] }));
    assert_eq!(python[7], json!(["TOOL_ERROR", "no luck at all", "mock", "fail"]));
}
