//! Runs over plain HTTP, for callers that speak no MCP: `POST /v1/runs` and its neighbors.
//!
//! The same authentication, rate limits, limits, policy, history and metrics apply as to `tools/call`. Callers are
//! clients without a session: a run is found only by its random id, and runs are not listed.

mod handlers;
mod openapi;

mod accept;
mod events;
mod request;
mod start;

pub(super) use handlers::routes;

#[cfg(test)]
mod tests;
