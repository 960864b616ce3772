//! Upper bounds on the cost of an argument check, known before it starts.
//!
//! This is not part of `jsonschema`, which can neither be interrupted nor given a limit, and in a recursive schema
//! tries all branches of a union again at every level of the arguments. Its cache of recursive references speeds up the
//! validity check, but not the collection of errors, and nothing bounds its stack.

use std::collections::HashMap;

use serde_json::Value;

use super::values::{count_up_to, levels_of, text_up_to};
use super::work::{TEXT_UNIT, text_weight_of, tries_of_applied};
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

/// Maximum number of schema evaluations in one check, as computed from the most expensive value: some 20 ms. If this
/// estimate is exceeded, a walk over the schema and the arguments determines whether the check is short enough.
const MAX_STEPS: u64 = 1_000_000;

/// Maximum number of steps for text that is read by patterns and the like, computed the same way.
const MAX_TEXT_STEPS: u64 = 200_000;

/// Maximum number of schemas on the stack in one check. A frame takes some 500 bytes, and threads
/// have 2 MB.
const MAX_STACKED: usize = 1_500;

/// Maximum number of comparisons with constants and names in one check. Each takes some
/// nanoseconds.
const MAX_COMPARISONS: usize = 10_000_000;

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
    /// The largest weight of text of one schema: see [`text_weight_of`].
    text_weight: u64,
    /// The part of the schema below its root; `None` if it is recursive.
    below: Option<Below>,
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

/// The schemas below one schema that is tried on a value.
#[derive(Debug, Clone, Copy)]
struct Below {
    /// Number of levels of schemas, including its own.
    levels: usize,
    /// Maximum number of visits of any value inside of the value, per visit of the value.
    visits: u64,
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
        let below = walk.below(SchemaView::root(schema), 0)?;
        let cost =
            walk.costs.values().flatten().fold(Cost { schemas: 1, visits: 1, depth: 1 }, |most, cost| Cost {
                schemas: most.schemas.max(cost.schemas),
                visits: most.visits.max(cost.visits),
                depth: most.depth.max(cost.depth),
            });
        if cost.schemas > MAX_IN_PLACE {
            return Err(format!("more than {MAX_IN_PLACE} of its alternatives apply to one value"));
        }
        let below = (!walk.is_recursive).then_some(below);
        Ok(Self { cost, longest: walk.longest, text_weight: walk.text_weight, below })
    }

    /// Whether a check of `arguments` takes a bounded time. If the estimate by the most expensive value is too high,
    /// `walk` counts the steps of each value, and that count decides.
    pub(crate) fn allow(&self, arguments: &Value, walk: impl FnOnce() -> bool) -> bool {
        if self.longest > FEW && count_up_to(arguments, MAX_COMPARISONS / self.longest).is_none() {
            return false;
        }
        // If each part is visited once and by few schemas, the work is proportional to the arguments that were sent,
        // and only the stack needs a bound. Usually the schema's own levels provide it.
        let visits_once = self.cost.visits == 1 && self.cost.schemas <= FEW_IN_PLACE;
        let is_shallow =
            visits_once && self.below.is_some_and(|below| below.levels * self.cost.depth < MAX_STACKED);
        if !is_shallow && self.levels_of(arguments) * self.cost.depth > MAX_STACKED {
            return false;
        }
        let has_few_steps = visits_once || self.count_is_within(MAX_STEPS / self.cost.schemas, arguments);
        (has_few_steps && self.text_is_within(arguments)) || walk()
    }

    /// The number of schema evaluations in a check of `arguments`, at most [`MAX_STEPS`].
    pub(crate) fn steps(&self, arguments: &Value) -> u64 {
        let each = self.cost.schemas.saturating_mul(self.visits(arguments)).max(1);
        let most = usize::try_from(MAX_STEPS / each).unwrap_or(usize::MAX);
        count_up_to(arguments, most).map_or(MAX_STEPS, |count| each * count as u64)
    }

    /// Whether all visits of all values in `arguments` are at most `most`.
    fn count_is_within(&self, most: u64, arguments: &Value) -> bool {
        let most = most / self.visits(arguments);
        count_up_to(arguments, usize::try_from(most).unwrap_or(usize::MAX)).is_some()
    }

    /// Whether the text in `arguments` is short enough for the patterns that read it.
    fn text_is_within(&self, arguments: &Value) -> bool {
        if self.text_weight == 0 {
            return true;
        }
        let each = self.text_weight.saturating_mul(self.cost.schemas).saturating_mul(self.visits(arguments));
        let most = MAX_TEXT_STEPS * TEXT_UNIT / each;
        text_up_to(arguments, usize::try_from(most).unwrap_or(usize::MAX)).is_some()
    }

    /// Maximum number of visits of any value in `arguments`.
    fn visits(&self, arguments: &Value) -> u64 {
        // Each level of a recursive schema can multiply the visits. For other schemas the visits are known: a union of
        // five objects in a list is one factor of five, however deep the arguments are.
        let visits = match self.below {
            Some(below) => below.visits,
            None => u32::try_from(self.levels_of(arguments))
                .map_or(u64::MAX, |levels| self.cost.visits.saturating_pow(levels.saturating_sub(1))),
        };
        visits.max(1)
    }

    /// The number of levels of `arguments` that schemas are tried on.
    fn levels_of(&self, arguments: &Value) -> usize {
        levels_of(arguments).min(self.below.map_or(usize::MAX, |below| below.levels))
    }
}

/// A walk over all schemas that can be reached, each identified by its address.
#[derive(Default)]
struct Walk {
    /// `None` while they are being computed.
    costs: HashMap<usize, Option<Cost>>,
    below: HashMap<usize, Option<Below>>,
    is_recursive: bool,
    longest: usize,
    text_weight: u64,
}

impl Walk {
    /// Computes the part below `schema`, which has `above` levels above it.
    fn below(&mut self, schema: SchemaView<'_>, above: usize) -> Result<Below, String> {
        let known = self.below.get(&schema.address()).copied();
        if above + known.flatten().map_or(0, |below| below.levels) > MAX_LEVELS {
            return Err(format!("it has more than {MAX_LEVELS} levels"));
        }
        if let Some(known) = known {
            self.is_recursive |= known.is_none();
            return Ok(known.unwrap_or(Below { levels: 0, visits: 0 }));
        }
        self.below.insert(schema.address(), None);
        if above > 0 && schema.has_identifier() {
            return Err("a part of it has an `$id` of its own".to_owned());
        }
        self.cost(schema, 0)?;
        self.longest = self.longest.max(schema.longest_keyword());
        self.text_weight = self.text_weight.max(text_weight_of(schema));
        let mut below = Below { levels: 0, visits: 0 };
        for child in applied(schema)? {
            let child = self.below(child, above + 1)?;
            below.levels = below.levels.max(child.levels);
            below.visits = below.visits.saturating_add(child.visits);
        }
        let mut in_parts = 1;
        for part in schema.parts() {
            let part = self.below(part, above + 1)?;
            below.levels = below.levels.max(part.levels);
            in_parts = part.visits.max(in_parts);
        }
        below.visits = below.visits.saturating_add(visits_of_parts(schema).saturating_mul(in_parts));
        below.visits = below.visits.saturating_mul(tries_of_applied(schema));
        below.levels += 1;
        self.below.insert(schema.address(), Some(below));
        Ok(below)
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
        let mut cost = Cost { schemas: 1, visits: visits_of_parts(schema), depth: 1 };
        for child in applied(schema)? {
            let child = self.cost(child, above + 1)?;
            cost.schemas = cost.schemas.saturating_add(child.schemas);
            cost.visits = cost.visits.saturating_add(child.visits);
            cost.depth = cost.depth.max(child.depth + 1);
        }
        cost.schemas = cost.schemas.saturating_mul(tries_of_applied(schema));
        cost.visits = cost.visits.saturating_mul(tries_of_applied(schema));
        self.costs.insert(schema.address(), Some(cost));
        Ok(cost)
    }
}

/// How often `schema` itself visits each part of a value: patterns and `contains` visit parts in addition to the other
/// keywords.
fn visits_of_parts(schema: SchemaView<'_>) -> u64 {
    let has_parts = usize::from(schema.parts().next().is_some());
    let contains = usize::from(schema.get("contains").is_some());
    (has_parts + schema.map("patternProperties").count() + contains) as u64
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
