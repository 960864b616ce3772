//! Signals for commands that run until they are ended, or ask at the terminal.

use std::mem::MaybeUninit;
use std::time::Duration;
use std::{io, ptr, thread};

use anyhow::Context as _;
use cx::CancellationToken;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{ExitStatus, exit};
use crate::writer::{self, Stream};
use crate::{diagnostic, notify, terminal};

/// How long after a signal the process ends, even if something hangs.
pub(crate) const MAX_END: Duration = Duration::from_millis(4_800);

/// How often it is checked whether the terminal is still there.
pub(crate) const TERMINAL_CHECK: Duration = Duration::from_secs(1);

/// Cancels `stop` at the first signal that ends the process. A second signal is not needed: the process exits after
/// [`MAX_END`] even if something hangs.
///
/// # Errors
///
/// If the system refuses to report signals.
pub(crate) fn end_with(stop: &CancellationToken) -> anyhow::Result<()> {
    end_after(stop, Duration::ZERO, CancellationToken::new())
}

/// As [`end_with`], for a server whose scripts may go on for the time `drain` after the signal. A second signal cancels
/// `end_drain`.
///
/// # Errors
///
/// If the system refuses to report signals.
pub(crate) fn end_after(
    stop: &CancellationToken,
    drain: Duration,
    end_drain: CancellationToken,
) -> anyhow::Result<()> {
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let stop = stop.clone();
    // It ends with the runtime.
    tokio::spawn(async move {
        tokio::select! {
            () = next(&mut interrupt) => {}
            () = next(&mut terminate) => {}
        }
        stop.cancel();
        notify::stopping(drain.saturating_add(2 * MAX_END));
        if !drain.is_zero() {
            let time = humantime::format_duration(drain);
            diagnostic::print_note(&format!(
                "no more scripts are started; those that run have {time}, and a second signal ends them"
            ));
            tokio::select! {
                () = next(&mut interrupt) => {}
                () = next(&mut terminate) => {}
                () = tokio::time::sleep(drain) => {}
            }
            end_drain.cancel();
        }
        tokio::time::sleep(MAX_END).await;
        exit(ExitStatus::Success);
    });
    Ok(())
}

/// The first signal stops the script, so that its result is still printed, and its end recorded. A second one, or a
/// script that does not stop, ends the process.
///
/// # Errors
///
/// If the system refuses to report signals.
pub(crate) fn watch_interrupts(interrupted: CancellationToken) -> anyhow::Result<()> {
    let mut endings = Endings::new()?;
    // It ends with the runtime.
    tokio::spawn(async move {
        let _first = endings.received().await;
        interrupted.cancel();
        endings.received_again().await;
        exit(ExitStatus::Interrupted);
    });
    Ok(())
}

/// From now on a signal that ends the process restores the settings that the terminal at stdin has now. Questions with
/// lists change them, and hide the cursor. The process also ends if the terminal is closed and that signal is ignored.
/// Nothing is done without a terminal, or in the background of one.
///
/// # Errors
///
/// If the system refuses to report signals, or a thread.
pub(crate) fn restore_terminal() -> anyhow::Result<()> {
    // In the background the first question stops the process, and no handler would run then.
    if terminal::is_in_background() {
        return Ok(());
    }
    let Ok(settings) = tcgetattr(io::stdin()) else { return Ok(()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut endings = runtime.block_on(async { Endings::new() })?;
    // It ends with the process.
    thread::Builder::new().name("cx-signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _signal = endings.received() => {}
                () = terminal_gone() => {}
            }
        });
        // Put into the background since, it is stopped if it changes what is another's terminal now.
        if !terminal::is_in_background() {
            // A terminal that is closed has no settings.
            let _closed = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
            let _closed = writer::write(Stream::Stderr, "\x1b[?25h\n");
        }
        exit(ExitStatus::Interrupted);
    })?;
    Ok(())
}

/// The signals that end a command which serves nobody: Ctrl-C, a request to end, and a terminal that is closed.
pub(crate) struct Endings([Option<Signal>; 3]);

impl Endings {
    /// Starts to listen for the signals, which no longer end the process then.
    ///
    /// # Errors
    ///
    /// If the system refuses to report signals.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self([
            listen(SignalKind::interrupt())?,
            listen(SignalKind::terminate())?,
            listen(SignalKind::hangup())?,
        ]))
    }

    /// Waits for the next such signal.
    pub(crate) async fn received(&mut self) -> SignalKind {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = next(interrupt) => SignalKind::interrupt(),
            () = next(terminate) => SignalKind::terminate(),
            () = next(hangup) => SignalKind::hangup(),
        }
    }

    /// Waits for another signal after the first one. A terminal that is closed can send its signal more than once, so
    /// that one does not count.
    pub(crate) async fn received_again(&mut self) {
        while self.received().await == SignalKind::hangup() {}
    }
}

/// Waits for a signal, for ever if there is none.
pub(crate) async fn next(signal: &mut Option<Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Waits until the terminal at stdin is closed, for ever if there is none. That is no signal in a process that was
/// started with SIGHUP ignored, and what reads single keys would read a closed terminal again and again.
pub(crate) async fn terminal_gone() {
    if !terminal::has_input() {
        std::future::pending::<()>().await;
    }
    while terminal::has_input() {
        tokio::time::sleep(TERMINAL_CHECK).await;
    }
}

/// The signals of a kind; `None` if this process was started with the signal ignored, as `nohup` does with SIGHUP, and
/// a shell without job control with SIGINT for background commands. It then stays ignored.
///
/// # Errors
///
/// If the system refuses to report signals.
pub(crate) fn listen(kind: SignalKind) -> anyhow::Result<Option<Signal>> {
    if is_ignored(kind) {
        return Ok(None);
    }
    signal(kind).context("failed to watch for signals").map(Some)
}

#[expect(unsafe_code, reason = "no safe crate has this call")]
fn is_ignored(kind: SignalKind) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call changes nothing; it writes the present one to `action`,
    // which is large enough. All zeros, which it has if the call fails, are a valid value of the type.
    let action = unsafe {
        libc::sigaction(kind.as_raw_value(), ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}
