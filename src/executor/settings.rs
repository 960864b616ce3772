//! The settings of an executor, beside its servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::admission::TotalMemory;
use super::untrusted;
use crate::error::{Error, OptionName};
use crate::llm::setup::LlmSetup;
use crate::llm::{LlmOptions, NamedModel};
use crate::machine::{self, MemorySource};
#[cfg(feature = "mcp")]
use crate::rate::RateLimit;
use crate::run::grants::Grants;
use crate::run::isolation::Isolation;
use crate::run::limits::Limits;
use crate::run::time_zone::TimeZone;
use crate::sync::Semaphore;
use crate::tools::direct::DirectRules;
use crate::tools::{DirectTools, ToolRules};

/// What browsers give to pages that are not isolated from others. A miss of the processor's caches
/// takes a thousandth of it.
const DEFAULT_CLOCK_RESOLUTION: Duration = Duration::from_micros(100);

/// Default maximum number of concurrent runs. Each has a thread.
const DEFAULT_MAX_RUNS: usize = 100;

/// Clocks of scripts count whole seconds and a part of one, which is what gets coarser.
const MAX_CLOCK_RESOLUTION: Duration = Duration::from_secs(1);

/// The values that runs that start now get. A configuration can change them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) limits: Limits,
    pub(super) max_limits: Limits,
    /// What scripts may reach of the machine.
    pub(super) grants: Arc<Grants>,
    /// Resolution of the clocks that scripts can read.
    pub(super) clock_resolution: Duration,
    /// The time zone of scripts that name none.
    pub(super) time_zone: TimeZone,
    pub(super) untrusted_hint: Option<Arc<str>>,
    /// Which tools a server exposes to its clients directly.
    pub(super) direct: Arc<DirectRules>,
    /// Language models.
    pub(super) llm: Arc<LlmSetup>,
}

/// What the embedder has set itself. Every configuration is combined with it.
#[derive(Clone, Default)]
pub(super) struct OwnSettings {
    pub(super) rules: ToolRules,
    pub(super) grants: Grants,
    pub(super) strict: bool,
    pub(super) clock_resolution: Option<Duration>,
    pub(super) time_zone: Option<String>,
    pub(super) max_runs: Setting,
    pub(super) total_memory_bytes: Setting,
    pub(super) direct: DirectTools,
    pub(super) llm: Option<LlmOptions>,
    /// The embedder's language model.
    pub(super) model: Option<NamedModel>,
}

/// A number that the embedder and a configuration can set. What the embedder sets after it has given a
/// configuration has precedence over that one and those that follow; what it has set before has not.
#[derive(Clone, Copy, Default)]
pub(super) struct Setting {
    before: Option<usize>,
    after: Option<usize>,
}

impl Setting {
    pub(super) fn set(&mut self, value: usize, has_config: bool) {
        if has_config {
            self.after = Some(value);
        } else {
            self.before = Some(value);
        }
    }

    fn or_configured(self, configured: Option<usize>) -> Option<usize> {
        self.after.or(configured).or(self.before)
    }
}

/// The bounds of all runs together, checked.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) runs: usize,
    pub(super) memory: TotalMemory,
}

impl Bounds {
    /// Checks the values, for runs whose memory limit is `one_run` unless they say otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with the one that is out of bounds, [`Error::TotalMemoryTooSmall`].
    pub(super) fn new(one_run: usize, own: &OwnSettings, config: &FromConfig) -> Result<Self, Error> {
        let runs = own.max_runs.or_configured(config.max_runs).unwrap_or(DEFAULT_MAX_RUNS);
        if runs == 0 || runs > Semaphore::MAX_PERMITS {
            let problem = format!("must be between 1 and {}: {runs}", Semaphore::MAX_PERMITS);
            return Err(Error::InvalidOptions { option: OptionName::MaxConcurrentRuns, problem });
        }
        let memory = match own.total_memory_bytes.or_configured(config.total_memory_bytes) {
            Some(all_runs) if all_runs < one_run => {
                return Err(Error::TotalMemoryTooSmall { one_run, all_runs });
            }
            Some(bytes) => TotalMemory { bytes, source: MemorySource::Option },
            None => default_total_memory(one_run),
        };
        Ok(Self { runs, memory })
    }
}

/// Half of what this process may use: the rest is for the process itself, for what runs use beyond
/// their limits, and for other processes. `one_run` if that is more, so that runs are not refused but
/// executed one after the other.
fn default_total_memory(one_run: usize) -> TotalMemory {
    let memory = machine::memory();
    let half = usize::try_from(memory.bytes / 2).unwrap_or(usize::MAX);
    if half < one_run {
        let limit = memory.source.as_str();
        tracing::warn!(bytes = memory.bytes, limit, "there is hardly enough memory for one script");
    }
    TotalMemory { bytes: half.max(one_run), source: memory.source }
}

/// The settings of a configuration beside its servers and limits.
#[derive(Clone, Default)]
pub(super) struct FromConfig {
    pub(super) rules: ToolRules,
    pub(super) grants: Grants,
    pub(super) strict: bool,
    pub(super) clock_resolution: Option<Duration>,
    pub(super) time_zone: Option<String>,
    pub(super) max_runs: Option<usize>,
    pub(super) total_memory_bytes: Option<usize>,
    #[cfg(feature = "mcp")]
    pub(super) client_rate: Option<RateLimit>,
    pub(super) direct: DirectTools,
    pub(super) llm: Option<LlmOptions>,
    pub(super) untrusted: Vec<PathBuf>,
    /// The configured servers that are not used.
    pub(super) skipped: Vec<String>,
    pub(super) isolation: Option<Isolation>,
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
    /// [`Error::InvalidOptions`] with the first one that is out of bounds, [`Error::InvalidPattern`].
    pub(super) fn new(
        limits: Limits,
        max_limits: Limits,
        own: &OwnSettings,
        config: &FromConfig,
    ) -> Result<Self, Error> {
        limits.validate()?;
        max_limits.validate()?;
        let grants = own.grants.clone().and(config.grants.clone());
        grants.validate()?;
        let clock_resolution = config.clock_resolution.or(own.clock_resolution);
        let clock_resolution = clock_resolution.unwrap_or(DEFAULT_CLOCK_RESOLUTION);
        if clock_resolution > MAX_CLOCK_RESOLUTION {
            let problem = format!("must be at most {MAX_CLOCK_RESOLUTION:?}: {clock_resolution:?}");
            return Err(Error::InvalidOptions { option: OptionName::ClockResolution, problem });
        }
        let time_zone = config.time_zone.as_deref().or(own.time_zone.as_deref());
        let time_zone = time_zone.map_or(Ok(TimeZone::UTC), TimeZone::find)?;
        let untrusted_hint = untrusted::hint(&config.untrusted);
        let direct = Arc::new(DirectRules::new(own.direct.and(&config.direct))?);
        // The embedder's options are its own, and no file changes them.
        let llm = own.llm.clone().or_else(|| config.llm.clone()).unwrap_or_default();
        llm.validate()?;
        let llm = LlmSetup::new(llm, own.model.clone());
        let grants = Arc::new(grants);
        Ok(Self { limits, max_limits, grants, clock_resolution, time_zone, untrusted_hint, direct, llm })
    }
}

/// Checks that `strict` can be obeyed.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if there is nowhere to store the pinned definitions.
pub(super) fn check_strict(is_strict: bool, has_state_directory: bool) -> Result<(), Error> {
    if is_strict && !has_state_directory {
        let problem = "needs `state_directory`, where the pinned definitions are stored".to_owned();
        return Err(Error::InvalidOptions { option: OptionName::Strict, problem });
    }
    Ok(())
}
