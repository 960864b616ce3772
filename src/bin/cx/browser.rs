//! The user's browser.

use std::env;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};

use cx::text::one_line;

/// Opens a file or an address with the program in `BROWSER`, else with the system's opener. Returns before the program
/// has opened it.
///
/// # Errors
///
/// If no program could be started, or the system's opener has failed at once.
#[expect(clippy::disallowed_methods, reason = "a variable of the desktop's, which is no configuration of cx")]
pub(crate) fn open(target: impl AsRef<OsStr>) -> io::Result<()> {
    let browser = env::var("BROWSER").ok();
    let program = browser.as_deref().and_then(program);
    let opened = match program {
        Some(program) => open::with_detached(target, program),
        None => open::that_detached(target),
    };
    opened.map_err(|error| explained(error, program))
}

/// An error about the program in `BROWSER`, or the system's opener, with a text for users. That of the library has the
/// whole command, with the address, and a number in place of the exit status.
fn explained(error: io::Error, program: Option<&str>) -> io::Error {
    let text = match (error.kind(), program) {
        (ErrorKind::NotFound, Some(program)) => {
            format!("there is no program `{}`, which BROWSER names", one_line(program))
        }
        (ErrorKind::NotFound, None) => "there is no program for that; BROWSER can name one".to_owned(),
        _ if error.raw_os_error().is_some() => return error,
        _ => "the system's opener has failed; BROWSER can name a program".to_owned(),
    };
    io::Error::new(error.kind(), text)
}

/// The first program of a list such as `firefox:lynx`. A command with arguments is left to the system's opener, which
/// knows how to split it.
fn program(list: &str) -> Option<&str> {
    let first = list.split(':').next()?.trim();
    let first = first.strip_suffix("%s").map_or(first, str::trim_end);
    (!first.is_empty() && !first.contains([' ', '%', '"', '\''])).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opener_that_fails_is_explained_without_its_command() {
        let failed =
            "Launcher \"xdg-open\" \"https://h/?state=secret\" failed with ExitStatus(unix_wait_status(768))";
        let absent = || io::Error::from(ErrorKind::NotFound);
        for (error, program, expected) in [
            (io::Error::other(failed), None, "the system's opener has failed; BROWSER can name a program"),
            (absent(), None, "there is no program for that; BROWSER can name one"),
            (absent(), Some("lynx\n"), "there is no program `lynx\\u{a}`, which BROWSER names"),
        ] {
            assert_eq!(explained(error, program).to_string(), expected);
        }
        let denied = io::Error::from_raw_os_error(13).to_string();
        assert_eq!(explained(io::Error::from_raw_os_error(13), None).to_string(), denied);
    }
}
