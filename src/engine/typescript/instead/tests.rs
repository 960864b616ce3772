use super::{of_global, of_import};

#[test]
fn packages_are_known_by_every_way_to_name_them() {
    for (specifier, expected) in [
        ("lodash", "Object.groupBy"),
        ("lodash/fp", "Object.groupBy"),
        ("npm:lodash@4.17.21", "Object.groupBy"),
        ("node:timers/promises", "setTimeout"),
        ("node:fs", "node:fs/promises"),
        ("dayjs", "Temporal"),
        ("@modelcontextprotocol/sdk/client/index.js", "connected already"),
        ("./helper.ts", "one file"),
        ("/etc/a.js", "one file"),
        ("https://deno.land/std/csv/mod.ts", "mcp:<server>"),
        ("", "mcp:<server>"),
    ] {
        let hint = of_import(specifier);
        assert!(hint.contains(expected), "{specifier}: {hint}");
    }
}

#[test]
fn globals_of_other_runtimes_have_a_replacement() {
    for (name, expected) in [
        ("ReadableStream", "async generator"),
        ("Blob", "Uint8Array"),
        ("CompressionStream", "gzip"),
        ("URLPattern", "pathname"),
        ("process", "`return` ends the script"),
        ("global", "globalThis"),
        ("module", "export default"),
        ("fetch", "--allow-net"),
        ("location", "or declare the variable"),
        ("prompt", "or declare the variable"),
        ("sleep", "setTimeout(done, 100)"),
    ] {
        let hint = of_global(name).unwrap();
        assert!(hint.contains(expected), "{name}: {hint}");
    }
    assert_eq!(of_global("frobnicate"), None);
}
