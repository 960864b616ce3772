//! `cx run`.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use cx::{CancellationToken, ExecuteResult, Executor, Json, Language, Limits, Script};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{RunArguments, ScriptLanguage};
use crate::console::Console;
use crate::exit::ExitStatus;
use crate::{diagnostic, logging, output, setup};

/// How long closing the servers may delay the exit. Servers end within four seconds; only an
/// authorization server that is renewing tokens may take longer, up to ten.
const MAX_CLOSE: Duration = Duration::from_secs(12);

/// Runs a script as the arguments specify, and prints its result.
///
/// # Errors
///
/// What is wrong with the arguments, the configuration or the script's file.
pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<ExitStatus> {
    logging::start();
    let (source, name, language) = read_source(&arguments)?;
    if arguments.script.fuel.is_some() && language != Language::Python {
        bail!("--fuel is for Python only: TypeScript has no instructions to count");
    }
    let mut config = setup::load(arguments.script.mcp_config.clone())?;
    diagnostic::print_warnings(&config.warnings);
    let has_terminal = Console::has_terminal();
    if !has_terminal {
        // Servers do without questions if they know that nobody can be asked.
        config.servers.iter_mut().for_each(|server| server.elicitation = false);
    }
    let limits = arguments.script.limits(config.limits, config.max_limits.cpu_time);
    let input = arguments.input.as_deref().map(read_input).transpose()?;
    let executor = setup::builder(config)
        .languages([language])
        // Only one script runs, so a second instance would be made in vain.
        .warm_instances(1)
        .total_memory_bytes(Limits::CEILING.memory_bytes)
        .on_compile(|progress| diagnostic::print_compile_progress(&progress))
        .build()?;
    let cancel = CancellationToken::new();
    let script = match language {
        Language::Python => Script::python(source),
        _ => Script::typescript(source),
    };
    let mut script = script.named(&name).limits(limits).cancel_with(cancel.clone());
    script = script.deny(arguments.script.deny).ask(arguments.script.ask);
    if !arguments.script.allow.is_empty() {
        // In addition to the configured list: a call must be permitted by both.
        script = script.allow(arguments.script.allow);
    }
    if let Some(handle) = arguments.session {
        script = script.session(handle);
    }
    if arguments.dry_run {
        script = script.dry_run();
    }
    if let Some(input) = input {
        script = script.input(input);
    }
    let console = Arc::new(Console::new(cancel.clone()));
    if !arguments.json {
        let console = Arc::clone(&console);
        script = script.on_output(move |entry| console.print(entry));
    }
    if !arguments.json && io::stderr().is_terminal() {
        let console = Arc::clone(&console);
        script = script.on_progress(move |progress| console.print_progress(progress));
    }
    if has_terminal {
        let (approvals, questions) = (Arc::clone(&console), Arc::clone(&console));
        script = script.approver(move |request| Arc::clone(&approvals).ask(request));
        script = script.elicitor(move |request| Arc::clone(&questions).elicit(request));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let interrupts = watch_interrupts(cancel)?;
        let result = executor.run(script).await;
        let _ = tokio::time::timeout(MAX_CLOSE, executor.close()).await;
        interrupts.abort();
        Ok::<_, anyhow::Error>(result?)
    })?;
    console.release();
    print_damaged_pins(&executor);
    if console.is_reader_gone() {
        return Ok(ExitStatus::Success);
    }
    let printed = print_result(&result, &name, arguments.json);
    if !arguments.json {
        diagnostic::print_planned_calls(&result);
    }
    if arguments.stats {
        diagnostic::print_stats(&result);
    }
    // A closed stdout is the reader's decision, not a failure.
    Ok(if printed.is_err() { ExitStatus::Success } else { ExitStatus::of(&result) })
}

/// Says which pinned definitions are damaged, also those of servers whose cached lists the run used.
fn print_damaged_pins(executor: &Executor) {
    match executor.tool_changes() {
        Ok(_) => diagnostic::print_damaged_pins(&executor.damaged_pins()),
        Err(error) => diagnostic::print_warning(&error.to_string()),
    }
}

fn print_result(result: &ExecuteResult, name: &str, json: bool) -> io::Result<()> {
    if json {
        return output::print_result(&result.to_json_text());
    }
    match (result.value_json(), result.error()) {
        (Some(value), _) => output::print_value(value),
        (None, Some(error)) => {
            diagnostic::print_script_error(error, &result.returned, name);
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

/// The first interrupt stops the script, so that its result is still printed. A second one, or a
/// script that does not stop, ends the process.
fn watch_interrupts(cancel: CancellationToken) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to watch for interrupts")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to watch for signals")?;
    Ok(tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if cancel.is_cancelled() {
                crate::exit::exit(ExitStatus::Interrupted);
            }
            cancel.cancel();
        }
    }))
}

/// The script's source, name and language.
fn read_source(arguments: &RunArguments) -> anyhow::Result<(String, String, Language)> {
    let asked = arguments.lang.map(|language| match language {
        ScriptLanguage::Ts => Language::TypeScript,
        ScriptLanguage::Py => Language::Python,
    });
    let of_no_file = |stem: &str| {
        let language = asked.unwrap_or(Language::TypeScript);
        (format!("{stem}.{}", if language == Language::Python { "py" } else { "ts" }), language)
    };
    if let Some(code) = &arguments.eval {
        let (name, language) = of_no_file("eval");
        return Ok((code.clone(), name, language));
    }
    let Some(path) = &arguments.file else {
        bail!("a script is needed: a file, `-` for stdin, or `-e CODE`");
    };
    if path.as_os_str() == "-" {
        let (name, language) = of_no_file("stdin");
        return Ok((read_text(io::stdin().lock(), "stdin")?, name, language));
    }
    let is_python = path.extension().is_some_and(|extension| extension == "py");
    let language = asked.unwrap_or(if is_python { Language::Python } else { Language::TypeScript });
    Ok((read_file(path, "the script")?, path.display().to_string(), language))
}

/// Parses `JSON`, or `@FILE` with a file that contains JSON.
fn read_input(argument: &str) -> anyhow::Result<Json> {
    let text = match argument.strip_prefix('@') {
        Some(path) => read_file(Path::new(path), "the input")?,
        None => argument.to_owned(),
    };
    Json::parse(&text).map_err(|error| {
        anyhow!("--input is not JSON: {error}; expected JSON such as '{{\"a\": 1}}', or @FILE")
    })
}

fn read_file(path: &Path, what: &str) -> anyhow::Result<String> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("failed to open {what} `{shown}`"))?;
    let kind = file.metadata().with_context(|| format!("failed to read {what} `{shown}`"))?;
    if kind.is_dir() {
        bail!("{what} `{shown}` is a directory, a file was expected");
    }
    read_text(file, &format!("{what} `{shown}`"))
}

fn read_text(reader: impl io::Read, what: &str) -> anyhow::Result<String> {
    // Enough for the largest possible source and input; bounds what is read from a device.
    const MAX_BYTES: usize = 64 << 20;
    let mut bytes = Vec::new();
    reader
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("failed to read {what}"))?;
    if bytes.len() > MAX_BYTES {
        bail!("{what} is larger than {MAX_BYTES} bytes");
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        anyhow!("{what} is not UTF-8: line {line}, byte {}", error.utf8_error().valid_up_to())
    })
}
