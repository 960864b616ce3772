//! The languages of scripts, and their names in reports.

use crate::run::script::Language;

/// All languages.
pub(crate) const LANGUAGES: [Language; 2] = [Language::TypeScript, Language::Python];

/// The name of a language in the `health` report and in labels of metrics.
pub(crate) const fn report_name(language: Language) -> &'static str {
    match language {
        Language::TypeScript => "typescript",
        Language::Python => "python",
    }
}
