//! Lists and texts of a script that functions of the web API and of cx's guest half go through.

use super::*;

/// Finds the list that an object keeps under a symbol, and has another one of the greatest length.
const LISTS: &str = "const huge = [{ callback() {}, options: {} }]; huge.length = 2 ** 32 - 1;
    const hidden = (object, is) => Object.getOwnPropertySymbols(object).find((key) => is(object[key]));";

#[test]
fn v_755_lists_under_symbols_of_the_web_api() {
    let parameters =
        "const p = new URLSearchParams('a=b'); const list = hidden(p, Array.isArray); p[list] = huge;";
    let url = "const u = new URL('http://a/?a=b'), p = u.searchParams;
        p[hidden(p, Array.isArray)] = huge;";
    let bytes = "const bytes = new Uint8Array(2 ** 21); bytes[Symbol.iterator] = undefined;";
    let event = "const t = new EventTarget(); t.addEventListener('a', () => {});
        t[hidden(t, (value) => value?.listeners)].listeners.a = huge;";
    let scripts = [
        format!("{parameters} p.has('x')"),
        format!("{parameters} p.sort()"),
        format!("{parameters} p.keys()[Symbol.for('Deno.privateCustomInspect')](() => '')"),
        format!("{url} u.href = 'http://b/?c'"),
        format!("{event} t.dispatchEvent(new Event('a')); await new Promise(() => {{}})"),
        format!("{bytes} new URLSearchParams(bytes)"),
        "Array.prototype[5] = 'x'; discoverMCPTools(huge)".to_owned(),
    ]
    .map(|script| format!("{LISTS} {script}"));
    refused(&scripts);
}

/// As others that are too long. An infinite length counted as zero.
#[test]
fn lists_of_infinite_length_are_refused() {
    refused(&["Array.from({ length: Infinity })", "[].slice.call({ length: Infinity, 0: 1 }, 0, 1)"]);
}

/// What the guarded functions do with the lists that there are without an attack.
#[tokio::test]
async fn v_755_functions_on_lists_do_what_they_did() {
    let source = "
        const p = new URLSearchParams([['b', '1'], new Set(['a', '2'])]);
        p.append('a', '3'); p.sort(); p.delete('b');
        const u = new URL('http://a/?x=1'); u.searchParams.append('y', '2'); u.search = '?z=3';
        const t = new EventTarget(), heard = [];
        const once = () => heard.push('once');
        t.addEventListener('e', once, { once: true });
        t.addEventListener('e', (event) => heard.push(event.composedPath().length));
        t.dispatchEvent(new Event('e')); t.dispatchEvent(new Event('e'));
        performance.mark('m');
        return [`${p}`, p.has('a', '3'), u.searchParams.get('z'), u.searchParams.size, heard,
                performance.getEntriesByName('m').length, [...p.keys()]]";
    let expected = json!(["a=2&a=3", true, "3", 1, ["once", 1, 1], 1, ["a", "a"]]);
    assert_eq!(value(source).await, expected);
    let result =
        crate::support::run("console.log('%j', [1]); console.log('%j', new Uint8Array(2 ** 21))").await;
    let printed = result.printed();
    assert!(printed.starts_with("[1]\nUint8Array(2097152) ["), "{printed}");
}

/// `test` asks the `exec` of the script.
#[test]
fn v_754_marks_are_counted_whatever_a_script_has_replaced() {
    let marks = "RegExp.prototype.exec = () => null; const t = 'a' + '\\u0301\\u0327'.repeat(2 ** 16);";
    let scripts =
        ["t.normalize('NFD')", "t.localeCompare(t + 'x')", "new Intl.Collator().compare(t, t + 'x')"]
            .map(|script| format!("{marks} {script}"));
    refused_because("64 combining marks", &scripts);
}
