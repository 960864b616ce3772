//! The data of a run's page, from either source: a [`RunTrace`], or the lines of an audit trail, which contain neither
//! the source nor the output.

use std::time::Duration;

use cx::{LogLevel, RunTrace};

/// A run to be drawn. All times are durations since it was requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) id: String,
    pub(crate) script: String,
    pub(crate) language: &'static str,
    pub(crate) duration: Duration,
    pub(crate) end: DrawnEnd,
    pub(crate) usage: DrawnUsage,
    pub(crate) calls: Vec<DrawnCall>,
    /// Number of further calls.
    pub(crate) calls_dropped: u64,
    /// The script and its result. `None` if they are not known.
    pub(crate) contents: Option<Contents>,
    /// A note for the reader of the page.
    pub(crate) note: Option<String>,
}

/// How a run has ended.
#[derive(Clone, Debug, Default)]
pub(crate) enum DrawnEnd {
    /// It has not ended, as far as is known.
    #[default]
    None,
    Returned,
    Cancelled,
    Failed(Failure),
}

/// Why a run has failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) stack: Option<String>,
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DrawnUsage {
    pub(crate) queue_time: Duration,
    pub(crate) cpu_time: Duration,
    pub(crate) approval_time: Duration,
    pub(crate) memory_bytes: u64,
    pub(crate) tool_calls: u64,
    pub(crate) tool_calls_refused: u64,
    pub(crate) tool_result_bytes: u64,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub(crate) struct DrawnCall {
    pub(crate) server: String,
    pub(crate) tool: String,
    /// When the script made it.
    pub(crate) requested: Duration,
    /// When it was sent; `None` if it was not.
    pub(crate) sent: Option<Duration>,
    pub(crate) ended: Duration,
    /// For how long it waited for an approval.
    pub(crate) approval: Duration,
    pub(crate) status: String,
    pub(crate) is_error: bool,
    pub(crate) message: Option<String>,
    pub(crate) argument_bytes: u64,
    pub(crate) result_bytes: u64,
}

/// The parts that a trace has and an audit trail does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) source: String,
    pub(crate) output: Vec<DrawnOutput>,
    pub(crate) output_dropped: u64,
    pub(crate) value: Option<String>,
}

/// One entry of a script's output.
#[derive(Clone, Debug)]
pub(crate) struct DrawnOutput {
    pub(crate) at: Duration,
    /// `None` for a content block.
    pub(crate) level: Option<LogLevel>,
    pub(crate) text: String,
}

impl From<&RunTrace> for Drawing {
    fn from(trace: &RunTrace) -> Self {
        let usage = &trace.usage;
        let end = match &trace.error {
            Some(error) => DrawnEnd::Failed(Failure {
                code: error.code.as_str().to_owned(),
                message: Some(error.message.clone()),
                hint: error.hint.clone(),
                line: error.line,
                stack: error.stack.clone(),
            }),
            None if trace.value.is_some() => DrawnEnd::Returned,
            None => DrawnEnd::Cancelled,
        };
        let calls = trace.calls.iter().map(|call| DrawnCall {
            server: call.server.clone(),
            tool: call.tool.clone(),
            requested: call.requested,
            sent: call.sent,
            ended: call.ended,
            approval: call.approval,
            status: call.status.to_owned(),
            is_error: call.is_error,
            message: call.message.clone(),
            argument_bytes: call.argument_bytes as u64,
            result_bytes: call.result_bytes as u64,
        });
        let output = trace.output.iter().map(|entry| DrawnOutput {
            at: entry.at,
            level: entry.level,
            text: entry.text.clone(),
        });
        Self {
            id: trace.id.clone(),
            script: trace.script.clone(),
            language: trace.language.title(),
            duration: trace.duration,
            end,
            usage: DrawnUsage {
                queue_time: usage.queue_time,
                cpu_time: usage.cpu_time,
                approval_time: usage.approval_time,
                memory_bytes: usage.memory_bytes as u64,
                tool_calls: usage.tool_calls,
                tool_calls_refused: usage.tool_calls_refused,
                tool_result_bytes: usage.tool_result_bytes,
            },
            calls: calls.collect(),
            calls_dropped: trace.calls_dropped,
            contents: Some(Contents {
                source: trace.source.clone(),
                output: output.collect(),
                output_dropped: trace.output_dropped,
                value: trace.value.clone(),
            }),
            note: None,
        }
    }
}
