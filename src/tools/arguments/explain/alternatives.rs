//! Errors of `anyOf` and `oneOf`, where no alternative fits.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::Location;

use crate::tools::arguments::render::{at, one_of, options_of, path, preview_value, type_names};

/// The errors of one alternative.
type Alternative = Vec<ValidationError<'static>>;

/// A field that distinguishes alternatives by its constant, such as `kind`.
struct Tag {
    path: String,
    depth: usize,
    /// The values that an alternative permits.
    options: String,
    found: String,
}

/// The alternative that was probably meant: of those that are possible, the one with the fewest errors. `None` if none
/// is possible.
pub(crate) fn meant<'e>(
    error: &ValidationError<'_>,
    alternatives: &'e [Alternative],
) -> Option<&'e Alternative> {
    let here = depth(error.instance_path());
    // An alternative was not meant if it requires another type, or another value of a field that
    // distinguishes the alternatives.
    let rules_out = |error: &ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Type { .. } | ValidationErrorKind::FalseSchema => {
            depth(error.instance_path()) == here
        }
        ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => {
            depth(error.instance_path()) <= here + 1
        }
        _ => false,
    };
    let possible = alternatives.iter().filter(|errors| !errors.is_empty() && !errors.iter().any(rules_out));
    possible.min_by_key(|errors| errors.len())
}

/// A description of what the alternatives expect together.
pub(crate) fn expected(error: &ValidationError<'_>, alternatives: &[Alternative]) -> String {
    let here = depth(error.instance_path());
    let tags = tags(alternatives);
    let types = types(alternatives, here);
    // The tag that all alternatives require, if there is one: `kind`: expected "a" or "b".
    if let Some(first) = tags.first()
        && (types.is_empty() || tags.iter().any(|tag| tag.depth > here))
    {
        return format!(
            "{}expected {}, found {}",
            at(&first.path),
            one_of(&options(&tags, &first.path)),
            first.found
        );
    }
    let path = path(error.instance_path());
    let wanted: Vec<&str> = types.into_iter().chain(options(&tags, &path)).collect();
    let wanted = match wanted[..] {
        [] => format!("one of {} allowed forms", alternatives.len()),
        _ => one_of(&wanted),
    };
    format!("{}expected {wanted}, found {}", at(&path), preview_value(error.instance()))
}

/// Maximum number of constants of alternatives that are distinguished, and that a message names.
const MAX_TAGS: usize = 100;

/// The constants that alternatives require, each once.
fn tags(alternatives: &[Alternative]) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    for error in alternatives.iter().flatten() {
        if tags.len() == MAX_TAGS {
            break;
        }
        let options = match error.kind() {
            ValidationErrorKind::Constant { expected_value } => preview_value(expected_value),
            ValidationErrorKind::Enum { options } => options_of(options),
            _ => continue,
        };
        let path = path(error.instance_path());
        if !tags.iter().any(|tag| tag.path == path && tag.options == options) {
            let found = preview_value(error.instance());
            tags.push(Tag { path, depth: depth(error.instance_path()), options, found });
        }
    }
    tags
}

fn options<'t>(tags: &'t [Tag], path: &str) -> Vec<&'t str> {
    tags.iter().filter(|tag| tag.path == path).map(|tag| tag.options.as_str()).collect()
}

/// The types that alternatives require of the value itself, each once.
fn types(alternatives: &[Alternative], here: usize) -> Vec<&'static str> {
    let mut types = Vec::new();
    for error in alternatives.iter().flatten() {
        if let ValidationErrorKind::Type { kind } = error.kind()
            && depth(error.instance_path()) == here
        {
            for name in type_names(kind) {
                if !types.contains(&name) {
                    types.push(name);
                }
            }
        }
    }
    types
}

fn depth(location: &Location) -> usize {
    location.segments().count()
}
