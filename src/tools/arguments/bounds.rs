//! Upper bounds on the cost of checking with a schema, computed without running the check.
//!
//! A validator follows every branch of a union, and in a recursive schema it does so again at every
//! level. So a schema of 100 bytes with an argument of 128 levels could occupy a thread forever.
//! The check cannot be interrupted, so its cost is bounded before it starts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

/// Maximum depth of nested schemas that apply to the same value, through `$ref`, `allOf` and so on.
const MAX_IN_PLACE_DEPTH: usize = 32;

/// Maximum levels of schemas, with references followed. Compilation recurses over them.
const MAX_DEPTH: usize = 100;

/// Maximum number of schemas that may be tried on one value.
const MAX_IN_PLACE: u64 = 10_000;

/// Maximum number of schema evaluations in one check: some tenths of a second in the worst case.
const MAX_STEPS: u64 = 5_000_000;

/// Maximum number of schemas on the stack in one check. A frame takes some 500 bytes, and threads
/// have 2 MB.
const MAX_STACKED: usize = 1_500;

/// Maximum number of comparisons with constants and names in one check. Each takes some
/// nanoseconds.
const MAX_COMPARISONS: usize = 50_000_000;

/// Comparisons are not counted if a keyword has at most this many constants or names: parsing took
/// longer.
const FEW: usize = 64;

/// Keywords whose schemas apply to the same value as their parent.
const IN_PLACE_ONE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE_MAP: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords whose schemas apply to parts of the value.
const PART_ONE: [&str; 8] = [
    "additionalProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
];
const PART_LIST: [&str; 2] = ["prefixItems", "items"];
const PART_MAP: [&str; 2] = ["properties", "patternProperties"];

/// Upper bounds on the cost of a check with one schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Maximum number of schemas that are tried on one value.
    in_place: u64,
    /// How often each part of a value is visited per visit of the value.
    overlap: u64,
    /// Depth of nested schemas that apply to one value.
    in_place_depth: usize,
    /// Length of the longest list of constants or names in one schema. Each value can be compared
    /// with all of them.
    longest: usize,
    /// Number of levels; `None` if the schema is recursive.
    levels: Option<usize>,
}

impl Bounds {
    /// Computes the bounds of `schema`.
    ///
    /// # Errors
    ///
    /// Why the schema cannot be used for checks, as a fragment.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
            return Err("it is neither an object nor a boolean".to_owned());
        }
        let mut graph = Graph {
            root: schema,
            in_place: HashMap::new(),
            depths: HashMap::new(),
            recursive: false,
            longest: 0,
        };
        let depth = graph.depth(schema, 0)?;
        let mut bounds =
            Self { in_place: 1, overlap: 1, in_place_depth: 1, longest: graph.longest, levels: None };
        for cost in graph.in_place.values().flatten() {
            bounds.in_place = bounds.in_place.max(cost.schemas);
            bounds.overlap = bounds.overlap.max(cost.overlap);
            bounds.in_place_depth = bounds.in_place_depth.max(cost.depth);
        }
        if bounds.in_place > MAX_IN_PLACE {
            return Err(format!("more than {MAX_IN_PLACE} of its alternatives apply to one value"));
        }
        bounds.levels = (!graph.recursive).then_some(depth);
        Ok(bounds)
    }

    /// Whether a check of `arguments` ends soon enough.
    pub(super) fn allow(&self, arguments: &Value) -> bool {
        if self.longest > FEW && values_up_to(arguments, MAX_COMPARISONS / self.longest).is_none() {
            return false;
        }
        // The common case is decided without a traversal: a schema without recursion or
        // alternatives visits each value once.
        if self.overlap == 1 && self.levels.is_some_and(|levels| levels * self.in_place_depth < MAX_STACKED) {
            return true;
        }
        let depth = depth_of(arguments).min(self.levels.unwrap_or(usize::MAX));
        if depth * self.in_place_depth > MAX_STACKED {
            return false;
        }
        let looks = u32::try_from(depth).map_or(u64::MAX, |depth| self.overlap.saturating_pow(depth));
        let most = MAX_STEPS / self.in_place / looks.max(1);
        // With any schema each value is visited once. That cost is in proportion to the arguments
        // that were sent.
        self.overlap == 1
            || usize::try_from(most).is_ok_and(|most| most > 0 && values_up_to(arguments, most).is_some())
    }
}

/// The cost of trying one schema on a value.
#[derive(Debug, Clone, Copy)]
struct InPlace {
    schemas: u64,
    overlap: u64,
    depth: usize,
}

struct Graph<'a> {
    root: &'a Value,
    /// By address; `None` while it is being computed.
    in_place: HashMap<usize, Option<InPlace>>,
    depths: HashMap<usize, Option<usize>>,
    recursive: bool,
    longest: usize,
}

impl<'a> Graph<'a> {
    /// The number of levels of schemas below `schema`. Visits all reachable schemas.
    fn depth(&mut self, schema: &'a Value, above: usize) -> Result<usize, String> {
        if above > MAX_DEPTH {
            return Err(format!("it has more than {MAX_DEPTH} levels"));
        }
        match self.depths.entry(address(schema)) {
            Entry::Occupied(entry) => match entry.get() {
                Some(depth) if above + depth > MAX_DEPTH => {
                    return Err(format!("it has more than {MAX_DEPTH} levels"));
                }
                Some(depth) => return Ok(*depth),
                None => {
                    self.recursive = true;
                    return Ok(0);
                }
            },
            Entry::Vacant(entry) => entry.insert(None),
        };
        if above > 0 && schema.get("$id").or_else(|| schema.get("id")).is_some_and(Value::is_string) {
            return Err("a part of it has an `$id` of its own".to_owned());
        }
        self.in_place(schema, 0)?;
        let length = |keyword: &Value| match keyword {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        let keywords = schema.as_object().into_iter().flatten();
        // Definitions are looked up by name, not scanned.
        let lists = keywords.filter(|(keyword, _)| !matches!(keyword.as_str(), "$defs" | "definitions"));
        self.longest = self.longest.max(lists.map(|(_, value)| length(value)).max().unwrap_or(0));
        let mut depth = 0;
        for child in self.same_value(schema)?.into_iter().chain(parts(schema)) {
            depth = depth.max(self.depth(child, above + 1)?);
        }
        self.depths.insert(address(schema), Some(depth + 1));
        Ok(depth + 1)
    }

    fn in_place(&mut self, schema: &'a Value, above: usize) -> Result<InPlace, String> {
        if above > MAX_IN_PLACE_DEPTH {
            return Err(format!("more than {MAX_IN_PLACE_DEPTH} references or alternatives are nested"));
        }
        match self.in_place.entry(address(schema)) {
            Entry::Occupied(entry) => {
                return entry.get().ok_or_else(|| "a `$ref` in it refers to itself for ever".to_owned());
            }
            Entry::Vacant(entry) => entry.insert(None),
        };
        let patterns =
            schema.get("patternProperties").and_then(Value::as_object).map_or(0, serde_json::Map::len);
        let contains = u64::from(schema.get("contains").is_some());
        let mut cost = InPlace {
            schemas: 1,
            overlap: u64::from(parts(schema).next().is_some()) + patterns as u64 + contains,
            depth: 1,
        };
        for child in self.same_value(schema)? {
            let child = self.in_place(child, above + 1)?;
            cost.schemas = cost.schemas.saturating_add(child.schemas);
            cost.overlap = cost.overlap.saturating_add(child.overlap);
            cost.depth = cost.depth.max(child.depth + 1);
        }
        if ["unevaluatedProperties", "unevaluatedItems"].iter().any(|keyword| schema.get(keyword).is_some()) {
            // To find out which parts are evaluated, the validator tries the alternatives a second
            // time.
            cost.schemas = cost.schemas.saturating_mul(2);
            cost.overlap = cost.overlap.saturating_mul(2);
        }
        self.in_place.insert(address(schema), Some(cost));
        Ok(cost)
    }

    /// The schemas that apply to the same value as `schema`.
    fn same_value(&self, schema: &'a Value) -> Result<Vec<&'a Value>, String> {
        let mut children = Vec::new();
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if schema.get(keyword).is_some() {
                return Err(format!("`{keyword}` is not followed"));
            }
        }
        if let Some(reference) = schema.get("$ref") {
            let Some(reference) = reference.as_str() else {
                return Err("a `$ref` in it is not a string".to_owned());
            };
            let shown = super::explain::shortened(reference);
            let Some(pointer) = reference.strip_prefix('#') else {
                return Err(format!("`$ref` to `{shown}`, which is outside of it and is not read"));
            };
            let target = resolve(self.root, pointer);
            children.push(target.ok_or_else(|| format!("`$ref` to `{shown}`, which it does not contain"))?);
        }
        children.extend(IN_PLACE_ONE.iter().filter_map(|keyword| schema.get(keyword)));
        children.extend(IN_PLACE_LIST.iter().flat_map(|keyword| listed(schema, keyword)));
        children.extend(IN_PLACE_MAP.iter().flat_map(|keyword| mapped(schema, keyword)));
        Ok(children)
    }
}

/// The schema at `pointer`, which is percent-encoded. Anchors are not supported.
pub(in crate::tools) fn resolve<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    if let Some(found) = root.pointer(pointer) {
        return Some(found);
    }
    // The `url` crate would be another dependency of this module. The few escapes that occur are
    // those of a generic type's `<`, `>` and spaces.
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    root.pointer(std::str::from_utf8(&bytes).ok()?)
}

fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    let one = PART_ONE.iter().filter_map(|keyword| schema.get(keyword)).filter(|part| !part.is_array());
    let list = PART_LIST.iter().flat_map(|keyword| listed(schema, keyword));
    let map = PART_MAP.iter().flat_map(|keyword| mapped(schema, keyword));
    one.chain(list).chain(map)
}

fn listed<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn mapped<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema.get(keyword).and_then(Value::as_object).into_iter().flat_map(serde_json::Map::values)
}

/// Identifies a schema within the value that contains it. Never dereferenced.
fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// Removes from `schema` what cannot be checked: an unknown `$schema`, and patterns that need
/// backtracking.
pub(super) fn leave_out_unchecked(schema: &mut Value) {
    const DRAFTS: [&str; 5] = ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"];
    if let Value::Object(root) = schema {
        let known = root.get("$schema").and_then(Value::as_str).is_some_and(|draft| {
            draft.contains("json-schema.org") && DRAFTS.iter().any(|known| draft.contains(known))
        });
        if !known {
            root.shift_remove("$schema");
        }
    }
    leave_out_patterns(schema);
}

/// The recursion is bounded by the parser's 128 levels.
fn leave_out_patterns(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            if keywords.get("pattern").and_then(Value::as_str).is_some_and(needs_backtracking) {
                keywords.shift_remove("pattern");
            }
            let patterns = keywords.get("patternProperties").and_then(Value::as_object);
            if patterns.is_some_and(|patterns| patterns.keys().any(|pattern| needs_backtracking(pattern))) {
                // Which names are additional depends on the patterns.
                for keyword in ["patternProperties", "additionalProperties", "unevaluatedProperties"] {
                    keywords.shift_remove(keyword);
                }
            }
            for (keyword, value) in keywords.iter_mut() {
                // Examples and constants are data, in which `pattern` has no special meaning.
                if !matches!(keyword.as_str(), "enum" | "const" | "default" | "examples" | "example") {
                    leave_out_patterns(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_patterns),
        _ => {}
    }
}

fn needs_backtracking(pattern: &str) -> bool {
    let back_reference =
        |pair: &[u8]| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k') && pair[1] != b'0';
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
        || pattern.as_bytes().windows(2).any(back_reference)
}

/// The number of values in `value`, including itself; `None` if there are more than `most`.
pub(super) fn values_up_to(value: &Value, most: usize) -> Option<usize> {
    let mut count = 0_usize;
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        count += 1;
        match value {
            Value::Array(items) if count + rest.len() + items.len() <= most => rest.extend(items),
            Value::Object(fields) if count + rest.len() + fields.len() <= most => {
                rest.extend(fields.values());
            }
            Value::Array(_) | Value::Object(_) => return None,
            _ => {}
        }
    }
    (count <= most).then_some(count)
}

/// The number of levels of `value`: 1 for a number. The recursion is bounded, because arguments
/// have at most 128 levels.
fn depth_of(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}
