//! Imports of modules that a script cannot use.

use ruff_python_ast::{StmtImport, StmtImportFrom};
use ruff_text_size::TextRange;

use super::Surveyor;
use super::literal::bytes;
use super::modules;
use super::unavailable::{self, PACKAGES, Unavailable};
use crate::run::check::survey::ImportProblem;
use crate::text::preview;

/// Maximum characters of a module's name that a message shows.
const MAX_NAME: usize = 60;

/// Packages of other programs that stand for servers. The error of their import names the servers, so it may happen.
const OF_OTHER_PROGRAMS: [&str; 3] = ["fastmcp", "servers", "tools"];

impl Surveyor<'_> {
    /// Notes the modules of `import a, b.c` that the script cannot use.
    pub(super) fn note_import(&mut self, import: &StmtImport) {
        for alias in &import.names {
            self.note_module(&alias.name, alias.name.range);
        }
    }

    /// Notes the module of `from a import b` if the script cannot use it.
    pub(super) fn note_import_from(&mut self, import: &StmtImportFrom) {
        let Some(module) = import.module.as_ref().filter(|_| import.level == 0) else { return };
        self.note_module(module, module.range);
        // The only packages whose modules have entries of their own in the table.
        if matches!(module.as_str(), "http" | "urllib") {
            for alias in &import.names {
                self.note_module(&format!("{}.{}", module.as_str(), alias.name), alias.name.range);
            }
        }
    }

    fn note_module(&mut self, module: &str, at: TextRange) {
        if self.is_guarded {
            return;
        }
        let is_certain = self.is_in_head || (self.flow.is_certain && !self.names.changes_imports);
        let (message, is_certain) = match unavailable::find(module) {
            Some((name, Unavailable::Module(why))) => (format!("{}: {why}", absent(name)), is_certain),
            Some((name, Unavailable::Package(instead))) => {
                (format!("{}: {instead}{}", absent(name), self.packages("; ")), is_certain)
            }
            Some((_, Unavailable::InUse(what, why))) => (format!("{what}: {why}"), false),
            None => {
                let package = module.split('.').next().unwrap_or_default();
                if modules::may_exist(package) {
                    return;
                }
                let is_certain = is_certain && !OF_OTHER_PROGRAMS.contains(&package);
                (self.unknown(package), is_certain)
            }
        };
        self.survey.add_import(ImportProblem { message, at: bytes(at), is_certain });
    }

    /// What the interpreter says of a module that it does not know.
    fn unknown(&mut self, package: &str) -> String {
        let absent = absent(&preview(package, MAX_NAME));
        match modules::nearest_to(package, &self.suggestions) {
            Some(near) => format!("{absent}: did you mean '{near}'?{}", self.packages(" ")),
            None => format!("{absent}{}", self.packages(": ")),
        }
    }

    /// Which packages there are, after a separator. Said once in a script.
    fn packages(&mut self, separator: &str) -> String {
        let is_said = std::mem::replace(&mut self.has_named_packages, true);
        if is_said { String::new() } else { format!("{separator}{PACKAGES}") }
    }
}

fn absent(name: &str) -> String {
    format!("No module named '{name}'")
}
