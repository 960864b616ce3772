//! `cx types`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use cx::command::{open_regular, read_regular};
use cx::text::one_line;
use cx::{Config, ConfigFiles, Executor, KnownServer, ToolError};

use crate::args::{ScriptLanguage, TypesArguments};
use crate::exit::ExitStatus;
use crate::progress::ProgressLine;
use crate::signals::Endings;
use crate::text::shown_path;
use crate::{diagnostic, document, output, setup};

/// The file of TypeScript declarations, in the directory of `--out`.
const TYPESCRIPT_FILE: &str = "cx.d.ts";

/// How often `--watch` checks the configuration and the lists of tools.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of lines of a file that `--check` shows, for added and for removed lines each.
const MAX_SHOWN_LINES: usize = 5;

/// Maximum bytes that are read of a file that is compared: more than declarations of all tools that cx can have.
const MAX_OLD: u64 = 256 << 20;

/// What every file of the command says at its beginning.
const HEADER: &str = "Written by `cx types`.";

/// Maximum bytes of a file in which the header is searched: it may stand below what a linter or a license wants there.
const MAX_BEGINNING: u64 = 1024;

/// Maximum number of files in the cache that `--watch` checks.
const MAX_CACHE_FILES: usize = 10_000;

/// The declarations, and the state of the servers that they come from.
struct Declarations {
    /// Names in the directory, and texts.
    files: Vec<(&'static str, String)>,
    /// Whether servers are configured and the tools of all of them are unknown.
    is_empty: bool,
    /// The servers whose tools could not be fetched.
    failed: Vec<(String, ToolError)>,
}

/// Writes the declarations of the tools that scripts can call.
///
/// # Errors
///
/// Mistakes in the configuration, or errors of the files.
pub(crate) fn run(arguments: &TypesArguments) -> anyhow::Result<ExitStatus> {
    if arguments.watch {
        return watch(arguments);
    }
    let config = setup::load(arguments.mcp_config.clone())?;
    diagnostic::print_warnings(&config.warnings);
    let declarations = declarations(arguments, config, !arguments.offline)?;
    let Some(out) = &arguments.out else {
        output::print_text(&printed(&declarations.files))?;
        return Ok(declarations.status());
    };
    let files = placed(out, arguments.lang, declarations.files.clone());
    if arguments.check {
        return check(&files, &declarations);
    }
    if declarations.leave(&files) {
        diagnostic::print_warning("no server answered; the old declarations are kept");
        return Ok(ExitStatus::Failed);
    }
    make_directory(out, &files)?;
    write(out, &files)?;
    Ok(declarations.status())
}

impl Declarations {
    fn status(&self) -> ExitStatus {
        if self.failed.is_empty() { ExitStatus::Success } else { ExitStatus::Failed }
    }

    /// Whether files of an earlier command stay as they are: no server has answered, so that nothing is known.
    fn leave(&self, files: &[(PathBuf, String)]) -> bool {
        self.is_empty && !self.failed.is_empty() && files.iter().any(|(path, _)| path.exists())
    }
}

/// Makes the declarations. If `asks`, servers without known tools are asked first, or all of them with `--refresh`. A
/// failure is a warning.
fn declarations(arguments: &TypesArguments, config: Config, asks: bool) -> anyhow::Result<Declarations> {
    let executor = setup::builder_for_tools(config).warm_instances(0).build()?;
    let is_unknown = |server: &KnownServer| server.tools.is_none() || server.is_partial;
    let unknown = || executor.known_tools().into_iter().filter(is_unknown);
    let asked: Vec<String> = match (asks, arguments.refresh) {
        (false, _) => Vec::new(),
        (true, true) => executor.server_names(),
        (true, false) => unknown().map(|server| server.name).collect(),
    };
    let mut failed = Vec::new();
    if !asked.is_empty() {
        let line = ProgressLine::asking(&asked);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let asked = runtime.block_on(async {
            let asked = if arguments.refresh {
                executor.refresh_tools().await
            } else {
                executor.fetch_missing_tools().await
            };
            executor.close().await;
            asked
        });
        // Removed before anything is printed in its place.
        drop(line);
        for (server, result) in asked {
            let Err(error) = result else { continue };
            let message = format!("`{}`: {}: {}", one_line(&server), error.code, error.message);
            diagnostic::print_warning(&message);
            failed.push((server, error));
        }
    }
    let files = known_files(&executor, arguments.lang);
    Ok(Declarations { files, is_empty: knows_nothing(&executor), failed })
}

/// The declarations of the known tools.
fn known_files(executor: &Executor, language: ScriptLanguage) -> Vec<(&'static str, String)> {
    match language {
        ScriptLanguage::Ts => vec![(TYPESCRIPT_FILE, executor.declarations())],
        ScriptLanguage::Py => executor.python_stubs(),
    }
}

/// Whether servers are configured and the tools of all of them are unknown.
fn knows_nothing(executor: &Executor) -> bool {
    let known = executor.known_tools();
    !known.is_empty() && known.iter().all(|server| server.tools.is_none())
}

/// Writes the declarations of known tools that differ into a directory. Returns the written files: none if nothing is
/// known, so that the old files stay.
///
/// # Errors
///
/// If they cannot be written.
pub(crate) fn write_known(
    executor: &Executor,
    language: ScriptLanguage,
    out: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    if knows_nothing(executor) {
        return Ok(Vec::new());
    }
    let files = placed(out, language, known_files(executor, language));
    make_directory(out, &files)?;
    Ok(write(out, &files)?.into_iter().map(Path::to_owned).collect())
}

/// The files as one text for stdout; several files are printed with their names.
fn printed(files: &[(&'static str, String)]) -> String {
    match files {
        [(_, text)] => text.clone(),
        files => files.iter().map(|(name, text)| format!("# --- {name}\n{text}\n")).collect(),
    }
}

/// The files with their paths: `--out` is a directory, or the file `NAME.ts`.
fn placed(
    out: &Path,
    language: ScriptLanguage,
    files: Vec<(&'static str, String)>,
) -> Vec<(PathBuf, String)> {
    let is_file = matches!(language, ScriptLanguage::Ts)
        && !out.is_dir()
        && (out.extension().is_some_and(|extension| extension == "ts") || out.exists());
    let path = |name: &str| if is_file { out.to_owned() } else { out.join(name) };
    files.into_iter().map(|(name, text)| (path(name), text)).collect()
}

/// Makes the directory `out`, unless the files are written to a file of that name.
fn make_directory(out: &Path, files: &[(PathBuf, String)]) -> anyhow::Result<()> {
    if files.iter().any(|(path, _)| path == out) {
        return Ok(());
    }
    anyhow::ensure!(
        out.is_dir() || !out.exists(),
        "`{}` is a file, and {} files are written: name a directory",
        shown_path(out),
        files.len()
    );
    fs::create_dir_all(out).with_context(|| format!("failed to make the directory `{}`", shown_path(out)))
}

/// Checks that a file can be replaced: it is empty, or an earlier `cx types` has written it. `--out report.ts` would
/// otherwise destroy a script. What is no regular file is written to, as its user wants.
fn check_is_own(path: &Path) -> anyhow::Result<()> {
    let Ok(file) = open_regular(path) else { return Ok(()) };
    let mut start = Vec::new();
    let failed = || format!("failed to read `{}`", shown_path(path));
    file.take(MAX_BEGINNING).read_to_end(&mut start).with_context(failed)?;
    let is_own = start.is_empty() || String::from_utf8_lossy(&start).contains(HEADER);
    anyhow::ensure!(
        is_own,
        "`{}` is not a file of `cx types`: name another one or a directory, or remove it",
        shown_path(path)
    );
    Ok(())
}

/// Writes the files of `out` that differ. Returns those that were written.
fn write<'a>(out: &Path, files: &'a [(PathBuf, String)]) -> anyhow::Result<Vec<&'a Path>> {
    let mut written = Vec::new();
    // All are checked before one is written.
    for (path, _) in files {
        // The user has named the directory, not its files: one may be a pipe without a reader.
        if path != out {
            document::check_regular(path)
                .with_context(|| format!("failed to write `{}`", shown_path(path)))?;
        }
        check_is_own(path)?;
    }
    for (path, text) in files {
        let failed = || format!("failed to write `{}`", shown_path(path));
        // A device is written to and not read first: some never end.
        if read_regular(path, text.len() as u64).is_ok_and(|old| old == text.as_bytes()) {
            continue;
        }
        document::replace(path, text).with_context(failed)?;
        written.push(&**path);
    }
    Ok(written)
}

/// Compares the files with those on disk, and reports the differences.
fn check(files: &[(PathBuf, String)], declarations: &Declarations) -> anyhow::Result<ExitStatus> {
    let mut report = String::new();
    for (path, text) in files {
        match read_regular(path, MAX_OLD) {
            Ok(old) if old == text.as_bytes() => {}
            Ok(old) => {
                let old = String::from_utf8_lossy(&old);
                report.push_str(&format!("{}: {}", shown_path(path), difference(&old, text)));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                report.push_str(&format!("{}: missing\n", shown_path(path)));
            }
            Err(error) => bail!("failed to read `{}`: {error}", shown_path(path)),
        }
    }
    if report.is_empty() {
        return Ok(declarations.status());
    }
    output::print_text(&report)?;
    Ok(ExitStatus::Failed)
}

/// The number of lines that are new and that are gone, and the first of them.
fn difference(old: &str, new: &str) -> String {
    fn counted(text: &str) -> BTreeMap<&str, usize> {
        let mut lines = BTreeMap::new();
        for line in text.lines() {
            *lines.entry(line).or_default() += 1;
        }
        lines
    }
    let more = |text: &'_ str, than: &BTreeMap<&str, usize>| -> Vec<String> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lines = Vec::new();
        for line in text.lines() {
            let count = seen.entry(line).or_default();
            *count += 1;
            if *count > than.get(line).copied().unwrap_or(0) {
                lines.push(one_line(line.trim()));
            }
        }
        lines
    };
    let (gone, added) = (more(old, &counted(new)), more(new, &counted(old)));
    let mut text = format!("lines: {} new, {} gone\n", added.len(), gone.len());
    for (sign, lines) in [('+', &added), ('-', &gone)] {
        for line in lines.iter().take(MAX_SHOWN_LINES) {
            text.push_str(&format!("  {sign} {line}\n"));
        }
    }
    text
}

/// Writes the declarations now, and whenever the configuration or a list of tools changes, until a
/// signal ends it.
fn watch(arguments: &TypesArguments) -> anyhow::Result<ExitStatus> {
    let Some(out) = arguments.out.clone() else { bail!("`--watch` needs `--out`") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let mut endings = Endings::new()?;
        let mut files = ConfigFiles::new(setup::load_options(arguments.mcp_config.clone())?);
        let mut lists = None;
        let mut problem: Option<String> = None;
        loop {
            let (arguments, out) = (arguments.clone(), out.clone());
            // A separate thread, because it asks servers, and a signal must not wait for them.
            let look = tokio::task::spawn_blocking(move || {
                let looked = look(&arguments, &out, &mut files, &mut lists);
                let now = looked.err().map(|error| format!("{error:#}"));
                // A mistake lasts until its author corrects it. It is reported once.
                if let Some(now) = now.as_ref().filter(|now| problem.as_ref() != Some(*now)) {
                    diagnostic::print_warning(now);
                }
                (files, lists, now)
            });
            tokio::select! {
                looked = look => {
                    (files, lists, problem) = looked.context("the declarations could not be made")?;
                }
                _signal = endings.received() => return Ok(ExitStatus::Success),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _signal = endings.received() => return Ok(ExitStatus::Success),
            }
        }
    });
    // Does not wait for servers that are being asked. They end with the process.
    runtime.shutdown_background();
    ended
}

/// The files of the stored lists of tools, with their sizes and times.
type StoredLists = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Writes what has changed since the last look. `lists` are those of the last look, if there was one.
fn look(
    arguments: &TypesArguments,
    out: &Path,
    files: &mut ConfigFiles,
    lists: &mut Option<StoredLists>,
) -> anyhow::Result<()> {
    let has_changed = files.have_changed();
    let options = setup::load_options(arguments.mcp_config.clone())?;
    let config = if has_changed { files.load()? } else { Config::load(&options)? };
    let directory = setup::lists_directory(&config);
    if !has_changed && lists.as_ref() == Some(&stored_lists(directory.as_deref())) {
        return Ok(());
    }
    let declarations = declarations(arguments, config, has_changed && !arguments.offline)?;
    // Read again, because asking servers has changed them.
    *lists = Some(stored_lists(directory.as_deref()));
    let files = placed(out, arguments.lang, declarations.files.clone());
    if declarations.leave(&files) {
        return Ok(());
    }
    make_directory(out, &files)?;
    for path in write(out, &files)? {
        diagnostic::print_note(&format!("wrote {}", shown_path(path)));
    }
    Ok(())
}

/// The stored lists in a directory; none if lists are not stored.
fn stored_lists(directory: Option<&Path>) -> StoredLists {
    let entries = directory.and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten();
    let known = entries.flatten().take(MAX_CACHE_FILES).filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((entry.path(), (metadata.len(), metadata.modified().ok())))
    });
    known.collect()
}
