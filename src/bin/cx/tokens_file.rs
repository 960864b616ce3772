//! Files with tokens, which are read again when they change while `cx serve` runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context as _;
use cx::WatchedFiles;
use cx::server::{HttpTenant, HttpToken, TokenReading};
use parking_lot::Mutex;

use crate::diagnostic;
use crate::secret::read_secret;
use crate::text::{counted, shown_path};

/// Maximum bytes of a file with the tokens of tenants. 64 lines need less.
const MAX_TOKENS: usize = 64 << 10;

/// Maximum bytes of a file with one token, which is shorter.
const MAX_TOKEN: usize = 4 << 10;

/// How long the file must stay unchanged before it is used, and how many times that is checked. Not every program
/// replaces a file atomically, and half a list would revoke the other half.
const SETTLE_TIME: Duration = Duration::from_millis(50);
const MAX_READINGS: usize = 20;

/// The tenants at the start, and their source for later changes.
#[derive(Default)]
pub(crate) struct Tenants {
    pub(crate) list: Vec<HttpTenant>,
    /// `None` if they cannot change: they are in the environment or came from a pipe, or there are none.
    pub(crate) file: Option<TokensFile<Vec<HttpTenant>>>,
    /// Whether there may be several later: the isolation mode is configured, or was chosen for several tokens.
    pub(crate) may_be_several: bool,
}

/// The contents of a file of tokens: one token, or the tokens of tenants.
pub(crate) trait Tokens: Clone + PartialEq + Send + 'static {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is readable by others, or has other content.
    fn read(path: &Path) -> anyhow::Result<Self>;

    /// How the tokens differ from the last ones, for a note.
    fn describe_changes(&self, last: &Self) -> String;
}

impl Tokens for HttpToken {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = shown_path(path);
        let text = read_secret(path, MAX_TOKEN);
        let text = text.with_context(|| format!("failed to read the token file `{shown}`"))?;
        Self::new(text.trim()).with_context(|| format!("the token in `{shown}`"))
    }

    fn describe_changes(&self, last: &Self) -> String {
        let changes =
            if self == last { "it is the same" } else { "it is another one, and the last one is revoked" };
        format!("the token was read again: {changes}")
    }
}

impl Tokens for Vec<HttpTenant> {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = shown_path(path);
        let text = read_secret(path, MAX_TOKENS);
        let text = text.with_context(|| format!("failed to read the file of tokens `{shown}`"))?;
        HttpTenant::list(&text).with_context(|| format!("the tokens in `{shown}`"))
    }

    fn describe_changes(&self, last: &Self) -> String {
        let added = self.iter().filter(|tenant| !last.contains(tenant)).count();
        let revoked = last.iter().filter(|tenant| !self.contains(tenant)).count();
        format!("the tokens were read again: {added} added, {revoked} revoked: {}", numbers_of(self))
    }
}

/// A file with tokens, and its last content.
pub(crate) struct TokensFile<T> {
    path: PathBuf,
    watched: WatchedFiles,
    tokens: T,
    failure: Option<String>,
}

impl<T: Tokens> TokensFile<T> {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is readable by others, or has other content.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        // Recorded before the file is read, so that the next check detects a change in between.
        let watched = WatchedFiles::new([path.to_owned()]);
        Ok(Self { path: path.to_owned(), watched, tokens: T::read(path)?, failure: None })
    }

    /// The tokens as last read.
    pub(crate) fn tokens(&self) -> &T {
        &self.tokens
    }

    /// Reads the file again whenever it has changed, and as long as it cannot be used. `accept` decides whether the
    /// tokens can be used.
    pub(crate) fn reader(
        self,
        accept: impl Fn(&T) -> anyhow::Result<()> + Send + Sync + 'static,
    ) -> Arc<dyn Fn() -> TokenReading<T> + Send + Sync> {
        let file = Mutex::new(self);
        Arc::new(move || file.lock().read_again(&accept))
    }

    fn read_again(&mut self, accept: impl Fn(&T) -> anyhow::Result<()>) -> TokenReading<T> {
        // The reason for a refusal may be elsewhere: in the file with the other tokens, or in a directory's mode.
        if !self.watched.have_changed() && self.failure.is_none() {
            return TokenReading::Unchanged;
        }
        self.watched.look();
        let Content::Stable(tokens) = self.read_stable() else { return TokenReading::Unchanged };
        let tokens = tokens.and_then(|tokens| {
            accept(&tokens).map_err(|error| format!("{error:#}"))?;
            Ok(tokens)
        });
        match tokens {
            Ok(tokens) => {
                let had_failed = self.failure.take().is_some();
                if tokens == self.tokens && !had_failed {
                    return TokenReading::Unchanged;
                }
                diagnostic::print_note(&tokens.describe_changes(&self.tokens));
                self.tokens.clone_from(&tokens);
                TokenReading::Changed(tokens)
            }
            Err(problem) => {
                if self.failure.as_ref() != Some(&problem) {
                    diagnostic::print_warning(&format!(
                        "the last tokens stay in force, the new ones cannot be used: {problem}"
                    ));
                    self.failure = Some(problem.clone());
                }
                TokenReading::Failed(problem)
            }
        }
    }

    /// Reads the file until two readings are the same, [`MAX_READINGS`] times at most.
    fn read_stable(&self) -> Content<T> {
        let read = || {
            // Opening a pipe could block for ever.
            if self.path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
                return Err(format!("`{}` is no longer a file", shown_path(&self.path)));
            }
            T::read(&self.path).map_err(|error| format!("{error:#}"))
        };
        let mut last = read();
        for _ in 0..MAX_READINGS {
            sleep(SETTLE_TIME);
            let now = read();
            if now == last {
                return Content::Stable(now);
            }
            last = now;
        }
        Content::Unstable
    }
}

/// What a file of tokens has while other programs may write to it.
enum Content<T> {
    /// The tokens, or why they cannot be read: two readings were the same.
    Stable(Result<T, String>),
    /// Something still writes to the file, which then counts as changed at the next look too.
    Unstable,
}

/// How many tokens there are, and of which tenants.
pub(crate) fn numbers_of(tenants: &[HttpTenant]) -> String {
    let names = HttpTenant::names(tenants);
    format!(
        "{} of {} ({})",
        counted(tenants.len(), "token"),
        counted(names.len(), "tenant"),
        names.join(", ")
    )
}
