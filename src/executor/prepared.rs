//! What a run needs of its executor. A run whose options are invalid is refused here, before observers hear of it.

use std::sync::Arc;

use tokio::sync::watch;

use super::core::Executor;
use super::servers::ServerSet;
use super::settings::Settings;
use crate::error::Error;
use crate::run::grants::{Grants, RunGrants};
use crate::run::limits::Limits;
use crate::run::script::Script;
use crate::run::state::{NoState, StateAccess};
use crate::run::time_zone::TimeZone;
use crate::storage::state::{DefaultScope, RunState, StateScope};
use crate::tools::policy::Policy;

/// A run that can be started. Its values were determined once, so that it and its observers get the same.
pub(super) struct PreparedRun {
    pub(super) script: Script,
    pub(super) settings: Settings,
    pub(super) limits: Limits,
    /// The maximum limits, which the operator may lower during the run.
    pub(super) max_limits: watch::Receiver<Limits>,
    pub(super) grants: Arc<RunGrants>,
    pub(super) policy: Policy,
    pub(super) time_zone: TimeZone,
    pub(super) state: StateAccess,
    /// Kept until the run has ended: servers that nothing else uses any more end then.
    pub(super) servers: Arc<ServerSet>,
}

impl Executor {
    /// Determines what a run gets that may reach what the executor grants it. Nothing is started.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), for options of the script that are invalid.
    pub(super) fn prepare(&self, script: Script) -> Result<PreparedRun, Error> {
        self.prepare_with(script, |grants, script| grants.of_run(&script.permissions))
    }

    /// As [`prepare`](Self::prepare), for a run that reaches nothing of the machine.
    pub(super) fn prepare_without_grants(&self, script: Script) -> Result<PreparedRun, Error> {
        self.prepare_with(script, |_grants, _script| Ok(RunGrants::default()))
    }

    fn prepare_with(
        &self,
        mut script: Script,
        grants: impl FnOnce(&Grants, &Script) -> Result<RunGrants, Error>,
    ) -> Result<PreparedRun, Error> {
        // Subscribed before the settings are read, so that no change is missed.
        let max_limits = self.inner.max_limits.subscribe();
        let settings = self.inner.settings.read().clone();
        let grants = Arc::new(grants(&settings.grants, &script)?);
        let limits = script.limits.unwrap_or(settings.limits);
        limits.validate()?;
        self.inner.admission.check(limits.memory_bytes)?;
        let policy = script.policy()?;
        let time_zone = script.time_zone.as_deref().map_or(Ok(settings.time_zone), TimeZone::find)?;
        let state = self.run_state(&mut script)?;
        let servers = self.servers_of(&mut script)?;
        Ok(PreparedRun { script, settings, limits, max_limits, grants, policy, time_zone, state, servers })
    }

    /// The state of a run: its session's, or by default the workspace's.
    fn run_state(&self, script: &mut Script) -> Result<StateAccess, Error> {
        let tenant = script.tenant.clone();
        let session = script.session.take().map(|handle| StateScope::session_of(tenant.as_deref(), handle));
        let session = session.transpose()?;
        let Some((store, workspace)) = &self.inner.state else {
            return Ok(StateAccess::None(NoState::NotConfigured));
        };
        let scope = match (session, std::mem::take(&mut script.default_scope)) {
            (Some(scope), _) | (None, DefaultScope::Of(scope)) => scope,
            (None, DefaultScope::Workspace) => workspace.clone(),
            (None, DefaultScope::Unavailable) => return Ok(StateAccess::None(NoState::NoSession)),
        };
        Ok(StateAccess::Open(Arc::new(RunState::new(store.clone(), scope, script.is_dry_run))))
    }
}
