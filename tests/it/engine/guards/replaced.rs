//! What a script can replace, or answers differently the second time that it is asked.

use super::*;

/// V8 makes a number of each text that it copies to the typed array which the species of an array makes.
#[test]
fn v_844_one_call_that_copies_many_texts_to_what_a_species_makes() {
    let own = "texts.constructor = short.constructor = { [Symbol.species]: Numbers };";
    let all = "Object.defineProperty(Array, Symbol.species, { get: () => Numbers });";
    let calls = [
        format!("{own} texts.slice()"),
        format!("{own} texts.splice(0)"),
        format!("{own} texts.concat()"),
        format!("{own} short.concat(texts)"),
        format!("{own} texts.flat()"),
        format!("{own} texts.flatMap((text) => text)"),
        format!("{own} texts.map((text) => text)"),
        format!("{own} texts.filter(() => true)"),
        format!("{all} texts.slice()"),
        format!("{all} texts.concat()"),
        "Array.prototype.constructor = { [Symbol.species]: Numbers }; texts.slice()".to_owned(),
        "Object.defineProperty(texts, 'constructor', { get: () => n++ ? { [Symbol.species]: Numbers } : Array });
         texts.slice()"
            .to_owned(),
        format!("texts.slice({{ valueOf() {{ {own} return 0 }} }})"),
        format!("texts.splice(0, {{ valueOf() {{ {own} return texts.length }} }})"),
        "const more = () => { for (const one of texts) short.push(one); return Numbers };
         short.constructor = { get [Symbol.species]() { return more() } }; short.concat()"
            .to_owned(),
    ];
    let scripts = calls.map(|call| {
        format!(
            "const text = '1'.repeat(2 ** 20) + 'a', texts = Array(2 ** 18).fill(text), short = []; let n = 0;
             const numbers = new Float64Array(2 ** 18), Numbers = function () {{ return numbers }}; {call}"
        )
    });
    out_of_time(&scripts);
}

/// What V8 makes of the same.
#[tokio::test]
async fn v_844_what_a_species_makes_is_what_v8_makes() {
    let source = "
        class List extends Array {}
        const list = List.from(Array(100).keys()), late = [];
        const slice = list.slice(97), joined = list.concat([1, , 2], 'x'), removed = list.splice(0, 98);
        const none = Array(100).fill(1), odd = Array(100).fill(1);
        none.constructor = undefined;
        odd.constructor = 5;
        const long = List.from(Array(2_000).keys()).concat(Array(2_000));
        const numbers = new Float64Array(102), texts = Array(100).fill('7');
        texts.constructor = { [Symbol.species]: function () { return numbers } };
        for (const act of [() => odd.slice(), () => odd.concat(), () => texts.slice(), () => texts.concat('8', '9')])
            try { act(); late.push('none') } catch (error) { late.push(error.name) }
        return [[slice instanceof List, [...slice]],
                [joined instanceof List, joined.length, 101 in joined, [...joined.slice(-2)]],
                [removed instanceof List, removed.length, removed[97], [...list]],
                [long instanceof List, long.length, 1_999 in long, 2_000 in long],
                [none.slice(98), none.concat(2).length, Array(100).fill(3).slice(99)], late, [...numbers.slice(98)],
                ['slice', 'splice', 'concat'].map((name) => [Array.prototype[name].name, Array.prototype[name].length])]";
    let expected = json!([
        [true, [97, 98, 99]],
        [true, 104, false, [2, "x"]],
        [true, 98, 97, [98, 99]],
        [true, 4_000, true, false],
        [[1, 1], 101, [3]],
        ["TypeError", "TypeError", "TypeError", "TypeError"],
        [7, 7, 8, 9],
        [["slice", 2], ["splice", 2], ["concat", 1]],
    ]);
    assert_eq!(value(source).await, expected);
}

/// A guard asks nothing that a script can replace, and nothing twice.
#[test]
fn v_845_guards_do_not_believe_the_script() {
    let numbers =
        "const text = '1'.repeat(2 ** 20) + 'a', texts = Array(2 ** 18).fill(text), { from, of } = Array;
         const numbers = new Float64Array(2 ** 18), Numbers = function () { return numbers };";
    let calls = [
        "globalThis.Array = Numbers; from.call(Numbers, texts)",
        "globalThis.Array = Numbers; of.call(Numbers, ...texts.slice(-60_000))",
        "let n = 0; from.call(Numbers, { get [Symbol.iterator]() { return n++ ? () => texts.values() : 5 } })",
        "Number.prototype[Symbol.iterator] = () => texts.values(); from.call(Numbers, 5)",
        "Number.prototype[Symbol.iterator] = () => texts.values(); Float64Array.from(5)",
        "Object.setPrototypeOf(Number.prototype, texts); numbers.set(5)",
        "const list = Array(2 ** 18).fill(1); numbers.set(list, { valueOf() { list.fill(text); return 0 } })",
        "const key = { toString: String.prototype.repeat.bind('ab', 2 ** 19) };
         const more = () => { for (const _ of texts) few.push([key, 1]); return 'a' };
         const few = [{ get 0() { return more() } }]; Object.fromEntries(few)",
        "const few = []; from.call(function () { for (const one of texts) few.push(one); return numbers }, few)",
    ];
    out_of_time(&calls.map(|call| format!("{numbers} {call}")));
    let text =
        "const t = 'x'.repeat(2 ** 25), p = 'x'.repeat(2 ** 14), toString = () => p + 'y' + p; let n = 0;";
    let searches = [
        "globalThis.Boolean = () => true; t.includes({ [Symbol.match]: 0, toString })",
        "t.includes({ get [Symbol.match]() { return n++ < 1 }, toString })",
        "t.split({ get [Symbol.split]() { return n++ < 1 ? () => [] : undefined }, toString })",
        "t.replace({ get [Symbol.replace]() { return n++ < 1 ? () => '' : undefined }, toString }, '')",
        "t.replaceAll({ get [Symbol.replace]() { return n++ < 1 ? () => '' : undefined }, toString }, '')",
    ];
    out_of_time(&searches.map(|call| format!("{text} try {{ {call} }} catch {{}} for (;;);")));
    // A text is a list of characters, each of which is a step.
    refused(&["String.raw({ raw: 'x'.repeat(2 ** 28) })"]);
}

/// What V8 makes of the same: patterns with their own methods, and texts as lists.
#[tokio::test]
async fn v_845_what_is_looked_at_once_is_what_v8_looks_at() {
    let source = "
        const own = { [Symbol.replace](...args) { return ['replace', this === own, ...args] },
                      [Symbol.split](...args) { return ['split', ...args] },
                      [Symbol.search](...args) { return args.length }, [Symbol.match]: () => null, flags: 'g' };
        const late = [];
        for (const act of [() => 'a'.replaceAll(/a/, 'b'), () => 'a'.matchAll(/a/),
                           () => 'a'.replace({ [Symbol.replace]: 5 }),
                           () => 'a'.replaceAll({ ...own, flags: null }, 'b'), () => String.raw({}), () => String.raw()])
            try { act(); late.push('none') } catch (error) { late.push(error.name) }
        let message;
        try { Object.fromEntries(5) } catch (error) { message = error.message }
        return ['abc'.replace(own, 'x'), 'abc'.replaceAll(own), 'abc'.split(own, 2), 'abc'.search(own),
                'abc'.match(own), 'abab'.replaceAll(/a/g, 'x'), [...'abab'.matchAll(/a/g)].length,
                'a1b'.split(/\\d/), late, message,
                [String.raw({ raw: 'abc' }, 1, 2), String.raw({ raw: 5 }), String.raw`a${1}\\n`]]";
    let expected = json!([
        ["replace", true, "abc", "x"],
        ["replace", true, "abc", null],
        ["split", "abc", 2],
        1,
        null,
        "xbxb",
        2,
        ["a", "b"],
        ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError"],
        "number 5 is not iterable (cannot read property Symbol(Symbol.iterator))",
        ["a1b2c", "", "a1\\n"],
    ]);
    assert_eq!(value(source).await, expected);
}

/// What V8 makes of the same.
#[tokio::test]
async fn v_845_what_is_no_object_is_read_as_v8_reads_it() {
    let source = "
        Number.prototype[Symbol.iterator] = function* () { yield +this; yield '2' };
        const iterated = [[...Uint8Array.from(7)], Array.from(7), class extends Array {}.from(8).length];
        delete Number.prototype[Symbol.iterator];
        const target = new Uint8Array(3), late = [];
        target.set('12', 1); target.set(true); target.set(5n);
        for (const act of [() => Object.fromEntries(5), () => target.set(null), () => Uint8Array.from(null),
                           () => 'abc'.includes(/b/), () => 'abc'.includes({ [Symbol.match]: true })])
            try { act(); late.push('none') } catch (error) { late.push(error.name) }
        late.push(await Promise.all(5).catch((error) => error.name));
        return [iterated, [...Uint8Array.from(5)], Array.from(5), [...target], late,
                'abc'.includes({ [Symbol.match]: '', toString: () => 'b' })]";
    let late = ["TypeError"; 6];
    assert_eq!(value(source).await, json!([[[7, 2], [7, "2"], 2], [], [], [0, 1, 2], late, true]));
}
