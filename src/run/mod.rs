//! One run: its script, limits, context and result.

mod activity;
pub(crate) mod approval;
pub(crate) mod call_terms;
pub(crate) mod calls;
pub(crate) mod check;
mod client_data;
pub(crate) mod clock;
pub(crate) mod compute;
pub(crate) mod context;
mod discovery;
mod elicitation;
mod entered;
#[cfg(feature = "fetch")]
mod fetch;
#[cfg(not(feature = "fetch"))]
#[path = "no_fetch.rs"]
mod fetch;
#[cfg(feature = "fetch")]
mod fetches;
#[cfg(not(feature = "fetch"))]
#[path = "no_fetches.rs"]
mod fetches;
pub(crate) mod finding;
mod frames;
pub(crate) mod grants;
pub(crate) mod guide;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod isolation;
pub(crate) mod ledger;
pub(crate) mod limits;
mod listening;
mod llm;
mod models;
pub(crate) mod nested;
pub(crate) mod observer;
mod output;
mod prompts;
pub(crate) mod recording;
pub(crate) mod result;
pub(crate) mod result_json;
mod returned;
pub(crate) mod sampling;
pub(crate) mod script;
pub(crate) mod state;
pub(crate) mod tape;
pub(crate) mod time_zone;
pub(crate) mod tool_call;
