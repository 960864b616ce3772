//! `cx watch`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use cx::WatchedFiles;
use cx::command::read_regular;
use tokio::process::{Child, Command};
use tokio::signal::unix::SignalKind;
use tokio::time::{sleep, timeout};

use crate::args::RunArguments;
use crate::diagnostic::{invalid, print_note};
use crate::exit::ExitStatus;
use crate::signals::Endings;
use crate::source;
use crate::text::shown_path;

/// How often the files are checked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long the files must stay unchanged before the script is run again: editors write in several steps, and some
/// remove the file and write another.
const QUIET_TIME: Duration = Duration::from_millis(100);

/// How long a run may take to end when it is stopped. `cx run` ends within half a second, and its servers
/// within four.
const MAX_STOP: Duration = Duration::from_secs(6);

/// How long the files may be missing before that is reported.
const MAX_GONE: Duration = Duration::from_secs(1);

/// Maximum size of a file that is compared by its content. For larger files the system's metadata decides.
const MAX_COMPARED: u64 = 8 << 20;

/// Runs the script, and again after each change, until a signal ends it.
///
/// # Errors
///
/// If there is no file to watch, or no process can be started.
pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<ExitStatus> {
    let paths = watched(arguments).map_err(invalid)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(follow(&paths))
}

/// The files of the script and of its input.
fn watched(arguments: &RunArguments) -> anyhow::Result<Vec<PathBuf>> {
    let Some(script) = source::path(arguments)? else {
        bail!("a script's file is needed: there is nothing to watch on stdin or in `-e`");
    };
    let input = arguments.input.as_deref().and_then(|input| input.strip_prefix('@'));
    if input == Some("-") {
        bail!("`--input @-` can be read once only: put the input into a file");
    }
    Ok([Some(script), input.map(PathBuf::from)].into_iter().flatten().collect())
}

async fn follow(paths: &[PathBuf]) -> anyhow::Result<ExitStatus> {
    let mut endings = Endings::new()?;
    let mut last = ExitStatus::Interrupted;
    loop {
        // Recorded before the script is run, so that a change during the run is detected.
        let mut seen = Contents::read(paths);
        let began = Instant::now();
        let mut child = start()?;
        let mut is_over = false;
        let changed = loop {
            tokio::select! {
                status = child.wait(), if !is_over => {
                    is_over = true;
                    let status = status.context("failed to wait for the run")?;
                    last = ExitStatus::from_code(status.code());
                    if matches!(last, ExitStatus::Output | ExitStatus::ClosedPipe) {
                        // The output of further runs could not be seen.
                        return Ok(last);
                    }
                    let (outcome, time) = (describe(last), began.elapsed());
                    print_note(&format!("watch: {outcome} after {time:.1?}; waiting for a change"));
                }
                signal = endings.received() => {
                    if !is_over {
                        // Ctrl-C, and the end of the terminal, also reach the run, which then ends by itself; a second
                        // signal would end it at once.
                        let is_told = [SignalKind::interrupt(), SignalKind::hangup()].contains(&signal)
                            && timeout(MAX_STOP, child.wait()).await.is_ok();
                        if !is_told {
                            stop(&mut child).await;
                        }
                        last = ExitStatus::Interrupted;
                    }
                    return Ok(last);
                }
                () = sleep(LOOK_EVERY) => {
                    if let Some(changed) = seen.changed() {
                        break changed;
                    }
                }
            }
        };
        if !is_over {
            stop(&mut child).await;
            last = ExitStatus::Interrupted;
        }
        tokio::select! {
            () = seen.wait_until_quiet() => {}
            _signal = endings.received() => return Ok(last),
        }
        print_note(&format!("watch: {} changed", shown_path(&changed)));
    }
}

/// Starts `cx run` with the arguments of this command.
fn start() -> anyhow::Result<Child> {
    let program = env::current_exe().context("failed to find the program")?;
    let mut arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some(name) = arguments.iter_mut().find(|argument| *argument == "watch") {
        *name = OsString::from("run");
    }
    #[expect(clippy::disallowed_methods, reason = "it is this program itself, which is no server of scripts")]
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true).spawn().context("failed to start the run")
}

/// Stops a run, and kills it if it does not end.
async fn stop(child: &mut Child) {
    if let Some(process) = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)) {
        let _gone = rustix::process::kill_process(process, rustix::process::Signal::TERM);
    }
    if timeout(MAX_STOP, child.wait()).await.is_err() {
        let _gone = child.kill().await;
    }
}

fn describe(status: ExitStatus) -> &'static str {
    match status {
        ExitStatus::Success => "ok",
        ExitStatus::Failed => "failed (status 1)",
        ExitStatus::Usage => "cannot be run (status 2)",
        ExitStatus::Limit => "a limit was hit (status 3)",
        ExitStatus::Output => "stdout cannot be written (status 4)",
        ExitStatus::Interrupted => "interrupted",
        ExitStatus::ClosedPipe => "stdout was closed",
    }
}

/// The watched files as they were when the script was run.
struct Contents {
    files: WatchedFiles,
    seen: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Contents {
    fn read(paths: &[PathBuf]) -> Self {
        let files = WatchedFiles::new(paths.iter().cloned());
        Self { files, seen: paths.iter().map(|path| (path.clone(), content(path))).collect() }
    }

    /// The first file that has changed. A missing file is waited for.
    fn changed(&mut self) -> Option<PathBuf> {
        if !self.files.have_changed() {
            return None;
        }
        self.files.look();
        // The system's metadata differs for seconds after a change, and when a file was only touched.
        let differs = |(path, seen): &&(PathBuf, Option<Vec<u8>>)| {
            let now = content(path);
            (now.is_some() || !path.exists() || is_large(path)) && now != *seen
        };
        self.seen.iter().find(differs).map(|(path, _)| path.clone())
    }

    /// Waits until all files exist and nothing writes to them.
    async fn wait_until_quiet(&self) {
        let mut gone_since: Option<Instant> = None;
        let mut is_reported = false;
        loop {
            let before: Vec<_> = self.seen.iter().map(|(path, _)| content(path)).collect();
            sleep(QUIET_TIME).await;
            let Some((missing, _)) = self.seen.iter().find(|(path, _)| !path.is_file()) else {
                if self.seen.iter().map(|(path, _)| content(path)).eq(before) {
                    return;
                }
                (gone_since, is_reported) = (None, false);
                continue;
            };
            let since = *gone_since.get_or_insert_with(Instant::now);
            if !is_reported && since.elapsed() > MAX_GONE {
                print_note(&format!("watch: {} is gone; waiting for it", shown_path(missing)));
                is_reported = true;
            }
        }
    }
}

fn is_large(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.len() > MAX_COMPARED)
}

/// The content of a file; `None` if it cannot be read or is too large to be compared.
fn content(path: &Path) -> Option<Vec<u8>> {
    read_regular(path, MAX_COMPARED).ok()
}
