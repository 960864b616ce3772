//! The script of `cx run` or `cx check` and its input: from files, stdin or arguments.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use cx::text::{one_line, preview};
use cx::{Json, Language, SavedScript, ScriptsError};

use crate::args::{RunArguments, ScriptLanguage};
use crate::text::shown_path;
use crate::{diagnostic, setup};

/// The value of `--input` that reads stdin.
const INPUT_FROM_STDIN: &str = "@-";

/// Maximum bytes that are read: enough for the largest possible source and input. Also bounds reading from a device.
const MAX_BYTES: usize = 64 << 20;

/// UTF-8's byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Maximum characters that a message shows of an argument which is no file.
const MAX_SHOWN: usize = 60;

/// A script as the arguments name it.
pub(crate) struct Source {
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) language: Language,
    /// The saved script, if it is one. It checks its input.
    pub(crate) saved: Option<Arc<SavedScript>>,
}

/// Reads the script that the arguments name.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn read(arguments: &RunArguments) -> anyhow::Result<Source> {
    let is_stdin = arguments.file.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if is_stdin && arguments.input.as_deref() == Some(INPUT_FROM_STDIN) {
        bail!("stdin can be the script (`-`) or the input (`--input @-`), not both");
    }
    read_either(arguments.file.as_deref(), arguments.eval.as_deref(), arguments.lang)
}

/// The script that is an argument itself, or the one that an argument names.
///
/// # Errors
///
/// If there is neither, or it cannot be read.
pub(crate) fn read_either(
    file: Option<&Path>,
    code: Option<&str>,
    asked: Option<ScriptLanguage>,
) -> anyhow::Result<Source> {
    if let Some(code) = code {
        let (name, language) = of_no_file("eval", asked);
        return Ok(Source { text: code.to_owned(), name, language, saved: None });
    }
    let Some(path) = file else {
        bail!("a script is needed: a file, `-` for stdin, or `-e CODE`");
    };
    read_named(path, asked)
}

/// Reads a script by its path or the name under which it is saved; `-` is stdin. A saved script has precedence over a
/// file with the same name in the working directory, so that a repository cannot change the meaning of a user's own
/// command.
///
/// # Errors
///
/// If it cannot be read.
fn read_named(named: &Path, asked: Option<ScriptLanguage>) -> anyhow::Result<Source> {
    let Some(saved) = saved(named)? else {
        let (text, name, language) = read_script(named, asked)?;
        return Ok(Source { text, name, language, saved: None });
    };
    if asked.is_some_and(|asked| Language::from(asked) != saved.language) {
        bail!("the saved script `{}` is {}: leave out `--lang`", saved.name, saved.language.title());
    }
    if named.exists() {
        let name = shown_path(named);
        diagnostic::print_note(&format!("`{name}` is the saved script; `./{name}` is the file"));
    }
    let (text, name) = (saved.source.clone(), saved.path.display().to_string());
    Ok(Source { text, name, language: saved.language, saved: Some(saved) })
}

/// The file of the script that the arguments name; `None` if it is stdin or an argument.
///
/// # Errors
///
/// If they name a saved script that cannot be used.
pub(crate) fn path(arguments: &RunArguments) -> anyhow::Result<Option<PathBuf>> {
    let Some(file) = arguments.file.as_deref().filter(|_| arguments.eval.is_none()) else { return Ok(None) };
    if let Some(saved) = saved(file)? {
        return Ok(Some(saved.path.clone()));
    }
    Ok(Some(file.to_owned()).filter(|file| file.as_os_str() != "-"))
}

/// The saved script that an argument names, if it names one.
fn saved(named: &Path) -> anyhow::Result<Option<Arc<SavedScript>>> {
    // An argument that cannot be a script's name is a path: `./deploy`, `deploy.ts`.
    let Some(name) = named.to_str().filter(|name| is_name(name)) else { return Ok(None) };
    let Ok(library) = setup::saved_scripts() else { return Ok(None) };
    match library.get(name) {
        Ok(saved) => Ok(Some(saved)),
        Err(ScriptsError::NotFound { .. }) if Path::new(name).exists() => Ok(None),
        Err(error) => Err(anyhow!("{error}; there is no file `{name}` here either")),
    }
}

/// Whether scripts can have this name. Other paths contain a dot or a separator.
fn is_name(name: &str) -> bool {
    name != "-" && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The source, the name and the language of a script that is a file, or `-` for stdin.
///
/// # Errors
///
/// If it cannot be read.
fn read_script(path: &Path, asked: Option<ScriptLanguage>) -> anyhow::Result<(String, String, Language)> {
    if path.as_os_str() == "-" {
        let (name, language) = of_no_file("stdin", asked);
        return Ok((read_stdin("the script")?, name, language));
    }
    let shown = path.display().to_string();
    let is_missing = path.metadata().is_err_and(|error| error.kind() != io::ErrorKind::PermissionDenied);
    if is_missing && shown.contains([' ', '\n', '(', ';', '{']) {
        let shown = one_line(&preview(&shown, MAX_SHOWN));
        bail!("there is no file `{shown}`; code that is an argument is run with `-e CODE`");
    }
    let is_python = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py"));
    let by_name = if is_python { Language::Python } else { Language::TypeScript };
    let language = asked.map_or(by_name, Language::from);
    Ok((read_file(path, "the script")?, shown, language))
}

/// The name and the language of a script that does not come from a file.
fn of_no_file(stem: &str, asked: Option<ScriptLanguage>) -> (String, Language) {
    let language = asked.map_or(Language::TypeScript, Language::from);
    (format!("{stem}.{}", language.extension()), language)
}

/// Parses `JSON`, or `@FILE` with a file that contains JSON, or `@-` for JSON from stdin.
///
/// # Errors
///
/// If it cannot be read, or is not JSON.
pub(crate) fn read_input(argument: &str) -> anyhow::Result<Json> {
    let text = match argument.strip_prefix('@') {
        Some("-") => read_stdin("the input")?,
        Some(path) => read_file(Path::new(path), "the input")?,
        None => argument.to_owned(),
    };
    Json::parse(&text).map_err(|error| {
        anyhow!("--input is not JSON: {error}; expected JSON such as '{{\"a\": 1}}', or @FILE")
    })
}

fn read_stdin(what: &str) -> anyhow::Result<String> {
    let stdin = io::stdin().lock();
    if stdin.is_terminal() {
        diagnostic::print_note(&format!("reading {what} from the terminal; Ctrl-D ends it"));
    }
    read_text(stdin, &format!("{what} (stdin)"), MAX_BYTES)
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
///
/// If it cannot be read, is larger, or is not text.
pub(crate) fn read_bounded(path: &Path, what: &str, most: usize) -> anyhow::Result<String> {
    let shown = shown_path(path);
    let file = File::open(path).with_context(|| format!("failed to open {what} `{shown}`"))?;
    let kind = file.metadata().with_context(|| format!("failed to read {what} `{shown}`"))?;
    if kind.is_dir() {
        bail!("{what} `{shown}` is a directory, a file was expected");
    }
    read_text(file, &format!("{what} `{shown}`"), most)
}

/// Reads a text file.
///
/// # Errors
///
/// If it cannot be read, or is not UTF-8.
pub(crate) fn read_file(path: &Path, what: &str) -> anyhow::Result<String> {
    read_bounded(path, what, MAX_BYTES)
}

fn read_text(reader: impl io::Read, what: &str, most: usize) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    reader.take(most as u64 + 1).read_to_end(&mut bytes).with_context(|| format!("failed to read {what}"))?;
    if bytes.len() > most {
        bail!("{what} is larger than {most} bytes");
    }
    // Editors on Windows begin a file with a byte order mark, which is not part of the text.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    // Windows PowerShell writes it where the output of a program is redirected into a file.
    if matches!(bytes.as_slice(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        bail!("{what} is UTF-16: save it as UTF-8");
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        anyhow!("{what} is not UTF-8: line {line}, byte {}", error.utf8_error().valid_up_to())
    })
}
