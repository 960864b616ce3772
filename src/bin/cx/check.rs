//! `cx check`.

mod repeated;

use std::ops::Range;

use cx::text::one_line;
use cx::{Checked, Executor, Finding, FindingCode, Language, Script, Severity};
use serde_json::json;

use crate::args::CheckArguments;
use crate::diagnostic::invalid;
use crate::exit::{ExitStatus, Interrupted};
use crate::progress::ProgressLine;
use crate::rules::ArgumentRules;
use crate::source::Source;
use crate::text::counted;
use crate::type_problem::TypeProblem;
use crate::{diagnostic, logging, output, run, setup, source, typecheck};

/// Checks a script as the arguments specify, and prints what is wrong with it.
///
/// # Errors
///
/// Mistakes in the arguments or the configuration, or a script's file that cannot be read.
pub(crate) fn run(mut arguments: CheckArguments) -> anyhow::Result<ExitStatus> {
    logging::start();
    let Source { text, name, language, .. } =
        source::read_either(arguments.file.as_deref(), arguments.eval.as_deref(), arguments.lang)
            .map_err(invalid)?;
    let mut config = setup::load(std::mem::take(&mut arguments.script.mcp_config))?;
    diagnostic::print_warnings(&config.warnings);
    let limits = arguments.script.limits(config.limits, config.max_limits.cpu_time);
    // No call is made, so there is nothing to audit.
    config.audit = None;
    let executor = run::builder(config, language, None)?.build()?;
    let mut rules = ArgumentRules::new(&arguments.script);
    let script = Script::new(language, &*text);
    let mut script = script.named(&name).limits(limits).deny(std::mem::take(&mut arguments.script.deny));
    let allow = std::mem::take(&mut arguments.script.allow);
    if !allow.is_empty() {
        script = script.allow(allow);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checked = runtime.block_on(async {
        let checked = match arguments.offline {
            true => executor.check_offline(script).await,
            false => {
                // Servers that the script names are asked for tools that are not known.
                let line = ProgressLine::start(format!("checking {}", one_line(&name)));
                let checked = executor.check(script).await;
                drop(line);
                checked
            }
        };
        executor.close().await;
        checked
    });
    let mut checked = checked?;
    rules.warn(&executor);
    // A type checker would report the same syntax errors in other words.
    let is_program = !checked.findings.iter().any(|finding| matches!(finding.code, FindingCode::Script(_)));
    let mut from_types = Vec::new();
    if arguments.types && is_program {
        from_types = match types(&executor, &text, checked.program.clone(), language) {
            Err(error) if error.is::<Interrupted>() => return Ok(ExitStatus::Interrupted),
            found => found?,
        };
        repeated::remove_repeated(&mut from_types, &mut checked, &text);
    }
    let Checked { findings, .. } = checked;
    if arguments.json {
        print_json(&findings, &from_types)?;
    } else {
        diagnostic::print_findings(&findings, &name);
        for problem in &from_types {
            diagnostic::print_type_problem(problem, &text, &name);
        }
        diagnostic::print_note(&summary(&name, &findings, from_types.len()));
    }
    Ok(status(&findings, from_types.len()))
}

/// Why a script cannot be compiled. Nothing if the configuration cannot be read, which says nothing about the script.
///
/// # Errors
///
/// If there can be no executor.
pub(crate) fn syntax_errors(text: &str, language: Language) -> anyhow::Result<Vec<Finding>> {
    let Ok(mut config) = setup::load(Vec::new()) else { return Ok(Vec::new()) };
    config.audit = None;
    let executor = run::builder(config, language, None)?.build()?;
    let script = Script::new(language, text);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checked = runtime.block_on(async {
        let checked = executor.check_offline(script).await;
        executor.close().await;
        checked
    });
    let mut findings = checked?.findings;
    findings.retain(|finding| matches!(finding.code, FindingCode::Script(code) if code.is_of_compilation()));
    Ok(findings)
}

/// Checks the types of the part of `text` that is the program.
fn types(
    executor: &Executor,
    text: &str,
    program: Range<usize>,
    language: Language,
) -> anyhow::Result<Vec<TypeProblem>> {
    let before = text.get(..program.start).unwrap_or_default();
    let program = text.get(program).unwrap_or(text);
    let mut problems = match language {
        Language::Python => typecheck::python(&executor.python_stubs(), program)?,
        _ => typecheck::typescript(&executor.declarations(), program)?,
    };
    let lines_before = u32::try_from(before.matches('\n').count()).unwrap_or(u32::MAX);
    for problem in &mut problems {
        problem.line = problem.line.saturating_add(lines_before);
    }
    Ok(problems)
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}

fn status(findings: &[Finding], type_problems: usize) -> ExitStatus {
    let is_limit = |finding: &Finding| matches!(finding.code, FindingCode::Script(code) if code.is_limit());
    if findings.iter().any(is_limit) {
        ExitStatus::Limit
    } else if count(findings, Severity::Error) + type_problems > 0 {
        ExitStatus::Failed
    } else {
        ExitStatus::Success
    }
}

fn summary(name: &str, findings: &[Finding], type_problems: usize) -> String {
    let errors = count(findings, Severity::Error) + type_problems;
    let warnings = count(findings, Severity::Warning);
    let number = |count: usize, one: &str| match count {
        0 => format!("no {one}s"),
        count => counted(count, one),
    };
    format!("{name}: {}, {}", number(errors, "error"), number(warnings, "warning"))
}

fn print_json(findings: &[Finding], type_problems: &[TypeProblem]) -> Result<(), output::OutputError> {
    let all: Vec<_> =
        findings.iter().map(Finding::to_json).chain(type_problems.iter().map(TypeProblem::to_json)).collect();
    let success = count(findings, Severity::Error) + type_problems.len() == 0;
    output::print_json(&json!({ "success": success, "findings": all }).to_string())
}
