//! The terminal during a run: the script's output, approval prompts for its calls, and questions of
//! servers.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use cx::{
    Approval, ApprovalRequest, CallProgress, CancellationToken, ElicitationAnswer, ElicitationMode,
    ElicitationRequest, Form, Output, Progress,
};
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use serde_json::{Map, Value};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::writer::Writer;
use crate::{diagnostic, output, question};

/// The controlling terminal of this process, even if its streams are redirected.
const TERMINAL: &str = "/dev/tty";

/// Maximum bytes of an answer that are read. A terminal passes on lines of at most 4,095 bytes, so none is cut.
const MAX_ANSWER: usize = 4_096;

/// How long a prompt waits until output that the script printed before it is written. Output that is not written by
/// then, because its reader is slow, appears after the prompt.
const MAX_OUTPUT_BEFORE: Duration = Duration::from_millis(500);

/// The terminal side of one run.
pub(crate) struct Console {
    writer: &'static Writer,
}

impl Console {
    pub(crate) fn new(writer: &'static Writer) -> Self {
        Self { writer }
    }

    /// Whether prompts can be shown: there is a terminal, and stdin or stderr is connected to it.
    /// If neither is, the terminal belongs to a program that started this one and reads all of its
    /// streams.
    pub(crate) fn has_terminal() -> bool {
        (io::stdin().is_terminal() || io::stderr().is_terminal()) && open_terminal().is_ok()
    }

    /// Prints a piece of output. While a prompt is open the output waits until the prompt is
    /// answered, and the script with it when the queue is full; otherwise a script could print a
    /// forged prompt below the real one.
    pub(crate) fn print(&self, entry: &Output, cancel: &CancellationToken) {
        output::print_entry(self.writer, entry, cancel);
    }

    /// Prints a call's progress, unless a prompt is open.
    pub(crate) fn print_progress(&self, progress: &CallProgress) {
        diagnostic::print_progress(self.writer, progress);
    }

    /// As [`print_progress`](Self::print_progress), for the script's own progress.
    pub(crate) fn print_report(&self, progress: &Progress) {
        diagnostic::print_report(self.writer, progress);
    }

    /// Prints the output that was held back. When the run is over, its prompts are over too.
    pub(crate) fn release(&self) {
        self.writer.resume();
    }

    /// Asks at the terminal for approval of one call. Any answer but a clear yes counts as no.
    /// Dropping the future withdraws the prompt.
    pub(crate) async fn ask(self: Arc<Self>, request: ApprovalRequest) -> Approval {
        let asked = async {
            let mut prompt = self.open(&render(&request)).await?;
            let answer = read_line(&prompt.terminal).await?;
            prompt.is_shown = false;
            io::Result::Ok(approval(&answer))
        };
        asked.await.unwrap_or(Approval::Unavailable)
    }

    /// Asks a server's question at the terminal. Dropping the future withdraws it.
    pub(crate) async fn elicit(self: Arc<Self>, request: ElicitationRequest) -> ElicitationAnswer {
        let asked = async {
            let mut prompt = self.open(&question::opening(&request)).await?;
            let terminal = &prompt.terminal;
            let answer = if question::is_yes(&read_line(terminal).await?) {
                match &request.mode {
                    ElicitationMode::Form(form) => ElicitationAnswer::Accept(fill_in(terminal, form).await?),
                    // The user opens the address: no program is started here with text of a server.
                    ElicitationMode::Url(_) => ElicitationAnswer::Accept(Map::new()),
                    _ => ElicitationAnswer::Unavailable,
                }
            } else {
                ElicitationAnswer::Decline
            };
            prompt.is_shown = false;
            io::Result::Ok(answer)
        };
        match asked.await {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => ElicitationAnswer::Cancel,
            Err(_) => ElicitationAnswer::Unavailable,
        }
    }

    /// Shows the text of a prompt, after the output that the script printed before it.
    async fn open(&self, text: &str) -> io::Result<OpenPrompt<'_>> {
        let terminal = foreground_terminal().ok_or(io::ErrorKind::NotConnected)?;
        // Created first, so that the output is resumed however this ends.
        let mut prompt = OpenPrompt { console: self, terminal, is_shown: false };
        self.writer.pause(MAX_OUTPUT_BEFORE).await;
        prompt.is_shown = true;
        write(&prompt.terminal, text).await?;
        // Input typed before the prompt was shown is not an answer to it.
        tcflush(&prompt.terminal, QueueSelector::IFlush)?;
        Ok(prompt)
    }
}

/// Asks for each field of a form until the typed text is valid. The run's time limit for the answer bounds this.
async fn fill_in(terminal: &AsyncFd<File>, form: &Form) -> io::Result<Map<String, Value>> {
    let mut filled = Map::new();
    for field in &form.fields {
        loop {
            write(terminal, &question::field(field)).await?;
            let Some(line) = read_line_or_end(terminal).await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            match question::typed(field, &line) {
                Ok(value) => {
                    filled.extend(value.map(|value| (field.name.clone(), value)));
                    break;
                }
                Err(problem) => write(terminal, &problem).await?,
            }
        }
    }
    Ok(filled)
}

/// A prompt on the screen.
struct OpenPrompt<'a> {
    console: &'a Console,
    terminal: AsyncFd<File>,
    /// Whether the terminal shows it without an answer yet.
    is_shown: bool,
}

impl Drop for OpenPrompt<'_> {
    fn drop(&mut self) {
        if self.is_shown {
            // If the terminal cannot take the text at once, it is not being read.
            let _ = self.terminal.get_ref().write_all(b"\nprompt withdrawn\n");
        }
        self.console.release();
    }
}

/// The terminal, unless this process is in its background: the system stops a background process that
/// reads from it, and the user would not know why.
fn foreground_terminal() -> Option<AsyncFd<File>> {
    let terminal = open_terminal().and_then(watched).ok()?;
    let in_foreground = tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp());
    in_foreground.then_some(terminal)
}

fn open_terminal() -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(TERMINAL)
}

#[expect(unsafe_code, reason = "tokio cannot know that a file's descriptor stays the same")]
fn watched(terminal: File) -> io::Result<AsyncFd<File>> {
    // SAFETY: a `File` owns its descriptor and closes it only when dropped; nothing takes it out of
    // the `AsyncFd`.
    Ok(unsafe { AsyncFd::register(terminal) }?)
}

/// The text of the prompt. Names and arguments are escaped so that no character can hide or move
/// text.
fn render(request: &ApprovalRequest) -> String {
    let call = request.call_text();
    let mut text = format!("\nThe script `{}` asks to call {call}\n", cx::text::one_line(&request.script));
    text.push_str(&format!("  because: {}\n", cx::text::one_line(&request.reason.to_string())));
    let hints = hints(request.annotations.as_ref());
    if !hints.is_empty() {
        text.push_str(&format!("  its server says: {hints}\n"));
    }
    text.push_str("  arguments:\n");
    for line in request.arguments_text().lines() {
        text.push_str(&format!("    {line}\n"));
    }
    if let Some(lines) = request.code_lines() {
        text.push_str("  the code:\n");
        for line in lines {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text.push_str(&format!("Make this call of {call}, exactly as shown, once? [y/N, or why not] "));
    text
}

/// The boolean hints of the tool's annotations. Other annotations are free text from the server and
/// are not shown.
fn hints(annotations: Option<&Value>) -> String {
    let said = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(|name| {
        let hint = annotations?.get(name)?.as_bool()?;
        Some(format!("{name} {hint}"))
    });
    said.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn approval(answer: &str) -> Approval {
    let answer = answer.trim();
    match answer.to_lowercase().as_str() {
        "y" | "yes" => Approval::Approve,
        "" | "n" | "no" => Approval::Deny { reason: None },
        _ => Approval::Deny { reason: Some(answer.to_owned()) },
    }
}

async fn write(terminal: &AsyncFd<File>, text: &str) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = terminal.async_io(Interest::WRITABLE, |mut file| file.write(rest)).await?;
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Reads one line, or the part of a longer line that has arrived. The end of input counts as an
/// empty line.
async fn read_line(terminal: &AsyncFd<File>) -> io::Result<String> {
    Ok(read_line_or_end(terminal).await?.unwrap_or_default())
}

/// As [`read_line`], and `None` at the end of input.
async fn read_line_or_end(terminal: &AsyncFd<File>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    loop {
        let mut bytes = [0; 256];
        let count = terminal.async_io(Interest::READABLE, |mut file| file.read(&mut bytes)).await?;
        line.extend_from_slice(bytes.get(..count).unwrap_or_default());
        if count == 0 && line.is_empty() {
            return Ok(None);
        }
        if count == 0 || line.contains(&b'\n') || line.len() > MAX_ANSWER {
            break;
        }
    }
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(line).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// The rest of a line that is cut would be the answer to the next question of a form.
    #[tokio::test]
    async fn the_longest_line_of_a_terminal_is_one_answer() {
        let (mut person, terminal) = UnixStream::pair().unwrap();
        terminal.set_nonblocking(true).unwrap();
        let terminal = watched(File::from(OwnedFd::from(terminal))).unwrap();
        let answer = "a".repeat(4_095);
        person.write_all(format!("{answer}\n").as_bytes()).unwrap();
        assert_eq!(read_line(&terminal).await.unwrap(), answer);
        drop(person);
        assert_eq!(read_line_or_end(&terminal).await.unwrap(), None);
    }
}
