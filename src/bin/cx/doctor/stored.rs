//! Checks the files of cx: caches, the state of scripts, and the audit trail.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cx::Config;
use cx::audit::{VerifyOptions, verify};
use cx::command::Ownership;
use cx::text::{shell_word, start_of_day};

use super::report::Check;
use crate::text::{counted, shown_path};
use crate::{document, setup};

const CACHES: &str = "caches";
const STATE: &str = "state";
const AUDIT: &str = "audit trail";

/// Maximum bytes of the newest file of a trail that are checked: a second of work.
const MAX_VERIFIED_BYTES: u64 = 64 << 20;

/// Free space that Python's machine code needs, with a margin for lists.
const MIN_FREE_BYTES: u64 = 100 << 20;

/// The ending of files that were damaged and set aside.
const DAMAGED: &str = ".damaged";

/// The caches, the state, and the audit trail. Without a configuration only the directory of the state is known.
pub(super) fn check(config: Option<&Config>) -> Vec<Check> {
    let mut checks = config.map_or_else(|| vec![Check::unknown(CACHES)], caches);
    checks.extend(state());
    checks.push(config.map_or_else(|| Check::unknown(AUDIT), audit));
    checks
}

fn caches(config: &Config) -> Vec<Check> {
    if !config.cache_enabled {
        let hint = "remove `cache.enabled`, unless it is meant: lists are fetched and Python is made ready in each process";
        return vec![Check::warning(CACHES, "all", "switched off by `cache.enabled`", hint)];
    }
    let Some(directory) = setup::cache_directory(config) else {
        let hint = "set HOME, or `cache.directory` in cx's configuration";
        return vec![Check::problem(CACHES, "all", "there is no directory for them: HOME is not set", hint)];
    };
    let hint =
        "make it writable for you alone, or set `cache.directory` in cx's configuration, or XDG_CACHE_HOME";
    if let Err(problem) = usable(&directory) {
        return vec![Check::problem(CACHES, &shown_path(&directory), problem, hint)];
    }
    let mut checks = Vec::new();
    for (name, below) in [("lists of tools", "servers"), ("Python's machine code", "servers/python")] {
        let path = directory.join(below);
        let contents = Contents::read(&path, below == "servers/python");
        let message = match contents.files {
            0 => format!("{}: empty", shown_path(&path)),
            files => format!(
                "{}: {}, {} KiB, the last one {} old",
                shown_path(&path),
                counted(files, "file"),
                contents.bytes.div_ceil(1024),
                age(contents.newest)
            ),
        };
        let check = Check::ok(CACHES, name, message).with("directory", shown_path(&path));
        checks.push(check.with("files", contents.files).with("bytes", contents.bytes));
    }
    checks.extend(free_space(&directory));
    checks
}

fn free_space(directory: &Path) -> Option<Check> {
    let space = rustix::fs::statvfs(directory).ok()?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    (free < MIN_FREE_BYTES).then(|| {
        let message =
            format!("{} MiB are free, and Python's machine code needs {}", free >> 20, MIN_FREE_BYTES >> 20);
        let hint = "make space, or set `cache.directory` in cx's configuration to another disk";
        Check::warning(CACHES, &shown_path(directory), message, hint).with("freeBytes", free)
    })
}

/// Checks that files can be created in a directory, and that no other user can create any.
///
/// # Errors
///
/// A description of the problem.
fn usable(directory: &Path) -> Result<(), String> {
    document::check_writable(directory).map_err(|error| format!("cannot be written: {error}"))?;
    let ownership = Ownership::from_metadata(&fs::metadata(directory).map_err(|error| error.to_string())?);
    if !ownership.is_ours() {
        return Err("belongs to another user, and so is not used".to_owned());
    }
    if ownership.others_may_write() {
        return Err("other users can write to it, and so it is not used".to_owned());
    }
    Ok(())
}

/// What is in a directory and below it.
#[derive(Default)]
struct Contents {
    files: usize,
    bytes: u64,
    newest: Option<SystemTime>,
    damaged: Vec<PathBuf>,
}

impl Contents {
    /// Counts the files of a directory, and with `with_below` those below it. Links are not followed. Unreadable parts
    /// are left out.
    fn read(directory: &Path, with_below: bool) -> Self {
        let mut contents = Self::default();
        let mut open = vec![directory.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() && with_below {
                    open.push(entry.path());
                }
                if !metadata.is_file() {
                    continue;
                }
                contents.files += 1;
                contents.bytes += metadata.len();
                contents.newest = contents.newest.max(metadata.modified().ok());
                let name = entry.file_name().to_string_lossy().into_owned();
                // Damaged pins are reported with the definitions.
                if name.ends_with(DAMAGED) && !name.starts_with("pins-") {
                    contents.damaged.push(entry.path());
                }
            }
        }
        contents
    }
}

/// The state of scripts, and damaged files that were set aside.
fn state() -> Vec<Check> {
    let Ok(directories) = setup::directories() else {
        let hint = "set HOME, or XDG_CACHE_HOME, XDG_CONFIG_HOME and XDG_STATE_HOME";
        let message = "there is no directory for it: HOME is not set";
        return vec![Check::problem(STATE, "directory", message, hint)];
    };
    let directory = &directories.state;
    if let Err(problem) = usable(directory) {
        let hint = "make it writable for you alone, or set XDG_STATE_HOME";
        return vec![Check::problem(STATE, &shown_path(directory), problem, hint)];
    }
    let store = setup::state_store(&directories);
    let mut checks = vec![match store.usage() {
        Ok(usage) => {
            let keys: u64 = usage.iter().map(|usage| usage.keys).sum();
            let damaged: usize = usage.iter().map(|usage| usage.damaged_keys.len()).sum();
            let count = counted(usize::try_from(keys).unwrap_or(usize::MAX), "key");
            let whose = match usage.len() {
                1 => "1 workspace or session".to_owned(),
                all => format!("{all} workspaces and sessions"),
            };
            let message = format!("{count}, of {whose}");
            if damaged == 0 {
                Check::ok(STATE, "scripts", message).with("keys", keys)
            } else {
                let message = format!("{message}; damaged values: {damaged}");
                Check::problem(STATE, "scripts", message, "`cx state list` names them, and says what to do")
            }
        }
        Err(error) => {
            let hint = format!("see that {} can be read and written", shown_path(store.path()));
            Check::problem(STATE, "scripts", error.to_string(), hint)
        }
    }];
    let state_file = store.damaged_file();
    if let Some(file) = &state_file {
        let message = format!("the state of scripts was damaged and set aside as {}", shown_path(file));
        checks.push(Check::problem(STATE, "damaged file", message, removal(file)));
    }
    let others = Contents::read(directory, true).damaged.into_iter();
    checks.extend(others.filter(|file| Some(file) != state_file.as_ref()).map(|file| {
        let message = format!("a file was damaged and set aside as {}", shown_path(&file));
        Check::warning(STATE, "damaged file", message, removal(&file))
    }));
    checks
}

/// The remedy for a damaged file.
fn removal(file: &Path) -> String {
    format!("look whether you need it, and remove it: rm {}", shell_word(&file.display().to_string()))
}

/// The audit trail: whether it can be written, and whether its newest file is unchanged.
fn audit(config: &Config) -> Check {
    let Some(settings) = &config.audit else {
        return Check::ok(AUDIT, "trail", "off: `audit` is not configured").with("enabled", false);
    };
    let options = match setup::audit_options(Some(settings), None) {
        Ok(options) => options,
        Err(error) => {
            return Check::problem(AUDIT, "trail", format!("{error:#}"), "set HOME, or `audit.directory`");
        }
    };
    let directory = &options.directory;
    let name = shown_path(directory);
    if let Err(problem) = usable(directory) {
        let refuses = if settings.required { "; every call is refused meanwhile" } else { "" };
        let hint = "make it writable for you alone, or set `audit.directory`";
        return Check::problem(AUDIT, &name, format!("{problem}{refuses}"), hint).with("enabled", true);
    }
    let (day, bytes) = newest_file(directory).unwrap_or_default();
    if bytes > MAX_VERIFIED_BYTES {
        let message = format!(
            "writable; its newest file has {} MiB and is not verified here, because that takes long: `cx audit \
             verify` does",
            bytes >> 20
        );
        return Check::skipped(AUDIT, &name, message).with("enabled", true);
    }
    let mut verified = VerifyOptions::default();
    verified.newest_file_only = true;
    let check = match verify(directory, &verified) {
        Ok(found) if found.lines == 0 => Check::ok(AUDIT, &name, "writable; no lines yet"),
        Ok(found) if found.is_ok() && is_ahead(&day) => {
            let message = format!(
                "its newest file is that of {day}: the clock was ahead. Until that day all lines are written to this \
                 file, and no file is removed for its age"
            );
            let hint = "see that the clock is right, and set `audit.directory` to begin a new trail";
            Check::warning(AUDIT, &name, message, hint)
        }
        Ok(found) if found.is_ok() => Check::ok(
            AUDIT,
            &name,
            format!(
                "writable; lines {} to {}, those of the newest file, are as they were written",
                found.first, found.last
            ),
        )
        .with("first", found.first)
        .with("last", found.last),
        Ok(found) => {
            let first = found.problems.first();
            let what = first.map(|problem| format!("{}:{}: {}", problem.file, problem.line, problem.problem));
            let message = format!("{} wrong: {}", found.problem_count, what.unwrap_or_default());
            let hint = format!(
                "`cx audit verify` shows all; keep {name} as evidence, and set `audit.directory` to begin a new trail"
            );
            Check::problem(AUDIT, &name, message, hint)
        }
        Err(error) => {
            Check::problem(AUDIT, &name, format!("cannot be read: {error}"), "make it readable for you alone")
        }
    };
    check.with("enabled", true).with("required", settings.required)
}

/// The day of the newest file of a trail, which is its name, and its bytes.
fn newest_file(directory: &Path) -> Option<(String, u64)> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let days = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let day = name.strip_suffix(".jsonl").filter(|day| start_of_day(day).is_some())?;
        Some((day.to_owned(), entry.metadata().ok()?.len()))
    });
    days.max()
}

/// Whether a day begins more than 24 hours from now. One that begins earlier is soon over.
fn is_ahead(day: &str) -> bool {
    start_of_day(day).is_some_and(|start| start > SystemTime::now() + Duration::from_hours(24))
}

/// The age in one unit. If the clock went back, the age is zero.
fn age(time: Option<SystemTime>) -> String {
    let age = time.and_then(|time| time.elapsed().ok()).unwrap_or_default();
    let (seconds, minute, hour, day) = (age.as_secs(), 60, 3_600, 86_400);
    match seconds {
        seconds if age < Duration::from_secs(2 * minute) => format!("{seconds} s"),
        seconds if seconds < 2 * hour => format!("{} minutes", seconds / minute),
        seconds if seconds < 2 * day => format!("{} hours", seconds / hour),
        seconds => format!("{} days", seconds / day),
    }
}
