//! Stands for the engine of a language whose feature is off. There is never one: it has no value.

use std::io;
use std::sync::Arc;

use crate::engine::pool::{Engine, Instance};
use crate::engine::stop::Stop;
use crate::run::context::ExecutionContext;
use crate::run::result::{Outcome, ScriptError};

pub(crate) enum Absent {}

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

    fn prepare(&self, _context: &ExecutionContext, _source: &str) -> Result<Self, Box<ScriptError>> {
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

    async fn check(&mut self, _context: &Arc<ExecutionContext>, _source: &str, _prepared: Self) -> Outcome {
        match *self {}
    }

    async fn execute(&mut self, _context: &Arc<ExecutionContext>, _source: &str, _prepared: Self) -> Outcome {
        match *self {}
    }

    fn memory_bytes(&self) -> usize {
        match *self {}
    }
}
