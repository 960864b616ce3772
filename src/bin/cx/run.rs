//! `cx run`.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use cx::command::NamedFile;
use cx::{
    CancellationToken, Config, ExecuteResult, Executor, ExecutorBuilder, Isolation, Json, Language, Limits,
    OpenTelemetry, Recording, RemoteWorkers, RunTrace, SavedScript, Script,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::args::{RunArguments, ScriptArguments};
use crate::console::Console;
use crate::delivery::{after_interrupt, deliver, max_wait};
use crate::diagnostic::invalid;
use crate::exit::ExitStatus;
use crate::output::OutputError;
use crate::rules::ArgumentRules;
use crate::source::Source;
use crate::text::shown_path;
use crate::trace::TraceFormat;
use crate::{
    audit_watch, diagnostic, document, dry_run, logging, output, replay, setup, signals, source, telemetry,
    trace, writer,
};

/// How long closing the servers may delay the exit. Servers end within four seconds; only a token renewal at an
/// authorization server may take longer, up to ten.
pub(crate) const MAX_CLOSE: Duration = Duration::from_secs(12);

/// How long the trace and the recording may take to be written once the user has interrupted the command. Regular files
/// take less; a pipe may have no reader.
const MAX_LAST_FILES: Duration = Duration::from_secs(3);

/// Runs a script as the arguments specify, and prints its result.
///
/// # Errors
///
/// Mistakes in the arguments or the configuration, or a script's file that cannot be read.
pub(crate) fn run(mut arguments: RunArguments) -> anyhow::Result<ExitStatus> {
    logging::start();
    let Source { text, name, language, saved } = source::read(&arguments).map_err(invalid)?;
    check_fuel(&arguments.script, language)?;
    let kept = KeptFiles::of_run(&arguments).map_err(invalid)?;
    let has_terminal = Console::has_terminal();
    let config = configuration(&arguments.script, has_terminal)?;
    let limits = arguments.script.limits(config.limits, config.max_limits.cpu_time);
    let input = arguments.input.as_deref().map(source::read_input).transpose().map_err(invalid)?;
    let input = checked_input(saved.as_deref(), input)?;
    // A run is too short for metrics, which are sent every minute.
    let telemetry = telemetry::start_traces(config.open_telemetry.as_ref())?;
    let (executor, traced) = executor(config, language, &mut arguments, &kept, telemetry.as_ref())?;
    // The first token is for the user's interrupt, the second also for a failing stdout.
    let interrupted = CancellationToken::new();
    let cancel = interrupted.child_token();
    let writer = writer::start(cancel.clone())?;
    let cancelled = cancel.clone();
    let mut script = Script::new(language, text).named(&name).limits(limits).cancel_with(cancel);
    if let Some(input) = input {
        script = script.input(input);
    }
    let mut rules = ArgumentRules::new(&arguments.script);
    rules.warn(&executor);
    script = with_options(script, &mut arguments);
    let console = Arc::new(Console::new(writer));
    script = with_console(script, &console, arguments.json, has_terminal);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut recorded = None;
    let status = runtime.block_on(async {
        signals::watch_interrupts(interrupted.clone())?;
        let result = match &kept.recording {
            None => executor.run(script).await.map(|result| (result, None)),
            Some(_) => executor.record(script).await,
        };
        let _ = tokio::time::timeout(MAX_CLOSE, executor.close()).await;
        console.release();
        print_damaged_pins(&executor);
        rules.warn(&executor);
        print_audit_failure(&executor);
        let (result, recording) = result?;
        // The result of a run that was cancelled because stdout failed cannot be printed.
        if interrupted.is_cancelled() || !cancelled.is_cancelled() {
            print_result(&result, &name, &arguments)?;
        }
        recorded = recording;
        let status = ExitStatus::from_result(&result);
        let max_wait = max_wait(&result, arguments.script.timeout);
        Ok::<_, anyhow::Error>(deliver(writer, status, &interrupted, max_wait).await)
    });
    telemetry::finish(telemetry.as_ref());
    let trace = traced.lock().take();
    let written = runtime.block_on(kept.write_unless_interrupted(trace, recorded, &interrupted));
    let Some(written) = written else {
        diagnostic::print_warning("interrupted before the trace or the recording was written");
        return status.map(|_status| ExitStatus::Interrupted);
    };
    // The result has been printed, perhaps as JSON, so this failure is reported on stderr.
    status.and_then(|status| written.map_err(diagnostic::after_output).map(|()| status))
}

/// The configuration with the arguments, which have precedence. Prints its warnings.
fn configuration(arguments: &ScriptArguments, has_terminal: bool) -> anyhow::Result<Config> {
    let mut config = setup::load(arguments.mcp_config.clone())?;
    diagnostic::print_warnings(&config.warnings);
    if !has_terminal {
        // Servers work without elicitation if they know that it is not available.
        config.servers.iter_mut().for_each(|server| server.elicitation = false);
    }
    if arguments.llm {
        config.enable_llm();
    }
    config.isolation = setup::isolation(arguments.isolation.as_ref(), config.isolation);
    Ok(config)
}

/// The trace of the run, once it has ended.
type Traced = Arc<Mutex<Option<RunTrace>>>;

/// The executor of the run, and where it puts the trace if one is kept.
fn executor(
    config: Config,
    language: Language,
    arguments: &mut RunArguments,
    kept: &KeptFiles,
    telemetry: Option<&OpenTelemetry>,
) -> anyhow::Result<(Executor, Traced)> {
    let audit = arguments.script.audit.take();
    let grants = setup::grants(&arguments.script)?;
    let builder = telemetry::attach(builder(config, language, audit)?.grants(grants), telemetry);
    let (mut builder, elsewhere) = elsewhere(builder, arguments)?;
    let traced = Traced::default();
    if kept.trace.is_some() {
        let traced = Arc::clone(&traced);
        builder = builder.on_trace(move |run| *traced.lock() = Some(run));
    }
    Ok((setup::built(builder.build(), elsewhere)?, traced))
}

/// The input of the script: that of a saved one is checked against its schema.
///
/// # Errors
///
/// If it violates the schema.
fn checked_input(saved: Option<&SavedScript>, input: Option<Json>) -> anyhow::Result<Option<Json>> {
    let Some(saved) = saved else { return Ok(input) };
    let checked = saved.check_input(input).map_err(|error| {
        invalid(anyhow::anyhow!("--input of `{}`: {}: {}", saved.name, error.code, error.message))
    })?;
    Ok(Some(checked))
}

/// Checks that a limit of instructions is for a language that has them.
///
/// # Errors
///
/// If it is for TypeScript.
pub(crate) fn check_fuel(arguments: &ScriptArguments, language: Language) -> anyhow::Result<()> {
    if arguments.fuel.is_some() && language != Language::Python {
        return Err(invalid(anyhow::anyhow!(
            "--fuel is for Python only: TypeScript has no instructions to count"
        )));
    }
    Ok(())
}

/// Where the script is executed, if the arguments name another machine: the builder with it, and the argument.
fn elsewhere(
    builder: ExecutorBuilder,
    arguments: &RunArguments,
) -> anyhow::Result<(ExecutorBuilder, Option<&'static str>)> {
    let queue = setup::nats(&arguments.nats)?;
    Ok(match (&arguments.remote, queue) {
        (Some(url), _) => {
            let mut workers = RemoteWorkers::new(url);
            if let Some(file) = &arguments.remote_token_file {
                // Each connection reads it, because it may be replaced. One that no connection can use is a mistake.
                let failed =
                    |error: io::Error| anyhow::anyhow!("--remote-token-file {}: {error}", shown_path(file));
                let is_file = fs::metadata(file).map(|metadata| metadata.is_file());
                let checked = is_file.and_then(|is_file| match is_file {
                    true => NamedFile::open_secret(file).map(drop),
                    // The writer of a pipe expects one reader.
                    false => Ok(()),
                });
                checked.map_err(|error| invalid(failed(error)))?;
                workers.token_file = Some(file.clone());
            }
            (builder.isolation(Isolation::Remote(workers)), Some("--remote"))
        }
        (None, Some(queue)) => (builder.isolation(queue), Some("--nats")),
        (None, None) => (builder, None),
    })
}

/// The files that a run leaves behind.
struct KeptFiles {
    trace: Option<(PathBuf, TraceFormat)>,
    recording: Option<PathBuf>,
}

impl KeptFiles {
    /// The files that the arguments name. Checks that they can be written before the script has effects.
    fn of_run(arguments: &RunArguments) -> anyhow::Result<Self> {
        let trace = arguments.trace.clone();
        let trace = trace.map(|path| TraceFormat::from_path(&path).map(|format| (path, format)));
        let kept = Self { trace: trace.transpose()?, recording: arguments.record.clone() };
        let traced_to = kept.trace.as_ref().map(|(path, _format)| path);
        if let (Some(trace), Some(recording)) = (traced_to, &kept.recording)
            && document::is_same(trace, recording)
        {
            anyhow::bail!("--trace and --record name the same file: give each its own");
        }
        for (path, what) in [(traced_to, "trace"), (kept.recording.as_ref(), "recording")] {
            if let Some(path) = path {
                check_file(path, what)?;
            }
        }
        Ok(kept)
    }

    /// Writes both on a thread of its own, because a pipe that was named is written to when its reader comes, if ever.
    /// `None` if they are not written [`MAX_LAST_FILES`] after the user has interrupted the command. A second interrupt
    /// ends the process.
    async fn write_unless_interrupted(
        self,
        run: Option<RunTrace>,
        recording: Option<Recording>,
        interrupted: &CancellationToken,
    ) -> Option<anyhow::Result<()>> {
        if self.trace.is_none() && self.recording.is_none() {
            return Some(Ok(()));
        }
        let (sender, written) = oneshot::channel();
        let thread = thread::Builder::new().name("cx-files".to_owned()).spawn(move || {
            let _gone = sender.send(self.write(run, recording.as_ref()));
        });
        if let Err(error) = thread {
            let failed = anyhow::Error::new(error).context("failed to start the thread that writes files");
            return Some(Err(failed));
        }
        tokio::select! {
            written = written => Some(written.unwrap_or_else(|_gone| Err(anyhow::anyhow!("writing files panicked")))),
            () = after_interrupt(interrupted, MAX_LAST_FILES) => None,
        }
    }

    /// Writes both, the recording also if the trace cannot be written.
    fn write(&self, run: Option<RunTrace>, recording: Option<&Recording>) -> anyhow::Result<()> {
        let written = match (&self.trace, run) {
            (Some((path, format)), Some(run)) => trace::write(path, *format, &run)
                .with_context(|| format!("failed to write the trace `{}`", shown_path(path))),
            _ => Ok(()),
        };
        if let Some(path) = &self.recording {
            replay::write(path, recording)?;
        }
        written
    }
}

/// Checks that the trace or the recording can be written after the run.
fn check_file(path: &Path, what: &str) -> anyhow::Result<()> {
    document::check_replaceable(path).with_context(|| {
        let shown = shown_path(path);
        format!("the script is not run, because its {what} `{shown}` cannot be written")
    })
}

/// A builder for scripts of one language, one at a time.
///
/// # Errors
///
/// If the audit trail has no directory.
pub(crate) fn builder(
    config: Config,
    language: Language,
    audit: Option<PathBuf>,
) -> anyhow::Result<ExecutorBuilder> {
    let settings = config.audit.clone();
    Ok(setup::with_audit(setup::builder_for_runs(config), settings.as_ref(), audit)?
        .languages([language])
        // Only one script runs, so a second instance would not be used.
        .warm_instances(1)
        .total_memory_bytes(Limits::CEILING.memory_bytes)
        .on_compile(|progress| diagnostic::print_compile_progress(&progress)))
}

/// Applies the arguments about the script's calls and its state.
fn with_options(script: Script, arguments: &mut RunArguments) -> Script {
    let mut script = with_rules(script, &mut arguments.script);
    if let Some(handle) = arguments.session.take() {
        script = script.session(handle);
    }
    if arguments.dry_run { script.dry_run() } else { script }
}

/// Applies the rules and the time zone of the arguments.
pub(crate) fn with_rules(script: Script, options: &mut ScriptArguments) -> Script {
    let mut script = script.deny(std::mem::take(&mut options.deny)).ask(std::mem::take(&mut options.ask));
    if !options.allow.is_empty() {
        // In addition to the configured list: a call must be permitted by both.
        script = script.allow(std::mem::take(&mut options.allow));
    }
    if let Some(name) = options.time_zone.take() {
        script = script.time_zone(name);
    }
    script
}

/// Connects the script to a console that prints output and shows prompts.
pub(crate) fn with_console(
    mut script: Script,
    console: &Arc<Console>,
    is_json: bool,
    has_terminal: bool,
) -> Script {
    if !is_json {
        let console = Arc::clone(console);
        script = script.on_output_with(move |entry, cancel| console.print(entry, cancel));
    }
    if !is_json && io::stderr().is_terminal() {
        let (calls, own) = (Arc::clone(console), Arc::clone(console));
        script = script.on_progress(move |progress| calls.print_progress(progress));
        script = script.on_report(move |progress| own.print_report(progress));
    }
    if has_terminal {
        let (approvals, questions) = (Arc::clone(console), Arc::clone(console));
        script = script.approver(move |request| Arc::clone(&approvals).ask(request));
        script = script.elicitor(move |request| Arc::clone(&questions).elicit(request));
    }
    script
}

/// Reports damaged pinned definitions, including those of servers whose cached lists were used.
pub(crate) fn print_damaged_pins(executor: &Executor) {
    match executor.tool_changes() {
        Ok(_) => diagnostic::print_damaged_pins(&executor.damaged_pins()),
        Err(error) => diagnostic::print_warning(&error.to_string()),
    }
}

/// Warns if the run is not, or only partly, in the audit trail, or if the trail is not signed.
fn print_audit_failure(executor: &Executor) {
    let Some(status) = executor.audit_status() else { return };
    audit_watch::print_failures(&status);
    if status.failure.is_none() && status.dropped > 0 {
        diagnostic::print_warning(&format!("events that are not in the audit trail: {}", status.dropped));
    }
}

fn print_result(result: &ExecuteResult, name: &str, arguments: &RunArguments) -> Result<(), OutputError> {
    if arguments.json {
        output::print_json(&result.to_json_text())?;
        diagnostic::print_output_bound(result);
    } else {
        match (result.value_json(), result.error()) {
            (Some(value), _) => output::print_value(value, writer::has_output())?,
            (None, Some(error)) => diagnostic::print_script_error(error, &result.returned, name),
            (None, None) => {}
        }
        dry_run::print_planned_calls(result);
    }
    if arguments.stats {
        diagnostic::print_stats(result, !arguments.json);
    }
    Ok(())
}
