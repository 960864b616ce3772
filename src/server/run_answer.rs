//! Makes the answer to a run that has ended, and records the run if the answer leaves something
//! out.

use super::answer::draft::Draft;
use super::answer::{self, Answer, INVALID_ARGUMENTS};
use super::shared::{Shared, with_sources};
use crate::error::{Error, RuleList};
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::run::script::Language;

/// The hint of answers to calls that failed because of the server's state.
pub(crate) const TRY_AGAIN: &str = "call again in a few seconds";

/// Makes the answer to a call whose run has ended. If it leaves something out, the run is recorded
/// for `client`. Must be called in a tokio runtime.
pub(crate) fn answer_run(
    shared: &Shared,
    client: &str,
    language: Language,
    result: Result<ExecuteResult, Error>,
) -> Answer {
    shared.record_start(language, result.as_ref().err());
    shared.hung_workers.watch();
    let format = shared.options.format;
    let result = match result {
        Ok(result) => result,
        // The call's own list: those of the executor were checked when it was built.
        Err(Error::InvalidPattern { list: RuleList::Allow, problem }) => {
            let problem = format!("`allowedTools`: {problem}");
            return answer::refusal(format, INVALID_ARGUMENTS, &problem, None);
        }
        Err(Error::Closed) => {
            let code = ErrorCode::Cancelled.as_str();
            return answer::refusal(format, code, "the server is being stopped", None);
        }
        Err(error) => {
            let code = ErrorCode::EngineUnavailable.as_str();
            return answer::refusal(format, code, &with_sources(&error), Some(TRY_AGAIN));
        }
    };
    let draft = Draft::new(&result, shared.options.max_value);
    let history = shared.executor.history().filter(|_| draft.leaves_out());
    let record = history.and_then(|history| history.keep(client, &result));
    draft.answer(format, record.as_deref())
}
