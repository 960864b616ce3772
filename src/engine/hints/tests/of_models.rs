//! Slips that models make in any program.

use super::*;

#[test]
fn slips_of_typescript() {
    const GENERATOR: &str = "async function* pages() { yield 1; }\nfor (const page of pages()) {}";
    const SEARCH: &str = "const found = await searchTools(\"mail\");\nreturn await found[0]({});";
    for (message, line, source, expected) in [
        (
            "pages is not a function or its return value is not iterable",
            "for (const page of pages()) {}",
            GENERATOR,
            Some(slips::FOR_AWAIT),
        ),
        (
            "object is not iterable (cannot read property Symbol(Symbol.iterator))",
            "new Set(pages());",
            GENERATOR,
            Some(slips::FOR_AWAIT),
        ),
        (
            "all is not iterable",
            "[...all]",
            "async function *pages() {}\nconst all = pages();",
            Some(slips::FOR_AWAIT),
        ),
        // A field that is not there, and a generator that is read as it should be.
        ("r.orders is not iterable", "for (const order of r.orders) yield order;", GENERATOR, Some(ANSWER)),
        (
            "object is not iterable (cannot read property Symbol(Symbol.iterator))",
            "new Map(r)",
            GENERATOR,
            Some(ANSWER),
        ),
        ("pages is not async iterable", "for await (const page of pages) {}", GENERATOR, None),
        (
            "tools.crm.list(...) is not a function or its return value is not async iterable",
            "",
            "",
            Some(slips::FOR_OF),
        ),
        ("r.json is not a function", "", "", Some(ANSWER)),
        ("pages is not iterable", "", "const pages = 1;", Some(ANSWER)),
        (
            "Cannot read properties of undefined (reading 'base')",
            "return this.base + 1;",
            "",
            Some(slips::THIS),
        ),
        ("Cannot set properties of undefined (setting 'n')", "this.n = 1;", "", Some(slips::THIS)),
        ("Cannot read properties of undefined (reading 'base')", "return that.base;", "", None),
        (
            "Cannot read properties of undefined (reading 'id')",
            "rows.find((row) => row.id === this.id)",
            "",
            None,
        ),
        ("found[0] is not a function", "", SEARCH, Some(slips::FOUND)),
        ("found[0].execute is not a function", "", SEARCH, Some(slips::FOUND)),
        ("found[0].frobnicate is not a function", "", SEARCH, None),
        ("list[0] is not a function", "", "list[0]()", None),
        ("handlers[name] is not a function", "", SEARCH, None),
        ("Cannot mix BigInt and other types, use explicit conversions", "", "", Some(slips::BIG_INT)),
        ("Do not know how to serialize a BigInt", "", "", Some(slips::BIG_INT)),
        ("row.price.toFixed is not a function", "", "", Some(slips::NUMBER)),
        ("row.date.getTime is not a function", "", "", Some(slips::DATE)),
        (
            "row.date.getDay is not a function",
            "row.date.getDay();",
            "const row = tools.shop.get({});\nrow.date.getDay();",
            Some(AWAIT),
        ),
        (
            "row.date.getDay is not a function",
            "row.date.getDay();",
            "const all = tools.shop.all({});\nrow.date.getDay();",
            Some(slips::DATE),
        ),
    ] {
        let found = Failure { source, ..failure("TypeError", message, line) }.typescript();
        assert_eq!(found.as_deref(), expected, "{message}: {line}");
    }
    assert_eq!(typescript("Error", "row.date.getTime is not a function", ""), None);
    let message = "Cannot read properties of undefined (reading 'name')";
    let settled = "const [a] = await Promise.allSettled([call()]);\nreturn a.value.name;";
    for (has_failed, expected) in [(true, slips::SETTLED), (false, ANSWER)] {
        let facts = CallFacts { has_returned: true, has_failed, ..CallFacts::default() };
        let found =
            Failure { source: settled, facts, ..failure("TypeError", message, "return a.value.name;") };
        assert_eq!(found.typescript().as_deref(), Some(expected));
    }
}

#[test]
fn slips_of_python() {
    const CHARACTERS: &str = "rows = csv.DictReader(text)\n[row[\"a\"] for row in rows]";
    const LINES: &str = "rows = csv.DictReader(text.splitlines())\n[row[\"a\"] for row in rows]";
    for (name, message, line, source, expected) in [
        ("TypeError", "'async_generator' object is not iterable", "", "", Some(habits::ASYNC_FOR)),
        ("TypeError", "object of type 'async_generator' has no len()", "", "", Some(habits::ASYNC_FOR)),
        ("TypeError", "can't compare offset-naive and offset-aware datetimes", "", "", Some(habits::ZONES)),
        ("TypeError", "can't subtract offset-naive and offset-aware datetimes", "", "", Some(habits::ZONES)),
        (
            "ValueError",
            "Invalid format specifier ' \"x\"' for object of type 'str'",
            "f'{\"name\": \"{name}\"}'",
            "",
            Some(habits::BRACES),
        ),
        (
            "ValueError",
            "Unknown format code 'x' for object of type 'str'",
            "f\"{'name': x}\"",
            "",
            Some(habits::BRACES),
        ),
        ("ValueError", "Unknown format code 'd' for object of type 'str'", "f\"{name:d}\"", "", None),
        ("KeyError", "'\"name\"'", "'{\"name\": {}}'.format(x)", "", Some(habits::BRACES)),
        ("KeyError", "'a'", "'{a}'.format(x)", "", None),
        ("KeyError", "'a'", "{\"name\": '{a}'.format(x)}", "", None),
        (
            "ValueError",
            "Unknown format code 'f' for object of type 'str'",
            "{\"sum\": f\"{sum:.2f}\"}",
            "",
            None,
        ),
        (
            "ValueError",
            "Unknown format code 'd' for object of type 'str'",
            "[f'{n:d}', {\"self\": {'a': f\"{sum}\"}}, {'name': f'{name}'}]",
            "",
            None,
        ),
        (
            "ValueError",
            "Invalid format specifier ' \"x\"' for object of type 'str'",
            "f\"\"\"[{\"name\": \"{name}\"}]\"\"\"",
            "",
            Some(habits::BRACES),
        ),
        ("KeyError", "'a'", "row[\"a\"]", CHARACTERS, Some(habits::LINES)),
        ("KeyError", "'a'; the keys are 'b'", "row[\"a\"]", CHARACTERS, None),
        ("KeyError", "'a'", "row[\"a\"]", LINES, None),
        ("IndexError", "list index out of range", "row[1]", CHARACTERS, Some(habits::LINES)),
        ("IndexError", "list index out of range", "row[1]", "csv.reader(r[\"lines\"])", None),
        ("IndexError", "string index out of range", "name[1]", CHARACTERS, None),
        (
            "ValueError",
            "not enough values to unpack (expected 2, got 1)",
            "",
            CHARACTERS,
            Some(habits::LINES),
        ),
        ("TypeError", "'McpToolError' object is not subscriptable", "", "", Some(habits::FAILED_CALL)),
        (
            "TypeError",
            "'cx_guest.tools.Server' object does not support the asynchronous context manager protocol (missed \
             __aexit__ method)",
            "",
            "",
            Some(habits::SERVER),
        ),
        ("MemoryError", "MemoryError", "", "", Some(habits::MEMORY)),
        ("TypeError", "'_FoundTool' object is not callable", "", "", Some(habits::FOUND)),
        ("AttributeError", "'_FoundTool' object has no attribute 'call'", "", "", Some(habits::FOUND)),
        ("AttributeError", "'_FoundTool' object has no attribute 'name'", "", "", Some(habits::FOUND_FIELD)),
        (
            "UnboundLocalError",
            "cannot access local variable 'n' where it is not associated with a value",
            "n += 1",
            "n = 0\ndef count():\n    n += 1\n",
            Some(habits::SCOPE),
        ),
        (
            "UnboundLocalError",
            "cannot access local variable 'n' where it is not associated with a value",
            "n += 1",
            "def count(rows):\n    for row in rows:\n        n += 1\n    return n\n",
            None,
        ),
        (
            "UnboundLocalError",
            "cannot access local variable 'n' where it is not associated with a value",
            "n += 1",
            "def count(rows):\n    if not rows:\n        n = 0\n    n += 1\n",
            None,
        ),
        (
            "UnboundLocalError",
            "cannot access local variable 'n' where it is not associated with a value",
            "return n",
            "",
            None,
        ),
    ] {
        let found = Failure { source, facts: CallFacts::default(), ..failure(name, message, line) };
        assert_eq!(found.python(&|_| false).as_deref(), expected, "{message}: {line}");
    }
}
