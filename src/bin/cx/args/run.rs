//! Arguments of the commands that run or check one script: `run` and `watch`, `replay`, `repl`, `check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};

use super::nats::NatsArguments;
use super::script::{ScriptArguments, ScriptLanguage};
use super::time::parse_time;

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("source").required(true).args(["file", "eval"]))]
pub(crate) struct RunArguments {
    /// The script's file, `-` for stdin, or the name of a saved script (`./NAME` is always a file)
    pub(crate) file: Option<PathBuf>,

    /// Run this code instead of a file
    #[arg(short = 'e', long, value_name = "CODE")]
    pub(crate) eval: Option<String>,

    /// The script's language [default: Python for `.py` files, else TypeScript]
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Option<ScriptLanguage>,

    /// The script's `input`; `inputs` in Python. `@-` reads it from stdin
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) input: Option<String>,

    #[command(flatten)]
    pub(crate) script: ScriptArguments,

    /// Use the state of this session instead of the workspace's
    #[arg(long, value_name = "HANDLE")]
    pub(crate) session: Option<String>,

    /// Run the script in a worker process of this server (`cx serve --http --compute`); its tools, approvals and
    /// state stay here
    #[arg(long, value_name = "URL", conflicts_with_all = ["nats", "isolation"])]
    pub(crate) remote: Option<String>,

    /// Read the token for --remote from this file
    #[arg(long, value_name = "FILE", requires = "remote", conflicts_with_all = ["nats", "isolation"])]
    pub(crate) remote_token_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) nats: NatsArguments,

    /// Call only read-only tools; list the other calls instead
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print the result, or why the script could not be run, as one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Print resource usage and dropped output to stderr
    #[arg(long)]
    pub(crate) stats: bool,

    /// Write a trace of the run to FILE: a page if it ends with .html, for Perfetto if it ends with
    /// .json
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,

    /// Record the run to FILE, for `cx replay`: the script, its input, every answer and the outcome, with
    /// secrets masked
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArguments {
    /// A file that `cx run --record` has written
    pub(crate) file: PathBuf,

    /// Run this script instead of the recorded one, with the recorded answers
    #[arg(long, value_name = "SCRIPT")]
    pub(crate) edit: Option<PathBuf>,

    /// Run nothing; print the contents of the recording
    #[arg(long, conflicts_with_all = ["edit", "timeout", "json"])]
    pub(crate) explain: bool,

    /// Maximum wall-clock time and CPU time of the script [default: as recorded, at most 30s and 10s]. It bounds
    /// the wait for the reader of stdout too
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Print the result and the first difference as one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `cx repl`.
#[derive(Args, Debug)]
pub(crate) struct ReplArguments {
    /// The language of the inputs
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = ScriptLanguage::Ts)]
    pub(crate) lang: ScriptLanguage,

    /// Use the state of this session instead of the workspace's
    #[arg(long, value_name = "HANDLE")]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) script: ScriptArguments,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("source").required(true).args(["file", "eval"]))]
pub(crate) struct CheckArguments {
    /// The script's file, `-` for stdin, or the name of a saved script (`./NAME` is always a file)
    pub(crate) file: Option<PathBuf>,

    /// Check this code instead of a file
    #[arg(short = 'e', long, value_name = "CODE")]
    pub(crate) eval: Option<String>,

    /// The script's language [default: Python for `.py` files, else TypeScript]
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Option<ScriptLanguage>,

    /// Check all types too, with `tsc` or `pyright` on the path and the declarations of `cx types`
    #[arg(long)]
    pub(crate) types: bool,

    /// Start no server: calls of servers whose tools are not known yet are not checked
    #[arg(long)]
    pub(crate) offline: bool,

    /// Print the findings as one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) script: ScriptArguments,
}
