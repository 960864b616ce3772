//! Checks the calls of a script against the catalog, the rules and the schemas.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Map, Value};

use super::budget::StepBudget;
use super::literal::{kind_of, span_of, to_json};
use super::look_up::{is_list_of_tools, look_up};
use super::refusal::{MAX_NAMED, refusal};
use super::survey::{Bytes, ImportProblem, Literal, Survey, Target, ToolUse};
use crate::run::calls::resolve::ToolName;
use crate::run::context::ExecutionContext;
use crate::run::errors::denied;
use crate::run::finding::{Finding, FindingCode, Lines, Severity};
use crate::run::result::ScriptError;
use crate::run::script::Language;
use crate::tools::arguments::partial::Unknowns;
use crate::tools::catalog::{LookUp, ResolvedTool};
use crate::tools::in_force::ToolsInForce;
use crate::tools::names::{SuggestionBudget, is_python_identifier, nearest};
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum number of findings of one check. The last one says how many there are besides.
const MAX_FINDINGS: usize = 50;

/// Maximum number of findings of each severity that are described.
const MAX_DESCRIBED: usize = 100;

/// The state of a check: findings, and the servers whose tool lists it still needs.
#[derive(Default)]
struct Judged {
    findings: Vec<Finding>,
    errors: usize,
    warnings: usize,
    /// Findings beyond [`MAX_DESCRIBED`].
    not_described: usize,
    /// Servers whose lists are not known.
    unlisted: BTreeSet<Arc<str>>,
    /// Those of `unlisted` that every run calls.
    needed: BTreeSet<Arc<str>>,
    /// Servers whose lists may be out of date and decide whether a run can succeed.
    stale: BTreeSet<Arc<str>>,
    /// Whether there is an error about a call or an import for which a run is refused.
    refuses: bool,
}

impl Judged {
    /// Adds a finding, unless there are many of its severity.
    fn add(&mut self, severity: Severity, describe: impl FnOnce() -> Finding) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if *count == MAX_DESCRIBED {
            self.not_described += 1;
            return;
        }
        *count += 1;
        self.findings.push(describe());
    }

    /// Whether a further finding about this use would not be described.
    fn is_full(&self, one: &ToolUse) -> bool {
        // A certain use can produce errors, which are described as long as there is space. Others produce only
        // warnings.
        self.errors == MAX_DESCRIBED || (self.warnings == MAX_DESCRIBED && !one.is_certain)
    }
}

impl ExecutionContext {
    /// Returns why the script must not run, if it cannot succeed. Requests lists only of servers that every run would
    /// ask for the same calls: those whose tools are unknown, which have two seconds to answer, and, if a call looks
    /// wrong, those whose list may be out of date.
    pub(crate) async fn preflight(&self, survey: &Survey) -> Option<ScriptError> {
        if let Some(replay) = self.tape().filter(|tape| tape.is_replay()) {
            return replay.recorded_refusal(&self.script.source);
        }
        // If the reader does not accept the source, the engine decides.
        if !survey.mistakes.is_empty() || !survey.has_certain() {
            return None;
        }
        let mut judged = self.judge(survey, false);
        if !judged.needed.is_empty() {
            self.discover(&judged.needed).await;
            judged = self.judge(survey, false);
        }
        if !judged.stale.is_empty() {
            self.renew(&judged.stale).await;
            judged = self.judge(survey, false);
        }
        judged.refuses.then(|| refusal(judged.findings))
    }

    /// Everything that is wrong with what the script calls. With `asks_servers`, requests the lists of the servers that
    /// the script names and whose tools are unknown or may be out of date.
    pub(crate) async fn findings(&self, survey: &Survey, asks_servers: bool) -> Vec<Finding> {
        let judged = self.judge(survey, true);
        let servers: BTreeSet<Arc<str>> = judged.unlisted.union(&judged.stale).cloned().collect();
        if servers.is_empty() || !asks_servers {
            return judged.findings;
        }
        self.renew(&servers).await;
        self.judge(survey, true).findings
    }

    /// What is wrong with what the script calls, as far as it is known without asking a server.
    pub(super) fn known_findings(&self, survey: &Survey) -> Vec<Finding> {
        self.judge(survey, false).findings
    }

    /// Requests the lists of servers whose tools are unknown, concurrently and with the timeout of a search: a server
    /// that is slow or down delays the run once, and the run continues without its list.
    async fn discover(&self, servers: &BTreeSet<Arc<str>>) {
        let in_force = self.in_force();
        let is_wanted = |server: &str, _is_running| servers.contains(server);
        self.unless_cancelled(in_force.catalog.discover(is_wanted)).await;
    }

    /// Requests the lists of servers concurrently. A failure shows in the next lookup.
    async fn renew(&self, servers: &BTreeSet<Arc<str>>) {
        let (in_force, deadline) = (self.in_force(), self.latest_deadline());
        let asked = servers.iter().map(|server| in_force.catalog.renew(server, deadline));
        self.unless_cancelled(join_all(asked)).await;
    }

    async fn unless_cancelled<T>(&self, asking: impl Future<Output = T>) {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            _ = asking => {}
        }
    }

    fn judge(&self, survey: &Survey, with_unlisted: bool) -> Judged {
        let in_force = self.in_force();
        let looked_up = |one: &ToolUse| look_up(&in_force.catalog, &one.target, &self.suggestions);
        let judge = Judge {
            looked_up: survey.uses.iter().map(looked_up).collect(),
            changed: OnceCell::new(),
            suggestions: &self.suggestions,
            in_force,
            survey,
            source: &self.script.source,
            lines: OnceCell::new(),
            has_hooks: !self.has_no_hooks(),
            steps: StepBudget::of_judgement(),
            is_python: self.script.language == Language::Python,
        };
        let mut judged = Judged::default();
        judge.add_imports(&mut judged);
        for (position, one) in survey.uses.iter().enumerate() {
            // Checking the arguments of one use can take some hundredths of a second, and there can be hundreds of
            // uses.
            if self.cancel.is_cancelled() {
                break;
            }
            judge.add(position, one, &mut judged);
            let Some(server) = judge.unlisted(position) else { continue };
            if one.is_certain && judge.may_permit(one, &server) {
                judged.needed.insert(Arc::clone(&server));
            }
            if judged.unlisted.insert(Arc::clone(&server)) && with_unlisted {
                judged.add(Severity::Warning, || judge.unlisted_finding(one, &server));
            }
        }
        judged.findings.sort_by_key(Finding::location);
        judged.findings.dedup();
        if judged.findings.len() > MAX_FINDINGS {
            // Errors are kept first, because they decide whether the script runs.
            judged.findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.location()));
            let left_out = judged.findings.split_off(MAX_FINDINGS - 1);
            judged.findings.sort_by_key(Finding::location);
            judged.findings.extend(rest(left_out, judged.not_described));
        }
        judged
    }
}

/// A finding that stands for those that are left out: at the location of the first, with their number.
fn rest(left_out: Vec<Finding>, not_described: usize) -> Option<Finding> {
    let count = left_out.len() + not_described;
    let first = left_out.into_iter().next()?;
    let hint = format!("{count} findings are not shown; correct these first");
    Some(Finding { hint: Some(hint), ..first })
}

/// What a survey is compared with.
struct Judge<'a> {
    in_force: Arc<ToolsInForce>,
    /// The lookup of each use's target; `None` if the target is not known to be a tool or server.
    looked_up: Vec<Option<LookUp>>,
    /// The servers whose tools each use may change. Set when there is a mistake. Computing it may read files.
    changed: OnceCell<Vec<Changed>>,
    survey: &'a Survey,
    source: &'a str,
    /// Set when there is a finding.
    lines: OnceCell<Lines<'a>>,
    /// The work that is left for suggesting similar names.
    suggestions: &'a SuggestionBudget,
    /// Whether there are hooks, which may change arguments before they are checked.
    has_hooks: bool,
    /// The work that is left for checking arguments.
    steps: StepBudget,
    is_python: bool,
}

/// The servers whose tools may change.
enum Changed {
    None,
    One(Arc<str>),
    All,
}

impl Judge<'_> {
    /// Adds the imports of modules that the script cannot use.
    fn add_imports(&self, judged: &mut Judged) {
        for import in &self.survey.imports {
            judged.refuses |= import.is_certain;
            let severity = severity_if(import.is_certain);
            judged.add(severity, || {
                let mut message = import.message.clone();
                if let Some(name) = self.server_of_import(import) {
                    message
                        .push_str(&format!("; here a server has this name: `from mcp_tools import {name}`"));
                }
                self.finding(FindingCode::ModuleUnavailable, severity, message, &import.at)
            });
        }
    }

    /// The name in Python of the server that has the name of a module.
    fn server_of_import(&self, import: &ImportProblem) -> Option<String> {
        let package = self.source.get(import.at.clone())?.split('.').next()?;
        // In `from http import client` the name is that of a module of the package.
        if !import.message.starts_with(&format!("No module named '{package}")) {
            return None;
        }
        let server = self.in_force.catalog.server_name(package)?;
        Some(self.in_force.catalog.python_alias(server)).filter(|name| is_python_identifier(name))
    }

    /// Adds what is wrong with one use.
    fn add(&self, position: usize, one: &ToolUse, judged: &mut Judged) {
        if one.is_forgotten && self.looked_up[position].is_some() {
            judged.add(Severity::Warning, || self.forgotten(one));
        }
        match &self.looked_up[position] {
            None | Some(LookUp::Unlisted(_)) => {}
            // The finding about the import covers it.
            Some(LookUp::NoServer(_)) if !one.is_import() && self.is_imported(one) => {}
            Some(LookUp::NoTool { .. }) if self.is_python && is_list_of_tools(&one.target) => {}
            Some(LookUp::NoServer(error)) => {
                let severity = severity_if(one.is_certain);
                judged.refuses |= one.is_certain;
                let is_import = self.is_python && one.is_import();
                judged.add(severity, || {
                    let error = if is_import { self.in_python(error, one) } else { error.clone() };
                    self.of_call(error, severity, &one.server_at)
                });
            }
            Some(LookUp::NoTool { server, error, is_current }) => {
                if !self.in_force.may_permit_server(server) {
                    self.add_denied(one, server, "*", judged);
                    return;
                }
                let is_certain = self.is_certain(one, server, *is_current, judged)
                    && !self.may_change_before(position, server);
                judged.refuses |= is_certain;
                let severity = severity_if(is_certain);
                judged.add(severity, || self.of_call(error.clone(), severity, &one.tool_at));
            }
            Some(LookUp::Found { tool, is_current }) => {
                self.add_of_tool(one, tool, *is_current, judged);
            }
        }
    }

    /// As [`add`](Self::add), for a use of a tool that its server has: checks whether it is permitted, and its
    /// arguments.
    fn add_of_tool(&self, one: &ToolUse, tool: &ResolvedTool, is_current: bool, judged: &mut Judged) {
        if !self.in_force.permits(&tool.server, &tool.tool) {
            self.add_denied(one, &tool.server, &tool.tool, judged);
            return;
        }
        let Some(arguments) = &one.arguments else { return };
        if judged.is_full(one) {
            return;
        }
        // Computed once: it is the same for all problems, and costs as much as there are uses.
        let mut is_certain_use = None;
        for (message, at, is_certain) in self.argument_problems(tool, arguments, one) {
            let is_certain = is_certain
                && !self.has_hooks
                && *is_certain_use
                    .get_or_insert_with(|| self.is_certain(one, &tool.server, is_current, judged));
            judged.refuses |= is_certain;
            let severity = severity_if(is_certain);
            let error = || ToolError::new(ToolErrorCode::InvalidArguments, message);
            judged.add(severity, || self.of_call(error(), severity, &at));
        }
    }

    fn forgotten(&self, one: &ToolUse) -> Finding {
        let message = "this call is not awaited: its result and its error are lost".to_owned();
        let hint = "write `await` before it; in parentheses if a field of its result is read".to_owned();
        let finding = self.finding(FindingCode::NotAwaited, Severity::Warning, message, &one.at);
        Finding { hint: Some(hint), ..finding }
    }

    /// Whether the script imports the server of a use.
    fn is_imported(&self, one: &ToolUse) -> bool {
        let Target::Tool { server, .. } = &one.target else { return false };
        let mut imports = self.survey.uses.iter().filter(|other| other.is_import());
        imports.any(|import| matches!(&import.target, Target::Server(imported) if imported == server))
    }

    /// The server of a use if its tools are not known.
    fn unlisted(&self, position: usize) -> Option<Arc<str>> {
        match self.looked_up[position].as_ref()? {
            LookUp::Unlisted(server) => {
                server.as_ref().filter(|server| self.in_force.may_permit_server(server)).cloned()
            }
            _ => None,
        }
    }

    /// The error of an import of a server that does not exist, with the names of servers as Python writes them.
    fn in_python(&self, error: &ToolError, one: &ToolUse) -> ToolError {
        let mut error = error.clone();
        let Target::Server(wrong) = &one.target else { return error };
        let catalog = &self.in_force.catalog;
        let mut names: Vec<String> = catalog.server_names().map(|name| catalog.python_alias(name)).collect();
        names.retain(|name| is_python_identifier(name));
        let near = nearest(wrong, names.iter().map(String::as_str), self.suggestions).join(", ");
        names.truncate(MAX_NAMED);
        let shown = if near.is_empty() { names.join(", ") } else { near };
        if !shown.is_empty() {
            error.message.push_str(&format!(" (in Python `from mcp_tools import {shown}`)"));
        }
        error
    }

    /// Whether the rules may permit a call of a tool whose exact name is not known yet.
    fn may_permit(&self, one: &ToolUse, server: &str) -> bool {
        match &one.target {
            Target::Tool { tool, .. } | Target::ToolOfGlobal { tool, .. } => {
                self.in_force.permits(server, tool)
            }
            Target::Full(name) => match ToolName::of_text(name) {
                ToolName::Pair { tool, .. } => self.in_force.permits(server, &tool),
                ToolName::Full(_) => true,
            },
            Target::Server(_) | Target::Unknown => true,
        }
    }

    fn unlisted_finding(&self, one: &ToolUse, server: &str) -> Finding {
        let message =
            format!("the tools of server `{server}` are not known, so calls of them are not checked");
        self.finding(FindingCode::ToolsUnknown, Severity::Warning, message, &one.server_at)
    }

    /// Whether a mistake in a use means that no run can succeed, judged by the current tools. Records the server in
    /// `stale` if only a new list could tell.
    ///
    /// This also applies to the arguments of a listed tool whose server announces changes (`listChanged`): most servers
    /// announce them and never change, and a script can only be written for the schema that is known.
    fn is_certain(&self, one: &ToolUse, server: &Arc<str>, is_current: bool, judged: &mut Judged) -> bool {
        if one.is_certain && !is_current {
            judged.stale.insert(Arc::clone(server));
        }
        one.is_certain && is_current
    }

    /// Whether another use may make the server change its tools before the use at `position`. A tool that is not listed
    /// yet may exist by then, and a script may rely on that: some servers with many tools have one that reveals others.
    fn may_change_before(&self, position: usize, server: &str) -> bool {
        if !self.in_force.catalog.may_change_tools(server) {
            return false;
        }
        let changed_by = |(one, looked_up): (&ToolUse, &Option<LookUp>)| {
            changed_by(&self.in_force, one, looked_up.as_ref())
        };
        let uses = || self.survey.uses.iter().zip(&self.looked_up);
        let changed = self.changed.get_or_init(|| uses().map(changed_by).collect());
        let others = self.survey.uses.iter().zip(changed).enumerate();
        let mut earlier =
            others.filter(|(other, (one, _))| *other != position && (*other < position || !one.is_certain));
        earlier.any(|(_, (_, changed))| match changed {
            Changed::None => false,
            Changed::One(other) => **other == *server,
            Changed::All => true,
        })
    }

    fn add_denied(&self, one: &ToolUse, server: &str, tool: &str, judged: &mut Judged) {
        let severity = severity_if(one.is_certain);
        judged.add(severity, || self.of_call(denied(server, tool), severity, &one.tool_at));
    }

    /// Problems of arguments: the message, its span, and whether the call itself would fail with it.
    fn argument_problems(
        &self,
        tool: &ResolvedTool,
        arguments: &Literal,
        one: &ToolUse,
    ) -> Vec<(String, Bytes, bool)> {
        let (value, unknowns) = match arguments {
            Literal::Unknown { .. } => return Vec::new(),
            Literal::Null => (Value::Object(Map::new()), Unknowns::default()),
            Literal::Object(_) => {
                let Some(read) = to_json(arguments) else { return Vec::new() };
                read
            }
            other => {
                let kind = kind_of(other);
                return vec![(
                    format!("expected the arguments as one object, as in `{{\"path\": \"a.txt\"}}`: {kind}"),
                    one.at.clone(),
                    true,
                )];
            }
        };
        let Some(check) = tool.argument_check() else { return Vec::new() };
        // What is not checked here is checked when the call is made.
        if !self.steps.spend(check.steps(&value))
            || (unknowns.is_empty() && check.accepts(&value))
            || !self.steps.spend(StepBudget::DESCRIPTION)
        {
            return Vec::new();
        }
        let problems =
            check.problems_of_part(&value, &unknowns, self.suggestions).into_iter().map(|problem| {
                let at = span_of(arguments, &problem.path, problem.field.as_deref());
                (problem.message, at.unwrap_or_else(|| one.tool_at.clone()), problem.is_certain)
            });
        problems.collect()
    }

    fn of_call(&self, error: ToolError, severity: Severity, at: &Bytes) -> Finding {
        self.finding(FindingCode::Call(error.code), severity, error.message, at)
    }

    fn finding(&self, code: FindingCode, severity: Severity, message: String, at: &Bytes) -> Finding {
        Finding::at(code, severity, message, self.lines.get_or_init(|| Lines::new(self.source)), at)
    }
}

/// The severity of a mistake: an error if no run can succeed because of it.
const fn severity_if(is_certain: bool) -> Severity {
    if is_certain { Severity::Error } else { Severity::Warning }
}

/// The servers whose tools a use may change.
fn changed_by(in_force: &ToolsInForce, one: &ToolUse, looked_up: Option<&LookUp>) -> Changed {
    match looked_up {
        None if matches!(one.target, Target::Unknown) => Changed::All,
        None => Changed::None,
        Some(LookUp::Found { tool, .. }) => {
            let effects = in_force.effects(&tool.server, &tool.tool, tool.effects());
            if effects.writes { Changed::One(Arc::clone(&tool.server)) } else { Changed::None }
        }
        Some(LookUp::Unlisted(Some(server))) => Changed::One(Arc::clone(server)),
        Some(LookUp::Unlisted(None)) => Changed::All,
        // Such a use fails and changes nothing.
        Some(LookUp::NoServer(_) | LookUp::NoTool { .. }) => Changed::None,
    }
}
