//! Warnings of patterns in `--allow`, `--deny` and `--ask` that match no tool.
//!
//! Patterns of the configuration are not looked at here: `cx config show`, `cx doctor`, `cx tools list` and `cx serve`
//! warn of them. An operator may have them for servers that come later, and a warning at each run would teach people to
//! read over it.

use std::collections::HashSet;

use cx::{Executor, ToolRules};

use crate::args::ScriptArguments;
use crate::diagnostic;

/// The patterns of the arguments.
pub(crate) struct ArgumentRules {
    rules: ToolRules,
    printed: HashSet<String>,
}

impl ArgumentRules {
    pub(crate) fn new(arguments: &ScriptArguments) -> Self {
        let mut rules = ToolRules::new().deny(arguments.deny.clone()).ask(arguments.ask.clone());
        if !arguments.allow.is_empty() {
            rules = rules.allow(arguments.allow.clone());
        }
        Self { rules, printed: HashSet::new() }
    }

    /// Warns once of each pattern that matches no tool that is known now. After a run more tools are known than before
    /// it. An invalid pattern is an error of the run.
    pub(crate) fn warn(&mut self, executor: &Executor) {
        if self.rules == ToolRules::new() {
            return;
        }
        for pattern in executor.unmatched_patterns_of(&self.rules).unwrap_or_default() {
            let text = pattern.to_string();
            if self.printed.insert(text.clone()) {
                diagnostic::print_warning(&text);
            }
        }
    }
}
