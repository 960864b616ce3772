//! What of an event of a run is queued for its line.

use super::{CallNames, EventContent, Text, TextField, name_preview};
use crate::durations::microseconds;
use crate::run::observer::{ApprovalAnswered, Discovered, ModelAnswered, ModelSending, Refused, RunEvent};
use crate::run::result::Refusal;
use crate::tools::ToolErrorCode;

/// The content of an event, copied from what exists only while it is observed.
pub(super) fn content_of(event: &RunEvent<'_>) -> EventContent {
    match event {
        RunEvent::Started { source, limits, grants, input_bytes } => EventContent::RunStarted {
            source: (*source).to_owned(),
            limits: Box::new(**limits),
            grants: Box::new((*grants).clone()),
            input_bytes: *input_bytes,
        },
        RunEvent::Ended { result, code, duration } => EventContent::RunEnded {
            code: *code,
            duration: *duration,
            usage: result.map(|result| Box::new(result.usage)),
        },
        RunEvent::Sending(sending) => EventContent::CallSent {
            call: sending.call,
            names: CallNames::new(sending.server, sending.tool, sending.rule),
            argument_bytes: sending.argument_bytes,
            arguments: sending.arguments.text(),
            approver: sending.approver,
        },
        RunEvent::Answered(answered) => EventContent::CallEnded {
            call: answered.call,
            names: CallNames::new(answered.server, answered.tool, ""),
            code: answered.result.err(),
            duration: answered.duration,
            result: answered.result.ok().cloned(),
        },
        RunEvent::Simulated { call, server, tool, arguments } => {
            let fields = vec![
                ("call", (*call).into()),
                ("server", name_preview(server).into()),
                ("tool", name_preview(tool).into()),
            ];
            let arguments = (TextField::Arguments, Text::Json((*arguments).into()));
            EventContent::Texts("call.simulated", fields, vec![arguments])
        }
        RunEvent::ApprovalAsked { call, server, tool, arguments, reason } => {
            let fields = vec![
                ("call", (*call).into()),
                ("server", name_preview(server).into()),
                ("tool", name_preview(tool).into()),
                ("reason", name_preview(&reason.without_arguments()).into()),
                ("rule", name_preview(&reason.rule()).into()),
            ];
            let arguments = (TextField::Arguments, Text::Json(arguments.text()));
            EventContent::Texts("approval.asked", fields, vec![arguments])
        }
        RunEvent::ApprovalAnswered(answer) => approval_answered(answer),
        RunEvent::Discovered(discovered) => discovery(discovered),
        RunEvent::Refused(refused) => call_refused(refused),
        RunEvent::ModelSending(sending) => model_sending(sending),
        RunEvent::ModelAnswered(answered) => model_answered(answered),
        // The trail does not contain output.
        RunEvent::Printed { .. } => EventContent::Fields("run.printed", Vec::new()),
    }
}

fn discovery(discovered: &Discovered<'_>) -> EventContent {
    let fields = vec![
        ("kind", discovered.kind.into()),
        ("query", discovered.query.map(name_preview).into()),
        ("server", discovered.server.map(name_preview).into()),
        ("found", discovered.found.ok().into()),
        ("code", discovered.found.err().map(ToolErrorCode::as_str).into()),
        ("durationUs", microseconds(discovered.duration).into()),
    ];
    EventContent::Fields("discovery", fields)
}

fn call_refused(refused: &Refused<'_>) -> EventContent {
    let fields = vec![
        ("call", refused.call.into()),
        ("server", refused.server.map(name_preview).into()),
        ("tool", refused.tool.map(name_preview).into()),
        ("code", refused.code.as_str().into()),
        ("rule", refused.rule.map(name_preview).into()),
    ];
    EventContent::Fields("call.refused", fields)
}

fn approval_answered(answer: &ApprovalAnswered<'_>) -> EventContent {
    let fields = vec![
        ("call", answer.call.into()),
        ("server", name_preview(answer.server).into()),
        ("tool", name_preview(answer.tool).into()),
        ("approver", answer.approver.as_str().into()),
        ("answer", if answer.refusal.is_none() { "approved" } else { "refused" }.into()),
        ("reason", answer.refusal.map(Refusal::as_str).into()),
        ("durationUs", microseconds(answer.duration).into()),
    ];
    EventContent::Fields("approval.answered", fields)
}

fn model_sending(sending: &ModelSending<'_>) -> EventContent {
    let fields = vec![
        ("request", sending.request.into()),
        ("provider", name_preview(sending.provider).into()),
        ("model", sending.model.map(name_preview).into()),
    ];
    let mut texts = vec![(TextField::Messages, Text::Json(sending.messages.into()))];
    texts.extend(sending.system_prompt.map(|text| (TextField::SystemPrompt, Text::Plain(text.to_owned()))));
    EventContent::Texts("model.will", fields, texts)
}

fn model_answered(answered: &ModelAnswered<'_>) -> EventContent {
    let fields = vec![
        ("request", answered.request.into()),
        ("provider", name_preview(answered.provider).into()),
        ("model", answered.model.map(name_preview).into()),
        ("outcome", if answered.result.is_ok() { "ok" } else { "failed" }.into()),
        ("code", answered.result.err().map(name_preview).into()),
        ("inputTokens", answered.input_tokens.into()),
        ("outputTokens", answered.output_tokens.into()),
        ("finishReason", answered.finish_reason.map(name_preview).into()),
        ("violations", answered.violations.to_vec().into()),
        ("durationUs", microseconds(answered.duration).into()),
    ];
    let answer = answered.result.ok().flatten();
    let answer = answer.map(|text| (TextField::Answer, Text::Plain(text.to_owned())));
    EventContent::Texts("model.did", fields, answer.into_iter().collect())
}
