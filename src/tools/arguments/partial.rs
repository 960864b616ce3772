//! Checks arguments with unknown parts, which a script computes at run time.

use std::collections::{BTreeMap, HashSet};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::ArgumentCheck;
use super::explain::explain;
use crate::tools::names::SuggestionBudget;
use crate::tools::schema::view::SchemaView;

/// Keywords whose schemas apply depending on other parts of the value. Their errors about a value with unknown parts
/// are not certain.
const CONDITIONAL: [&str; 12] = [
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// Maximum number of problems of one call that are described.
const MAX_PROBLEMS: usize = 100;

/// The unknown parts of arguments. All paths are JSON pointers; an unknown value is `null` in the arguments.
#[derive(Debug, Default)]
pub(crate) struct Unknowns {
    /// The unknown values.
    pub(crate) values: HashSet<String>,
    /// Those of them that may be absent from their object.
    pub(crate) optional: HashSet<String>,
    /// The objects that may have other fields too.
    pub(crate) open: HashSet<String>,
}

/// What is wrong with one value of the arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PartProblem {
    /// The JSON pointer of the value.
    pub(crate) path: String,
    /// The name of the field that the problem is about, if the field must not be there.
    pub(crate) field: Option<String>,
    /// What is wrong, for a person.
    pub(crate) message: String,
    /// Whether it is wrong whatever the unknown values are.
    pub(crate) is_certain: bool,
}

/// Whether an error holds whatever the unknown values are. In the order in which problems are listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    Certain,
    /// The error disappears if optional fields are left out.
    Doubtful,
}

impl ArgumentCheck {
    /// Problems of arguments that hold for any value of their unknown parts, by path: the first [`MAX_PROBLEMS`] that
    /// are certain, and as many others.
    pub(crate) fn problems_of_part(
        &self,
        arguments: &Value,
        unknowns: &Unknowns,
        budget: &SuggestionBudget,
    ) -> Vec<PartProblem> {
        if !self.allows(arguments)
            || self.validator.is_valid(arguments)
            || !self.may_have_all_errors(arguments)
        {
            return Vec::new();
        }
        let containing = unknowns.containing();
        // By path, those that are certain first.
        let mut by_path: BTreeMap<(String, Certainty), Vec<ValidationError<'_>>> = BTreeMap::new();
        for error in self.validator.iter_errors(arguments) {
            let path = error.instance_path().as_str().to_owned();
            if let Some(certainty) = unknowns.judge(&path, &error, &containing) {
                by_path.entry((path, certainty)).or_default().push(error);
            }
        }
        if by_path.is_empty() {
            return Vec::new();
        }
        let schema = self.tree();
        let problem =
            |((path, certainty), errors): ((String, Certainty), Vec<ValidationError<'_>>)| PartProblem {
                path,
                field: errors.iter().find_map(|error| unexpected(error).first().cloned()),
                message: explain(errors, SchemaView::root(&schema), budget),
                is_certain: certainty == Certainty::Certain,
            };
        let (mut certain, mut doubtful) = (0, 0);
        by_path.retain(|(_, certainty), _| {
            let count = match certainty {
                Certainty::Certain => &mut certain,
                Certainty::Doubtful => &mut doubtful,
            };
            *count += 1;
            *count <= MAX_PROBLEMS
        });
        by_path.into_iter().map(problem).collect()
    }
}

/// The fields that must not be there.
fn unexpected<'a>(error: &'a ValidationError<'_>) -> &'a [String] {
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => unexpected,
        _ => &[],
    }
}

impl Unknowns {
    /// Whether nothing is unknown.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.open.is_empty()
    }

    /// How certain an error is. `None` if it is meaningless, because it is about the unknown value itself.
    fn judge(
        &self,
        path: &str,
        error: &ValidationError<'_>,
        containing: &HashSet<&str>,
    ) -> Option<Certainty> {
        let certain = Some(Certainty::Certain);
        if self.is_empty() {
            return certain;
        }
        if self.is_in_unknown(path) || error.instance().is_null() {
            return None;
        }
        let is_conditional =
            |keywords: &str| keywords.split('/').any(|keyword| CONDITIONAL.contains(&keyword));
        let schema_path = error.schema_path().as_str();
        if !containing.contains(path) {
            // The keyword itself depends only on this value, which is known.
            let above = schema_path.rsplit_once('/').map_or("", |(above, _own)| above);
            return certain.filter(|_| !is_conditional(above));
        }
        if is_conditional(schema_path) {
            return None;
        }
        match error.kind() {
            Kind::Required { .. } => certain.filter(|_| !self.open.contains(path)),
            Kind::AdditionalProperties { unexpected } => {
                let optional = |name: &String| {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    self.optional.contains(&format!("{path}/{name}"))
                };
                if unexpected.iter().all(optional) { Some(Certainty::Doubtful) } else { certain }
            }
            Kind::Type { .. } => certain,
            _ => None,
        }
    }

    /// Whether the value at `path` is unknown, or a part of an unknown one.
    fn is_in_unknown(&self, path: &str) -> bool {
        let mut path = path;
        loop {
            if self.values.contains(path) {
                return true;
            }
            let Some((parent, _)) = path.rsplit_once('/') else { return false };
            path = parent;
        }
    }

    /// The values that are unknown or contain an unknown part. It is a set, because it is queried for each of thousands
    /// of errors.
    fn containing(&self) -> HashSet<&str> {
        let mut containing = HashSet::new();
        for path in self.values.iter().chain(&self.open) {
            let mut path = path.as_str();
            // Ancestors of a value that is in the set are in the set too.
            while containing.insert(path)
                && let Some((parent, _)) = path.rsplit_once('/')
            {
                path = parent;
            }
        }
        containing
    }
}

#[cfg(test)]
mod tests;
