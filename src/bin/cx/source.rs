//! The script of `cx run` and its input: from files, stdin or arguments.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use cx::{Json, Language};

use crate::args::{RunArguments, ScriptLanguage};
use crate::diagnostic;

/// The value of `--input` that reads stdin.
const INPUT_FROM_STDIN: &str = "@-";

/// UTF-8's byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The script's source, name and language.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn read(arguments: &RunArguments) -> anyhow::Result<(String, String, Language)> {
    let asked = arguments.lang.map(|language| match language {
        ScriptLanguage::Ts => Language::TypeScript,
        ScriptLanguage::Py => Language::Python,
    });
    let of_no_file = |stem: &str| {
        let language = asked.unwrap_or(Language::TypeScript);
        (format!("{stem}.{}", if language == Language::Python { "py" } else { "ts" }), language)
    };
    if let Some(code) = &arguments.eval {
        let (name, language) = of_no_file("eval");
        return Ok((code.clone(), name, language));
    }
    let Some(path) = &arguments.file else {
        bail!("a script is needed: a file, `-` for stdin, or `-e CODE`");
    };
    if path.as_os_str() == "-" {
        let (name, language) = of_no_file("stdin");
        if arguments.input.as_deref() == Some(INPUT_FROM_STDIN) {
            bail!("stdin can be the script (`-`) or the input (`--input @-`), not both");
        }
        return Ok((read_stdin("the script")?, name, language));
    }
    let is_python = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py"));
    let language = asked.unwrap_or(if is_python { Language::Python } else { Language::TypeScript });
    Ok((read_file(path, "the script")?, path.display().to_string(), language))
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
    read_text(stdin, &format!("{what} (stdin)"))
}

fn read_file(path: &Path, what: &str) -> anyhow::Result<String> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("failed to open {what} `{shown}`"))?;
    let kind = file.metadata().with_context(|| format!("failed to read {what} `{shown}`"))?;
    if kind.is_dir() {
        bail!("{what} `{shown}` is a directory, a file was expected");
    }
    read_text(file, &format!("{what} `{shown}`"))
}

fn read_text(reader: impl io::Read, what: &str) -> anyhow::Result<String> {
    // Enough for the largest possible source and input; bounds what is read from a device.
    const MAX_BYTES: usize = 64 << 20;
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("failed to read {what}"))?;
    if bytes.len() > MAX_BYTES {
        bail!("{what} is larger than {MAX_BYTES} bytes");
    }
    // Editors on Windows begin a file with a byte order mark, which is no part of the text.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        anyhow!("{what} is not UTF-8: line {line}, byte {}", error.utf8_error().valid_up_to())
    })
}
