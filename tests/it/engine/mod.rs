//! What scripts can do in both engines, what stops them, and what must be out of their reach.

/// Back ends of an embedder.
mod backend;
/// What back ends can ask their host.
mod backend_host;
/// The resolution of the clocks that scripts read.
mod clocks;
/// The examples for embedders, and what they promise.
mod embedding;
/// Attacks of docs/threats.md, groups JC, JM, JE and BV, by number.
mod escape;
/// Requests of scripts to hosts that a person has granted.
mod fetch;
/// The same over TLS.
mod fetch_tls;
/// Files of scripts: the scratch directory and granted directories, in both languages.
mod files;
/// Fuel: the limit of Python that depends on no clock.
mod fuel;
/// Built-in functions that V8 does not interrupt, by number.
mod guards;
/// Values that are printed: how they look, and attacks on the code that prints them.
mod inspect;
/// Runs in worker processes: the same outcomes, and what ends a worker.
mod isolation;
/// Attacks that may take a process down, in worker processes.
mod isolation_threats;
/// The library as an embedder uses it.
mod library;
/// The life of an executor and of its runs.
mod lifecycle;
/// Limits in pairs: obeyed and violated.
mod limits;
/// Language models in scripts.
mod llm;
/// Streamed answers of models that are left before their end.
mod llm_streams;
/// What models say beside their answers.
mod llm_threats;
/// Memory that no engine's meter sees, by number.
mod memory_threats;
/// Functions of the embedder that panic.
mod panics;
/// Scripts that were written for another host with Python.
mod python_bridge;
/// Attacks of docs/threats.md, group PX: out of the interpreter, and through the host functions.
mod python_escape;
/// The first Python run of a machine.
mod python_first_run;
/// Attacks of docs/threats.md, groups PC and PM, and limits in pairs: obeyed and violated.
mod python_limits;
/// The Python component and its documents.
mod python_modules;
/// Many runs of Python, which release everything.
mod python_runs;
/// Attacks of docs/threats.md, group BV on Python: boundary values.
mod python_values;
/// Recordings of runs, and replays without what they used.
mod replay;
/// Behavior of scripts: a file each, and a snapshot of the whole outcome.
mod scripts;
/// What scripts keep between runs, as an embedder sees it.
mod state;
/// The local time zone of scripts.
mod time_zones;
