//! The server that agents use, as a process, over stdio and HTTP.

/// Approval by the client: elicitation, and pending input of the stateless revision.
mod approval;
/// Questions of upstream servers, passed on to the client.
mod elicitation;
/// The same over HTTP: its clients, what they see, and how it ends.
mod http;
/// The same over HTTP, with clients that break rules.
mod http_threats;
/// Attacks by number: JSON that takes far more memory when it is parsed.
mod json_memory;
/// Attacks of THREATS group LD, by number: many runs at once.
mod load;
/// The configuration while the server runs.
mod reload;
/// State of scripts and the run history, through the server and the command.
mod state;
/// `cx serve` over stdio.
mod stdio;
/// Attacks of THREATS group MP, by number.
mod threats;
