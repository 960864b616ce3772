//! `cx replay`, and the file of `cx run --record`.

use std::path::Path;

use anyhow::Context as _;
use cx::{CancellationToken, ExecuteResult, Executor, Limits, Recording, Replay, Script};
use serde_json::{Value, json};

use crate::args::ReplayArguments;
use crate::delivery::{deliver, max_wait};
use crate::diagnostic::{self, invalid};
use crate::exit::ExitStatus;
use crate::text::shown_path;
use crate::{document, dry_run, logging, output, signals, source, writer};

/// Runs the script of a recording again, and reports the first difference.
///
/// # Errors
///
/// Mistakes in the file, or in the script that replaces the recorded one.
pub(crate) fn run(arguments: &ReplayArguments) -> anyhow::Result<ExitStatus> {
    logging::start();
    let recording = read(&arguments.file).map_err(invalid)?;
    if arguments.explain {
        output::print_text(&recording.explain())?;
        return Ok(ExitStatus::Success);
    }
    let edited = arguments.edit.as_deref();
    let edited = edited.map(|path| source::read_bounded(path, "the script", recording.limits().source_bytes));
    let edited = edited.transpose().map_err(invalid)?;
    let limits = recording.limits_within(match arguments.timeout {
        Some(time) => Limits { wall_time: time, cpu_time: time, ..Limits::CEILING },
        None => Limits::default(),
    });
    let executor = executor(&recording)?;
    let interrupted = CancellationToken::new();
    let cancel = interrupted.child_token();
    let writer = writer::start(cancel.clone())?;
    let cancelled = cancel.clone();
    let is_json = arguments.json;
    let edit = |mut script: Script| {
        script = script.limits(limits).cancel_with(cancel);
        if let Some(source) = edited {
            script = script.source_text(source);
        }
        if is_json {
            return script;
        }
        script.on_output_with(move |entry, cancel| output::print_entry(writer, entry, cancel))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        signals::watch_interrupts(interrupted.clone())?;
        let replay = executor.replay_with(&recording, edit).await;
        executor.close().await;
        let replay = replay?;
        // A replay that was interrupted, or whose stdout failed, has not been compared to its end.
        let status = if interrupted.is_cancelled() {
            ExitStatus::Interrupted
        } else if replay.difference.is_none() {
            ExitStatus::Success
        } else {
            ExitStatus::Failed
        };
        if !cancelled.is_cancelled() {
            print(&replay, &recording, arguments)?;
        }
        let max_wait = max_wait(&replay.result, arguments.timeout);
        Ok::<_, anyhow::Error>(deliver(writer, status, &interrupted, max_wait).await)
    })
}

/// An executor for the script of a recording. No configuration is read, so there are no servers, no state and no
/// models.
fn executor(recording: &Recording) -> anyhow::Result<Executor> {
    Ok(Executor::builder()
        .languages([recording.language()])
        .warm_instances(1)
        .total_memory_bytes(Limits::CEILING.memory_bytes)
        .on_compile(|progress| diagnostic::print_compile_progress(&progress))
        .build()?)
}

fn read(path: &Path) -> anyhow::Result<Recording> {
    let text = source::read_bounded(path, "the recording", Recording::MAX_FILE_BYTES)?;
    Recording::parse(&text).with_context(|| format!("failed to read the recording `{}`", shown_path(path)))
}

/// Writes the recording of a run to a file that only its user can read, whole or not at all.
///
/// # Errors
///
/// If there is none, or the file cannot be written.
pub(crate) fn write(path: &Path, recording: Option<&Recording>) -> anyhow::Result<()> {
    let shown = shown_path(path);
    let Some(recording) = recording else {
        diagnostic::print_warning(&format!("nothing is recorded to `{shown}`: the script was not started"));
        return Ok(());
    };
    if recording.has_unrecorded_files() {
        diagnostic::print_warning(&format!(
            "`{shown}` lacks what the script found in granted directories: a Python script's files are not recorded, \
             so a replay goes another way there; a TypeScript script's are"
        ));
    }
    document::replace_secret(path, &recording.to_text())
        .with_context(|| format!("failed to write the recording `{shown}`"))
}

fn to_json(replay: &Replay, recording: &Recording) -> Value {
    let result: Value = serde_json::from_str(&replay.result.to_json_text()).unwrap_or_default();
    let difference = replay.difference.as_ref().map(|difference| {
        json!({ "call": difference.call, "expected": difference.expected, "found": difference.found })
    });
    json!({
        "same": replay.difference.is_none(),
        "difference": difference,
        "masked": recording.masked(),
        "result": result,
    })
}

fn print(replay: &Replay, recording: &Recording, arguments: &ReplayArguments) -> anyhow::Result<()> {
    if arguments.json {
        return Ok(output::print_json(&to_json(replay, recording).to_string())?);
    }
    let result = &replay.result;
    if let Some(difference) = &replay.difference {
        if difference.call.is_none() {
            print_outcome(result, recording)?;
        }
        let what = if arguments.edit.is_some() { "the edited script" } else { "the replay" };
        diagnostic::print_note(&format!("{what} goes another way at {difference}"));
        if recording.masked() > 0 {
            diagnostic::print_note(&format!(
                "hint: {} masked in the recording; a script that looks into one goes another way",
                secrets(recording.masked())
            ));
        }
        return Ok(());
    }
    print_outcome(result, recording)?;
    let masked = match recording.masked() {
        0 => String::new(),
        found => format!("; {} masked in both", secrets(found)),
    };
    diagnostic::print_note(&format!("the outcome is the recorded one{masked}"));
    Ok(())
}

fn secrets(count: u64) -> String {
    if count == 1 { "1 secret is".to_owned() } else { format!("{count} secrets are") }
}

fn print_outcome(result: &ExecuteResult, recording: &Recording) -> anyhow::Result<()> {
    match (result.value_json(), result.error()) {
        (Some(value), _) => output::print_value(value, writer::has_output())?,
        (None, Some(error)) => {
            diagnostic::print_script_error(error, &result.returned, recording.script_name());
        }
        (None, None) => {}
    }
    dry_run::print_planned_calls(result);
    Ok(())
}
