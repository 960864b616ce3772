//! `cx doctor`: checks everything that cx needs, and reports problems with their remedies.

mod clients;
mod configuration;
mod context;
mod engines;
mod machine;
mod model;
mod report;
mod servers;
mod stored;

use crate::args::DoctorArguments;
use crate::exit::ExitStatus;
use crate::progress::ProgressLine;
use crate::writer::Stream;
use crate::{diagnostic, output, setup, terminal};

use self::context::DoctorContext;
use self::report::{Check, Report};

/// Threads and descriptors that doctor itself needs.
const THREADS: usize = 4;
const DESCRIPTORS: usize = 24;

/// Checks everything and prints the findings.
///
/// # Errors
///
/// If stdout cannot be written. All other problems are in the report.
pub(crate) fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitStatus> {
    let mut report = Report::default();
    let progress = ProgressLine::start("looking at the configuration");
    let loaded = setup::load(arguments.mcp_config.clone());
    report.add(match &loaded {
        Ok(config) => configuration::check(config),
        Err(error) => vec![configuration::unusable(error)],
    });
    let is_loaded = loaded.is_ok();
    let config = loaded.unwrap_or_default();
    match DoctorContext::new(&config) {
        Ok(context) => {
            report.add(configuration::unmatched(&context.executor));
            report.add(machine::check(&context.executor, &config));
            match run_checks(&context, arguments, is_loaded, &progress) {
                Ok(checks) => report.add(checks),
                Err(check) => report.add([*check]),
            }
        }
        Err(error) => report.add([match error.downcast_ref() {
            Some(cx::Error::Start { .. }) => machine::refused(&diagnostic::message(&error)),
            _ => configuration::no_executor(&error),
        }]),
    }
    progress.say("looking at files");
    let loaded = is_loaded.then_some(&config);
    report.add(stored::check(loaded));
    report.add([model::check(loaded)]);
    report.add(clients::check());
    report.add(machine::sandbox(loaded));
    drop(progress);
    if arguments.json {
        output::print_json(&report.to_json().to_string())?;
    } else {
        output::print_help(
            &report.render(terminal::has_color(Stream::Stdout), terminal::width(Stream::Stdout)),
        )?;
    }
    Ok(if report.is_ok() { ExitStatus::Success } else { ExitStatus::Failed })
}

/// Runs the checks that wait for engines, servers and models. Without a configuration that `is_loaded` no servers and
/// no models are known.
///
/// # Errors
///
/// A failed check, if this process cannot start a runtime.
fn run_checks(
    context: &DoctorContext,
    arguments: &DoctorArguments,
    is_loaded: bool,
    progress: &ProgressLine,
) -> Result<Vec<Check>, Box<Check>> {
    let refused = |error: &std::io::Error| Box::new(machine::refused(&error.to_string()));
    cx::check_machine(THREADS, DESCRIPTORS, 0).map_err(|error| refused(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| refused(&error))?;
    runtime.block_on(async {
        let mut checks = engines::check(context, progress).await;
        if is_loaded {
            checks.extend(servers::check(context, arguments.offline, progress).await);
        } else {
            checks.push(servers::unknown());
        }
        checks.extend(servers::sign_ins(&context.config).await);
        if arguments.ask_model && is_loaded {
            checks.push(model::ask(context, progress).await);
        }
        context.executor.close().await;
        Ok(checks)
    })
}
