//! Loops of calls that V8 does not interrupt each by itself.

use super::*;

#[test]
fn v_751_methods_of_large_typed_arrays_in_a_loop() {
    let calls = [
        "bytes.fill(0)",
        "bytes.includes(1)",
        "bytes.indexOf(1)",
        "bytes.lastIndexOf(1)",
        "bytes.reverse()",
        "bytes.copyWithin(0, 1)",
        "part.toHex()",
        "part.toBase64()",
        "part.join('')",
    ];
    let scripts = calls.map(|call| {
        format!("const bytes = new Uint8Array(4e7), part = bytes.subarray(0, 2e6); for (;;) {call}")
    });
    out_of_time(&scripts);
}

/// Each key is a text of 1 MB that V8's own function makes.
#[test]
fn v_751_one_call_with_many_entries() {
    let scripts = ["2 ** 20", "60_000"].map(|count| {
        format!(
            "const key = {{ toString: String.prototype.repeat.bind('ab', 2 ** 19) }};
             Object.fromEntries(Array({count}).fill([key, 1]))"
        )
    });
    out_of_time(&scripts);
}

/// deno_core searches each among all that were rejected.
#[test]
fn v_788_one_call_that_waits_for_many_rejected_promises() {
    let scripts = ["all", "allSettled", "any", "race"].map(|name| {
        format!(
            "const rejected = []; for (let i = 0; i < 2 ** 17; i++) rejected.push(Promise.reject(1));
             Promise.{name}(rejected.slice(-60_000)).catch(() => {{}})"
        )
    });
    out_of_time(&scripts);
}

#[test]
fn v_787_one_call_that_makes_numbers_of_many_texts() {
    let calls = [
        "new Float64Array(texts)",
        "new Uint8Array(objects)",
        "new (class extends Float32Array {})(objects)",
        "Float64Array.from(texts)",
        "new Float64Array((function* () { for (let i = 0; i < 2 ** 18; i++) yield text })())",
        "Float64Array.from((function* () { for (let i = 0; i < 2 ** 18; i++) yield text })())",
        "Float64Array.of(...texts.slice(-60_000))",
        "new Float64Array(2 ** 20).set(texts)",
        "new Float64Array(2 ** 20).set(objects)",
        "new Float64Array(2 ** 20).set({ length: 2 ** 20, __proto__: texts })",
    ];
    let scripts = calls.map(|call| {
        format!(
            "const text = '1'.repeat(2 ** 16) + 'a', texts = Array(2 ** 20).fill(text);
             const objects = Array(2 ** 20).fill(Object(text)); {call}"
        )
    });
    out_of_time(&scripts);
}

/// V8 makes a number of each text that it writes to a typed array, which may be behind a proxy.
#[test]
fn v_800_one_call_that_writes_many_texts_to_a_typed_array() {
    let calls = [
        "Object.assign(numbers, texts)",
        "Object.assign(numbers, {}, objects)",
        "Object.assign(new Proxy(numbers, {}), texts)",
        "Object.defineProperties(numbers, descriptors)",
        "Object.defineProperties(new Proxy(numbers, {}), descriptors)",
        "Array.from.call(Numbers, texts)",
        "Array.from.call(Numbers, texts, (text) => text)",
        "Array.of.call(Numbers, ...objects.slice(-60_000))",
    ];
    let scripts = calls.map(|call| {
        format!(
            "const text = '1'.repeat(2 ** 20) + 'a', texts = Array(2 ** 18).fill(text);
             const objects = Array(2 ** 18).fill(Object(text)), numbers = new Float64Array(2 ** 18);
             const one = {{ value: text, writable: true, enumerable: true, configurable: true }};
             const descriptors = Array(2 ** 18).fill(one), Numbers = function () {{ return numbers }}; {call}"
        )
    });
    out_of_time(&scripts);
}

#[test]
fn v_789_one_call_with_many_arguments_that_become_numbers() {
    let calls = ["Math.max", "Math.min", "Math.hypot", "String.fromCharCode", "String.fromCodePoint"];
    let scripts = calls.map(|function| {
        // Of shorter texts, a loop of JavaScript would be stopped in time without the steps.
        format!("const text = '0'.repeat(2 ** 24) + '65'; {function}(...Array(60_000).fill(text))")
    });
    out_of_time(&scripts);
}

/// V8 keeps 1 MB for each, which its own function would not stop to do.
#[test]
fn v_790_symbols_of_many_long_texts() {
    out_of_memory(&[
        "const text = '1'.repeat(2 ** 20); Array.from({ length: 2e4 }, (_, i) => text + i).map(Symbol.for)",
    ]);
}

/// What V8 makes of the same.
#[tokio::test]
async fn v_789_functions_of_many_numbers_are_those_of_v8() {
    let source = "
        const results = (f) => [[], ['2'], [1, 2], [-0, 0], [1, NaN], [1, { valueOf: () => 3 }, 2], [3, 4, 12], [undefined],
                                [Infinity, NaN], [1e-200, 1e-200, 1e-200], [1e308, 1e308, 1]]
            .map((args) => String(f(...args)));
        const late = [];
        for (const f of [Math.max, Math.hypot, String.fromCharCode, String.fromCodePoint])
            for (const wrong of [1n, Symbol()]) try { f(1, wrong) } catch (error) { late.push(error.name) }
        try { String.fromCodePoint(65, -1) } catch (error) { late.push(error.name) }
        const many = Array.from({ length: 100_000 }, (_, i) => i % 100);
        return [results(Math.max), results(Math.min), results(Math.hypot), Object.is(Math.max(-0, -0, -0), -0), late,
                [Math.max(...many), Math.min(...many), Math.hypot(...many), String.fromCharCode(...many).length],
                [String.fromCharCode(), String.fromCharCode('65', 66.9, 65536 + 67), String.fromCodePoint('97', 0x1f600)],
                [...Float64Array.of('1', { valueOf: () => 2 }, '3'.padStart(300, '0')), ...Uint8Array.of(300, 1)],
                class extends Int8Array {}.of({ valueOf: () => 7 }).constructor.name.length,
                [Math.max, Math.hypot, String.fromCharCode, Uint8Array.of].map((f) => [f.name, f.length, `${f}`])]";
    let native = |name: &str| format!("function {name}() {{ [native code] }}");
    let expected = json!([
        ["-Infinity", "2", "2", "0", "NaN", "3", "12", "NaN", "NaN", "1e-200", "1e+308"],
        ["Infinity", "2", "1", "0", "NaN", "1", "3", "NaN", "NaN", "1e-200", "1"],
        [
            "0",
            "2",
            "2.23606797749979",
            "0",
            "NaN",
            "3.741657386773941",
            "13",
            "NaN",
            "Infinity",
            "1.7320508075688772e-200",
            "1.4142135623730951e+308"
        ],
        true,
        [
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "RangeError"
        ],
        [99, 0, 18_120.430_458_463_175, 100_000],
        ["", "ABC", "a\u{1f600}"],
        [1, 2, 3, 44, 1],
        0,
        [
            ["max", 2, native("max")],
            ["hypot", 2, native("hypot")],
            ["fromCharCode", 1, native("fromCharCode")],
            ["of", 0, native("of")]
        ],
    ]);
    assert_eq!(value(source).await, expected);
}

/// What V8 makes of the same.
#[tokio::test]
async fn v_787_numbers_of_texts_are_those_of_v8() {
    let source = "
        const long = '1'.repeat(300), list = ['1', long, { valueOf: () => 2 }, , null, true, new Date(5), [7], '0x10'];
        const target = new Float64Array(9), late = [];
        target.set(list);
        target.subarray(8).set({ length: '1', 0: { valueOf: () => 8 } });
        for (const act of [() => target.set([1, long], 8), () => target.set(null), () => target.set({ length: 10 }),
                           () => target.set([Symbol()]), () => Uint8Array.prototype.set.call([], [1]), () => target.set([], -1),
                           () => new BigInt64Array([long, 1])])
            try { act(); late.push('none') } catch (error) { late.push(error.name) }
        target.set('ab'); target.set(5);
        const big = new BigInt64Array(1);
        big.set([{ valueOf: () => '12' }]);
        return [[...target].map(String), [...new Float64Array(list)].map(String), [...Float64Array.from(list)].map(String),
                [...Float64Array.from(list, (value) => value === long ? 3 : 4)], late, String(big[0]),
                Uint8Array.prototype.set.name, Uint8Array.prototype.set.length, [...new Uint8Array([{ valueOf: () => '7' }, '8'])]]";
    let expected = json!([
        ["NaN", "NaN", "2", "NaN", "0", "1", "5", "7", "8"],
        ["1", "1.1111111111111112e+299", "2", "NaN", "0", "1", "5", "7", "16"],
        ["1", "1.1111111111111112e+299", "2", "NaN", "0", "1", "5", "7", "16"],
        [4, 3, 4, 4, 4, 4, 4, 4, 4],
        ["RangeError", "TypeError", "RangeError", "TypeError", "TypeError", "RangeError", "TypeError"],
        "12",
        "set",
        1,
        [7, 8],
    ]);
    assert_eq!(value(source).await, expected);
}

/// What V8 makes of the same.
#[tokio::test]
async fn v_800_what_is_written_to_a_typed_array_is_what_v8_writes() {
    let source = "
        const read = [], late = [], numbers = new Float64Array(4), symbol = Symbol();
        const source = { get 1() { read.push(this === source); return '2' }, a: 'b', [symbol]: 3, 9: { valueOf() { read.push('9') } } };
        Object.defineProperty(source, 'hidden', { value: 1 });
        const assigned = Object.assign(numbers, ['5', , { valueOf: () => 7 }], source, null, undefined, 'x', 4);
        const traps = [], target = new Proxy({}, { set(object, key, value) { traps.push(key); return Reflect.set(object, key, value) } });
        const filled = Object.assign(target, { a: 1 }, new Proxy({ b: 2 }, {}), 'c');
        const defined = new Float64Array(2), one = { writable: true, enumerable: true, configurable: true };
        const same = Object.defineProperties(defined, { 0: { ...one, value: '6' }, name: { value: 'n' } });
        Object.defineProperties(new Proxy(defined, {}), Object.create({ 0: 0 }, { 1: { enumerable: true, value: { value: '8' } } }));
        const big = Object.assign(new BigInt64Array(2), ['1', true]);
        for (const act of [() => Object.assign(numbers, [Symbol()]), () => Object.assign(big, [1]), () => Object.assign(null, {}),
                           () => Object.defineProperties(defined, { 0: { value: 9 }, 1: 1 }),
                           () => Object.defineProperties(defined, { 5: { value: 1 } }),
                           () => Object.defineProperties(1, {}), () => Object.defineProperties(defined, null),
                           () => Object.assign(new Proxy({}, { set: () => false }), { a: 1 })])
            try { act(); late.push('none') } catch (error) { late.push(error.name) }
        class List extends Array {}
        const written = new Float64Array(70), Numbers = function () { return written };
        const list = List.from(Array(100).keys()), { of, from } = Array;
        for (const make of [() => Array.from.call(Numbers, Array(69).fill('2')), () => Array.of.call(Numbers, Object('3'))])
            try { make() } catch (error) { late.push(error.name) }
        return [[...numbers].map(String), assigned === numbers, numbers.a, numbers[symbol], read, traps, filled === target, filled,
                [...defined], same === defined, defined.name, [...big].map(String), late,
                [list instanceof List, list.length, List.of(...list).length, List.of(3) instanceof List, from([1]), of(2), Array.of(7)],
                [...written.subarray(0, 2), ...written.subarray(68)], [Object.assign, Object.defineProperties, Array.of].map((f) => [f.name, f.length])]";
    let expected = json!([
        ["NaN", "2", "7", "0"],
        true,
        "b",
        3,
        [true, "9"],
        ["a", "b", "0"],
        true,
        { "a": 1, "b": 2, "0": "c" },
        [6, 8],
        true,
        "n",
        ["1", "1"],
        [
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError",
            "TypeError"
        ],
        [true, 100, 100, true, [1], [2], [7]],
        [3, 2, 2, 0],
        [["assign", 2], ["defineProperties", 2], ["of", 0]],
    ]);
    assert_eq!(value(source).await, expected);
}

/// What V8 makes of the same, in its order.
#[tokio::test]
async fn v_787_sources_of_typed_arrays_are_read_in_the_order_of_v8() {
    let source = "
        const read = [], list = [{ valueOf() { list[1] = 9; list.length = 2; return 1 } }, 2, 3];
        const source = { get length() { read.push('length'); return 1 }, 0: 5 };
        const offset = { valueOf() { read.push('offset'); return 1 } };
        const target = new Float64Array(2);
        target.set(source, offset);
        for (const act of [() => target.set(source, -1), () => Uint8Array.prototype.set.call([], source)])
            try { act() } catch (error) { read.push(error.name) }
        const numbers = [...new Float64Array(list)];
        const iterate = Array.prototype[Symbol.iterator];
        function* texts() {
            yield '3'; read.push('yielded');
            yield { valueOf() { read.push('converted'); return 4 } }; read.push('end')
        }
        const given = texts();
        Array.prototype[Symbol.iterator] = null;
        const taken = new Float64Array(given);
        Array.prototype[Symbol.iterator] = iterate;
        return [read, [...target], numbers, list.length, [...taken]]";
    let read = ["offset", "length", "RangeError", "TypeError", "yielded", "end", "converted"];
    let expected = json!([read, [0, 5], [1, 2, 3], 2, [3, 4]]);
    assert_eq!(value(source).await, expected);
}

/// V8 goes through all of a text that begins like a date, or with brackets.
#[test]
fn v_786_dates_of_long_texts_in_a_loop() {
    let calls = [
        "Date.parse(s)",
        "new Date(s)",
        "new Date({ toString: () => s })",
        "new Date({ [Symbol.toPrimitive]: () => s })",
        "new (class extends Date {})(s)",
        "Reflect.construct(Date.prototype.constructor, [s], Object)",
        "many.map(Date.parse)",
    ];
    let scripts = calls
        .map(|call| format!("const s = '('.repeat(2 ** 24), many = Array(1e6).fill(s); for (;;) {call}"));
    out_of_time(&scripts);
}

/// What V8 makes of the same, except of the last text.
#[tokio::test]
async fn v_786_dates_are_those_of_v8() {
    let source = "
        class Day extends Date { day() { return this.getUTCDate() } }
        class Own { }
        const day = new Day('2020-02-03'), own = Reflect.construct(Date, [5], Own), hints = [], late = [];
        const number = { [Symbol.toPrimitive](hint) { hints.push(hint); return 7 } };
        for (const wrong of [Symbol(), { valueOf: () => ({}), toString: () => ({}) }, { [Symbol.toPrimitive]: () => [] },
                             { [Symbol.toPrimitive]: 5 }, 1n])
            try { new Date(wrong) } catch (error) { late.push(error.name) }
        const d = Object.getOwnPropertyDescriptors(Date);
        return [
            [new Date(5), new Date('2020-01-02'), new Date({ valueOf: () => 6 }), new Date({ toString: () => '2020-01-01' }),
             new Date(number), new Date(new Date(8)), new Date(true), new Date(null), new Date(2020, 1), new Date('0')]
                .map((date) => date.getTime()),
            [new Date(undefined), new Date('x'), new Date(NaN), new Date(new Date(NaN))].map((date) => `${date}`),
            hints, late, Date.parse('2020-01-01'), Date.parse(`${Date.parse()}`), Date.UTC(2020, 0),
            Math.abs(new Date() - Date.now()) < 1e5, typeof Date(0), Date() === `${new Date()}` || Date() === `${new Date()}`,
            [day.day(), day instanceof Day, day instanceof Date, day.constructor === Day, own instanceof Own,
             Object.prototype.toString.call(own), Date.prototype.getTime.call(own)],
            [Date.name, Date.length, Date.prototype.constructor === Date, new Date().constructor === Date, Date[Symbol.species],
             `${Date}`, `${Date.parse}`, Date.parse.length, Object.getPrototypeOf(Date) === Function.prototype],
            Object.keys(d), [d.prototype.writable, d.prototype.configurable, d.now.writable, d.now.enumerable],
            [structuredClone(day) instanceof Date, structuredClone(day).getTime() === day.getTime()],
            [Object.getOwnPropertyDescriptor(globalThis, 'Date').enumerable, new Date('('.repeat(999) + ')'.repeat(999)).getTime()],
            Date.parse('2020-01-01' + ' '.repeat(1e3)),
        ]";
    let first = json!([
        5,
        1_577_923_200_000_u64,
        6,
        1_577_836_800_000_u64,
        7,
        8,
        1,
        0,
        1_580_515_200_000_u64,
        946_684_800_000_u64
    ]);
    let native = |name: &str| format!("function {name}() {{ [native code] }}");
    let expected = json!([
        first,
        ["Invalid Date", "Invalid Date", "Invalid Date", "Invalid Date"],
        ["default"],
        ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError"],
        1_577_836_800_000_u64,
        null,
        1_577_836_800_000_u64,
        true,
        "string",
        true,
        [3, true, true, true, true, "[object Date]", 5],
        ["Date", 7, true, true, null, native("Date"), native("parse"), 1, true],
        ["length", "name", "prototype", "now", "parse", "UTC"],
        [false, false, true, false],
        [true, true],
        [false, null],
        null,
    ]);
    assert_eq!(value(source).await, expected);
}
