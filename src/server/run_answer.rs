//! Makes the answer to a run that has ended, and records the run if the answer leaves something
//! out.

use super::answer::draft::Draft;
use super::answer::{self, Answer, INVALID_ARGUMENTS};
use super::arguments::parameters::RunParameter;
use super::shared::{Shared, with_sources};
use crate::error::{Error, RuleList};
use crate::machine::probe::Shortage;
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::run::script::Language;

/// The hint of answers to calls that failed because of the server's state.
pub(crate) const TRY_AGAIN: &str = "call again in a few seconds";

/// The hint of answers to calls whose engine does not get from the system what it needs.
const RAISE_LIMIT: &str = "calling again does not help: whoever runs the server has to raise that limit. A script \
                           in the other language may still work";

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
        Err(Error::InvalidOptions { option, problem }) => {
            let problem = format!("`{}`: {problem}", parameter(option));
            return answer::refusal(format, INVALID_ARGUMENTS, &problem, None);
        }
        Err(Error::Closed) => {
            let code = ErrorCode::Cancelled.as_str();
            return answer::refusal(format, code, "the server is being stopped", None);
        }
        Err(error) => {
            let code = ErrorCode::EngineUnavailable.as_str();
            let hint = if Shortage::is_cause(&error) { RAISE_LIMIT } else { TRY_AGAIN };
            return answer::refusal(format, code, &with_sources(&error), Some(hint));
        }
    };
    let draft = Draft::new(&result, shared.options.max_value);
    let history = shared.executor.history().filter(|_| draft.leaves_out());
    let record = history.and_then(|history| history.keep(client, &result));
    draft.answer(format, record.as_deref())
}

/// The parameter that sets an option of a run, or the option if no client can set it.
fn parameter(option: &'static str) -> &'static str {
    match option {
        "wall_time" => RunParameter::TimeoutMs.name(),
        "tool_calls" => RunParameter::MaxToolCalls.name(),
        "session" => RunParameter::Session.name(),
        other => other,
    }
}
