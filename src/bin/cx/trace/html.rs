//! Renders a run as one page without scripts and without external content.
//!
//! Names of tools, output and source are untrusted. All of them are escaped, hidden characters are shown as `\u{…}`,
//! and the page's content security policy forbids scripts and requests.
//!
//! A template engine would be a dependency for one page. It escapes only HTML, so hidden characters would need the same
//! care.

use std::fmt::Write as _;
use std::time::Duration;

use cx::LogLevel;
use cx::text::one_line;

use super::drawing::{Contents, Drawing, DrawnCall, DrawnEnd, Failure};

const STYLE: &str = include_str!("page.css");

/// Number of labels below the time axis.
const TICKS: u32 = 4;

/// Maximum bytes of source that are searched for names of tools in total. A script can make thousands of calls of tools
/// whose names it does not contain.
const MAX_SEARCHED: usize = 64 << 20;

/// The page.
pub(crate) fn render(run: &Drawing) -> String {
    let source = run.contents.as_ref().map_or(0, |contents| contents.source.len());
    let mut page = String::with_capacity(source * 2 + run.calls.len() * 600 + 16_384);
    let title = line(&run.script);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\n\
         <title>{title}: cx run</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    header(&mut page, run, &title);
    page.push_str("<main>\n");
    usage(&mut page, run);
    if let Some(contents) = &run.contents {
        page.push_str("<div class=\"columns\" style=\"margin-top:1rem\">\n<div>\n");
        calls(&mut page, run);
        output(&mut page, run, contents);
        page.push_str("</div>\n<div>\n");
        source_text(&mut page, run, contents);
        page.push_str("</div>\n</div>\n");
    } else {
        calls(&mut page, run);
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn header(page: &mut String, run: &Drawing, title: &str) {
    let time = show(run.duration);
    let _ = write!(page, "<header>\n<h1>{title}</h1>\n");
    match &run.end {
        DrawnEnd::None => {
            let _ = writeln!(page, "<p class=\"outcome\">no end after {time}: it runs, or was killed</p>");
        }
        DrawnEnd::Returned => {
            let _ = writeln!(page, "<p class=\"outcome good\">returned after {time}</p>");
        }
        DrawnEnd::Cancelled => {
            let _ = writeln!(page, "<p class=\"outcome bad\">cancelled after {time}</p>");
        }
        DrawnEnd::Failed(failure) => {
            let location = match failure.line {
                Some(number) => format!(" (<a href=\"#L{number}\">line {number}</a>)"),
                None => String::new(),
            };
            let message = failure.message.as_deref().map(|message| format!(": {}", line(message)));
            let (code, message) = (line(&failure.code), message.unwrap_or_default());
            let _ = writeln!(page, "<p class=\"outcome bad\">{code} after {time}{location}{message}</p>");
            if let Some(hint) = &failure.hint {
                let _ = writeln!(page, "<p class=\"soft\">hint: {}</p>", line(hint));
            }
        }
    }
    if let Some(note) = &run.note {
        let _ = writeln!(page, "<p class=\"soft\">{}</p>", line(note));
    }
    let usage = &run.usage;
    let facts = [
        ("language", run.language.to_owned()),
        ("run", line(&run.id)),
        ("calls", format!("{} sent, {} refused", usage.tool_calls, usage.tool_calls_refused)),
        ("from tools", bytes(usage.tool_result_bytes)),
        ("memory", bytes(usage.memory_bytes)),
    ];
    page.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    page.push_str("</dl>\n</header>\n");
}

/// The times of the run, as bars on a common scale.
fn usage(page: &mut String, run: &Drawing) {
    let usage = &run.usage;
    let sent = run.calls.iter().filter_map(|call| Some((call.sent?, call.ended)));
    let busy = union(sent.collect());
    let in_calls: Duration = busy.iter().map(|(start, end)| end.saturating_sub(*start)).sum();
    page.push_str(
        "<section aria-labelledby=\"time\">\n<h2 id=\"time\">Where the time went</h2>\n<dl class=\"usage\">\n",
    );
    let mut row = |name: &str, time: Duration, class: &str, parts: &[(Duration, Duration)]| {
        let _ =
            write!(page, "<dt>{name}</dt><dd>{}</dd><div class=\"track\" aria-hidden=\"true\">", show(time));
        for &(start, end) in parts {
            bar(page, class, start, end, run.duration);
        }
        page.push_str("</div>\n");
    };
    let amount = |time: Duration| if time.is_zero() { Vec::new() } else { vec![(Duration::ZERO, time)] };
    row("waiting to run", usage.queue_time, "wait", &amount(usage.queue_time));
    row("CPU", usage.cpu_time, "cpu", &amount(usage.cpu_time));
    row("calls in flight", in_calls, "", &busy);
    row("approval prompts", usage.approval_time, "approval", &amount(usage.approval_time));
    page.push_str("</dl>\n</section>\n");
}

/// The waterfall.
fn calls(page: &mut String, run: &Drawing) {
    page.push_str("<section aria-labelledby=\"calls\">\n<h2 id=\"calls\">Calls</h2>\n");
    if run.calls.is_empty() {
        page.push_str("<p class=\"soft\">The script made no calls.</p>\n</section>\n");
        return;
    }
    page.push_str("<p class=\"axis\" aria-hidden=\"true\">");
    for tick in 0..=TICKS {
        let _ = write!(page, "<span>{}</span>", show(run.duration * tick / TICKS));
    }
    page.push_str("</p>\n<ol class=\"calls\">\n");
    let source = run.contents.as_ref().map_or("", |contents| &contents.source);
    let max_searched = MAX_SEARCHED / source.len().max(1);
    for (position, call) in run.calls.iter().enumerate() {
        one_call(page, run, call, if position < max_searched { source } else { "" });
    }
    page.push_str("</ol>\n");
    if run.calls_dropped > 0 {
        let _ = writeln!(page, "<p class=\"soft\">and {} more calls</p>", run.calls_dropped);
    }
    page.push_str("</section>\n");
}

fn one_call(page: &mut String, run: &Drawing, call: &DrawnCall, source: &str) {
    let sent = call.sent.unwrap_or(call.ended);
    let name = match (call.server.is_empty(), call.tool.is_empty()) {
        (true, true) => "a call that names no tool".to_owned(),
        (true, false) => line(&call.tool),
        _ => format!("{}.{}", line(&call.server), line(&call.tool)),
    };
    let class = if call.is_error { "bad" } else { "soft" };
    let took = show(call.ended.saturating_sub(sent));
    let _ = write!(
        page,
        "<li><details><summary><span class=\"call\"><b>{name}</b> <span class=\"{class}\">{}</span> \
         <span>{took}</span></span>\n<div class=\"track\" aria-hidden=\"true\">",
        line(&call.status)
    );
    let waited = sent.saturating_sub(call.requested);
    let asked = call.requested + call.approval.min(waited);
    if asked > call.requested {
        bar(page, "approval", call.requested, asked, run.duration);
    }
    if sent > asked {
        bar(page, "wait", asked, sent, run.duration);
    }
    let class = if call.is_error { "failed" } else { "" };
    bar(page, class, sent, call.ended, run.duration);
    page.push_str("</div></summary>\n<dl>");
    let mut row = |name: &str, value: &str| {
        let _ = write!(page, "<dt>{name}</dt><dd>{value}</dd>");
    };
    row("made at", &show(call.requested));
    if !call.approval.is_zero() {
        row("waited for approval", &show(call.approval));
    }
    if call.sent.is_some() {
        row("waited to be sent", &show(waited.saturating_sub(call.approval)));
        row("took", &took);
    } else {
        row("sent", "no");
    }
    row("arguments", &bytes(call.argument_bytes));
    row("result", &bytes(call.result_bytes));
    if let Some(number) = line_that_names(source, &call.tool) {
        row("source", &format!("<a href=\"#L{number}\">line {number}</a> names the tool"));
    }
    if let Some(message) = &call.message {
        row("error", &line(message));
    }
    page.push_str("</dl></details></li>\n");
}

fn output(page: &mut String, run: &Drawing, contents: &Contents) {
    page.push_str("<section aria-labelledby=\"output\">\n<h2 id=\"output\">Output</h2>\n");
    if contents.output.is_empty() {
        page.push_str("<p class=\"soft\">The script printed nothing.</p>\n");
    } else {
        page.push_str("<ol class=\"text output\" tabindex=\"0\" role=\"list\" aria-labelledby=\"output\">\n");
        for entry in &contents.output {
            let (class, label) = match entry.level {
                Some(LogLevel::Error) => ("bad", "error: "),
                Some(LogLevel::Warn) => ("bad", "warning: "),
                None => ("soft", "content: "),
                Some(_) => ("", ""),
            };
            let time = show(entry.at);
            let text = lines(&entry.text);
            let _ =
                writeln!(page, "<li><time>{time}</time><code class=\"{class}\">{label}{text}</code></li>");
        }
        page.push_str("</ol>\n");
    }
    if contents.output_dropped > 0 {
        let _ = writeln!(page, "<p class=\"soft\">and {} more entries</p>", contents.output_dropped);
    }
    page.push_str("</section>\n");
    if let Some(value) = &contents.value {
        let value = lines(value);
        let _ = write!(
            page,
            "<section aria-labelledby=\"value\">\n<h2 id=\"value\">Value</h2>\n\
             <pre class=\"text value\" tabindex=\"0\" aria-labelledby=\"value\">{value}</pre>\n</section>\n"
        );
    }
    if let Some(stack) = failure(run).and_then(|failure| failure.stack.as_deref()) {
        let stack = lines(stack);
        let _ = write!(
            page,
            "<section aria-labelledby=\"stack\">\n<h2 id=\"stack\">Stack</h2>\n\
             <pre class=\"text value\" tabindex=\"0\" aria-labelledby=\"stack\">{stack}</pre>\n</section>\n"
        );
    }
}

fn source_text(page: &mut String, run: &Drawing, contents: &Contents) {
    page.push_str(
        "<section aria-labelledby=\"source\">\n<h2 id=\"source\">Source</h2>\n\
         <ol class=\"text source\" tabindex=\"0\" role=\"list\" aria-labelledby=\"source\">\n",
    );
    let failed = failure(run).and_then(|failure| failure.line);
    for (number, text) in (1_u32..).zip(contents.source.lines()) {
        let class = if failed == Some(number) { " class=\"at\"" } else { "" };
        let text = line(&text.replace('\t', "    "));
        let _ = writeln!(
            page,
            "<li id=\"L{number}\"{class}><span aria-hidden=\"true\">{number}</span><code>{text}</code></li>"
        );
    }
    page.push_str("</ol>\n</section>\n");
}

fn failure(run: &Drawing) -> Option<&Failure> {
    match &run.end {
        DrawnEnd::Failed(failure) => Some(failure),
        _ => None,
    }
}

/// The line that names the tool, if only one line does.
fn line_that_names(source: &str, tool: &str) -> Option<usize> {
    if tool.len() < 3 || tool.contains('\n') {
        return None;
    }
    let (before, rest) = source.split_once(tool)?;
    let is_named_again = rest.split_once('\n').is_some_and(|(_, later)| later.contains(tool));
    (!is_named_again).then(|| before.matches('\n').count() + 1)
}

/// Intervals without overlaps that cover the same time.
fn union(mut intervals: Vec<(Duration, Duration)>) -> Vec<(Duration, Duration)> {
    intervals.sort_unstable();
    let mut union: Vec<(Duration, Duration)> = Vec::new();
    for (start, end) in intervals {
        match union.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => union.push((start, end)),
        }
    }
    union
}

fn bar(page: &mut String, class: &str, start: Duration, end: Duration, whole: Duration) {
    let whole = whole.as_secs_f64().max(1e-9);
    let left = (start.as_secs_f64() / whole * 100.0).min(100.0);
    let width = (end.saturating_sub(start).as_secs_f64() / whole * 100.0).min(100.0 - left);
    let _ = write!(page, "<i class=\"{class}\" style=\"left:{left:.3}%;width:{width:.3}%\"></i>");
}

fn show(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    if milliseconds < 10.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < 10_000.0 {
        format!("{milliseconds:.0} ms")
    } else {
        format!("{:.1} s", milliseconds / 1e3)
    }
}

fn bytes(number: u64) -> String {
    bytesize::ByteSize::b(number).display().si().to_string()
}

/// Untrusted text on one line.
fn line(text: &str) -> String {
    escape(&one_line(text))
}

/// Untrusted text, with its line ends and tabs.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|text| line(&text.replace('\t', "    "))).collect();
    lines.join("\n")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_only_one_that_names_the_tool() {
        let source = "one()\r\n  two(); two()\nthree()\nthree()";
        for (tool, line) in [("one", Some(1)), ("two", Some(2)), ("three", None), ("four", None), ("o", None)]
        {
            assert_eq!(line_that_names(source, tool), line, "{tool}");
        }
        assert_eq!(line_that_names(source, "two()\nthree"), None);
    }

    /// Threat 591.
    #[test]
    fn v_591_the_source_is_not_searched_for_every_call() {
        let source = format!("{}\necho()", "/".repeat(1 << 20));
        let call = DrawnCall { tool: "echo".to_owned(), ..DrawnCall::default() };
        let contents = Some(Contents { source, ..Contents::default() });
        let page = render(&Drawing { calls: vec![call; 100], contents, ..Drawing::default() });
        assert_eq!(page.matches("names the tool").count(), MAX_SEARCHED / ((1 << 20) + 7));
    }
}
