//! What an executor and its fork server send to each other, over a socket that keeps messages apart (`SOCK_SEQPACKET`).
//!
//! The executor asks for a worker with one byte and the worker's end of a connection. The fork server answers with a
//! [`ForkReport`]. It also reports how its workers have ended, because the kernel tells that only to their parent.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The message that asks for a worker.
pub(super) const REQUEST: [u8; 1] = *b"w";

/// A message of a fork server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkReport {
    /// It can fork workers now.
    Warm,
    /// A worker with this process id was made. A descriptor of the process comes with the message.
    Forked(i32),
    /// The system has refused the worker, with this error number.
    Refused(i32),
    /// A worker has ended, with this status as `wait` returns it.
    Ended { process: i32, status: i32 },
}

impl ForkReport {
    pub(super) const BYTES: usize = 12;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let (kind, first, second) = match self {
            Self::Warm => (0, 0, 0),
            Self::Forked(process) => (1, process, 0),
            Self::Refused(error) => (2, error, 0),
            Self::Ended { process, status } => (3, process, status),
        };
        let mut bytes = [0; Self::BYTES];
        for (part, number) in bytes.chunks_exact_mut(4).zip([kind, first, second]) {
            part.copy_from_slice(&i32::to_le_bytes(number));
        }
        bytes
    }

    /// `None` for what no fork server sends.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (parts, []) = bytes.as_chunks::<4>() else { return None };
        match *parts.iter().map(|part| i32::from_le_bytes(*part)).collect::<Vec<_>>() {
            [0, 0, 0] => Some(Self::Warm),
            [1, process, 0] => Some(Self::Forked(process)),
            [2, error, 0] => Some(Self::Refused(error)),
            [3, process, status] => Some(Self::Ended { process, status }),
            _ => None,
        }
    }
}

/// Sends a message, with a descriptor if there is one.
///
/// # Errors
///
/// If the other side has gone, or cannot take more and the socket does not block.
pub(super) fn send(
    socket: impl AsFd,
    message: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptor) = &descriptor {
        // There is space for one.
        let _fits = control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
    }
    sendmsg(socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message, of which at most `message.len()` bytes are kept, and the descriptor that came with it. Returns
/// its length, which is 0 if the other side has gone.
///
/// # Errors
///
/// If there is no message and `flags` forbids waiting, or the connection is broken.
pub(super) fn receive(
    socket: impl AsFd,
    message: &mut [u8],
    flags: RecvFlags,
) -> rustix::io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(message)], &mut control, flags)?;
    let mut descriptor = None;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            descriptor = descriptors.last();
        }
    }
    Ok((received.bytes, descriptor))
}

/// Whether a descriptor can be read within `wait`: that of a process when the process has ended.
pub(super) fn is_readable(descriptor: impl AsFd, wait: Duration) -> bool {
    let wait = Timespec::try_from(wait).unwrap_or_default();
    let mut events = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    poll(&mut events, Some(&wait)).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::ForkReport;

    #[test]
    fn reports_are_read_as_they_were_written() {
        for report in [
            ForkReport::Warm,
            ForkReport::Forked(i32::MAX),
            ForkReport::Refused(11),
            ForkReport::Ended { process: 7, status: 0x8b },
        ] {
            assert_eq!(ForkReport::decode(&report.encode()), Some(report));
        }
        for wrong in [&[][..], &[0; 4], &[0; 11], &[0; 13], &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0; 16]] {
            assert_eq!(ForkReport::decode(wrong), None, "{wrong:?}");
        }
        let with_more = [ForkReport::Warm.encode(), ForkReport::Warm.encode()].concat();
        assert_eq!(ForkReport::decode(&with_more), None);
    }
}
