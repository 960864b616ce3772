//! Reads scripts in cx's own languages for the check before a run, which needs no engine of theirs.

#[cfg(not(feature = "python"))]
use self::unread as python;
#[cfg(not(feature = "typescript"))]
use self::unread as typescript;
use crate::engine::host::RunHost;
use crate::engine::instance::Unprepared;
#[cfg(feature = "python")]
use crate::engine::python::interpreter::read as python;
#[cfg(feature = "typescript")]
use crate::engine::typescript::engine::survey as typescript;
use crate::run::check::survey::Survey;
use crate::run::script::Language;

/// Stack in bytes that [`survey`] needs. Untouched pages cost nothing.
#[cfg(feature = "typescript")]
pub(super) const STACK_BYTES: usize = crate::engine::typescript::transpile::STACK_BYTES;
#[cfg(not(feature = "typescript"))]
pub(super) const STACK_BYTES: usize = 2 << 20;

/// What a script says that it calls. Empty for a language that this program is built without. Imports are left out:
/// which modules there are, the back end knows.
///
/// # Errors
///
/// The run's error, for a source that is none of its language.
pub(super) fn survey(host: &dyn RunHost, source: &str) -> Result<Survey, Box<Unprepared>> {
    match host.language() {
        Language::TypeScript => typescript(host, source),
        Language::Python => python(host, source).map(|survey| Survey { imports: Vec::new(), ..survey }),
    }
}

/// Nothing is known of a script in a language that this program is built without.
#[cfg(not(all(feature = "typescript", feature = "python")))]
fn unread(_host: &dyn RunHost, _source: &str) -> Result<Survey, Box<Unprepared>> {
    Ok(Survey::default())
}
