//! Notes, warnings and errors for the user, on stderr. Errors look as those of compilers: message,
//! location, caret, hint.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use cx::text::{one_line, preview};
use cx::{
    CallProgress, CompileProgress, ConfigWarning, DamagedPins, ErrorCode, ExecuteResult, Executor, Finding,
    Progress, ReturnedShape, ScriptError, Severity,
};
use serde_json::{Value, json};

use crate::exit::ExitStatus;
use crate::logging;
use crate::options;
use crate::output::{self, OutputError};
use crate::terminal;
use crate::text::{printable, shown_path};
use crate::type_problem::TypeProblem;
use crate::writer::{self, Stream, Writer};

/// Maximum number of tools for which [`print_script_error`] prints what they returned.
const MAX_RETURNED: usize = 10;

/// Maximum characters of the message of a call's progress.
const MAX_PROGRESS: usize = 200;

/// Prints why a script failed, and what its tools had returned. `name` is the script's name in
/// locations.
pub(crate) fn print_script_error(error: &ScriptError, returned: &[ReturnedShape], name: &str) {
    let reason = match error.code {
        ErrorCode::CheckFailed => Some("it cannot succeed"),
        ErrorCode::SyntaxError | ErrorCode::TranspileError => Some("it cannot be compiled"),
        _ => None,
    };
    if let Some(reason) = reason.filter(|_| !error.problems.is_empty()) {
        print_findings(&error.problems, name);
        return print_note(&format!("error[{}]: the script was not run, because {reason}", error.code));
    }
    let title = match &error.name {
        // An error without a message has its name as the message.
        Some(kind) if error.tool_code.is_none() && *kind != error.message => {
            format!("{kind}: {}", error.message)
        }
        _ => match error.tool_code {
            Some(code) if code.as_str() != error.code.as_str() => format!("{code}: {}", error.message),
            // A limit has one code for both, which is that of the error.
            _ => error.message.clone(),
        },
    };
    let title = printable(&title);
    let source_line = error.source_line.as_deref().map(printable_source);
    let mut group = Group::with_title(Level::ERROR.primary_title(title).id(error.code.as_str()));
    if let (Some(text), Some(line)) = (source_line, error.line) {
        let span = column_span(&text, error.column.unwrap_or(1));
        group = group.element(marked(text, name, line, span));
    } else if let Some(line) = error.line {
        group = group.element(origin(name, line, error.column));
    }
    if let Some(stack) = error.stack_beyond_message() {
        group = group.element(Level::NOTE.message(format!("stack\n{}", printable(&stack))));
    }
    let option = options::of_limit(error.code).map(|option| format!("the limit is set with `{option}`"));
    for help in error.hint.iter().chain(&option) {
        group = group.element(Level::HELP.message(printable(help)));
    }
    for ReturnedShape { server, tool, shape, .. } in returned.iter().take(MAX_RETURNED) {
        group = group.element(Level::NOTE.message(printable(&format!("{server}.{tool} returned {shape}"))));
    }
    print_groups(&[group]);
    // Findings of the check before the run about other parts of the script.
    print_findings(&error.problems, name);
}

/// Prints what a check has found, each with its location.
pub(crate) fn print_findings(findings: &[Finding], name: &str) {
    for finding in findings {
        print_groups(&[finding_group(finding, name)]);
    }
}

/// Prints a problem that a type checker has found in a script.
pub(crate) fn print_type_problem(problem: &TypeProblem, source: &str, name: &str) {
    let title = Level::ERROR.primary_title(printable(&problem.message)).id(problem.code.as_str());
    let mut group = Group::with_title(title);
    let number = usize::try_from(problem.line).unwrap_or(1);
    if let Some(text) = source.lines().nth(number.saturating_sub(1)).map(printable_source) {
        let span = column_span(&text, problem.column);
        group = group.element(marked(text, name, problem.line, span));
    }
    print_groups(&[group]);
}

fn finding_group<'a>(finding: &'a Finding, name: &str) -> Group<'a> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        _ => Level::WARNING,
    };
    let title = level.primary_title(printable(&finding.message)).id(finding.code.as_str());
    let mut group = Group::with_title(title);
    if let (Some(text), Some(line)) = (finding.source_line.as_deref().map(printable_source), finding.line) {
        let start = column_span(&text, finding.column.unwrap_or(1));
        let end = match finding.end_column {
            Some(column) if finding.end_line == finding.line => column_span(&text, column).start,
            Some(_) => text.len(),
            None => start.end,
        };
        let span = start.start..end.max(start.end);
        group = group.element(marked(text, name, line, span));
    } else if let Some(line) = finding.line {
        group = group.element(origin(name, line, finding.column));
    }
    if let Some(hint) = &finding.hint {
        group = group.element(Level::HELP.message(printable(hint)));
    }
    group
}

/// A line of a script, as [`printable_source`] makes it, with the part in `span` marked.
fn marked(text: String, name: &str, line: u32, span: Range<usize>) -> Snippet<'static, Annotation<'static>> {
    Snippet::source(text)
        .path(printable(name))
        .line_start(usize::try_from(line).unwrap_or(usize::MAX))
        .annotation(AnnotationKind::Primary.span(span))
}

/// A location whose line is not shown: it is the empty one at the end of a script, or too long.
fn origin(name: &str, line: u32, column: Option<u32>) -> Origin<'static> {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Origin::path(printable(name)).line(number(line)).char_column(number(column.unwrap_or(1)))
}

fn print_groups(groups: &[Group<'_>]) {
    let renderer = if terminal::has_color(Stream::Stderr) { Renderer::styled() } else { Renderer::plain() };
    let mut renderer = renderer.decor_style(DecorStyle::Ascii);
    if let Some(width) = terminal::width(Stream::Stderr) {
        renderer = renderer.term_width(width);
    }
    print_line(&with_margin(&renderer.render(groups)));
}

/// Moves a location and what follows it to where they are beside a source line: the renderer's margin is as wide as the
/// numbers of the lines that it shows, and there may be none.
fn with_margin(rendered: &str) -> String {
    let mut text = String::with_capacity(rendered.len());
    let mut is_after = false;
    for line in rendered.split_inclusive('\n') {
        // Colors come before the arrow.
        is_after |= line.split_once("--> ").is_some_and(|(before, _)| {
            before.is_empty() || before.starts_with('\u{1b}') && !before.contains(' ')
        });
        if is_after {
            text.push(' ');
        }
        text.push_str(line);
    }
    text
}

/// Prints a warning.
pub(crate) fn print_warning(text: &str) {
    print_note(&format!("warning: {text}"));
}

/// Prints a note. Its lines are not mixed with those of other threads.
pub(crate) fn print_note(text: &str) {
    print_line(&printable(text));
}

/// Prints the usage of the command, which is complete and may have colors.
pub(crate) fn print_usage(text: &str) {
    // A closed stderr cannot be reported.
    let _ = writer::write(Stream::Stderr, text);
}

fn print_line(text: &str) {
    // A closed stderr cannot be reported.
    let _ = writer::write(Stream::Stderr, &logging::note_line(text));
}

/// Prints a call's progress, unless the output is paused or too much of it waits: the next report replaces it anyway.
pub(crate) fn print_progress(writer: &Writer, call: &CallProgress) {
    print_amount(writer, &format!("{}.{}", call.server, call.tool), &call.progress);
}

/// As [`print_progress`], for the script's own progress.
pub(crate) fn print_report(writer: &Writer, progress: &Progress) {
    print_amount(writer, "progress", progress);
}

fn print_amount(writer: &Writer, of: &str, progress: &Progress) {
    writer.push_or_drop(Stream::Stderr, &format!("{}\n", amount_line(of, progress)));
}

/// Progress on one line. The message, and the names of servers, are untrusted: lines of their own could look like those
/// of cx.
fn amount_line(of: &str, progress: &Progress) -> String {
    let Progress { progress, total, message, .. } = progress;
    let mut text = format!("{of}: {}", short_number(*progress));
    if let Some(total) = total {
        text.push_str(&format!(" of {}", short_number(*total)));
    }
    if let Some(message) = message {
        text.push_str(&format!(", {}", preview(message, MAX_PROGRESS)));
    }
    printable(&text.replace(['\r', '\n', '\t'], " "))
}

/// A number without hundreds of zeros.
fn short_number(number: f64) -> String {
    let is_short = number == 0.0 || (1e-6..1e15).contains(&number.abs());
    if is_short { number.to_string() } else { format!("{number:e}") }
}

/// Warns that a result contains only the beginning of the script's output.
pub(crate) fn print_output_bound(result: &ExecuteResult) {
    let dropped = result.usage.output_bytes_dropped;
    if dropped > 0 {
        print_warning(&format!(
            "{dropped} bytes of output are not in the result, beyond `limits.maxOutputBytes`; without --json \
             everything is printed"
        ));
    }
}

/// Prints the resources that a run used. `is_streamed` says that all of its output was shown, and not only the part
/// that is kept.
pub(crate) fn print_stats(result: &ExecuteResult, is_streamed: bool) {
    let usage = &result.usage;
    let value_bytes = result.value_json().map_or(0, |value| value.text().len());
    let streamed = if is_streamed { usage.output_bytes_dropped } else { 0 };
    let shown = (value_bytes + result.printed().len()) as u64 + streamed;
    let fuel = usage.fuel.map(|fuel| format!("; {fuel} units of fuel")).unwrap_or_default();
    let calls = match usage.tool_calls {
        1 => "1 tool call".to_owned(),
        calls => format!("{calls} tool calls"),
    };
    let refused = match usage.tool_calls_refused {
        0 => String::new(),
        refused => format!(" ({refused} more were refused)"),
    };
    print_note(&format!(
        "{calls}{refused} brought {} bytes; {shown} bytes came out, {} stayed out of the context; \
         {:.1?} ({:.1?} CPU){fuel}",
        usage.tool_result_bytes,
        usage.tool_result_bytes.saturating_sub(shown),
        usage.wall_time,
        usage.cpu_time,
    ));
}

/// Explains why a Python script waits for a compiler, if stderr is a terminal. Always warns if the machine code cannot
/// be stored, because every run then unpacks or compiles it again.
pub(crate) fn print_compile_progress(progress: &CompileProgress) {
    let is_terminal = io::stderr().is_terminal();
    match progress {
        CompileProgress::NotKept(reason) => {
            print_warning(&format!("Python is not kept, and made ready again for each run: {reason}"));
        }
        CompileProgress::Started if is_terminal => print_note("compiling Python for this machine, once"),
        CompileProgress::Waiting if is_terminal => {
            print_note("waiting for another cx that makes Python ready");
        }
        CompileProgress::Done(took) if is_terminal => {
            print_note(&format!("compiled Python in {:.1} s; it is kept for later runs", took.as_secs_f64()));
        }
        _ => {}
    }
}

/// Prints the warnings of the configuration, each with its hint.
pub(crate) fn print_warnings(warnings: &[ConfigWarning]) {
    for warning in warnings {
        let hint = warning.hint.as_deref().map(|hint| format!("\n  help: {hint}")).unwrap_or_default();
        print_note(&format!("warning[{}]: {warning}{hint}", warning.code.as_str()));
    }
}

/// Warns of patterns in rules that match no known tool.
pub(crate) fn print_unmatched(executor: &Executor) {
    for pattern in executor.unmatched_patterns() {
        print_warning(&pattern.to_string());
    }
}

/// A mistake in the arguments, or in something that they name.
#[derive(Debug)]
pub(crate) struct InvalidArguments(anyhow::Error);

/// Marks an error as a mistake of the arguments, for the code of its JSON form.
pub(crate) fn invalid(error: anyhow::Error) -> anyhow::Error {
    InvalidArguments(error).into()
}

/// All causes are part of the message, so there is no source.
impl std::error::Error for InvalidArguments {}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&message(&self.0))
    }
}

/// A failure after a command has printed its output.
#[derive(Debug)]
struct AfterOutput(anyhow::Error);

/// Marks an error as one that is reported on stderr, also with `--json`: stdout has the one object already.
pub(crate) fn after_output(error: anyhow::Error) -> anyhow::Error {
    AfterOutput(error).into()
}

/// All causes are part of the message, so there is no source.
impl std::error::Error for AfterOutput {}

impl fmt::Display for AfterOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&message(&self.0))
    }
}

/// Reports why a command failed: on stderr, or with `--json` as an object on stdout. Returns the
/// command's exit status.
pub(crate) fn report(error: &anyhow::Error, is_json: bool) -> ExitStatus {
    if let Some(error) = error.downcast_ref::<OutputError>() {
        if !error.is_closed_pipe() {
            print_note(&format!("error: {error}"));
        }
        return error.status();
    }
    let (message, hint) = (message(error), hint(error));
    if is_json && !error.is::<AfterOutput>() {
        return print_failure(code(error), &message, hint);
    }
    let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    print_note(&format!("error: {message}{hint}"));
    ExitStatus::Usage
}

/// Reports on stdout that nothing was run, in the form of a failed run. Returns the exit status.
pub(crate) fn print_failure(code: &str, message: &str, hint: Option<&str>) -> ExitStatus {
    let mut error = json!({ "code": code, "message": message });
    if let (Some(hint), Value::Object(fields)) = (hint, &mut error) {
        fields.insert("hint".to_owned(), hint.into());
    }
    match output::print_json(&json!({ "success": false, "error": error }).to_string()) {
        Ok(()) => ExitStatus::Usage,
        Err(error) => report(&error.into(), false),
    }
}

/// The code of errors of arguments.
pub(crate) const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

/// The code in an error's JSON form.
fn code(error: &anyhow::Error) -> &'static str {
    let of_executor = error.downcast_ref::<cx::Error>();
    if error.is::<cx::ConfigError>() || of_executor.is_some_and(|error| error.config_error().is_some()) {
        "INVALID_CONFIGURATION"
    } else if error.is::<InvalidArguments>() || of_executor.is_some_and(options::is_invalid) {
        INVALID_ARGUMENTS
    } else {
        "FAILED"
    }
}

/// The hint for an error, if there is one.
pub(crate) fn hint(error: &anyhow::Error) -> Option<&str> {
    if let Some(AfterOutput(error)) = error.downcast_ref() {
        return hint(error);
    }
    let of_configuration = error.downcast_ref::<cx::ConfigError>().and_then(cx::ConfigError::hint);
    let of_executor = || error.downcast_ref::<cx::Error>()?.config_error()?.hint();
    of_configuration.or_else(of_executor)
}

/// The error with its causes, on one line if each of them is. A cause whose text is already part of the message is not
/// repeated.
pub(crate) fn message(error: &anyhow::Error) -> String {
    joined(error.chain())
}

/// As [`message`], for an error of the library.
pub(crate) fn message_of(error: &cx::Error) -> String {
    joined(anyhow::Chain::new(error))
}

fn joined(chain: anyhow::Chain<'_>) -> String {
    let mut text = String::new();
    for cause in chain {
        let cause = match cause.downcast_ref::<cx::Error>() {
            Some(error) => options::message(error),
            None => cause.to_string(),
        };
        if text.contains(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

/// Prints tabs as one space, so that the caret is below the right character.
fn printable_source(line: &str) -> String {
    printable(&line.replace('\t', " "))
}

/// The byte range of the character at a column. Columns count UTF-16 units from 1.
fn column_span(line: &str, column: u32) -> Range<usize> {
    let mut units = 1;
    for (start, character) in line.char_indices() {
        if units >= column {
            return start..start + character.len_utf8();
        }
        units += u32::try_from(character.len_utf16()).unwrap_or(1);
    }
    line.len()..line.len()
}

/// Prints which pinned tool definitions were found damaged.
pub(crate) fn print_damaged_pins(damaged: &[DamagedPins]) {
    for DamagedPins { server, file, .. } in damaged {
        let (server, file) = (one_line(server), shown_path(file));
        print_warning(&format!(
            "the pinned tool definitions of `{server}` were damaged and are set aside as `{file}`: none of its tools \
             counts as known until you accept it; see `cx tools changed` and `cx tools accept {server}`"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_without_its_line_has_the_margin_of_others() {
        let title = Level::ERROR.primary_title("a --> b\n--> c").id("X");
        let note = Level::NOTE.message("stack\n--> d");
        let groups = [Group::with_title(title).element(origin("f.ts", 12, None)).element(note)];
        let plain = with_margin(&Renderer::plain().decor_style(DecorStyle::Ascii).render(&groups));
        let lines: Vec<&str> = plain.lines().collect();
        assert!(lines[0].starts_with("error[X]: a --> b") && lines[1].ends_with("  --> c"), "{plain}");
        assert!(lines[2] == " --> f.ts:12:1" && lines[3] == "  = note: stack", "{plain}");
        let styled = with_margin(&Renderer::styled().decor_style(DecorStyle::Ascii).render(&groups));
        assert!(styled.lines().nth(2).is_some_and(|line| line.starts_with(" \u{1b}[")), "{styled:?}");
        let beside = " --> f.ts:1:1\n  |\n1 | a\n  | ^\n";
        assert_eq!(with_margin(&format!("error: a\n{beside}")), format!("error: a\n{beside}"));
    }

    /// Threat 778.
    #[test]
    fn v_778_progress_of_a_server_is_one_short_line() {
        let mut progress = Progress::new(3.0);
        progress.total = Some(10.5);
        assert_eq!(amount_line("s.t", &progress), "s.t: 3 of 10.5");
        progress.message = Some("copied\r\nMake this call of s.t? [y/N] \u{1b}[2K".to_owned());
        assert_eq!(
            amount_line("s.t", &progress),
            "s.t: 3 of 10.5, copied  Make this call of s.t? [y/N] \\u{1b}[2K"
        );
        progress.message = Some("a".repeat(1_000_000));
        (progress.progress, progress.total) = (1e300, Some(1e-300));
        let line = amount_line("s.t", &progress);
        assert!(line.starts_with("s.t: 1e300 of 1e-300, aaa") && line.len() < 300, "{line}");
    }
}
