//! Imports of modules that a script cannot use.

use ruff_python_ast::{StmtImport, StmtImportFrom};
use ruff_text_size::TextRange;

use super::Surveyor;
use super::literal::bytes;
use super::unavailable::{self, PACKAGES, Unavailable};
use crate::run::check::survey::ImportProblem;

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
        let Some((name, what)) = unavailable::find(module) else { return };
        let is_certain = self.is_in_head || (self.flow.is_certain && !self.names.changes_imports);
        let absent = format!("No module named '{name}'");
        let (message, is_certain) = match what {
            Unavailable::Module(why) => (format!("{absent}: {why}"), is_certain),
            Unavailable::Package(instead) => {
                // Only the first message lists the packages that exist.
                let is_said = std::mem::replace(&mut self.has_named_packages, true);
                let packages = if is_said { String::new() } else { format!("; {PACKAGES}") };
                (format!("{absent}: {instead}{packages}"), is_certain)
            }
            Unavailable::InUse(what, why) => (format!("{what}: {why}"), false),
        };
        self.survey.add_import(ImportProblem { message, at: bytes(at), is_certain });
    }
}
