//! Tells the service manager that started this process when it is ready and when it stops: sd_notify(3).

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// How long a notification may take. A manager that does not read must not block the service. One that is only busy
/// must get the notification: it would stop a service that is never ready.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Says that clients can connect.
pub(crate) fn ready() {
    send("READY=1");
}

/// Says that the process ends within this time. systemd then waits that long, whatever its own limit is.
pub(crate) fn stopping(max: Duration) {
    let microseconds = u64::try_from(max.as_micros()).unwrap_or(u64::MAX);
    send(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={microseconds}"));
}

fn send(message: &str) {
    let Some(socket) = socket() else { return };
    if let Err(error) = send_to(&socket, message) {
        tracing::warn!(%error, message_sent = message, "failed to notify the service manager");
    }
}

/// The socket of the service manager; `None` if it wants no notifications.
#[expect(
    clippy::disallowed_methods,
    reason = "the service manager sets it, and it is no part of the configuration"
)]
fn socket() -> Option<OsString> {
    env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty())
}

fn send_to(socket: &OsStr, message: &str) -> io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    sender.set_write_timeout(Some(MAX_WAIT))?;
    match abstract_name(socket) {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt as _;
            use std::os::unix::net::SocketAddr;

            sender.send_to_addr(message.as_bytes(), &SocketAddr::from_abstract_name(name)?)?
        }
        _ => sender.send_to(message.as_bytes(), socket)?,
    };
    Ok(())
}

/// The name of a socket that is no file: `@name`.
fn abstract_name(socket: &OsStr) -> Option<&[u8]> {
    socket.as_bytes().strip_prefix(b"@")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::SocketAddr;

    use super::*;

    #[test]
    fn messages_reach_files_and_abstract_names() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("notify");
        let name = format!("cx-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, receiver) in [
            (file.clone().into_os_string(), UnixDatagram::bind(&file).unwrap()),
            (OsString::from(format!("@{name}")), UnixDatagram::bind_addr(&address).unwrap()),
        ] {
            send_to(&socket, "READY=1").unwrap();
            let mut bytes = [0; 64];
            let count = receiver.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..count], b"READY=1", "{}", socket.display());
        }
        assert!(send_to(OsStr::new("/nothing/is/here"), "READY=1").is_err());
    }

    /// The queue of a socket has a few messages. One that waits there for a moment loses none.
    #[test]
    fn a_busy_manager_is_told_when_it_reads() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("notify");
        let manager = UnixDatagram::bind(&file).unwrap();
        manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let other = UnixDatagram::unbound().unwrap();
        other.set_nonblocking(true).unwrap();
        while other.send_to(b"of others", &file).is_ok() {}
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| send_to(file.as_os_str(), "READY=1"));
            let mut bytes = [0; 64];
            while manager.recv(&mut bytes).unwrap() != b"READY=1".len() {}
            sent.join().unwrap().unwrap();
        });
    }
}
