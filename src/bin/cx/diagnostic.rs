//! Notes, warnings and errors for the user, on stderr. Errors look as those of compilers: message,
//! location, caret, hint.

use std::io::{self, IsTerminal as _, Write as _};

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use cx::text::one_line;
use cx::{
    CallProgress, CompileProgress, ConfigWarning, DamagedPins, ExecuteResult, Progress, ReturnedShape,
    ScriptError,
};

use crate::text::printable;

/// Maximum number of tools of which [`print_script_error`] says what they returned.
const MAX_RETURNED: usize = 10;

/// Prints why a script failed, and what its tools had returned. `name` is the script's name in
/// locations.
pub(crate) fn print_script_error(error: &ScriptError, returned: &[ReturnedShape], name: &str) {
    let title = match &error.name {
        // An error without a message has its name as the message.
        Some(kind) if error.tool_code.is_none() && *kind != error.message => {
            format!("{kind}: {}", error.message)
        }
        _ => match error.tool_code {
            Some(code) => format!("{code}: {}", error.message),
            None => error.message.clone(),
        },
    };
    let title = printable(&title);
    let source_line = error.source_line.as_deref().map(printable_source);
    let mut group = Group::with_title(Level::ERROR.primary_title(title).id(error.code.as_str()));
    if let (Some(text), Some(line)) = (source_line, error.line) {
        let span = column_span(&text, error.column.unwrap_or(1));
        group = group.element(
            Snippet::source(text)
                .path(printable(name))
                .line_start(usize::try_from(line).unwrap_or(usize::MAX))
                .annotation(AnnotationKind::Primary.span(span)),
        );
    }
    if let Some(stack) = error.stack.as_deref().and_then(frames) {
        group = group.element(Level::NOTE.message(format!("stack\n{}", printable(&stack))));
    }
    if let Some(hint) = &error.hint {
        group = group.element(Level::HELP.message(printable(hint)));
    }
    for ReturnedShape { server, tool, shape, .. } in returned.iter().take(MAX_RETURNED) {
        group = group.element(Level::NOTE.message(printable(&format!("{server}.{tool} returned {shape}"))));
    }
    let renderer = if io::stderr().is_terminal() { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.decor_style(DecorStyle::Ascii).render(&[group]);
    print_line(&text);
}

/// Prints a warning.
pub(crate) fn print_warning(text: &str) {
    print_note(&format!("warning: {text}"));
}

/// Prints a note. Its lines are not mixed with those of other threads.
pub(crate) fn print_note(text: &str) {
    print_line(&printable(text));
}

fn print_line(text: &str) {
    // A closed stderr cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a call's progress.
pub(crate) fn print_progress(call: &CallProgress) {
    let Progress { progress, total, message, .. } = &call.progress;
    let mut text = format!("{}.{}: {progress}", call.server, call.tool);
    if let Some(total) = total {
        text.push_str(&format!(" of {total}"));
    }
    if let Some(message) = message {
        text.push_str(&format!(", {message}"));
    }
    print_note(&text);
}

/// Prints the calls that a dry run did not make.
pub(crate) fn print_planned_calls(result: &ExecuteResult) {
    let Some(planned) = &result.planned_calls else { return };
    let all = planned.len() as u64 + result.usage.planned_calls_dropped;
    let calls = if all == 1 { "1 call was".to_owned() } else { format!("{all} calls were") };
    let colon = if planned.is_empty() { "" } else { ":" };
    let mut text = format!("dry run: {calls} not made{colon}");
    for call in planned {
        let call = format!("{}.{} {}", call.server, call.tool, call.arguments).replace(['\n', '\t'], " ");
        text.push_str(&format!("\n  {call}"));
    }
    if result.usage.planned_calls_dropped > 0 {
        text.push_str(&format!("\n  and {} more", result.usage.planned_calls_dropped));
    }
    print_note(&text);
}

/// Prints what a run used.
pub(crate) fn print_stats(result: &ExecuteResult) {
    let usage = &result.usage;
    let value_bytes = result.value_json().map_or(0, |value| value.text().len());
    let shown = value_bytes + result.printed().len();
    let fuel = usage.fuel.map(|fuel| format!("; {fuel} units of fuel")).unwrap_or_default();
    let refused = match usage.tool_calls_refused {
        0 => String::new(),
        refused => format!(" ({refused} more were refused)"),
    };
    print_note(&format!(
        "{} tool calls{refused} brought {} bytes; {shown} bytes came out, {} stayed out of the context; \
         {:?} ({:?} CPU){fuel}",
        usage.tool_calls,
        usage.tool_result_bytes,
        usage.tool_result_bytes.saturating_sub(shown as u64),
        usage.wall_time,
        usage.cpu_time,
    ));
}

/// Explains why a Python script waits for a compiler, if stderr is a terminal. Always warns if the
/// machine code cannot be kept, because every run then unpacks or compiles it.
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

/// Prints a chain of causes, and a hint if there is one.
pub(crate) fn print_chain(error: &anyhow::Error) {
    let mut text = String::from("error");
    for cause in error.chain() {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    let of_configuration = error.downcast_ref::<cx::ConfigError>().and_then(cx::ConfigError::hint);
    let of_executor = || error.downcast_ref::<cx::Error>()?.config_error()?.hint();
    if let Some(hint) = of_configuration.or_else(of_executor) {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    print_note(&text);
}

/// The stack frames that led to the error, if there are more than the location that is shown
/// anyway.
fn frames(stack: &str) -> Option<String> {
    let is_python = |line: &str| line.trim_start_matches([' ', '|', '+']).starts_with("File \"");
    if stack.lines().any(is_python) {
        // A single frame is the location that is already shown; an exception group or a cause is
        // more.
        let more =
            stack.lines().filter(|line| is_python(line)).count() > 1 || stack.contains("-------- 1 ----");
        return more.then(|| stack.to_owned());
    }
    let frames: Vec<&str> = stack.lines().skip_while(|line| !line.trim_start().starts_with("at ")).collect();
    (frames.len() > 1).then(|| frames.join("\n"))
}

/// Tabs are printed as one space, so that the caret is below the right character.
fn printable_source(line: &str) -> String {
    printable(&line.replace('\t', " "))
}

/// The byte range of the character at a column. Columns count UTF-16 units from 1.
fn column_span(line: &str, column: u32) -> std::ops::Range<usize> {
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
        let (server, file) = (one_line(server), one_line(&file.display().to_string()));
        print_warning(&format!(
            "the pinned tool definitions of `{server}` were damaged and are set aside as `{file}`: none of its tools \
             counts as known until you accept it; see `cx tools changed` and `cx tools accept {server}`"
        ));
    }
}
