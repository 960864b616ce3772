//! What an executor is configured with, beside its servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::untrusted;
use crate::error::Error;
use crate::run::limits::Limits;
use crate::tools::ToolRules;

/// What browsers give to pages that are not isolated from others. A miss of the processor's caches
/// takes a thousandth of it.
const DEFAULT_CLOCK_RESOLUTION: Duration = Duration::from_micros(100);

/// Clocks of scripts count whole seconds and a part of one, which is what gets coarser.
const MAX_CLOCK_RESOLUTION: Duration = Duration::from_secs(1);

/// The values that runs that start now get. A configuration can change them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) limits: Limits,
    pub(super) max_limits: Limits,
    /// Resolution of the clocks that scripts can read.
    pub(super) clock_resolution: Duration,
    pub(super) untrusted_hint: Option<Arc<str>>,
}

/// What the embedder has set itself. Every configuration is combined with it.
#[derive(Clone, Default)]
pub(super) struct OwnSettings {
    pub(super) rules: ToolRules,
    pub(super) strict: bool,
    pub(super) clock_resolution: Option<Duration>,
}

/// What a configuration says beside its servers and limits.
#[derive(Clone, Default)]
pub(super) struct FromConfig {
    pub(super) rules: ToolRules,
    pub(super) strict: bool,
    pub(super) clock_resolution: Option<Duration>,
    pub(super) untrusted: Vec<PathBuf>,
    /// The configured servers that are not used.
    pub(super) skipped: Vec<String>,
    /// Settings that count from the next start, and their values.
    pub(super) fixed: Vec<(&'static str, String)>,
    /// `None` as long as there is no configuration.
    pub(super) status: Option<ConfigStatus>,
}

/// The configuration in force, and what became of the last attempt to change it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigStatus {
    /// When the configuration in force was applied.
    pub loaded: SystemTime,
    /// The files that it was read from.
    pub files: Vec<PathBuf>,
    /// How many configurations were applied so far.
    pub count: u64,
    /// The settings in the files that count only from the next start, because their values differ
    /// from those of this executor.
    pub needs_restart: Vec<&'static str>,
    /// Why a newer configuration is not in force, if there is one.
    pub failure: Option<ConfigFailure>,
}

/// A configuration that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigFailure {
    /// When it was first found.
    pub since: SystemTime,
    /// What is wrong with it. Without secrets.
    pub message: String,
}

impl FromConfig {
    /// Continues the report of `before`, which this configuration replaces.
    pub(super) fn follow(&mut self, before: &Self) {
        let differing = self.fixed.iter().zip(&before.fixed).filter(|(new, old)| new != old);
        let differing: Vec<&'static str> = differing.map(|((name, _), _)| *name).collect();
        if let Some(status) = &mut self.status {
            status.count = before.status.as_ref().map_or(1, |before| before.count + 1);
            status.needs_restart = differing;
        }
        if !before.fixed.is_empty() {
            // Those of the start are the ones in force.
            self.fixed.clone_from(&before.fixed);
        }
    }
}

impl Settings {
    /// Checks the values.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with the first one that is out of bounds.
    pub(super) fn new(
        limits: Limits,
        max_limits: Limits,
        own: &OwnSettings,
        config: &FromConfig,
    ) -> Result<Self, Error> {
        limits.validate()?;
        max_limits.validate()?;
        let clock_resolution = config.clock_resolution.or(own.clock_resolution);
        let clock_resolution = clock_resolution.unwrap_or(DEFAULT_CLOCK_RESOLUTION);
        if clock_resolution > MAX_CLOCK_RESOLUTION {
            let problem = format!("must be at most {MAX_CLOCK_RESOLUTION:?}: {clock_resolution:?}");
            return Err(Error::InvalidOptions { option: "clock_resolution", problem });
        }
        let untrusted_hint = untrusted::hint(&config.untrusted);
        Ok(Self { limits, max_limits, clock_resolution, untrusted_hint })
    }
}

/// Checks that `strict` can be obeyed.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if there is nowhere to keep what was accepted.
pub(super) fn check_strict(is_strict: bool, has_state_directory: bool) -> Result<(), Error> {
    if is_strict && !has_state_directory {
        let problem = "needs `state_directory`, where it is kept what was accepted".to_owned();
        return Err(Error::InvalidOptions { option: "strict", problem });
    }
    Ok(())
}
