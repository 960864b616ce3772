//! The type of the engine of a language whose feature is off, and of worker processes on systems
//! without them. It has no value, so it is never used.

use std::io;
use std::sync::Arc;

use crate::engine::host::RunHost;
use crate::engine::instance::{Engine, Instance, Unprepared};
use crate::engine::stop::Stop;
use crate::run::check::survey::Survey;
use crate::run::result::{Outcome, ScriptError};

pub(crate) enum Absent {}

/// The program of worker processes.
#[cfg(not(all(feature = "process", target_os = "linux")))]
#[derive(Clone, Debug)]
pub(crate) enum WorkerProgram {}

impl Engine for Absent {
    const THREAD: &'static str = "";
    type Instance = Self;
    type Prepared = Self;

    fn spawn(&self, _name: String, _task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        match *self {}
    }

    async fn make(&self) -> Result<Self, String> {
        match *self {}
    }

    fn prepare(&self, _host: &dyn RunHost, _source: &str) -> Result<Self, Box<Unprepared>> {
        match *self {}
    }
}

impl Instance<Self> for Absent {
    fn stop(&self) -> &Arc<Stop> {
        match *self {}
    }

    fn set_memory_limit(&mut self, _bytes: usize) {
        match *self {}
    }

    async fn survey(
        &mut self,
        _host: &Arc<dyn RunHost>,
        _source: &str,
        _prepared: &mut Self,
    ) -> Result<Survey, Outcome> {
        match *self {}
    }

    async fn check(&mut self, _host: &Arc<dyn RunHost>, _source: &str, _prepared: Self) -> Outcome {
        match *self {}
    }

    async fn execute(&mut self, _host: &Arc<dyn RunHost>, _source: &str, _prepared: Self) -> Outcome {
        match *self {}
    }

    fn memory_bytes(&self) -> usize {
        match *self {}
    }
}
