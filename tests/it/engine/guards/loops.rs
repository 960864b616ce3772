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
    out_of_time(&scripts.each_ref().map(String::as_str));
}
