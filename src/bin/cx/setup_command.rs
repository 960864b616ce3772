//! `cx setup`: finds clients and their servers, asks the user, shows the changes, makes them, and reports the savings.
//! `cx::setup` handles the files.

mod render;

use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use cx::setup::{
    Choices, Existing, FoundClient, FoundServer, Plan, ServerFitness, ServerList, SetupLock, Survey, on_path,
    undo,
};
use cx::text::one_line;
use inquire::{Confirm, InquireError, MultiSelect, Select};
use serde_json::json;

use self::render::{owner, render_plan, render_savings, render_survey, report, shown_below_home};
use crate::args::{ExistingServers, SetupArguments};
use crate::exit::{ExitStatus, Interrupted};
use crate::output::{print_json, print_text};
use crate::writer;
use crate::{diagnostic, savings, setup, signals, terminal};

/// How long output may take before a question is shown.
const MAX_FLUSH: Duration = Duration::from_secs(2);

/// Sets up clients, or undoes that.
///
/// # Errors
///
/// If a file cannot be read or changed, or if stdin is not a terminal and no argument decides.
pub(crate) fn run(arguments: &SetupArguments) -> anyhow::Result<ExitStatus> {
    let done = if arguments.undo { take_back(arguments) } else { set_up(arguments) };
    match done {
        Err(error) if error.is::<Interrupted>() => {
            print_text("nothing was changed")?;
            Ok(ExitStatus::Interrupted)
        }
        done => done,
    }
}

fn set_up(arguments: &SetupArguments) -> anyhow::Result<ExitStatus> {
    if arguments.json && !arguments.yes && !arguments.dry_run {
        return Err(diagnostic::invalid(anyhow::anyhow!(
            "--json asks nothing: --yes makes the changes without a question, --dry-run shows them"
        )));
    }
    // Without them no client of the user can be found, and nothing could be changed.
    let directories = setup::directories()?;
    // Held while the user is asked: two concurrent setups would plan the same changes.
    let lock = match arguments.dry_run {
        true => None,
        false => Some(SetupLock::acquire(&directories)?),
    };
    let survey = survey(arguments)?;
    if !arguments.json {
        print_text(&render_survey(&survey))?;
    }
    if survey.clients.is_empty() && survey.projects.is_empty() {
        if arguments.json {
            print_json(&json!({ "clients": [], "projects": [], "changes": [] }).to_string())?;
        }
        return Ok(ExitStatus::Success);
    }
    let asks = asks(arguments);
    if asks && !io::stdin().is_terminal() {
        bail!("stdin is not a terminal: --yes makes the changes without a question, --dry-run shows them");
    }
    if asks && !terminal::moves_cursor() {
        bail!(
            "this terminal cannot show lists: --yes makes the changes without a question, --dry-run shows them"
        );
    }
    if asks {
        signals::restore_terminal()?;
    }
    // The questions are drawn on the terminal directly, so earlier output must be written first.
    writer::flush(MAX_FLUSH);
    let choices = if asks { ask(&survey, arguments) } else { Ok(Some(defaults(&survey, arguments)?)) };
    let Some(choices) = choices? else { return refused() };
    let plan = Plan::new(&survey, &choices)?;
    if !arguments.json {
        print_text(&render_plan(&plan))?;
    }
    let Some(lock) = lock.filter(|_| !plan.changes.is_empty()) else {
        if arguments.json {
            print_json(&report(&survey, &plan, None, None).to_string())?;
        }
        return Ok(ExitStatus::Success);
    };
    writer::flush(MAX_FLUSH);
    if asks && !answer(Confirm::new("Make these changes?").with_default(true).prompt())?.unwrap_or(false) {
        return refused();
    }
    make_changes(arguments, &survey, &plan, lock, choices.take_out)
}

/// Makes the changes, and reports what they save.
fn make_changes(
    arguments: &SetupArguments,
    survey: &Survey,
    plan: &Plan,
    lock: SetupLock,
    takes_out: bool,
) -> anyhow::Result<ExitStatus> {
    let applied = plan.apply(&lock)?;
    drop(lock);
    if !arguments.json {
        print_text(&format!(
            "done: clients start cx once they are started again. The files as they were are in {}, and \
             `cx setup --undo` puts them back",
            shown_below_home(&applied.copies)
        ))?;
    }
    let measured = if arguments.no_connect { Ok(None) } else { savings::measure().map(Some) };
    let savings = measured.as_ref().ok().and_then(Option::as_ref);
    if arguments.json {
        print_json(&report(survey, plan, Some(&applied.copies), savings).to_string())?;
    } else if let Some(savings) = savings {
        print_text(&render_savings(savings, plan, takes_out))?;
    }
    measured.map(|_saved| ExitStatus::Success).map_err(diagnostic::after_output)
}

fn refused() -> anyhow::Result<ExitStatus> {
    print_text("nothing was changed")?;
    Ok(ExitStatus::Failed)
}

fn take_back(arguments: &SetupArguments) -> anyhow::Result<ExitStatus> {
    let undone = undo(&SetupLock::acquire(&setup::directories()?)?, arguments.force)?;
    if arguments.json {
        let files: Vec<_> = undone.files.iter().map(|path| path.to_string_lossy()).collect();
        let mut report = json!({ "restored": files });
        if !undone.replaced.is_empty() {
            let replaced = undone.replaced.iter().map(
                |(path, copy)| json!({ "file": path.to_string_lossy(), "copy": copy.to_string_lossy() }),
            );
            report["replaced"] = replaced.collect();
        }
        print_json(&report.to_string())?;
    } else {
        let files: String =
            undone.files.iter().map(|path| format!("  {}\n", shown_below_home(path))).collect();
        let mut text = format!("as they were before:\n{files}");
        for (path, copy) in &undone.replaced {
            let (path, copy) = (shown_below_home(path), shown_below_home(copy));
            let _ = writeln!(text, "what {path} had is in {copy}");
        }
        print_text(&text)?;
    }
    Ok(ExitStatus::Success)
}

/// Finds the clients that the arguments select.
fn survey(arguments: &SetupArguments) -> anyhow::Result<Survey> {
    let workspace = env::current_dir().context("failed to find the working directory")?;
    let mut survey = Survey::read(&workspace);
    for name in &arguments.clients {
        if !survey.clients.iter().any(|client| client.name == name) {
            let found: Vec<&str> = survey.clients.iter().map(|client| client.name).collect();
            let found = if found.is_empty() {
                "none is".to_owned()
            } else {
                format!("installed: {}", found.join(", "))
            };
            return Err(diagnostic::invalid(anyhow::anyhow!(
                "the client `{name}` is not installed; {found}"
            )));
        }
    }
    for name in &arguments.servers {
        check_named(&survey, arguments, name).map_err(diagnostic::invalid)?;
    }
    survey.clients.retain(|client| is_selected(arguments, client.name));
    survey.projects.retain(|project| is_selected(arguments, project.client));
    Ok(survey)
}

fn is_selected(arguments: &SetupArguments, client: &str) -> bool {
    arguments.clients.is_empty() || arguments.clients.iter().any(|name| name == client)
}

/// Checks that a server that an argument names can be put behind cx. The survey is of all clients.
///
/// # Errors
///
/// If no selected client has such a server, or none can be moved.
fn check_named(survey: &Survey, arguments: &SetupArguments, name: &str) -> anyhow::Result<()> {
    let servers =
        survey.lists().flat_map(|(list, servers)| servers.iter().map(move |server| (list.clone(), server)));
    let all: Vec<(ServerList, &FoundServer)> = servers.filter(|(_, server)| server.name == name).collect();
    let Some((other, _)) = all.first() else { bail!("no client has a server `{name}`") };
    let named: Vec<_> = all.iter().filter(|(list, _)| is_selected(arguments, list.client)).collect();
    let Some((first, _)) = named.first() else {
        bail!(
            "`{name}` is a server of {}, which --client leaves out: add `--client {}`",
            owner(survey, other),
            other.client
        );
    };
    let reasons: Vec<String> = named.iter().filter_map(|(list, server)| why_left(list, server)).collect();
    if let Some(reason) = reasons.first().filter(|_| reasons.len() == named.len()) {
        bail!("`{name}` cannot be put behind cx: {reason}");
    }
    if !asks(arguments) && !arguments.projects && named.iter().all(|(list, _)| list.directory.is_some()) {
        bail!(
            "`{name}` is a server of one directory only, in {}: --projects lets it move",
            shown_below_home(&first.file)
        );
    }
    Ok(())
}

/// Why a server is never put behind cx; `None` if it can be.
fn why_left(list: &ServerList, server: &FoundServer) -> Option<String> {
    if let Some(directory) = list.directory.as_deref().filter(|directory| !directory.is_dir()) {
        return Some(format!("it is for {}, which does not exist any more", shown_below_home(directory)));
    }
    match &server.fitness {
        ServerFitness::Cx => Some("it is cx itself".to_owned()),
        ServerFitness::Executor => Some("it is an executor like cx".to_owned()),
        ServerFitness::Unusable(reason) => Some(one_line(reason)),
        _ => None,
    }
}

/// Whether the user is asked what to do.
fn asks(arguments: &SetupArguments) -> bool {
    !arguments.yes && !arguments.dry_run
}

/// A server that can be put behind cx.
struct Movable<'a> {
    list: ServerList,
    server: &'a FoundServer,
    /// Whether it is chosen by default.
    is_default: bool,
}

/// The servers that can be put behind cx. Servers that a client has for one directory only are not chosen by default:
/// behind cx they would be available in all directories, and a file in a directory may be shared.
fn movable<'a>(survey: &'a Survey, arguments: &'a SetupArguments) -> Vec<Movable<'a>> {
    let servers =
        survey.lists().flat_map(|(list, servers)| servers.iter().map(move |server| (list.clone(), server)));
    let is_named = |server: &FoundServer| arguments.servers.contains(&server.name);
    let movable = servers.filter(|(_, server)| arguments.servers.is_empty() || is_named(server));
    let movable = movable.filter(|(list, _)| list.directory.as_deref().is_none_or(Path::is_dir));
    let movable = movable.filter_map(|(list, server)| {
        let is_on = match server.fitness {
            ServerFitness::Usable => true,
            ServerFitness::Disabled => is_named(server),
            _ => return None,
        };
        let is_default = is_on && (list.directory.is_none() || arguments.projects);
        Some(Movable { list, server, is_default })
    });
    movable.collect()
}

/// The program that clients start: by its path on the `PATH`, which stays valid after an update, else this one.
fn program() -> anyhow::Result<PathBuf> {
    Ok(on_path(&env::current_exe().context("failed to find this program")?))
}

fn existing(arguments: &SetupArguments) -> Existing {
    match arguments.existing {
        Some(ExistingServers::Reset) => Existing::Reset,
        Some(ExistingServers::Keep) => Existing::Keep,
        Some(ExistingServers::Merge) | None => Existing::Merge,
    }
}

/// The choices if the user is not asked.
fn defaults(survey: &Survey, arguments: &SetupArguments) -> anyhow::Result<Choices> {
    let mut choices = Choices::new(program()?);
    let chosen = movable(survey, arguments).into_iter().filter(|movable| movable.is_default);
    choices.servers = chosen.map(|Movable { list, server, .. }| (list, server.name.clone())).collect();
    let clients = survey.clients.iter().filter(|client| client.problem.is_none());
    choices.clients = clients.map(|client| client.name.to_owned()).collect();
    choices.take_out = arguments.take_out;
    choices.existing = existing(arguments);
    Ok(choices)
}

/// Asks the user. `None` if the user has cancelled.
fn ask(survey: &Survey, arguments: &SetupArguments) -> anyhow::Result<Option<Choices>> {
    let mut choices = Choices::new(program()?);
    choices.existing = existing(arguments);
    let movable = movable(survey, arguments);
    if !movable.is_empty() {
        let option = |movable: &Movable<'_>| {
            format!("{} ({})", one_line(&movable.server.name), owner(survey, &movable.list))
        };
        let chosen = movable.iter().enumerate().filter(|(_, movable)| movable.is_default);
        let chosen: Vec<usize> = chosen.map(|(position, _)| position).collect();
        let question =
            MultiSelect::new("Which servers should be behind cx?", movable.iter().map(option).collect())
                .with_default(&chosen)
                .with_page_size(15);
        let Some(answers) = answer(question.raw_prompt())? else { return Ok(None) };
        let answers = answers.iter().filter_map(|option| movable.get(option.index));
        choices.servers =
            answers.map(|movable| (movable.list.clone(), movable.server.name.clone())).collect();
    }
    let clients: Vec<&FoundClient> =
        survey.clients.iter().filter(|client| client.problem.is_none()).collect();
    let without: Vec<&FoundClient> = clients.iter().copied().filter(|client| !client.has_cx).collect();
    if !without.is_empty() {
        let titles = without.iter().map(|client| client.title).collect();
        let question =
            MultiSelect::new("Which clients should start cx?", titles).with_all_selected_by_default();
        let Some(answers) = answer(question.raw_prompt())? else { return Ok(None) };
        let answers = answers.iter().filter_map(|option| without.get(option.index));
        choices.clients = answers.map(|client| client.name.to_owned()).collect();
    }
    choices.take_out = arguments.take_out;
    if !choices.take_out && !choices.servers.is_empty() {
        let question = Confirm::new("Take these servers out of the clients that start cx?")
            .with_default(true)
            .with_help_message("otherwise models see the tools twice, and nothing is saved");
        let Some(take_out) = answer(question.prompt())? else { return Ok(None) };
        choices.take_out = take_out;
    }
    if arguments.existing.is_none() && has_servers() && !choices.servers.is_empty() {
        let options = vec!["merge: add to them", "reset: replace them", "keep: change only the clients"];
        let question = Select::new("cx has servers already. What should happen to them?", options);
        let Some(answer) = answer(question.raw_prompt())? else { return Ok(None) };
        choices.existing = [Existing::Merge, Existing::Reset, Existing::Keep]
            .into_iter()
            .nth(answer.index)
            .unwrap_or_default();
    }
    Ok(Some(choices))
}

/// Whether cx's own configuration of this user has servers. A mistake in it is reported by the plan.
fn has_servers() -> bool {
    setup::load(Vec::new()).is_ok_and(|config| !config.servers.is_empty())
}

/// The answer to a question; `None` if the user cancelled with Escape. Ctrl-C is the error [`Interrupted`].
fn answer<T>(answered: Result<T, InquireError>) -> anyhow::Result<Option<T>> {
    match answered {
        Ok(answer) => Ok(Some(answer)),
        Err(InquireError::OperationCanceled) => Ok(None),
        Err(InquireError::OperationInterrupted) => Err(Interrupted.into()),
        Err(error) => Err(error).context("failed to ask"),
    }
}
