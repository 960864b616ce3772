//! Questions of servers to the user: within the bounds of the run's prompts, and each answer checked
//! against the form.

use std::sync::Arc;

use futures::FutureExt as _;

use crate::run::prompts::{NoAnswer, Prompts};
use crate::tools::{
    ElicitationAnswer, ElicitationHandler, ElicitationMode, ElicitationRefusal, ElicitationRequest, Elicitor,
};

/// Passes the questions of all servers of a run to `elicitor`. An answer to a form is complete: it has
/// the defaults of what was left out.
pub(super) fn handler(elicitor: Elicitor, prompts: Arc<Prompts>, script: String) -> ElicitationHandler {
    Arc::new(move |mut request: ElicitationRequest| {
        let (elicitor, prompts) = (Arc::clone(&elicitor), Arc::clone(&prompts));
        request.script.clone_from(&script);
        request.time = prompts.time();
        async move {
            if !prompts.reserve() {
                return Err(ElicitationRefusal::TooManyQuestions { max: prompts.max() });
            }
            let mode = request.mode.clone();
            // Called in the first poll and not before, so that nothing is shown for a run that is over.
            let answer = async move { elicitor(request).await };
            match (prompts.show(answer).await, mode) {
                (Ok(ElicitationAnswer::Accept(filled)), ElicitationMode::Form(form)) => {
                    Ok(ElicitationAnswer::Accept(form.complete(filled)?))
                }
                (Ok(ElicitationAnswer::Accept(_)), ElicitationMode::Url(_)) => {
                    Ok(ElicitationAnswer::Accept(serde_json::Map::new()))
                }
                (Ok(ElicitationAnswer::Unavailable) | Err(NoAnswer::Failed), _) => {
                    Err(ElicitationRefusal::Unavailable)
                }
                (Ok(answer), _) => Ok(answer),
                (Err(NoAnswer::Elapsed), _) => Ok(ElicitationAnswer::Cancel),
                (Err(NoAnswer::RunOver), _) => Err(ElicitationRefusal::RunOver),
            }
        }
        .boxed()
    })
}
