//! Upper bounds on the cost of an argument check, known before it starts.
//!
//! Ours, because `jsonschema` can neither be interrupted nor given a limit, and in a recursive schema
//! it tries all branches of a union again at every level of the arguments. What it remembers of
//! recursive references shortens the question whether a value is valid, but not the collection of
//! errors, and nothing bounds its stack.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::values::{count_up_to, levels_of};
use crate::tools::schema::view::SchemaView;

/// Maximum depth of nested schemas that apply to the same value, through `$ref`, `allOf` and so on.
/// This module and the compilation of `unevaluatedProperties` recurse over them.
const MAX_IN_PLACE_DEPTH: usize = 32;

/// Maximum levels of schemas, with references followed. Compilation recurses over them.
const MAX_LEVELS: usize = 100;

/// Maximum number of schemas that may be tried on one value.
const MAX_IN_PLACE: u64 = 10_000;

/// Evaluations are not counted if at most this many schemas are tried on one value.
const FEW_IN_PLACE: u64 = 16;

/// Maximum number of schema evaluations in one check: some tenths of a second in the worst case.
const MAX_STEPS: u64 = 5_000_000;

/// Maximum number of schemas on the stack in one check. A frame takes some 500 bytes, and threads
/// have 2 MB.
const MAX_STACKED: usize = 1_500;

/// Maximum number of comparisons with constants and names in one check. Each takes some
/// nanoseconds.
const MAX_COMPARISONS: usize = 50_000_000;

/// Maximum number of errors in the list of all: some 25 MB. Each takes 250 bytes, and the validator collects them
/// before it returns the first.
const MAX_ERRORS: u64 = 100_000;

/// Comparisons are not counted if a keyword has at most this many constants or names: parsing took
/// longer.
const FEW: usize = 64;

/// Upper bounds on the cost of a check with one schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The cost of the most expensive value.
    cost: Cost,
    /// Length of the longest list of constants or names in one schema. Each value can be compared
    /// with all of them.
    longest: usize,
    /// Maximum number of errors of one schema about one value.
    errors: u64,
    /// Number of levels; `None` if the schema is recursive.
    levels: Option<usize>,
}

/// The cost of trying one schema on a value.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Number of schemas that are tried on the value.
    schemas: u64,
    /// How often each part of the value is visited per visit of the value.
    visits: u64,
    /// Depth of nested schemas that apply to the value.
    depth: usize,
}

impl Bounds {
    /// Computes the bounds of `schema`.
    ///
    /// # Errors
    ///
    /// Why the schema cannot be used for checks, as a fragment.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err("it is neither an object nor a boolean".to_owned());
        }
        let mut walk = Walk::default();
        let levels = walk.levels(SchemaView::root(schema), 0)?;
        let cost =
            walk.costs.values().flatten().fold(Cost { schemas: 1, visits: 1, depth: 1 }, |most, cost| Cost {
                schemas: most.schemas.max(cost.schemas),
                visits: most.visits.max(cost.visits),
                depth: most.depth.max(cost.depth),
            });
        if cost.schemas > MAX_IN_PLACE {
            return Err(format!("more than {MAX_IN_PLACE} of its alternatives apply to one value"));
        }
        let levels = (!walk.is_recursive).then_some(levels);
        Ok(Self { cost, longest: walk.longest, errors: walk.errors, levels })
    }

    /// Whether a check of `arguments` ends soon enough.
    pub(crate) fn allow(&self, arguments: &Value) -> bool {
        if self.longest > FEW && count_up_to(arguments, MAX_COMPARISONS / self.longest).is_none() {
            return false;
        }
        // Where each part is visited once, and by few schemas, the work is in proportion to the arguments that were
        // sent, and only the stack needs a bound. Mostly the schema's own levels are one.
        let visits_once = self.cost.visits == 1 && self.cost.schemas <= FEW_IN_PLACE;
        if visits_once && self.levels.is_some_and(|levels| levels * self.cost.depth < MAX_STACKED) {
            return true;
        }
        let levels = self.levels_of(arguments);
        if levels * self.cost.depth > MAX_STACKED {
            return false;
        }
        visits_once || self.count_is_within(MAX_STEPS / self.cost.schemas, arguments)
    }

    /// Whether the list of all errors about `arguments` is short enough.
    pub(crate) fn allow_all_errors(&self, arguments: &Value) -> bool {
        self.count_is_within(MAX_ERRORS / self.cost.schemas / self.errors.max(1), arguments)
    }

    /// Whether all visits of all values in `arguments` are at most `most`.
    fn count_is_within(&self, most: u64, arguments: &Value) -> bool {
        let levels = u32::try_from(self.levels_of(arguments));
        let visits = levels.map_or(u64::MAX, |levels| self.cost.visits.saturating_pow(levels));
        count_up_to(arguments, usize::try_from(most / visits).unwrap_or(usize::MAX)).is_some()
    }

    /// The number of levels of `arguments` that schemas are tried on.
    fn levels_of(&self, arguments: &Value) -> usize {
        levels_of(arguments).min(self.levels.unwrap_or(usize::MAX))
    }
}

/// A walk over all schemas that can be reached, each identified by its address.
#[derive(Default)]
struct Walk {
    /// `None` while they are being computed.
    costs: HashMap<usize, Option<Cost>>,
    levels: HashMap<usize, Option<usize>>,
    is_recursive: bool,
    longest: usize,
    errors: u64,
}

impl Walk {
    /// The number of levels of schemas from `schema` down.
    fn levels(&mut self, schema: SchemaView<'_>, above: usize) -> Result<usize, String> {
        let known = self.levels.get(&schema.address()).copied();
        if above + known.flatten().unwrap_or(0) > MAX_LEVELS {
            return Err(format!("it has more than {MAX_LEVELS} levels"));
        }
        if let Some(known) = known {
            self.is_recursive |= known.is_none();
            return Ok(known.unwrap_or(0));
        }
        self.levels.insert(schema.address(), None);
        if above > 0 && schema.has_identifier() {
            return Err("a part of it has an `$id` of its own".to_owned());
        }
        self.cost(schema, 0)?;
        self.longest = self.longest.max(schema.longest_keyword());
        self.errors = self.errors.max(errors_of(schema) as u64);
        let mut levels = 0;
        for child in applied(schema)?.into_iter().chain(schema.parts()) {
            levels = levels.max(self.levels(child, above + 1)?);
        }
        self.levels.insert(schema.address(), Some(levels + 1));
        Ok(levels + 1)
    }

    /// The cost of trying `schema` on one value.
    fn cost(&mut self, schema: SchemaView<'_>, above: usize) -> Result<Cost, String> {
        if above > MAX_IN_PLACE_DEPTH {
            return Err(format!("more than {MAX_IN_PLACE_DEPTH} references or alternatives are nested"));
        }
        if let Some(known) = self.costs.get(&schema.address()) {
            return known.ok_or_else(|| "a `$ref` in it refers to itself for ever".to_owned());
        }
        self.costs.insert(schema.address(), None);
        // Patterns and `contains` visit parts in addition to the other keywords.
        let has_parts = usize::from(schema.parts().next().is_some());
        let contains = usize::from(schema.get("contains").is_some());
        let visits = has_parts + schema.map("patternProperties").count() + contains;
        let mut cost = Cost { schemas: 1, visits: visits as u64, depth: 1 };
        for child in applied(schema)? {
            let child = self.cost(child, above + 1)?;
            cost.schemas = cost.schemas.saturating_add(child.schemas);
            cost.visits = cost.visits.saturating_add(child.visits);
            cost.depth = cost.depth.max(child.depth + 1);
        }
        if ["unevaluatedProperties", "unevaluatedItems"].iter().any(|keyword| schema.get(keyword).is_some()) {
            // To find out which parts are evaluated, the validator tries the alternatives a second
            // time.
            cost.schemas = cost.schemas.saturating_mul(2);
            cost.visits = cost.visits.saturating_mul(2);
        }
        self.costs.insert(schema.address(), Some(cost));
        Ok(cost)
    }
}

/// The number of errors that `schema` itself can have about one value: one of each keyword, and of each name that it
/// requires.
fn errors_of(schema: SchemaView<'_>) -> usize {
    let dependent =
        ["dependentRequired", "dependencies"].into_iter().filter_map(|keyword| schema.get(keyword));
    let dependent = dependent.filter_map(Value::as_object).flat_map(Map::values).filter_map(Value::as_array);
    let keywords = schema.keywords().map_or(0, Map::len);
    keywords + schema.required().count() + dependent.map(Vec::len).sum::<usize>()
}

/// The schemas that apply to the same value as `schema`, including the target of its reference.
fn applied(schema: SchemaView<'_>) -> Result<Vec<SchemaView<'_>>, String> {
    if schema.get("$recursiveRef").is_some() {
        return Err("`$recursiveRef` is not followed".to_owned());
    }
    if schema.get("$ref").is_some() && schema.get("$dynamicRef").is_some() {
        return Err("a part of it has a `$ref` and a `$dynamicRef`".to_owned());
    }
    let target = schema.reference().map_err(|error| error.to_string())?;
    Ok(target.into_iter().chain(schema.in_place()).collect())
}
