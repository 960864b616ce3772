//! Data that several checks share: the configuration, and an executor made from it.

use std::sync::{Arc, Mutex, PoisonError};

use cx::{CompileProgress, Config, Executor};

use crate::setup;

/// The configuration under examination.
pub(super) struct DoctorContext {
    pub(super) config: Config,
    pub(super) executor: Executor,
    /// Why Python's machine code cannot be stored.
    pub(super) not_kept: Arc<Mutex<Option<String>>>,
}

impl DoctorContext {
    /// An executor like that of `cx serve`, which starts nothing by itself and writes no audit trail.
    ///
    /// # Errors
    ///
    /// If none can be made from the configuration.
    pub(super) fn new(config: &Config) -> anyhow::Result<Self> {
        let not_kept = Arc::new(Mutex::new(None));
        let listener = Arc::clone(&not_kept);
        let mut enabled = config.clone();
        // Whether scripts may ask a model is reported; doctor's own question does not depend on that.
        enabled.enable_llm();
        let executor = setup::builder(enabled)
            .warm_instances(0)
            .languages([])
            .on_compile(move |progress| {
                if let CompileProgress::NotKept(reason) = progress {
                    *listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                }
            })
            .build()?;
        Ok(Self { config: config.clone(), executor, not_kept })
    }
}
