//! Makes the answer to a run that has ended, and records the run if the answer leaves something
//! out.

use super::answer::draft::Draft;
use super::answer::{self, Answer, INVALID_ARGUMENTS};
use super::arguments::parameters::RunParameter;
use super::metrics;
use super::shared::Shared;
use super::yielded::Printed;
use crate::error::{Error, OptionName, RuleList, with_sources};
use crate::machine::probe::Shortage;
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::run::script::Language;

/// The hint of answers to calls that failed because of the server's state.
pub(crate) const TRY_AGAIN: &str = "call again in a few seconds";

/// The hint of answers to calls whose engine cannot get resources from the system.
const RAISE_LIMIT: &str = "calling again does not help: whoever runs the server has to raise that limit. A script \
                           in the other language may still work";

/// Makes the answer to a call whose run has ended. If the answer leaves something out, the run is recorded for
/// `client`. For a run that has yielded, `printed` has the output that the client has received, and the run is recorded
/// under its id. Must be called in a tokio runtime.
pub(crate) async fn answer_run(
    shared: &Shared,
    client: &str,
    language: Language,
    result: Result<ExecuteResult, Error>,
    printed: Option<&Printed>,
) -> Answer {
    shared.record_start(language, result.as_ref().err());
    shared.hung_workers.watch();
    let format = shared.options.format;
    let result = match result {
        Ok(result) => result,
        // The call's own list: the lists of the executor were checked when it was built.
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
    let delivered = printed.map_or(0, Printed::close);
    let draft = Draft::new(&result, shared.options.max_value).without_first(delivered);
    let record = match printed.and_then(Printed::id) {
        Some(id) => {
            let history = shared.executor.history();
            history.and_then(|history| history.keep_as(client, id, &result))
        }
        None => {
            // A client that has cancelled a run does not read its answer.
            let is_read = result.error().is_none_or(|error| error.code != ErrorCode::Cancelled);
            let history = shared.executor.history().filter(|_| is_read && draft.leaves_out());
            history.and_then(|history| history.keep(client, &result))
        }
    };
    if let (Some(history), Some(id)) = (shared.executor.history(), &record) {
        // Awaited, because the client may request the record from another front end as soon as it has the answer.
        history.share(client, id).await;
    }
    let answer = draft.answer(format, record.as_deref());
    metrics::count_answer(result.usage.tool_result_bytes, answer.content_bytes());
    answer
}

/// The parameter that sets an option of a run, or the option's name if clients cannot set it.
fn parameter(option: OptionName) -> &'static str {
    match option {
        OptionName::WallTime => RunParameter::TimeoutMs.name(),
        OptionName::ToolCalls => RunParameter::MaxToolCalls.name(),
        OptionName::Session => RunParameter::Session.name(),
        other => other.as_str(),
    }
}
