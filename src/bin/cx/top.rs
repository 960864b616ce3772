//! `cx top`: the running servers in the terminal.

mod frame;
mod servers;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::CancellationToken;
use parking_lot::Mutex;
use ratatui::Terminal;
use ratatui::backend::{CrosstermBackend, TestBackend};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use tokio::time::MissedTickBehavior;

use crate::args::TopArguments;
use crate::exit::{ExitStatus, exit};
use crate::top::frame::{Frame, Style};
use crate::top::servers::Watched;
use crate::writer::Stream;
use crate::{output, setup, signals, terminal};

/// How often the servers are read.
const READING: Duration = Duration::from_secs(1);

/// How often the loop checks whether to draw again or to end.
const LOOK: Duration = Duration::from_millis(100);

/// Size of a frame that is printed to something that is no terminal.
const PLAIN_WIDTH: usize = 100;
const MAX_PLAIN_ROWS: usize = 500;

/// Shows the servers until the user ends it, or prints them once.
///
/// # Errors
///
/// If there is no terminal to draw on, or no directory of running servers.
pub(crate) fn run(arguments: &TopArguments) -> anyhow::Result<ExitStatus> {
    let state = setup::directories()?.state;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("cx-top")
        .enable_all()
        .build()
        .context("failed to start the thread that reads metrics")?;
    if arguments.once {
        let mut watched = Watched::default();
        runtime.block_on(watched.read(&state)).context("failed to list the running servers")?;
        output::print_text(&plain(&watched)?)?;
        return Ok(ExitStatus::Success);
    }
    let is_screen = terminal::width(Stream::Stdout).is_some() && terminal::moves_cursor();
    if !is_screen || !terminal::has_input() {
        bail!("cx top needs a terminal other than `TERM=dumb`; `cx top --once` prints one frame as text");
    }
    let watched = Arc::new(Mutex::new(Watched::default()));
    let stop = CancellationToken::new();
    runtime.block_on(async { signals::end_with(&stop) })?;
    runtime.spawn(async {
        signals::terminal_gone().await;
        exit(ExitStatus::Interrupted);
    });
    let reading = Arc::clone(&watched);
    runtime.spawn(async move {
        let mut interval = tokio::time::interval(READING);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Read concurrently with drawing, so that a slow server does not block the keys.
        let mut next = Watched::default();
        loop {
            interval.tick().await;
            next.failure = next.read(&state).await.err().map(|error| error.to_string());
            *reading.lock() = next.clone();
        }
    });
    let shown = show(&watched, &stop);
    runtime.shutdown_background();
    shown?;
    exit(ExitStatus::Success)
}

/// One frame as text, as wide as the terminal, and with all of its rows.
fn plain(watched: &Watched) -> anyhow::Result<String> {
    let width = terminal::width(Stream::Stdout).unwrap_or(PLAIN_WIDTH);
    let rows = Frame::new(watched).rows().min(MAX_PLAIN_ROWS);
    let size = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let mut terminal = Terminal::new(TestBackend::new(size(width), size(rows)))?;
    let style = Style { has_color: false, has_keys: false };
    terminal.draw(|area| Frame::new(watched).draw(area, 0, style))?;
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(width).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Restores the terminal when it is dropped, even if drawing panics.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
        if let Ok(mut screen) = output::screen() {
            let _ = execute!(screen, LeaveAlternateScreen, Show);
        }
    }
}

/// Draws what was read until a key or a signal ends it.
fn show(watched: &Mutex<Watched>, stop: &CancellationToken) -> anyhow::Result<()> {
    let mut screen = output::screen().context("failed to open the terminal")?;
    enable_raw_mode().context("failed to set the terminal up")?;
    let _restore = Restore;
    execute!(screen, EnterAlternateScreen)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::BufWriter::new(screen)))?;
    let style = Style { has_color: terminal::has_color(Stream::Stdout), has_keys: true };
    let (mut scrolled, mut drawn) = (0_usize, None);
    while !stop.is_cancelled() {
        let state = (watched.lock().readings, scrolled, terminal.size()?);
        if drawn != Some(state) {
            let now = watched.lock().clone();
            let frame = Frame::new(&now);
            scrolled = scrolled.min(frame.max_scroll());
            terminal.draw(|area| frame.draw(area, scrolled, style))?;
            drawn = Some((now.readings, scrolled, terminal.size()?));
        }
        if !event::poll(LOOK)? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if is_control => return Ok(()),
            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
            KeyCode::Down | KeyCode::Char('j') => scrolled = scrolled.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => scrolled = scrolled.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => scrolled = scrolled.saturating_add(10),
            KeyCode::PageUp => scrolled = scrolled.saturating_sub(10),
            KeyCode::Home => scrolled = 0,
            KeyCode::End => scrolled = usize::MAX,
            _ => {}
        }
    }
    Ok(())
}
