//! Registers this `cx serve`, so that `cx ui` and `cx top` find it.

use std::env;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{self, PathBuf};
use std::process;
use std::sync::Arc;

use cx::Directories;
use cx::server::{MetricsPrinter, Page, Server};

use crate::diagnostic;
use crate::running::{self, Registration, RunningServer, Transport};
use crate::ui;
use crate::ui::inbox::Inbox;

/// The registered data of this server.
pub(crate) struct KnownServer {
    pub(crate) transport: Transport,
    /// The address that it listens on, if it does.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) audit: Option<PathBuf>,
    pub(crate) traces: Option<PathBuf>,
}

impl KnownServer {
    /// Writes the file by which other commands find this server, and makes its page if it listens. If the file cannot
    /// be written, that is only a warning: serving clients is more important.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    pub(crate) fn make_known(
        self,
        server: &Server,
        print: Option<&MetricsPrinter>,
        inbox: Option<Arc<Inbox>>,
    ) -> anyhow::Result<(Option<Page>, Option<Registration>)> {
        let mut description = RunningServer {
            process: process::id(),
            started: running::seconds_since_1970(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            transport: self.transport,
            workspace: env::current_dir().unwrap_or_default(),
            address: self.address.map(reachable),
            token: None,
            audit: self.audit.map(absolute),
            traces: self.traces.map(absolute),
        };
        let mut page = None;
        if let (Some(print), Some(_)) = (print, self.address) {
            let (made, token) = ui::of_server(server, Arc::clone(print), description.clone(), inbox)?;
            page = Some(made);
            description.token = Some(token);
        }
        let Some(directories) = Directories::from_environment() else { return Ok((page, None)) };
        let registration = running::register(&directories.state, &description);
        if let Err(error) = &registration {
            diagnostic::print_warning(&format!("`cx ui` and `cx top` do not find this server: {error:#}"));
        }
        Ok((page, registration.ok()))
    }
}

/// An address at which this machine reaches the given one. The unspecified address, which means all addresses, cannot
/// be connected to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The absolute path, because other commands run in other directories.
fn absolute(path: PathBuf) -> PathBuf {
    path::absolute(&path).unwrap_or(path)
}
