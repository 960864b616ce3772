//! One run: every decision about what its script may do, within which limits, and the record of what it did.
//!
//! [`context::ExecutionContext`] is the run while it runs; [`script`] is what it is made of, [`result`] what is left of
//! it. Nothing here knows V8, wasmtime or a protocol: engines and servers only pass requests on, so that none of them
//! can leave a check out.

mod activity;
pub(crate) mod approval;
mod call_status;
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
pub(crate) mod errors;
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
