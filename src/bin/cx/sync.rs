//! `cx sync`: reads the files of clients again, requests the tools of all servers, and writes types that have changed.
//! The result is stored in `last-sync.json`. `sync/timer.rs` schedules it daily.

mod record;
mod timer;

use std::collections::HashSet;
use std::env;

use anyhow::Context as _;
use cx::setup::{Choices, Existing, FoundClient, Plan, ServerFitness, ServerList, Survey, SyncLock};
use cx::text::one_line;
use cx::{Config, Executor};
use serde_json::json;

use crate::args::SyncArguments;
use crate::exit::ExitStatus;
use crate::progress::ProgressLine;
use crate::text::failure;
use crate::{diagnostic, output, setup, types};

use self::record::{ClientRecord, ServerRecord, SyncRecord, TypesRecord};

/// Synchronizes, or installs, removes or shows the daily schedule.
///
/// # Errors
///
/// If there are no directories for data, or stdout cannot be written. Failures of the synchronization are reported,
/// with exit status 1.
pub(crate) fn run(arguments: &SyncArguments) -> anyhow::Result<ExitStatus> {
    if arguments.install {
        return timer::install(arguments);
    }
    if arguments.uninstall {
        return timer::uninstall(arguments);
    }
    if arguments.status {
        return timer::status(arguments);
    }
    let directories = setup::directories()?;
    let _lock = match SyncLock::acquire(&directories) {
        Ok(lock) => lock,
        Err(error) => return refused(&error.to_string(), arguments.json),
    };
    let mut record = SyncRecord::begin(&directories)?;
    if let Err(error) = synchronize(arguments, &mut record) {
        record.error = Some(diagnostic::message(&error));
        if !arguments.json {
            let hint = diagnostic::hint(&error).map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            diagnostic::print_note(&format!("error: {}{hint}", diagnostic::message(&error)));
        }
    }
    record.finish()?;
    if arguments.json {
        output::print_json(&record.to_json().to_string())?;
    } else {
        output::print_text(&record.render())?;
    }
    Ok(if record.is_ok() { ExitStatus::Success } else { ExitStatus::Failed })
}

/// Reports that another process synchronizes.
fn refused(problem: &str, is_json: bool) -> anyhow::Result<ExitStatus> {
    if is_json {
        output::print_json(&json!({ "ok": false, "error": problem }).to_string())?;
    } else {
        diagnostic::print_note(&format!("error: {problem}"));
    }
    Ok(ExitStatus::Failed)
}

fn synchronize(arguments: &SyncArguments, record: &mut SyncRecord) -> anyhow::Result<()> {
    // Reads the files of the clients that `import` names too.
    let config = setup::load(arguments.mcp_config.clone())?;
    if !arguments.json {
        diagnostic::print_warnings(&config.warnings);
    }
    record.clients = clients(&config)?;
    let executor = setup::builder(config).warm_instances(0).languages([]).build()?;
    record.set_servers(refresh(&executor)?);
    if let Some(directory) = &arguments.types {
        for (index, language) in arguments.lang.iter().enumerate() {
            // A language that is named twice is written once.
            if arguments.lang[..index].contains(language) {
                continue;
            }
            let written = types::write_known(&executor, *language, directory)?;
            let language = (*language).into();
            record.types.push(TypesRecord { directory: directory.clone(), language, written });
        }
    }
    Ok(())
}

/// The clients, with those of their servers that are not behind cx.
fn clients(config: &Config) -> anyhow::Result<Vec<ClientRecord>> {
    let workspace = env::current_dir().context("failed to find the working directory")?;
    let survey = Survey::read(&workspace);
    let renamed = in_own_file(&survey);
    let is_of_config = |name: &str| config.servers.iter().any(|server| server.name == name);
    let record = |client: FoundClient| {
        let list = client.list();
        let usable = client.servers.iter().filter(|server| server.fitness == ServerFitness::Usable);
        let names = usable.map(|server| server.name.clone());
        let left =
            names.filter(|name| !is_of_config(name) && !renamed.contains(&(list.clone(), name.clone())));
        ClientRecord {
            // A client that does not start cx has its servers as its user wants them.
            not_behind_cx: if client.has_cx { left.collect() } else { Vec::new() },
            name: client.title.to_owned(),
            file: client.file.clone(),
            problem: client.problem.clone(),
        }
    };
    Ok(survey.clients.into_iter().map(record).collect())
}

/// The servers of clients that cx's own file has, also under another name, as `cx setup` has put them there.
fn in_own_file(survey: &Survey) -> HashSet<(ServerList, String)> {
    // Nothing is changed, so that the program does not matter.
    let mut choices = Choices::new("cx");
    choices.existing = Existing::Keep;
    for client in &survey.clients {
        choices.servers.extend(client.servers.iter().map(|server| (client.list(), server.name.clone())));
    }
    // A mistake in the file is reported when the configuration is loaded.
    let planned = Plan::new(survey, &choices).map(|plan| plan.servers).unwrap_or_default();
    let there = planned.into_iter().filter(|server| server.name_in_cx.is_some());
    there.map(|server| (server.list, server.name)).collect()
}

/// Requests the tools of all servers.
fn refresh(executor: &Executor) -> anyhow::Result<Vec<ServerRecord>> {
    cx::check_machine(2, 16, 0)?;
    let line = ProgressLine::asking(&executor.server_names());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async {
        let asked = executor.refresh_tools().await;
        executor.close().await;
        asked
    });
    drop(line);
    let known = executor.known_tools();
    let changes = executor.tool_changes()?;
    let record = |(name, result): (String, Result<(), cx::ToolError>)| {
        let tools = known.iter().find(|known| known.name == name).and_then(|known| known.tools.as_ref());
        let reason = |error: cx::ToolError| one_line(&format!("{}: {}", error.code, failure(&error)));
        ServerRecord {
            tools: tools.map(Vec::len),
            changed_definitions: changes.iter().filter(|change| change.server == name).count(),
            error: result.err().map(reason),
            name,
        }
    };
    Ok(asked.into_iter().map(record).collect())
}
