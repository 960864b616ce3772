//! One run: its script, limits, context and result.

pub(crate) mod approval;
pub(crate) mod calls;
pub(crate) mod clock;
pub(crate) mod compute;
pub(crate) mod context;
mod elicitation;
pub(crate) mod guide;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod ledger;
pub(crate) mod limits;
mod prompts;
pub(crate) mod result;
pub(crate) mod result_json;
mod returned;
pub(crate) mod script;
pub(crate) mod state;
