//! The integration tests: one binary, a folder for each subject.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic and start processes")]

mod audit;
mod command;
mod docs;
mod engine;
mod interop;
mod server;
mod slow;
/// What tests of several folders use: executors, servers, clients, and processes that may die.
mod support;
mod tools;
mod upstream;

/// The files of the guest half of Python.
mod guest;
/// Which types of other crates the public interface names.
mod interface;
/// The layers of the library, and the graph of its files.
mod layers;
/// Which module uses which third-party library.
mod libraries;
/// Reads the product's source for the tests of this folder.
mod source;
/// The rules of the tree: names, threats, twins of scripts.
mod tidy;
/// Lists of all variants of an enum.
mod variants;
