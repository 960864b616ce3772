//! Scopes: which runs share their state.

use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, OptionName};
use crate::text::hidden_text;

/// Maximum length of a session's handle in characters. The minimum is one.
const MAX_SESSION_CHARACTERS: usize = 128;

/// The scope of state: all runs in one workspace, all runs that name one session (of one tenant's clients), or all runs
/// of one client of a server while it is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateScope(Scope);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Workspace(PathBuf),
    Session(String),
    Client(String),
    TenantSession(TenantSession),
}

/// A session of one tenant's clients. Its name consists of the tenant's name, a slash and the handle. A tenant's name
/// has no slash.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TenantSession(String);

impl TenantSession {
    fn parts(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or_default()
    }
}

/// The scope of a run that names no session.
#[derive(Clone, Debug, Default)]
pub(crate) enum DefaultScope {
    #[default]
    Workspace,
    Of(StateScope),
    /// The client cannot be told apart from others, so it has no state.
    Unavailable,
}

/// The usage of one scope in a [`StateStore`](crate::StateStore).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateUsage {
    /// The scope.
    pub scope: StateScope,
    /// Number of keys.
    pub keys: u64,
    /// Bytes of the keys, and of the values as JSON.
    pub bytes: u64,
    /// Number of days since a script last used it. Only days on which any state was used are counted.
    pub unused_days: u64,
    /// The keys whose values are damaged. A script that reads one fails; it can replace or delete it.
    pub damaged_keys: Vec<String>,
}

impl StateScope {
    /// The scope of a workspace: its directory, with symbolic links resolved if possible.
    pub fn workspace(directory: &Path) -> Self {
        let absolute = || std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        Self(Scope::Workspace(directory.canonicalize().unwrap_or_else(|_| absolute())))
    }

    /// The scope of a session. All runs that name the handle share it, in any workspace.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] unless the handle has 1 to 128 visible characters.
    pub fn session(handle: impl Into<String>) -> Result<Self, Error> {
        Self::session_of(None, handle)
    }

    /// The scope of a session of the clients of a tenant ([`HttpTenant`](crate::server::HttpTenant)). It differs from
    /// the sessions of other tenants and of no tenant, even if the handles are equal.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] as for [`session`](Self::session), or if the tenant's name has a slash.
    pub fn session_of(tenant: Option<&str>, handle: impl Into<String>) -> Result<Self, Error> {
        let handle = handle.into();
        let length = handle.chars().count();
        let problem = if length == 0 || length > MAX_SESSION_CHARACTERS {
            format!("expected 1 to {MAX_SESSION_CHARACTERS} characters: {length}")
        } else if hidden_text(&handle) || handle.contains(char::is_control) {
            "expected characters that can be seen, no control characters".to_owned()
        } else if tenant.is_some_and(|name| name.contains('/')) {
            "expected a tenant's name, without slashes".to_owned()
        } else {
            return Ok(Self(match tenant {
                None => Scope::Session(handle),
                Some(tenant) => Scope::TenantSession(TenantSession(format!("{tenant}/{handle}"))),
            }));
        };
        Err(Error::InvalidOptions { option: OptionName::Session, problem })
    }

    /// The client's id, or `None` for other scopes.
    pub fn as_client(&self) -> Option<&str> {
        match &self.0 {
            Scope::Client(id) => Some(id),
            Scope::Workspace(_) | Scope::Session(_) | Scope::TenantSession(_) => None,
        }
    }

    /// The scope of one client, by an id that is never reused. No session handle can equal it.
    pub(crate) fn client(id: &str) -> Self {
        Self(Scope::Client(id.to_owned()))
    }

    /// The workspace's directory, or `None` for other scopes.
    pub fn as_workspace(&self) -> Option<&Path> {
        match &self.0 {
            Scope::Workspace(directory) => Some(directory),
            Scope::Session(_) | Scope::TenantSession(_) | Scope::Client(_) => None,
        }
    }

    /// The session's handle, or `None` for other scopes.
    pub fn as_session(&self) -> Option<&str> {
        match &self.0 {
            Scope::Session(handle) => Some(handle),
            Scope::TenantSession(session) => Some(session.parts().1),
            Scope::Workspace(_) | Scope::Client(_) => None,
        }
    }

    /// The tenant of the session's clients, or `None` for sessions of no tenant and for other scopes.
    pub fn as_tenant(&self) -> Option<&str> {
        match &self.0 {
            Scope::TenantSession(session) => Some(session.parts().0),
            Scope::Workspace(_) | Scope::Session(_) | Scope::Client(_) => None,
        }
    }

    /// The two columns that identify the scope. The kind separates sessions from directories of the
    /// same name.
    pub(crate) fn columns(&self) -> (i64, &[u8]) {
        match &self.0 {
            Scope::Workspace(directory) => (0, directory.as_os_str().as_bytes()),
            Scope::Session(handle) => (1, handle.as_bytes()),
            Scope::Client(id) => (2, id.as_bytes()),
            Scope::TenantSession(TenantSession(name)) => (3, name.as_bytes()),
        }
    }

    pub(crate) fn from_columns(kind: i64, name: Vec<u8>) -> Self {
        let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
        Self(match kind {
            0 => Scope::Workspace(PathBuf::from(std::ffi::OsString::from_vec(name))),
            1 => Scope::Session(text(name)),
            3 => Scope::TenantSession(TenantSession(text(name))),
            _ => Scope::Client(text(name)),
        })
    }
}

impl fmt::Display for StateScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Scope::Workspace(directory) => write!(formatter, "workspace {}", directory.display()),
            Scope::Session(handle) => write!(formatter, "session {handle}"),
            Scope::Client(id) => write!(formatter, "client {id}"),
            Scope::TenantSession(session) => {
                let (tenant, handle) = session.parts();
                write!(formatter, "session {handle} of tenant {tenant}")
            }
        }
    }
}
