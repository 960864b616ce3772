//! Schedules `cx sync` daily: with a systemd timer of the user, a launchd agent, or a task of Windows.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::Language;
use cx::setup::{home_directory, on_path, timer_environment};
use cx::text::one_line;
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use super::record;
use crate::args::{Scheduler, SyncArguments};
use crate::diagnostic::{self, invalid};
use crate::exit::ExitStatus;
use crate::sync::timer::unit::{Job, Unit};
use crate::text::{counted, shown_path};
use crate::{document, output, setup};

mod unit;

/// The hours between which it runs: at night, when starting servers disturbs no user.
const FIRST_HOUR: u64 = 4;
const MINUTES: u64 = 2 * 60;

/// Maximum time of one of the system's commands. They answer within a second where a scheduler runs.
const MAX_TIME: Duration = Duration::from_secs(10);

impl Scheduler {
    /// The scheduler of this system.
    const fn of_system() -> Self {
        if cfg!(target_os = "macos") {
            Self::Launchd
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Systemd
        }
    }
}

/// The units for these arguments.
fn units(arguments: &SyncArguments) -> anyhow::Result<Vec<Unit>> {
    let scheduler = arguments.scheduler.unwrap_or(Scheduler::of_system());
    let directory = directory(scheduler)?;
    let (hour, minute) = time();
    let mut words = vec!["sync".to_owned()];
    if let Some(types) = &arguments.types {
        words.extend(["--types".to_owned(), absolute(types)?]);
        for language in &arguments.lang {
            words.extend(["--lang".to_owned(), Language::from(*language).extension().to_owned()]);
        }
    }
    for file in &arguments.mcp_config {
        words.extend(["--mcp-config".to_owned(), absolute(file)?]);
    }
    let program = on_path(&env::current_exe().context("failed to find this program")?);
    let home = home_directory().context("HOME is not set")?;
    let job = Job {
        program: absolute(&program)?,
        arguments: words,
        home: absolute(&home)?,
        environment: timer_environment(),
        hour,
        minute,
    };
    job.check().map_err(|problem| invalid(anyhow::anyhow!(problem)))?;
    Ok(job.units(scheduler, &directory))
}

/// The absolute path, as the schedulers' files need it.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).context("failed to find the working directory")?;
    match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => bail!("`{}` is not UTF-8, which the system's files are", shown_path(&path)),
    }
}

/// The directory of a scheduler's units.
fn directory(scheduler: Scheduler) -> anyhow::Result<PathBuf> {
    let directories = setup::directories()?;
    Ok(match scheduler {
        // Next to cx's own directory, where systemd looks too.
        Scheduler::Systemd => {
            directories.config.parent().unwrap_or(&directories.config).join("systemd").join("user")
        }
        Scheduler::Launchd => {
            home_directory().context("HOME is not set")?.join("Library").join("LaunchAgents")
        }
        Scheduler::Windows => directories.state.join("sync"),
    })
}

/// The time of day: always the same minute for this user on this machine, and different ones elsewhere, so that servers
/// do not get the requests of all users at once.
fn time() -> (u64, u64) {
    // Empty in some containers, whose names differ.
    let mut bytes = fs::read("/etc/machine-id").unwrap_or_default();
    bytes.extend_from_slice(rustix::system::uname().nodename().to_bytes());
    bytes.extend(home_directory().into_iter().flat_map(|home| home.into_os_string().into_encoded_bytes()));
    // FNV-1a: the standard library's hash may differ in the next version of cx.
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let minute = bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash) % MINUTES;
    (FIRST_HOUR + minute / 60, minute % 60)
}

/// Writes the units and starts them.
///
/// # Errors
///
/// If they cannot be written.
pub(super) fn install(arguments: &SyncArguments) -> anyhow::Result<ExitStatus> {
    let units = units(arguments)?;
    if arguments.dry_run {
        let text: String =
            units.iter().map(|unit| format!("# {}\n{}\n", shown_path(&unit.path), unit.text)).collect();
        output::print_text(&text)?;
        return Ok(ExitStatus::Success);
    }
    for unit in &units {
        let directory = unit.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)
            .with_context(|| format!("failed to make `{}`", shown_path(directory)))?;
        document::check_regular(&unit.path)
            .and_then(|()| document::replace(&unit.path, &unit.text))
            .with_context(|| format!("failed to write `{}`", shown_path(&unit.path)))?;
    }
    let scheduler = arguments.scheduler.unwrap_or(Scheduler::of_system());
    let failed = perform(&starting(scheduler, &units)).err();
    let (hour, minute) = time();
    let files: Vec<String> = units.iter().map(|unit| shown_path(&unit.path)).collect();
    output::print_text(&format!("every day at {hour:02}:{minute:02}: {}", files.join(", ")))?;
    let Some(problem) = failed else { return Ok(ExitStatus::Success) };
    diagnostic::print_warning(&format!("it is written and not started: {problem}"));
    Ok(ExitStatus::Failed)
}

/// Stops and removes the units.
///
/// # Errors
///
/// If one cannot be removed.
pub(super) fn uninstall(arguments: &SyncArguments) -> anyhow::Result<ExitStatus> {
    let scheduler = arguments.scheduler.unwrap_or(Scheduler::of_system());
    let paths = Job::paths(scheduler, &directory(scheduler)?);
    if !paths.iter().any(|path| path.exists()) {
        output::print_text("it is not installed")?;
        return Ok(ExitStatus::Success);
    }
    // Units that are not running cannot be stopped, and are removed nevertheless.
    let failed = perform(&stopping(scheduler)).err();
    for path in &paths {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("failed to remove `{}`", shown_path(path)));
            }
            _ => {}
        }
    }
    if let (Scheduler::Systemd, None) = (scheduler, &failed) {
        let _ = perform(&[words(&["systemctl", "--user", "daemon-reload"])]);
    }
    output::print_text("removed")?;
    if let Some(problem) = failed {
        diagnostic::print_warning(&format!("it could not be stopped: {problem}"));
    }
    Ok(ExitStatus::Success)
}

/// Reports whether it is installed and running, and the result of the last synchronization.
///
/// # Errors
///
/// If stdout cannot be written.
pub(super) fn status(arguments: &SyncArguments) -> anyhow::Result<ExitStatus> {
    let scheduler = arguments.scheduler.unwrap_or(Scheduler::of_system());
    let paths = Job::paths(scheduler, &directory(scheduler)?);
    let is_installed = paths.iter().all(|path| path.exists());
    let problem = if is_installed { perform(&asking(scheduler)).err() } else { None };
    let is_active = is_installed && problem.is_none();
    let last = record::read(&record::path(&setup::directories()?));
    if arguments.json {
        let files: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
        let report = json!({
            "installed": is_installed,
            "active": is_active,
            "problem": problem,
            "files": files,
            "lastSync": last,
        });
        output::print_json(&report.to_string())?;
    } else {
        let (hour, minute) = time();
        let mut text = match (is_installed, &problem) {
            (false, _) => "not installed; `cx sync --install` installs it\n".to_owned(),
            (true, None) => format!("every day at {hour:02}:{minute:02}\n"),
            (true, Some(problem)) => format!("installed, and not started: {problem}\n"),
        };
        match &last {
            None => text.push_str("it was never run\n"),
            Some(last) => {
                let at = last["finishedAt"].as_str().unwrap_or_default();
                let servers = last["servers"].as_array().map_or(&[][..], Vec::as_slice);
                let failed = servers.iter().filter(|server| server["ok"] == false).count();
                let count = counted(servers.len(), "server");
                let came = if last["ok"] == true { "all went well" } else { "not all went well" };
                text.push_str(&format!("last at {at}: {came}; {count}, {failed} of them failed\n"));
            }
        }
        output::print_text(&text)?;
    }
    Ok(if is_active { ExitStatus::Success } else { ExitStatus::Failed })
}

/// The name of the timer, the agent and the task.
const NAME: &str = unit::NAME;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The commands that start the units.
fn starting(scheduler: Scheduler, units: &[Unit]) -> Vec<Vec<String>> {
    let timer = format!("{NAME}.timer");
    let file = units.first().map(|unit| unit.path.to_string_lossy().into_owned()).unwrap_or_default();
    match scheduler {
        Scheduler::Systemd => vec![
            words(&["systemctl", "--user", "daemon-reload"]),
            words(&["systemctl", "--user", "enable", "--now", &timer]),
        ],
        Scheduler::Launchd => vec![words(&["launchctl", "bootstrap", &domain(), &file])],
        Scheduler::Windows => vec![words(&["schtasks", "/Create", "/F", "/TN", NAME, "/XML", &file])],
    }
}

fn stopping(scheduler: Scheduler) -> Vec<Vec<String>> {
    let timer = format!("{NAME}.timer");
    vec![match scheduler {
        Scheduler::Systemd => words(&["systemctl", "--user", "disable", "--now", &timer]),
        Scheduler::Launchd => words(&["launchctl", "bootout", &format!("{}/{}", domain(), unit::LABEL)]),
        Scheduler::Windows => words(&["schtasks", "/Delete", "/F", "/TN", NAME]),
    }]
}

fn asking(scheduler: Scheduler) -> Vec<Vec<String>> {
    let timer = format!("{NAME}.timer");
    vec![match scheduler {
        Scheduler::Systemd => words(&["systemctl", "--user", "is-active", &timer]),
        Scheduler::Launchd => words(&["launchctl", "print", &format!("{}/{}", domain(), unit::LABEL)]),
        Scheduler::Windows => words(&["schtasks", "/Query", "/TN", NAME]),
    }]
}

/// The user's domain in launchd.
fn domain() -> String {
    format!("gui/{}", rustix::process::geteuid().as_raw())
}

/// Runs the system's own commands.
///
/// # Errors
///
/// The command that failed, and its output.
fn perform(commands: &[Vec<String>]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    for command in commands {
        let Some((program, arguments)) = command.split_first() else { continue };
        let line = command.join(" ");
        #[expect(
            clippy::disallowed_methods,
            reason = "no server: the system's own command, with fixed arguments"
        )]
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        let output = runtime.block_on(async { timeout(MAX_TIME, command.output()).await });
        match output {
            Ok(Ok(output)) if output.status.success() => {}
            Ok(Ok(output)) => {
                let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
                return Err(if said.is_empty() {
                    format!("`{line}` failed")
                } else {
                    format!("`{line}`: {}", one_line(&said))
                });
            }
            Ok(Err(error)) => return Err(format!("`{line}`: {error}")),
            Err(_elapsed) => return Err(format!("`{line}` was stopped after {} s", MAX_TIME.as_secs())),
        }
    }
    Ok(())
}
