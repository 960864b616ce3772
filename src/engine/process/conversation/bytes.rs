//! The bytes of a conversation: what is queued for the worker, and what comes from it.

use std::io;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Conversation;

impl Conversation {
    /// Reads what arrives within the time for which `spin.rs` checks before a wait sleeps, and returns
    /// whether anything has. The end of the connection is left to `read`.
    pub(super) fn read_soon(&mut self) -> bool {
        let Self { spin, stream, worker, expects_message, .. } = self;
        let is_ready = worker.is_ready;
        let mut look = || match recv(&*stream, worker.decoder.space(), RecvFlags::DONTWAIT) {
            Ok((0, _)) => None,
            Ok((count, _)) => Some(count),
            Err(_nothing) => None,
        };
        let found = if !is_ready {
            // Either it is there, or the worker still warms up, which takes longer than a wait should spin.
            look()
        } else if *expects_message {
            spin.find_expected(look)
        } else {
            spin.find(look)
        };
        let Some(count) = found else {
            *expects_message &= !is_ready;
            return false;
        };
        self.worker.decoder.filled(count);
        true
    }

    /// Reads what has arrived, and returns whether anything has.
    pub(super) fn read_arrived(&mut self) -> bool {
        match recv(&self.stream, self.worker.decoder.space(), RecvFlags::DONTWAIT) {
            Ok((count, _)) => {
                self.worker.decoder.filled(count);
                count > 0
            }
            Err(_nothing) => false,
        }
    }

    pub(super) fn read(&mut self) -> io::Result<usize> {
        let count = self.stream.try_read(self.worker.decoder.space())?;
        self.worker.decoder.filled(count);
        Ok(count)
    }

    /// Sends as much as the socket accepts. The system is asked, because tokio does not know yet whether it may write
    /// to a connection that it has just got: a run would wait for that, and its worker for the run.
    pub(super) fn write(&mut self) -> io::Result<()> {
        while let Some(rest) = self.worker.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            let sent = match send(&self.stream, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                // From this tokio knows that it has to wait.
                Err(Errno::AGAIN) => self.stream.try_write(rest),
                Err(Errno::INTR) => continue,
                sent => sent.map_err(io::Error::from),
            };
            match sent {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        // Not after each part: to move the rest of a long queue each time would take quadratic time.
        if self.written >= self.unsent() {
            self.remove_written();
        }
        Ok(())
    }

    /// Bytes that are queued for the worker and that the socket has not accepted.
    pub(super) fn unsent(&self) -> usize {
        self.worker.out.len().saturating_sub(self.written)
    }

    /// Removes from the worker's queue what the socket has accepted.
    pub(super) fn remove_written(&mut self) {
        let written = std::mem::take(&mut self.written).min(self.worker.out.len());
        self.worker.out.drain(..written);
    }
}
