//! Checks of scripts, which run nothing of them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::core::Executor;
use crate::error::Error;
use crate::run::context::Purpose;
use crate::run::finding::Checked;
use crate::run::observer::Observation;
use crate::run::result::Outcome;
use crate::run::script::Script;

impl Executor {
    /// Checks a script without running any of it, and returns everything that is wrong with it, in the order of the
    /// source: whether it can be compiled, whether the servers and tools that it names exist and are permitted, whether
    /// arguments that are literals match their schemas, and whether calls are awaited. Servers that it names and whose
    /// tools are not known are asked for them.
    ///
    /// A finding is an [`Severity::Error`](crate::Severity::Error) if a run of the script cannot succeed.
    /// [`run`](Self::run) makes the same check first, and does not run a script with an error in its calls
    /// ([`ErrorCode::CheckFailed`](crate::ErrorCode::CheckFailed)).
    ///
    /// It is admitted and limited like a run. What ends it early is a finding too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), cx::Error> {
    /// use cx::{Executor, Script};
    /// use serde_json::{Value, json};
    ///
    /// let schema = json!({ "properties": { "n": { "type": "number" } }, "required": ["n"] });
    /// let double = |_: Value| async { Ok::<_, String>(0) };
    /// let executor = Executor::builder().tool("math.double", schema, double).build()?;
    /// let script = Script::typescript("await tools.math.dubble({ n: 1 });\nawait tools.math.double({});");
    /// let checked = executor.check(script).await?;
    /// let found: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
    /// assert_eq!(found, [
    ///     "line 1, column 18: TOOL_NOT_FOUND: no tool `dubble` on server `math`; did you mean `double`?",
    ///     "line 2, column 18: INVALID_ARGUMENTS: missing `n` (a number)",
    /// ]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping the future ends the check.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn check(&self, script: impl Into<Script>) -> Result<Checked, Error> {
        self.check_with(script.into(), true).await
    }

    /// As [`check`](Self::check), by the tools that are known already: no server is started or asked. That the
    /// tools of a server are not known is a finding. Dropping the future ends the check.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn check_offline(&self, script: impl Into<Script>) -> Result<Checked, Error> {
        self.check_with(script.into(), false).await
    }

    async fn check_with(&self, script: Script, asks_servers: bool) -> Result<Checked, Error> {
        let cancel = self.inner.closed.child_token();
        let found = Arc::new(Mutex::new(Checked { program: 0..script.source.len(), ..Checked::default() }));
        let purpose = Purpose::Check { asks_servers, found: Arc::clone(&found) };
        let run = self.prepare(script)?;
        let result = self.perform(run, purpose, Observation::none(), None, cancel).await?;
        let mut checked = std::mem::take(&mut *found.lock());
        if let Outcome::Failed(error) = result.outcome {
            checked.add_error(error);
        }
        Ok(checked)
    }
}
