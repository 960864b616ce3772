//! Servers and clients of third parties.

/// Clients over stdio and HTTP.
mod clients;
/// The official conformance suite, with cx as its client and as its server.
mod conformance;
/// Clients whose connections are cut.
mod cut;
/// Agent frameworks over stdio.
mod frameworks;
/// Servers over HTTP, with and without a token.
mod http;
/// Servers in Python: an old SDK and the current one.
mod python;
/// What servers have besides tools.
mod resources;
/// Which scenarios of the conformance suite hold, and why others do not.
mod scenarios;
/// Servers from npm and PyPI over stdio.
mod servers;
/// What `cx types` writes, read by TypeScript's and Python's type checkers.
mod types;
