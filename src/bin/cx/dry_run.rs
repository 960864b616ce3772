//! What `cx run --dry-run` says on stderr about the calls of a run.

use cx::{ExecuteResult, Usage};

use crate::diagnostic::print_note;

/// Prints the calls that a dry run did not make. Without any it says which were made, so that a script that only reads
/// can be told from one that did nothing.
pub(crate) fn print_planned_calls(result: &ExecuteResult) {
    let Some(planned) = &result.planned_calls else { return };
    let all = result.usage.planned_calls_dropped.saturating_add(planned.len() as u64);
    let calls = match all {
        0 => return print_note(&format!("dry run: no call was left out: {}", made(&result.usage))),
        1 => "1 call was".to_owned(),
        all => format!("{all} calls were"),
    };
    let mut text = format!("dry run: {calls} not made:");
    for call in planned {
        let call = format!("{}.{} {}", call.server, call.tool, call.arguments).replace(['\n', '\t'], " ");
        text.push_str(&format!("\n  {call}"));
    }
    if result.usage.planned_calls_dropped > 0 {
        text.push_str(&format!("\n  and {} more", result.usage.planned_calls_dropped));
    }
    print_note(&text);
}

/// The calls of a dry run that left out none.
fn made(usage: &Usage) -> String {
    let sent = match usage.tool_calls {
        0 => None,
        1 => Some("1 was made, because it only reads".to_owned()),
        sent => Some(format!("{sent} were made, because they only read")),
    };
    let refused = match usage.tool_calls_refused {
        0 => None,
        1 => Some("1 was refused".to_owned()),
        refused => Some(format!("{refused} were refused")),
    };
    let made: Vec<String> = sent.into_iter().chain(refused).collect();
    if made.is_empty() { "the script called no tool".to_owned() } else { made.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_that_left_out_no_call_says_which_were_made() {
        let said = |sent: u64, refused: u64| {
            let mut usage = Usage::default();
            (usage.tool_calls, usage.tool_calls_refused) = (sent, refused);
            made(&usage)
        };
        assert_eq!(said(0, 0), "the script called no tool");
        assert_eq!(said(1, 0), "1 was made, because it only reads");
        assert_eq!(said(3, 0), "3 were made, because they only read");
        assert_eq!(said(0, 1), "1 was refused");
        assert_eq!(said(0, 2), "2 were refused");
        assert_eq!(said(3, 2), "3 were made, because they only read; 2 were refused");
    }
}
