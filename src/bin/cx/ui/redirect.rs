//! The file that a browser opens. It redirects to the page.
//!
//! The page's address contains a token, and all users of a machine can see the arguments of programs. So the browser
//! gets the name of a file that only its user can read.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes the file. It is removed when it is dropped.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn write(state: &Path, link: &str) -> io::Result<NamedTempFile> {
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let mut file = tempfile::Builder::new().prefix("open-ui-").suffix(".html").tempfile_in(state)?;
    // The address is cx's own: nothing in it needs escaping.
    write!(
        file,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>cx ui</title>\n\
         <meta http-equiv=\"refresh\" content=\"0; url={link}\">\n<p><a href=\"{link}\">Open the page</a></p>\n"
    )?;
    file.flush()?;
    Ok(file)
}
