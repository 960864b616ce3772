//! Opens a file with a secret that a person has named: a token, a key, credentials. Other users must not be able to
//! read or change it.
//!
//! A pipe is what some of them mean, as in `--token-file <(pass show token)`. It is read too, but not waited for
//! without an end: a service with a pipe that nobody writes to would hang at its start and say nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::ownership::Ownership;

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

    /// Opens a file with a secret, as [`open`](Self::open) does.
    ///
    /// # Errors
    ///
    /// Those of the system, and those of [`check_private`](Self::check_private).
    pub fn open_secret(path: &Path) -> io::Result<Self> {
        let file = Self::open(path)?;
        file.check_private()?;
        Ok(file)
    }

    /// Checks that other users can neither read nor change the file. A pipe belongs to the process that opened it, so
    /// its mode is not checked. Nor is the owner: the user has named the file, which a system administrator may have
    /// put there.
    ///
    /// # Errors
    ///
    /// Those of the system; [`ErrorKind::PermissionDenied`] if they can.
    pub fn check_private(&self) -> io::Result<()> {
        let metadata = self.file.metadata()?;
        let ownership = Ownership::from_metadata(&metadata);
        // Kubernetes mounts secrets in the second form for a user other than root.
        let is_private = !ownership.others_have_access() || ownership.is_of_root_for_its_group();
        if metadata.is_file() && !is_private {
            let problem = "others may read or change it: `chmod 600` it";
            return Err(io::Error::new(ErrorKind::PermissionDenied, problem));
        }
        Ok(())
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
