//! The names of options, for errors that are about one.

use std::fmt;

/// An option of a builder, of a run or of a server, which an [`Error`](crate::Error) is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionName {
    /// [`Limits::wall_time`](crate::Limits::wall_time).
    WallTime,
    /// [`Limits::cpu_time`](crate::Limits::cpu_time).
    CpuTime,
    /// [`Limits::fuel`](crate::Limits::fuel).
    Fuel,
    /// [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    MemoryBytes,
    /// [`Limits::tool_calls`](crate::Limits::tool_calls).
    ToolCalls,
    /// [`Limits::calls_in_flight`](crate::Limits::calls_in_flight).
    CallsInFlight,
    /// [`Limits::source_bytes`](crate::Limits::source_bytes).
    SourceBytes,
    /// [`Limits::argument_bytes`](crate::Limits::argument_bytes).
    ArgumentBytes,
    /// [`Limits::result_bytes`](crate::Limits::result_bytes).
    ResultBytes,
    /// [`Limits::output_bytes`](crate::Limits::output_bytes).
    OutputBytes,
    /// [`Limits::answer_time`](crate::Limits::answer_time).
    AnswerTime,
    /// [`Limits::paused_time`](crate::Limits::paused_time).
    PausedTime,
    /// [`Limits::questions`](crate::Limits::questions).
    Questions,
    /// [`Limits::written_bytes`](crate::Limits::written_bytes).
    WrittenBytes,
    /// [`Limits::created_files`](crate::Limits::created_files).
    CreatedFiles,
    /// [`Limits::file_bytes`](crate::Limits::file_bytes).
    FileBytes,
    /// [`ExecutorBuilder::max_concurrent_runs`](crate::ExecutorBuilder::max_concurrent_runs).
    MaxConcurrentRuns,
    /// [`ExecutorBuilder::clock_resolution`](crate::ExecutorBuilder::clock_resolution).
    ClockResolution,
    /// [`ExecutorBuilder::time_zone`](crate::ExecutorBuilder::time_zone) and
    /// [`Script::time_zone`](crate::Script::time_zone).
    TimeZone,
    /// [`ExecutorBuilder::strict`](crate::ExecutorBuilder::strict).
    Strict,
    /// [`ExecutorBuilder::isolation`](crate::ExecutorBuilder::isolation).
    Isolation,
    /// [`ExecutorBuilder::runtime`](crate::ExecutorBuilder::runtime).
    Runtime,
    /// The language of a script, or one of [`ExecutorBuilder::languages`](crate::ExecutorBuilder::languages).
    Language,
    /// A native tool that is added to an executor or to a run.
    Tool,
    /// An MCP server that is added to an executor or to a run.
    Server,
    /// [`ToolRules::read_only`](crate::ToolRules::read_only) in the rules of a run.
    ReadOnly,
    /// [`Grants::read`](crate::Grants::read).
    AllowRead,
    /// [`Grants::write`](crate::Grants::write).
    AllowWrite,
    /// [`Grants::net`](crate::Grants::net).
    AllowNet,
    /// [`Script::permissions`](crate::Script::permissions).
    Permissions,
    /// [`Script::session`](crate::Script::session).
    Session,
    /// The queue of [`QueueOptions`](crate::QueueOptions).
    Nats,
    /// [`ExecutorBuilder::llm`](crate::ExecutorBuilder::llm).
    Llm,
    /// The provider of language models.
    LlmProvider,
    /// The address of the provider of language models.
    LlmUrl,
    /// [`LlmOptions::rounds`](crate::LlmOptions::rounds).
    LlmRounds,
    /// [`LlmOptions::tokens`](crate::LlmOptions::tokens).
    LlmTokens,
    /// [`LlmOptions::call_time`](crate::LlmOptions::call_time).
    LlmCallTime,
    /// A token of a server over HTTP.
    Token,
    /// The tenants of a server over HTTP.
    Tenants,
    /// The origins whose requests a server over HTTP accepts.
    AllowOrigins,
    /// The worker processes that a server over HTTP lends.
    LentWorkers,
    /// The export of traces and metrics.
    OpenTelemetry,
}

impl OptionName {
    /// The option's name, as in the builder, in [`Limits`](crate::Limits) or in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WallTime => "wall_time",
            Self::CpuTime => "cpu_time",
            Self::Fuel => "fuel",
            Self::MemoryBytes => "memory_bytes",
            Self::ToolCalls => "tool_calls",
            Self::CallsInFlight => "calls_in_flight",
            Self::SourceBytes => "source_bytes",
            Self::ArgumentBytes => "argument_bytes",
            Self::ResultBytes => "result_bytes",
            Self::OutputBytes => "output_bytes",
            Self::AnswerTime => "answer_time",
            Self::PausedTime => "paused_time",
            Self::Questions => "questions",
            Self::WrittenBytes => "written_bytes",
            Self::CreatedFiles => "created_files",
            Self::FileBytes => "file_bytes",
            Self::MaxConcurrentRuns => "max_concurrent_runs",
            Self::ClockResolution => "clock_resolution",
            Self::TimeZone => "time_zone",
            Self::Strict => "strict",
            Self::Isolation => "isolation",
            Self::Runtime => "runtime",
            Self::Language => "language",
            Self::Tool => "tool",
            Self::Server => "server",
            Self::ReadOnly => "read_only",
            Self::AllowRead => "allow_read",
            Self::AllowWrite => "allow_write",
            Self::AllowNet => "allow_net",
            Self::Permissions => "permissions",
            Self::Session => "session",
            Self::Nats => "nats",
            Self::Llm => "llm",
            Self::LlmProvider => "llm.provider",
            Self::LlmUrl => "llm.url",
            Self::LlmRounds => "llm.rounds",
            Self::LlmTokens => "llm.tokens",
            Self::LlmCallTime => "llm.call_time",
            Self::Token => "token",
            Self::Tenants => "tenants",
            Self::AllowOrigins => "allow_origins",
            Self::LentWorkers => "lent_workers",
            Self::OpenTelemetry => "openTelemetry",
        }
    }
}

impl fmt::Display for OptionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
