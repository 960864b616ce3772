//! The file with the tokens of tenants, which is read again when it changes while `cx serve` runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context as _;
use cx::WatchedFiles;
use cx::server::{HttpTenant, TenantReader};
use parking_lot::Mutex;

use crate::diagnostic;
use crate::secret::read_secret;

/// Maximum bytes of the file. 64 lines are shorter.
const MAX_BYTES: usize = 64 << 10;

/// How long the file must be the same before it counts, and how often that is tried. Not every program replaces a file
/// at once, and half a list would revoke the other half.
const SETTLE_TIME: Duration = Duration::from_millis(50);
const MAX_READINGS: usize = 20;

/// The tenants at the start, and where they come from later.
#[derive(Default)]
pub(crate) struct Tenants {
    pub(crate) list: Vec<HttpTenant>,
    /// `None` if they cannot change: they are in the environment or came from a pipe, or there are none.
    pub(crate) file: Option<TokensFile>,
    /// Whether there may be several later: where scripts run is configured, or was decided for several tokens.
    pub(crate) may_be_several: bool,
}

/// A file with the tokens of tenants, as it was read last.
pub(crate) struct TokensFile {
    path: PathBuf,
    watched: WatchedFiles,
    tenants: Vec<HttpTenant>,
    failure: Option<String>,
}

impl TokensFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or others can read it too, or it is no list of tokens.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        // Looked at before it is read: a change in between is then seen by the next look.
        let watched = WatchedFiles::new([path.to_owned()]);
        Ok(Self { path: path.to_owned(), watched, tenants: read(path)?, failure: None })
    }

    /// The tenants as they were read last.
    pub(crate) fn tenants(&self) -> &[HttpTenant] {
        &self.tenants
    }

    /// Reads the file again whenever it has changed. `accept` says whether the tenants can be used.
    pub(crate) fn reader(
        self,
        accept: impl Fn(&[HttpTenant]) -> anyhow::Result<()> + Send + Sync + 'static,
    ) -> TenantReader {
        let file = Mutex::new(self);
        Arc::new(move || file.lock().read_again(&accept))
    }

    fn read_again(
        &mut self,
        accept: impl Fn(&[HttpTenant]) -> anyhow::Result<()>,
    ) -> Option<Result<Vec<HttpTenant>, String>> {
        if !self.watched.have_changed() {
            return None;
        }
        self.watched.look();
        let tenants = self.read_stable()?.and_then(|tenants| {
            accept(&tenants).map_err(|error| format!("{error:#}"))?;
            Ok(tenants)
        });
        match tenants {
            Ok(tenants) => {
                let had_failed = self.failure.take().is_some();
                if tenants == self.tenants && !had_failed {
                    return None;
                }
                let added = tenants.iter().filter(|tenant| !self.tenants.contains(tenant)).count();
                let revoked = self.tenants.iter().filter(|tenant| !tenants.contains(tenant)).count();
                let numbers = numbers_of(&tenants);
                diagnostic::print_note(&format!(
                    "the tokens were read again: {added} added, {revoked} revoked: {numbers}"
                ));
                self.tenants.clone_from(&tenants);
                Some(Ok(tenants))
            }
            Err(problem) => {
                if self.failure.as_ref() != Some(&problem) {
                    diagnostic::print_warning(&format!(
                        "the last tokens stay in force, the new ones cannot be used: {problem}"
                    ));
                    self.failure = Some(problem.clone());
                }
                Some(Err(problem))
            }
        }
    }

    /// The tenants when nothing writes to the file; `None` if something still does after [`MAX_READINGS`]. The file
    /// then counts as changed at the next look too.
    fn read_stable(&self) -> Option<Result<Vec<HttpTenant>, String>> {
        let read = || {
            // Opening a pipe could wait for ever.
            if self.path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
                return Err(format!("`{}` is no longer a file", self.path.display()));
            }
            read(&self.path).map_err(|error| format!("{error:#}"))
        };
        let mut last = read();
        for _ in 0..MAX_READINGS {
            sleep(SETTLE_TIME);
            let now = read();
            if now == last {
                return Some(now);
            }
            last = now;
        }
        None
    }
}

/// How many tokens there are, and of which tenants.
pub(crate) fn numbers_of(tenants: &[HttpTenant]) -> String {
    let names = HttpTenant::names(tenants);
    let token = if tenants.len() == 1 { "token" } else { "tokens" };
    let tenant = if names.len() == 1 { "tenant" } else { "tenants" };
    format!("{} {token} of {} {tenant} ({})", tenants.len(), names.len(), names.join(", "))
}

fn read(path: &Path) -> anyhow::Result<Vec<HttpTenant>> {
    let shown = path.display();
    let text = read_secret(path, MAX_BYTES);
    let text = text.with_context(|| format!("failed to read the file of tokens `{shown}`"))?;
    HttpTenant::list(&text).with_context(|| format!("the tokens in `{shown}`"))
}
