//! What a person at the terminal sees while a script runs: its output, and questions about its calls.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cx::{Approval, ApprovalRequest, CallProgress, CancellationToken, Output};
use parking_lot::Mutex;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use serde_json::Value;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{diagnostic, output};

/// The terminal of this process, wherever its streams go.
const TERMINAL: &str = "/dev/tty";

/// Bytes of an answer that are read. Nobody types more than a sentence.
const MAX_ANSWER: usize = 1_000;

/// The person's side of one run.
pub(crate) struct Console {
    /// Ends the run when nobody reads its output any more.
    cancel: CancellationToken,
    reader_gone: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_asking: bool,
    /// Output that came while a question was open. The script's own bound for output holds for it.
    held: Vec<Output>,
}

impl Console {
    pub(crate) fn new(cancel: CancellationToken) -> Self {
        Self { cancel, reader_gone: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Whether a person can be asked: there is a terminal, and it is not only the one of a program that has started
    /// this one and reads all of its streams.
    pub(crate) fn has_terminal() -> bool {
        (io::stdin().is_terminal() || io::stderr().is_terminal()) && open_terminal().is_ok()
    }

    /// Prints a piece of output, unless a question is open: then a script could write under it what looks like another
    /// one. It comes when the question is answered.
    pub(crate) fn print(&self, entry: &Output) {
        let mut state = self.state.lock();
        if state.is_asking {
            state.held.push(entry.clone());
        } else {
            self.print_now(entry);
        }
    }

    fn print_now(&self, entry: &Output) {
        if output::print_entry(entry).is_err() {
            // Nobody reads any more, so nobody wants the rest.
            self.reader_gone.store(true, Ordering::Relaxed);
            self.cancel.cancel();
        }
    }

    /// Prints how far a call has come, unless a question is open.
    pub(crate) fn print_progress(&self, progress: &CallProgress) {
        let state = self.state.lock();
        if !state.is_asking {
            diagnostic::print_progress(progress);
        }
    }

    /// Prints what was held back. Questions of a run that is over are over too.
    pub(crate) fn release(&self) {
        let mut state = self.state.lock();
        state.is_asking = false;
        for entry in std::mem::take(&mut state.held) {
            self.print_now(&entry);
        }
    }

    /// Whether stdout was closed before the script had printed everything.
    pub(crate) fn is_reader_gone(&self) -> bool {
        self.reader_gone.load(Ordering::Relaxed)
    }

    /// Asks the person at the terminal about one call. Whatever is not a clear yes is a no. Dropping the future takes
    /// the question back.
    pub(crate) async fn ask(self: Arc<Self>, request: ApprovalRequest) -> Approval {
        let Ok(terminal) = open_terminal().and_then(watched) else { return Approval::Unavailable };
        // Who reads from the background is stopped by the system, and nobody would know why.
        let in_foreground = tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp());
        if !in_foreground {
            return Approval::Unavailable;
        }
        self.state.lock().is_asking = true;
        let mut question = OpenQuestion { console: &self, terminal: &terminal, is_answered: false };
        let asked = async {
            write(&terminal, &text(&request)).await?;
            // What was typed before the question was there is no answer to it.
            tcflush(&terminal, QueueSelector::IFlush)?;
            read_line(&terminal).await
        };
        match asked.await {
            Ok(answer) => {
                question.is_answered = true;
                approval(&answer)
            }
            Err(_) => Approval::Unavailable,
        }
    }
}

/// A question on the screen.
struct OpenQuestion<'a> {
    console: &'a Console,
    terminal: &'a AsyncFd<File>,
    is_answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // If the terminal does not take it at once, nobody looks.
            let _ = self.terminal.get_ref().write_all(b"\nno longer asked\n");
        }
        self.console.release();
    }
}

fn open_terminal() -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(TERMINAL)
}

#[expect(unsafe_code, reason = "tokio cannot know that a file's descriptor stays the same")]
fn watched(terminal: File) -> io::Result<AsyncFd<File>> {
    // SAFETY: a `File` owns its descriptor and closes it when it is dropped, not before; nobody takes it out.
    Ok(unsafe { AsyncFd::register(terminal) }?)
}

/// The question. Names and arguments are shown so that no character of them can hide or move anything.
fn text(request: &ApprovalRequest) -> String {
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
    text.push_str(&format!("Make this call of {call}, exactly as shown, once? [y/N, or why not] "));
    text
}

/// What the server says of the tool, as far as it is yes or no: it may say anything else in its own words.
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

/// One line, or what of a longer one there is so far. An end of the input is an empty one.
async fn read_line(terminal: &AsyncFd<File>) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let mut bytes = [0; 256];
        let count = terminal.async_io(Interest::READABLE, |mut file| file.read(&mut bytes)).await?;
        line.extend_from_slice(bytes.get(..count).unwrap_or_default());
        if count == 0 || line.contains(&b'\n') || line.len() > MAX_ANSWER {
            break;
        }
    }
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}
