//! Opens a file with a secret that a person has named: a token, a key, credentials.
//!
//! A pipe is what some of them mean, as in `--token-file <(pass show token)`. It is read too, but not waited for
//! without an end: a service with a pipe that nobody writes to would hang at its start and say nothing.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// How long a pipe may take for all that it has. The program behind it may ask its user for a passphrase.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A file that was opened for reading. Links are followed.
#[derive(Debug)]
pub struct NamedFile {
    file: File,
    deadline: Instant,
}

impl NamedFile {
    /// Opens a file. Does not wait for the writer of a pipe; reading it does, for at most a minute altogether.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_for(path, MAX_WAIT)
    }

    fn open_for(path: &Path, wait: Duration) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
        Ok(Self { file, deadline: Instant::now() + wait })
    }

    /// What the system says of the open file.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Waits until there is something to read, or the end. What cannot be waited for, such as a regular file, is ready.
    fn wait(&self) -> io::Result<()> {
        let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
        loop {
            let left = Timespec::try_from(self.deadline.saturating_duration_since(Instant::now())).ok();
            match poll(&mut polled, left.as_ref()) {
                Ok(0) => return Err(io::Error::new(ErrorKind::TimedOut, "nothing is written to this pipe")),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for NamedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.wait()?;
            match self.file.read(buffer) {
                // Another reader of the pipe was faster.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests;
