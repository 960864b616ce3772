//! The names of languages in reports.

use crate::run::script::Language;

/// The name of a language in the `health` report and in labels of metrics.
pub(crate) const fn report_name(language: Language) -> &'static str {
    language.as_str()
}
