//! `cx repl`: a prompt whose inputs are scripts.

mod complete;
mod earlier;
mod lines;
mod pieces;
mod table;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use cx::{CancellationToken, ErrorCode, ExecuteResult, Executor, Json, Language, Limits, Script};
use parking_lot::Mutex;
use reedline::{
    ColumnarMenu, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder as _, Prompt,
    PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult,
    Validator, default_emacs_keybindings,
};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use self::complete::{NameCompleter, Names};
use self::earlier::EarlierNames;
use self::lines::{PlainLines, Typed};
use crate::args::ReplArguments;
use crate::console::Console;
use crate::exit::{ExitStatus, exit};
use crate::rules::ArgumentRules;
use crate::text::shown_path;
use crate::writer::{self, Stream, Writer};
use crate::{diagnostic, logging, output, run, setup, signals, terminal};

/// Maximum number of inputs that are remembered between sessions.
const MAX_HISTORY: usize = 1_000;

/// Maximum bytes of the file with them, which is read as a whole: a thousand inputs of many pages.
const MAX_HISTORY_BYTES: u64 = 64 << 20;

/// The name of an input in error messages.
const NAME: &str = "input";

const MENU: &str = "names";

const HELP: &str = "\
Each input is a script of its own, with top-level `await`. The value of its
last expression is printed, and is the next input's `input` (in Python `inputs`).
What is to stay longer goes into `state`.

Enter          runs the input, or begins another line while something is open
Alt+Enter      begins another line
Tab            completes servers, tools, parameters, and fields of `input`
Ctrl-C         drops the line, or stops the script
Ctrl-D         ends
:help          this text
:table on|off  lists of objects as tables, or as JSON
:quit          ends

In scripts `help()` says what there is.";

/// Reads inputs and runs them until the user ends it.
///
/// # Errors
///
/// What is wrong with the arguments and the configuration, or if stdin cannot be read.
pub(crate) fn run(arguments: ReplArguments) -> anyhow::Result<ExitStatus> {
    logging::start();
    let language = Language::from(arguments.lang);
    run::check_fuel(&arguments.script, language)?;
    let mut config = setup::load(arguments.script.mcp_config.clone())?;
    diagnostic::print_warnings(&config.warnings);
    if arguments.script.llm {
        config.enable_llm();
    }
    config.isolation = setup::isolation(arguments.script.isolation.as_ref(), config.isolation);
    let limits = arguments.script.limits(config.limits, config.max_limits.cpu_time);
    let mut script_arguments = arguments.script;
    let audit = script_arguments.audit.take();
    let grants = setup::grants(&script_arguments)?;
    let executor = run::builder(config, language, audit)?.grants(grants).build()?;
    // If stdout fails, everything ends: the session has no output any longer.
    let gone = CancellationToken::new();
    let writer = writer::start(gone.clone())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut rules = ArgumentRules::new(&script_arguments);
    rules.warn(&executor);
    let rules = Mutex::new(rules);
    let session = ReplSession {
        language,
        limits,
        handle: arguments.session,
        script_arguments,
        console: Arc::new(Console::new(writer)),
        writer,
        gone,
        ended: CancellationToken::new(),
        break_signal: Arc::default(),
        is_reading: Arc::default(),
        names: Arc::default(),
        rules,
        executor,
    };
    let status = session.talk(&runtime);
    runtime.block_on(async {
        let _late = tokio::time::timeout(run::MAX_CLOSE, session.executor.close()).await;
    });
    // Reading a line from stdin cannot be stopped, so the runtime must not wait for it.
    runtime.shutdown_background();
    status
}

/// The data that all inputs share.
struct ReplSession {
    language: Language,
    limits: Limits,
    handle: Option<String>,
    script_arguments: crate::args::ScriptArguments,
    console: Arc<Console>,
    writer: &'static Writer,
    gone: CancellationToken,
    /// Cancelled by a signal that ends the session.
    ended: CancellationToken,
    /// Makes the editor return, which restores the terminal.
    break_signal: Arc<AtomicBool>,
    /// Whether an input is being read now.
    is_reading: Arc<AtomicBool>,
    names: Arc<Mutex<Names>>,
    rules: Mutex<ArgumentRules>,
    executor: Executor,
}

impl ReplSession {
    fn talk(&self, runtime: &tokio::runtime::Runtime) -> anyhow::Result<ExitStatus> {
        let _entered = runtime.enter();
        self.watch_signals()?;
        let mut prompt = self.prompt(runtime)?;
        if prompt.is_shown() {
            diagnostic::print_note(&format!(
                "cx {}, {}. `:help` says what to type, Ctrl-D ends.",
                env!("CARGO_PKG_VERSION"),
                self.language.title()
            ));
        }
        let mut last: Option<Json> = None;
        let mut has_tables = true;
        let mut earlier = EarlierNames::default();
        let mut status = ExitStatus::Success;
        loop {
            // The prompt is drawn on the terminal directly, after earlier output was written.
            runtime.block_on(self.writer.finish());
            if self.ended.is_cancelled() {
                return Ok(ExitStatus::Interrupted);
            }
            if self.gone.is_cancelled() {
                return Ok(ExitStatus::Output);
            }
            self.is_reading.store(true, Ordering::Relaxed);
            let typed = prompt.read(self, runtime);
            self.is_reading.store(false, Ordering::Relaxed);
            // A terminal that is closed cannot be read either.
            if self.ended.is_cancelled() {
                if prompt.is_shown() {
                    let _closed = writer::write(Stream::Stderr, "\n");
                }
                return Ok(ExitStatus::Interrupted);
            }
            let input = match typed? {
                Typed::Input(input) => input,
                Typed::Dropped => continue,
                Typed::End => return Ok(status),
            };
            match input.trim() {
                "" => {}
                ":quit" | ":q" | ":exit" => return Ok(status),
                ":help" | ":h" | ":?" => output::print_text(HELP)?,
                ":table on" => has_tables = true,
                ":table off" => has_tables = false,
                command if command.starts_with(':') => {
                    diagnostic::print_note(&format!("there is no `{command}`; `:help` says what there is"));
                }
                _ => {
                    let result = runtime.block_on(self.run(&input, last.clone()))?;
                    self.print(&result, has_tables)?;
                    let explanation =
                        result.error().and_then(|error| earlier.explain(&error.message, self.language));
                    if let Some(explanation) = explanation {
                        diagnostic::print_note(&explanation);
                    }
                    earlier.add(&input);
                    if let Some(value) = self.value(&result) {
                        self.names.lock().set_last(value.value().cloned().unwrap_or(Value::Null));
                        last = Some(value.clone());
                    }
                    match (result.error(), &prompt) {
                        (_, InputSource::Editor(_)) => self.learn_names(runtime),
                        (Some(error), InputSource::Lines(lines)) if !lines.has_prompt() => {
                            if error.code == ErrorCode::Cancelled && !self.gone.is_cancelled() {
                                return Ok(ExitStatus::Interrupted);
                            }
                            status = ExitStatus::Failed;
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Ends the session at a signal: the script that runs, and the prompt. The process exits after
    /// [`signals::MAX_END`] even if something hangs.
    fn watch_signals(&self) -> anyhow::Result<()> {
        // There the prompt stops the process, and no handler would run then.
        if terminal::is_in_background() {
            return Ok(());
        }
        let mut terminate = signals::listen(SignalKind::terminate())?;
        let mut hangup = signals::listen(SignalKind::hangup())?;
        let (ended, break_signal) = (self.ended.clone(), Arc::clone(&self.break_signal));
        let (gone, is_reading) = (self.gone.clone(), Arc::clone(&self.is_reading));
        let (executor, has_terminal) = (self.executor.clone(), terminal::has_input());
        // It ends with the runtime.
        tokio::spawn(async move {
            let abandoned = async {
                signals::terminal_gone().await;
                // Where the signal is ignored, a script that runs goes on.
                while !is_reading.load(Ordering::Relaxed) {
                    tokio::time::sleep(signals::TERMINAL_CHECK).await;
                }
            };
            tokio::select! {
                () = signals::next(&mut terminate) => {}
                () = signals::next(&mut hangup) => {}
                () = abandoned => {}
            }
            ended.cancel();
            break_signal.store(true, Ordering::Relaxed);
            gone.cancel();
            // The editor goes on reading a terminal that is closed, and never returns.
            if has_terminal && !terminal::has_input() && is_reading.load(Ordering::Relaxed) {
                let _late = tokio::time::timeout(signals::MAX_END, executor.close()).await;
            } else {
                tokio::time::sleep(signals::MAX_END).await;
            }
            exit(ExitStatus::Interrupted);
        });
        Ok(())
    }

    /// An editor at a terminal that has one, plain lines elsewhere.
    fn prompt(&self, runtime: &tokio::runtime::Runtime) -> anyhow::Result<InputSource> {
        if !terminal::is_interactive() || !terminal::moves_cursor() {
            return Ok(InputSource::Lines(PlainLines::new(self.language, self.limits.source_bytes)));
        }
        // Ctrl-C is a key there. A signal in its place would end the process, and leave the terminal as the editor has
        // set it.
        let _handled = signals::listen(SignalKind::interrupt())?;
        self.learn_names(runtime);
        Ok(InputSource::Editor(Box::new(self.editor()?)))
    }

    /// Reads the known tools at once, and in the background requests those of servers that were never asked.
    fn learn_names(&self, runtime: &tokio::runtime::Runtime) {
        let (names, executor, language) = (Arc::clone(&self.names), self.executor.clone(), self.language);
        runtime.spawn(async move {
            let read = |names: &Arc<Mutex<Names>>, executor: &Executor| {
                let (names, executor) = (Arc::clone(names), executor.clone());
                tokio::task::spawn_blocking(move || names.lock().read(&executor, language))
            };
            let _failed = read(&names, &executor).await;
            if !executor.fetch_missing_tools().await.is_empty() {
                let _failed = read(&names, &executor).await;
            }
        });
    }

    /// Runs an input. Ctrl-C stops it.
    async fn run(&self, input: &str, last: Option<Json>) -> anyhow::Result<ExecuteResult> {
        let cancel = self.gone.child_token();
        let mut interrupt = signal(SignalKind::interrupt()).context("failed to watch for interrupts")?;
        let mut script =
            Script::new(self.language, input).named(NAME).limits(self.limits).cancel_with(cancel.clone());
        if let Some(last) = last {
            script = script.input(last);
        }
        if let Some(handle) = &self.handle {
            script = script.session(handle.clone());
        }
        script = run::with_rules(script, &mut self.script_arguments.clone());
        let script = run::with_console(script, &self.console, false, true);
        let running = self.executor.run(script);
        tokio::pin!(running);
        let result = loop {
            tokio::select! {
                result = &mut running => break result,
                _ = interrupt.recv() => cancel.cancel(),
            }
        };
        self.console.release();
        self.rules.lock().warn(&self.executor);
        Ok(result?)
    }

    /// The value of an input. Python's `None` counts as no value, as at Python's own prompt, because statements have
    /// it.
    fn value<'a>(&self, result: &'a ExecuteResult) -> Option<&'a Json> {
        let is_none = |json: &&Json| self.language == Language::Python && json.text() == "null";
        result.value_json().filter(|json| !is_none(json))
    }

    fn print(&self, result: &ExecuteResult, has_tables: bool) -> anyhow::Result<()> {
        if let Some(error) = result.error() {
            diagnostic::print_script_error(error, &result.returned, NAME);
            return Ok(());
        }
        let Some(json) = self.value(result) else { return Ok(()) };
        let width = terminal::width(Stream::Stdout).unwrap_or(80);
        let variable = if self.language == Language::Python { "inputs" } else { "input" };
        let table =
            json.value().filter(|_| has_tables).and_then(|value| table::render(value, width, variable));
        match (table, json.value().and_then(Value::as_str)) {
            (Some(table), _) => output::print_text(&table)?,
            // A person reads the text here, so it is printed without quotes.
            (None, Some(text)) => output::print_text(text)?,
            (None, None) => output::print_value(json, false)?,
        }
        Ok(())
    }

    fn editor(&self) -> anyhow::Result<Reedline> {
        let mut keys = default_emacs_keybindings();
        let complete =
            ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
        let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, new_line);
        let menu = ColumnarMenu::default().with_name(MENU);
        let editor = Reedline::create()
            .use_bracketed_paste(true)
            .with_ansi_colors(terminal::has_color(Stream::Stdout))
            .with_completer(Box::new(NameCompleter::new(self.language, Arc::clone(&self.names))))
            .with_partial_completions(true)
            .with_quick_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_break_signal(Arc::clone(&self.break_signal))
            .with_validator(Box::new(Lines(self.language)))
            .with_edit_mode(Box::new(Emacs::new(keys)));
        let Some(file) = self.history_file()? else { return Ok(editor) };
        let history =
            FileBackedHistory::with_file(MAX_HISTORY, file).context("failed to read the history")?;
        Ok(editor.with_history(Box::new(history)))
    }

    /// The file of earlier inputs, which only its user can read; `None` where there is no directory.
    fn history_file(&self) -> anyhow::Result<Option<PathBuf>> {
        let Ok(directories) = setup::directories() else { return Ok(None) };
        let file = directories.state.join(format!("repl_history.{}", self.language.extension()));
        if file.is_symlink() {
            bail!("the history `{}` is a symbolic link, a file was expected", shown_path(&file));
        }
        crate::document::make_private(&file, MAX_HISTORY_BYTES)
            .with_context(|| format!("failed to open the history `{}`", shown_path(&file)))?;
        Ok(Some(file))
    }
}

/// The source of inputs.
enum InputSource {
    Editor(Box<Reedline>),
    Lines(PlainLines),
}

impl InputSource {
    /// Whether a user sees a prompt.
    fn is_shown(&self) -> bool {
        match self {
            Self::Editor(_) => true,
            Self::Lines(lines) => lines.has_prompt(),
        }
    }

    fn read(&mut self, session: &ReplSession, runtime: &tokio::runtime::Runtime) -> anyhow::Result<Typed> {
        let caret = Caret(session.language);
        match self {
            Self::Lines(lines) => runtime.block_on(lines.read(caret.0.extension(), &session.gone)),
            Self::Editor(editor) => match editor.read_line(&caret) {
                Ok(Signal::Success(input)) => Ok(Typed::Input(input)),
                Ok(Signal::CtrlD) => Ok(Typed::End),
                Ok(_) => Ok(Typed::Dropped),
                Err(error) => Err(error).context("failed to read from the terminal"),
            },
        }
    }
}

/// Decides when Enter begins another line of an input.
struct Lines(Language);

impl Validator for Lines {
    fn validate(&self, input: &str) -> ValidationResult {
        let is_command = input.starts_with(':');
        if !is_command && pieces::goes_on(self.0, input) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// The text before an input.
struct Caret(Language);

impl Prompt for Caret {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0.extension())
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }
}
