//! Removes duplicates: type checkers report much of what cx has found too, in other words.

use std::ops::Range;

use cx::{Checked, Finding, FindingCode, Severity, ToolErrorCode};

use crate::type_problem::TypeProblem;

/// Codes of `tsc` and `pyright` about the arguments of a call. The reported location within the call varies.
const ABOUT_ARGUMENTS: [&str; 12] = [
    "TS2322",
    "TS2345",
    "TS2353",
    "TS2554",
    "TS2555",
    "TS2561",
    "TS2739",
    "TS2740",
    "TS2741",
    "TS2769",
    "reportArgumentType",
    "reportCallIssue",
];

/// The code of `pyright` for a call that is not awaited. `tsc` has none.
const NOT_AWAITED: &str = "reportUnusedCoroutine";

/// The code of `pyright` for a module that is not there.
const NO_MODULE: &str = "reportMissingImports";

/// Removes the problems that findings already report. Those findings become errors, like all problems of a type
/// checker.
pub(super) fn remove_repeated(problems: &mut Vec<TypeProblem>, checked: &mut Checked, source: &str) {
    let spans: Vec<Option<Range<usize>>> =
        checked.findings.iter().map(|finding| span(finding, source)).collect();
    problems.retain(|problem| {
        let Some(at) = offset(source, problem.line, problem.column) else { return true };
        let mut is_repeated = false;
        for (finding, span) in checked.findings.iter_mut().zip(&spans) {
            let Some(span) = span else { continue };
            if is_same(finding.code, span, problem, at, &checked.calls) {
                finding.severity = Severity::Error;
                is_repeated = true;
            }
        }
        !is_repeated
    });
}

/// Whether a finding at `span` and a problem at `at` are one mistake.
fn is_same(
    code: FindingCode,
    span: &Range<usize>,
    problem: &TypeProblem,
    at: usize,
    calls: &[Range<usize>],
) -> bool {
    match code {
        FindingCode::Call(ToolErrorCode::InvalidArguments) => {
            let call = innermost(calls, span.start);
            ABOUT_ARGUMENTS.contains(&&*problem.code) && call.is_some() && call == innermost(calls, at)
        }
        FindingCode::Call(_) => span.contains(&at),
        FindingCode::NotAwaited => problem.code == NOT_AWAITED && span.start == at,
        FindingCode::ModuleUnavailable => problem.code == NO_MODULE && span.contains(&at),
        _ => false,
    }
}

/// The smallest call around a byte.
fn innermost(calls: &[Range<usize>], at: usize) -> Option<&Range<usize>> {
    calls.iter().filter(|call| call.contains(&at)).min_by_key(|call| call.len())
}

fn span(finding: &Finding, source: &str) -> Option<Range<usize>> {
    let start = offset(source, finding.line?, finding.column?)?;
    Some(start..offset(source, finding.end_line?, finding.end_column?)?)
}

/// The byte at a line and a column, both from 1, the column in UTF-16 units.
fn offset(source: &str, line: u32, column: u32) -> Option<usize> {
    let before = usize::try_from(line).ok()?.checked_sub(1)?;
    let mut lines = source.split_inclusive('\n');
    let line_start: usize = lines.by_ref().take(before).map(str::len).sum();
    let line = lines.next().unwrap_or_default();
    let mut units = usize::try_from(column).ok()?.checked_sub(1)?;
    for (at, character) in line.char_indices() {
        if units == 0 {
            return Some(line_start + at);
        }
        units = units.checked_sub(character.len_utf16())?;
    }
    (units == 0).then_some(line_start + line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_counts_utf_16_units() {
        let source = "a\r\nö😀b\n";
        for (line, column, expected) in [
            (1, 1, Some(0)),
            (2, 1, Some(3)),
            (2, 2, Some(5)),
            (2, 4, Some(9)),
            (2, 6, Some(11)),
            (9, 9, None),
        ] {
            assert_eq!(offset(source, line, column), expected, "{line}:{column}");
        }
    }

    #[test]
    fn a_module_that_is_not_there_is_reported_once() {
        let problem =
            |code: &str| TypeProblem { code: code.to_owned(), message: String::new(), line: 1, column: 8 };
        let is_same =
            |code: &str, at| is_same(FindingCode::ModuleUnavailable, &(7..15), &problem(code), at, &[]);
        assert!(is_same("reportMissingImports", 7));
        assert!(!is_same("reportMissingImports", 20));
        assert!(!is_same("reportCallIssue", 7));
    }

    #[test]
    fn the_call_that_is_meant_is_the_innermost() {
        let calls = [0..50, 10..20, 30..40];
        assert_eq!(innermost(&calls, 12), Some(&calls[1]));
        assert_eq!(innermost(&calls, 25), Some(&calls[0]));
        assert_eq!(innermost(&calls, 60), None);
    }
}
