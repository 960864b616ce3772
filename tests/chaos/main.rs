//! An MCP server that breaks one rule at a time, written by hand so that it can send what no SDK would.
//!
//! ```text
//! chaos stdio MODE [VARIANT] [--notes FILE]
//! chaos http  MODE [VARIANT] [--notes FILE] [--at call|all]
//! chaos sse   MODE [VARIANT] [--notes FILE]
//! ```
//!
//! Without its fault it is a well-behaved server with a few small tools. A fault that belongs to a
//! call strikes in the tool `target` only, so that the other tools show what the fault does not affect.
//! Over HTTP it listens on a free port of the loopback interface and prints `listening URL`.
//!
//! Events that a test checks afterwards are appended to the notes, a line each: `started PID`,
//! `initialize`, `list`, `executed TOOL`, `cancelled ID`, `grandchild PID`, `answered JSON`,
//! `request METHOD PATH`, `elsewhere METHOD authorization=…`, `task JSON`, `tasks/METHOD ID`,
//! `resources/subscribe URI`, `listening JSON`, `requested NAME`.
#![expect(
    unsafe_code,
    clippy::exit,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test's program: it dies in every way there is, and starts processes"
)]

/// Questions before an answer.
mod elicits;
/// Faults of HTTP responses.
mod faults;
/// The transports over HTTP.
mod http;
/// Tasks of the stateless revision.
mod modern_tasks;
/// The mode, and the file of notes.
mod options;
/// The protocol, without a transport.
mod server;
/// The transport over pipes and its faults.
mod stdio;
/// Tasks that the server makes of calls, and their faults.
mod tasks;
/// The tools, and the faults of their definitions.
mod tools;

use std::sync::Arc;

use crate::options::{Options, Transport};
use crate::server::Server;

fn main() {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("chaos: {problem}");
            std::process::exit(2);
        }
    };
    options.note(&format!("started {}", std::process::id()));
    let transport = options.transport;
    let server = Arc::new(Server::new(options));
    match transport {
        Transport::Stdio => stdio::serve(&server),
        Transport::Http | Transport::Sse => http::serve(&server),
    }
}
