//! What scripts may call and use: the arguments of all commands that run scripts.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cx::{HostPattern, Isolation, Language, Limits};

use super::size::parse_memory;
use super::time::parse_time;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScriptLanguage {
    /// TypeScript or JavaScript
    #[value(alias = "typescript", alias = "js", alias = "javascript")]
    Ts,
    /// Python
    #[value(alias = "python")]
    Py,
}

impl From<ScriptLanguage> for Language {
    fn from(language: ScriptLanguage) -> Self {
        match language {
            ScriptLanguage::Ts => Self::TypeScript,
            ScriptLanguage::Py => Self::Python,
        }
    }
}

/// What scripts may call and use: the arguments shared by `run`, `repl` and `serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScriptArguments {
    /// Read servers from this `mcpServers` file instead of the discovered ones; its commands are
    /// trusted. Your own file still restricts what is allowed
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Allow only tools that match, as `server.tool` or `server.*`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,

    /// Deny tools that match; has precedence over --allow
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,

    /// Require approval, at the terminal or through the client, for each call of a tool that
    /// matches PATTERN or is `destructive`, `write` or `open-world`
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,

    /// Maximum wall-clock time of a script, whatever a client requests [default: as configured, else
    /// 30s, or up to 10m if a client requests it]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) timeout: Option<Duration>,

    /// Maximum CPU time of a script, whatever a client requests [default: as configured, else 10s, or
    /// as much as the wall-clock time that is requested]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) cpu_time: Option<Duration>,

    /// Maximum number of WebAssembly instructions of a Python script, counted by code that is slower
    /// and is compiled the first time [default: as configured, else no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Limits::MAX_FUEL))]
    pub(crate) fuel: Option<u64>,

    /// Memory limit of a script [default: as configured, else 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) memory: Option<usize>,

    /// Maximum number of tool calls of a script, whatever a client requests; 0 for no limit
    /// [default: as configured, else 1000, or any number if a client requests it]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u32>,

    /// Time zone that scripts see as the local one, such as Europe/Berlin, unless a client names
    /// another [default: as configured, else UTC]
    #[arg(long, value_name = "NAME")]
    pub(crate) time_zone: Option<String>,

    /// Let scripts read and list the files of this directory, besides what your configuration grants
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_read: Vec<PathBuf>,

    /// Let scripts create, change and delete files in this directory; to read there too, give it to
    /// --allow-read as well
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_write: Vec<PathBuf>,

    /// Let scripts send requests to this host, such as api.example.com or *.example.com:443; a
    /// private address needs a grant of its own
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_net: Vec<HostPattern>,

    /// Where scripts are executed: in this process, or in worker processes that have no files and no
    /// network (Linux) [default: as configured, else in-process]
    #[arg(long, value_name = "MODE", value_parser = isolation_modes())]
    pub(crate) isolation: Option<Isolation>,

    /// Write an audit trail of all scripts to this directory [default: as configured, else none]
    #[arg(long, value_name = "DIR")]
    pub(crate) audit: Option<PathBuf>,

    /// Let scripts ask the configured language model (`llm.ask`), within its budget
    #[arg(long)]
    pub(crate) llm: bool,
}

impl ScriptArguments {
    /// The limits set by the arguments; `default` for the others. The CPU time follows `--timeout`
    /// up to `max_cpu_time`, the configured maximum.
    pub(crate) fn limits(&self, default: Limits, max_cpu_time: Duration) -> Limits {
        let default = match self.timeout {
            Some(time) => default.with_wall_time(time, max_cpu_time),
            None => default,
        };
        Limits {
            cpu_time: self.cpu_time.unwrap_or(default.cpu_time),
            fuel: self.fuel.or(default.fuel),
            memory_bytes: self.memory.unwrap_or(default.memory_bytes),
            tool_calls: self.max_tool_calls.unwrap_or(default.tool_calls),
            ..default
        }
    }
}

/// The values of `--isolation`, which shells complete.
fn isolation_modes() -> impl TypedValueParser<Value = Isolation> {
    let [in_process, process] = Isolation::MODES;
    PossibleValuesParser::new([PossibleValue::new(in_process).alias("none"), PossibleValue::new(process)])
        .try_map(|name| Isolation::from_name(&name).ok_or("expected the name of a mode"))
}
