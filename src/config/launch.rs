//! Checks of the program that a server's entry would start: this program again, or code that
//! another party chose.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::environment::Environment;
use crate::mcp::StdioTransport;

/// Programs that start the program named in their arguments.
const WRAPPERS: &[&str] = &[
    "env", "npx", "bunx", "uvx", "sh", "bash", "dash", "zsh", "exec", "nice", "nohup", "setsid", "stdbuf",
    "sudo", "timeout", "xargs", "command",
];

/// Bytes of a script that are read: enough to find a program that it starts.
const SCRIPT_BYTES: u64 = 4_096;

/// Maximum number of words read, of a command line and of a script each.
const MAX_WORDS: usize = 64;

/// Whether the server is this executable: directly, through a link, or through a program or script
/// that starts it. Only one level is followed; `CX_DEPTH` detects deeper ones.
pub(super) fn is_this_program(stdio: &StdioTransport, environment: &Environment) -> bool {
    let Some(this) = std::env::current_exe().ok().and_then(|path| identity(&path)) else { return false };
    let path =
        stdio.env.get("PATH").map(String::as_str).or_else(|| environment.get("PATH")).unwrap_or_default();
    let is_this =
        |name: &str| find(name, path, stdio.cwd.as_deref()).iter().any(|found| identity(found) == Some(this));
    if is_this(&stdio.command) {
        return true;
    }
    let name = Path::new(&stdio.command).file_name().map(|name| name.to_string_lossy().into_owned());
    let is_wrapper = name.is_some_and(|name| WRAPPERS.contains(&name.as_str()));
    let words = stdio.args.iter().flat_map(|argument| argument.split_whitespace()).take(MAX_WORDS);
    if is_wrapper && words.map(unquoted).any(is_this) {
        return true;
    }
    find(&stdio.command, path, stdio.cwd.as_deref()).iter().any(|found| {
        let script = script(found).unwrap_or_default();
        let starts =
            script.lines().filter(|line| line.starts_with("#!") || line.trim_start().starts_with("exec "));
        starts
            .flat_map(|line| line.trim_start_matches("#!").split_whitespace())
            .take(MAX_WORDS)
            .map(unquoted)
            .any(is_this)
    })
}

/// A file's identity, independent of its name.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = path.metadata().ok()?;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

/// The files that a program's name may refer to.
fn find(name: &str, search_path: &str, directory: Option<&Path>) -> Vec<PathBuf> {
    if name.contains('/') {
        // Systems differ in which of the two directories the name is relative to.
        let below = directory.map(|directory| directory.join(name));
        return std::iter::once(PathBuf::from(name)).chain(below).collect();
    }
    // Only the first one that exists would be started.
    let mut directories = std::env::split_paths(search_path);
    directories
        .find_map(|directory| Some(directory.join(name)).filter(|path| path.is_file()))
        .into_iter()
        .collect()
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['"', '\'', ';', '&', '(', ')'])
}

/// The start of a text file that names its interpreter.
fn script(path: &Path) -> Option<String> {
    let file: File =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(SCRIPT_BYTES).read_to_end(&mut bytes).ok()?;
    bytes.starts_with(b"#!").then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a variable makes a program load code that is not its own.
pub(super) fn loads_code(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "BASH_ENV",
        "ENV",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "RUBYLIB",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "GCONV_PATH",
        "IFS",
        "PROMPT_COMMAND",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "DOTNET_STARTUP_HOOKS",
    ];
    name.starts_with("LD_") || name.starts_with("DYLD_") || NAMES.contains(&name)
}
