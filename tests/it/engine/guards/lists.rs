//! Lists and texts of a script that functions of the web API and of cx's guest half go through.

use super::*;

/// `test` asks the `exec` of the script.
#[test]
fn v_754_marks_are_counted_whatever_a_script_has_replaced() {
    let marks = "RegExp.prototype.exec = () => null; const t = 'a' + '\\u0301\\u0327'.repeat(2 ** 16);";
    let scripts =
        ["t.normalize('NFD')", "t.localeCompare(t + 'x')", "new Intl.Collator().compare(t, t + 'x')"]
            .map(|script| format!("{marks} {script}"));
    refused_because("64 combining marks", &scripts.each_ref().map(String::as_str));
}
