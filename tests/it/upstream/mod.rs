//! Upstream MCP servers that are slow, die, or break rules, and what is cached of them.

/// Files that are kept from one process to the next, also when processes are killed.
mod cache;
/// Calls that go wrong.
mod chaos_calls;
/// Servers behind an address that go wrong.
mod chaos_http;
/// The limiter of a server: circuit breaker, queue, rate limit, idle stop.
mod chaos_limiter;
/// Lists of tools that go wrong.
mod chaos_lists;
/// Servers that do not start.
mod chaos_start;
/// How tools are discovered, and how often servers are asked.
mod discovery;
/// Servers that ask the user, and for roots, where a user can be asked.
mod elicitation;
/// Attacks of docs/threats.md, group SA, by number: servers that ask for what cx does not offer.
mod sampling_threats;
/// One sign-in, used by several processes at once.
mod sign_in;
/// Servers over stdio: healthy, slow, crashing, garbled.
mod stdio;
/// Tools that run only as tasks.
mod tasks;
