//! Applies changes of the configuration while `cx serve` runs.

use std::collections::HashSet;
use std::time::Duration;

use cx::{Config, ConfigError, ConfigFiles, Error, Executor};
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::{diagnostic, signals};

/// How often the files are checked.
const INTERVAL: Duration = Duration::from_secs(2);

/// Minimum time between two loads, however many signals arrive.
const MIN_PAUSE: Duration = Duration::from_millis(250);

/// How long a file system may take before that is reported. Loading takes milliseconds.
const MAX_LOAD: Duration = Duration::from_secs(30);

/// Maximum number of warnings that are remembered, so that each is printed once.
const MAX_REMEMBERED: usize = 1_000;

/// Applies the arguments of the command to a configuration.
pub(crate) type Adjust = Box<dyn Fn(Config) -> Config + Send>;

/// Applies each change of the configuration to a running executor.
pub(crate) struct Reload {
    executor: Executor,
    adjust: Adjust,
    last_failure: Option<String>,
    /// The warnings that were printed.
    printed: HashSet<String>,
    /// The number of tools of each server when patterns were last checked, and the number of loads then.
    checked: Option<(u64, Vec<Option<usize>>)>,
}

impl Reload {
    /// Follows an executor that was built from the first load, whose warnings are already printed.
    pub(crate) fn new(executor: Executor, adjust: Adjust, warnings: &[cx::ConfigWarning]) -> Self {
        let printed = warnings.iter().map(ToString::to_string).collect();
        Self { executor, adjust, last_failure: None, printed, checked: None }
    }

    /// Follows the files until it is dropped. They are loaded again when one has changed, and at
    /// each SIGHUP.
    pub(crate) async fn follow(mut self, mut files: ConfigFiles, mut hangups: Option<Signal>) {
        loop {
            self.check_patterns().await;
            let is_asked = tokio::select! {
                () = sleep(INTERVAL) => false,
                () = signals::next(&mut hangups) => true,
            };
            let mut look = spawn_blocking(move || {
                let loaded = (is_asked || files.have_changed()).then(|| files.load());
                (files, loaded)
            });
            let looked = match timeout(MAX_LOAD, &mut look).await {
                Ok(looked) => looked,
                Err(_elapsed) => {
                    let seconds = MAX_LOAD.as_secs();
                    self.fail(format!("the files could not be read within {seconds} s"), None);
                    // A second attempt would hang in the same place.
                    look.await
                }
            };
            // The runtime is ending.
            let Ok((followed, loaded)) = looked else { return };
            files = followed;
            match loaded {
                None => {}
                Some(Ok(config)) => self.apply(config, is_asked),
                Some(Err(error)) => self.refuse(&error),
            }
            sleep(MIN_PAUSE).await;
        }
    }

    fn apply(&mut self, config: Config, is_asked: bool) {
        let warnings = self.new_warnings(&config);
        match self.executor.reconfigure((self.adjust)(config)) {
            Ok(changes) => {
                let had_failed = self.last_failure.take().is_some();
                diagnostic::print_warnings(&warnings);
                if is_asked || had_failed || !changes.is_empty() {
                    diagnostic::print_note(&format!("the configuration was loaded again: {changes}"));
                }
                let status = self.executor.config_status();
                for name in status.map_or_else(Vec::new, |status| status.needs_restart) {
                    self.warn_once(format!("the new value of `{name}` counts from the next start"));
                }
            }
            // The server is ending.
            Err(Error::Closed) => {}
            Err(error) => self.fail(error.to_string(), None),
        }
    }

    fn refuse(&mut self, error: &ConfigError) {
        self.fail(error.to_string(), error.hint());
    }

    /// Reports a failure, once as long as it stays the same.
    fn fail(&mut self, message: String, hint: Option<&str>) {
        self.executor.report_config_failure(message.as_str());
        if self.last_failure.as_ref() != Some(&message) {
            let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            diagnostic::print_note(&format!(
                "error: the last configuration stays in force, the new one cannot be used: {message}{hint}"
            ));
            self.last_failure = Some(message);
        }
    }

    fn new_warnings(&mut self, config: &Config) -> Vec<cx::ConfigWarning> {
        let warnings = config.warnings.iter();
        warnings.filter(|warning| self.remember(warning.to_string())).cloned().collect()
    }

    /// Warns of patterns that match nothing, when tools or patterns have become known since the last check.
    async fn check_patterns(&mut self) {
        let loads = self.executor.config_status().map_or(0, |status| status.count);
        let tools = self.executor.server_stats().into_iter().map(|server| server.tools).collect();
        let known = Some((loads, tools));
        if self.checked == known {
            return;
        }
        self.checked = known;
        let executor = self.executor.clone();
        let Ok(unmatched) = spawn_blocking(move || executor.unmatched_patterns()).await else { return };
        for pattern in unmatched {
            self.warn_once(pattern.to_string());
        }
    }

    fn warn_once(&mut self, text: String) {
        if self.remember(text.clone()) {
            diagnostic::print_warning(&text);
        }
    }

    /// Whether a warning is new.
    fn remember(&mut self, text: String) -> bool {
        if self.printed.len() >= MAX_REMEMBERED {
            self.printed.clear();
        }
        self.printed.insert(text)
    }
}
