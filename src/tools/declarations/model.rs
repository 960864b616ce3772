//! The types that a JSON Schema describes, for the declarations of both languages.
//!
//! Schemas come from servers and may be hostile: the number of schemas that are visited, their depth and the bytes of
//! their names are bounded. Anything beyond a bound is [`Type::Unknown`].

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::text;
use crate::tools::schema::view::SchemaView;

/// Maximum levels of a type, with references followed.
const MAX_DEPTH: usize = 12;

/// Maximum number of schemas in one type. References can double the number at every level.
const MAX_SCHEMAS: usize = 2_000;

/// That many required names count as one schema more: the list of a schema is read as often as the schema is visited.
const NAMES_OF_A_SCHEMA: usize = 64;

/// Maximum bytes of one type, roughly: its names, its constants and 8 for each part.
const MAX_BYTES: usize = 40 << 10;

/// Maximum number of constants in an enumeration. A larger one becomes the constants' type.
const MAX_CONSTANTS: usize = 50;

/// Maximum number of named types. Only recursive types have names.
const MAX_NAMED: usize = 50;

/// Maximum characters of a description of a tool or a field.
pub(super) const MAX_DESCRIPTION: usize = 2_000;

/// A type of values.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Any value.
    Unknown,
    /// No value.
    Never,
    String,
    Integer,
    Number,
    Boolean,
    Null,
    /// One value, which is no container.
    Constant(Value),
    Array(Box<Self>),
    /// The first elements, and the type of further elements if there may be any.
    Tuple(Vec<Self>, Option<Box<Self>>),
    Object(Object),
    Union(Vec<Self>),
    Intersection(Vec<Self>),
    /// One of [`Model::named`].
    Named(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    pub(super) fields: Vec<Field>,
    /// The type of all other fields, if there may be any.
    pub(super) others: Option<Box<Type>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) is_optional: bool,
    /// At most [`MAX_DESCRIPTION`] characters and one more.
    pub(super) description: String,
    pub(super) value: Type,
}

/// A schema's type, and the recursive types that it refers to.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) root: Type,
    pub(super) named: Vec<Type>,
}

impl Model {
    /// The type of a schema. Recursive references are [`Type::Unknown`] unless they may have names.
    pub(super) fn new(schema: &Value, has_names: bool) -> Self {
        let mut recursive = HashSet::new();
        if has_names {
            let mut search = Builder::new(schema, HashSet::new());
            search.build(search.root, 0, 0);
            recursive = search.found;
        }
        let mut builder = Builder::new(schema, recursive);
        let root = if builder.recursive.contains(&builder.root.address()) {
            builder.name(builder.root)
        } else {
            builder.build(builder.root, 0, 0)
        };
        let mut named = Vec::new();
        while let Some(&schema) = builder.targets.get(named.len()) {
            builder.following = vec![(schema.address(), 0)];
            builder.is_named_body = true;
            let body = builder.build(schema, 0, 0);
            named.push(body);
        }
        Self { root, named }
    }

    /// The type as one object, if it is one: parts of an intersection are merged.
    pub(super) fn object(&self, of: &Type) -> Option<Object> {
        self.object_within(of, MAX_DEPTH)
    }

    fn object_within(&self, of: &Type, depth: usize) -> Option<Object> {
        let depth = depth.checked_sub(1)?;
        match of {
            Type::Object(object) => Some(object.clone()),
            Type::Named(at) => self.object_within(self.named.get(*at)?, depth),
            Type::Intersection(parts) => {
                let mut merged = Object { fields: Vec::new(), others: None };
                for part in parts {
                    let part = self.object_within(part, depth)?;
                    merged.others = merged.others.or(part.others);
                    for field in part.fields {
                        match merged.fields.iter_mut().find(|known| known.name == field.name) {
                            Some(known) => known.is_optional &= field.is_optional,
                            None => merged.fields.push(field),
                        }
                    }
                }
                Some(merged)
            }
            _ => None,
        }
    }
}

struct Builder<'a> {
    root: SchemaView<'a>,
    schemas_left: usize,
    bytes_left: usize,
    /// The root and the targets of references that are being followed, each with the number of
    /// arrays and objects around it. A repeated one is a cycle.
    following: Vec<(usize, usize)>,
    /// The targets that contain themselves.
    found: HashSet<usize>,
    /// The targets that get names.
    recursive: HashSet<usize>,
    targets: Vec<SchemaView<'a>>,
    names: HashMap<usize, usize>,
    /// Whether the body of a named type is being built. It must not consist of its own name, without an array or an
    /// object in between.
    is_named_body: bool,
}

impl<'a> Builder<'a> {
    fn new(schema: &'a Value, recursive: HashSet<usize>) -> Self {
        let root = SchemaView::root(schema);
        Self {
            root,
            schemas_left: MAX_SCHEMAS,
            bytes_left: MAX_BYTES,
            following: vec![(root.address(), 0)],
            found: HashSet::new(),
            recursive,
            targets: Vec::new(),
            names: HashMap::new(),
            is_named_body: false,
        }
    }

    fn spend(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes + 8);
    }

    /// The type of a schema at `depth`, inside of `level` arrays and objects.
    fn build(&mut self, schema: SchemaView<'a>, depth: usize, level: usize) -> Type {
        let Some(left) = self.schemas_left.checked_sub(1) else { return Type::Unknown };
        self.schemas_left = left;
        if depth > MAX_DEPTH || self.bytes_left == 0 {
            return Type::Unknown;
        }
        self.spend(0);
        if schema.is_false() {
            return Type::Never;
        }
        let mut parts: Vec<Type> = Vec::new();
        match schema.reference() {
            Ok(Some(target)) => parts.push(self.referred(target, depth, level)),
            Err(_) => parts.push(Type::Unknown),
            Ok(None) => {}
        }
        for branches in schema.unions() {
            let branches = branches.map(|branch| self.build(branch, depth + 1, level)).collect();
            parts.push(union(branches));
        }
        parts.extend(schema.list("allOf").map(|part| self.build(part, depth + 1, level)));
        // In `{anyOf: […], type: "object"}` the `type` adds no information.
        let says_more = ["properties", "enum", "const"].iter().any(|keyword| schema.get(keyword).is_some());
        if parts.is_empty() || says_more {
            parts.push(self.own(schema, depth, level));
        }
        let built = intersection(parts);
        if schema.is_nullable() { union(vec![built, Type::Null]) } else { built }
    }

    fn referred(&mut self, target: SchemaView<'a>, depth: usize, level: usize) -> Type {
        let address = target.address();
        if self.recursive.contains(&address) && (level > 0 || !self.is_named_body) {
            return self.name(target);
        }
        if let Some(&(_, outside)) = self.following.iter().find(|(followed, _)| *followed == address) {
            if outside < level {
                self.found.insert(address);
            }
            return Type::Unknown;
        }
        self.following.push((address, level));
        let built = self.build(target, depth + 1, level);
        self.following.pop();
        built
    }

    fn name(&mut self, target: SchemaView<'a>) -> Type {
        let next = self.targets.len();
        match self.names.get(&target.address()) {
            Some(&at) => Type::Named(at),
            None if next < MAX_NAMED => {
                self.names.insert(target.address(), next);
                self.targets.push(target);
                Type::Named(next)
            }
            None => Type::Unknown,
        }
    }

    fn own(&mut self, schema: SchemaView<'a>, depth: usize, level: usize) -> Type {
        if let Some(value) = schema.get("const") {
            return self.constant(value);
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array)
            && options.len() <= MAX_CONSTANTS
        {
            return union(options.iter().map(|option| self.constant(option)).collect());
        }
        let mut types = schema.declared_types();
        if types.is_empty() {
            types.extend(schema.implied_type());
        }
        union(types.into_iter().map(|name| self.typed(name, schema, depth, level)).collect())
    }

    /// A constant; for a container only its kind.
    fn constant(&mut self, value: &Value) -> Type {
        match value {
            Value::Array(_) => Type::Array(Box::new(Type::Unknown)),
            Value::Object(_) => {
                Type::Object(Object { fields: Vec::new(), others: Some(Type::Unknown.into()) })
            }
            Value::Null => Type::Null,
            Value::String(text) if text::start(text, super::types::MAX_NAME).len() < text.len() => {
                Type::String
            }
            value => {
                self.spend(value.as_str().map_or(8, str::len));
                Type::Constant(value.clone())
            }
        }
    }

    fn typed(&mut self, name: &str, schema: SchemaView<'a>, depth: usize, level: usize) -> Type {
        match name {
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            "array" => self.array(schema, depth, level + 1),
            "object" => self.object(schema, depth, level + 1),
            _ => Type::Unknown,
        }
    }

    fn array(&mut self, schema: SchemaView<'a>, depth: usize, level: usize) -> Type {
        let elements = schema.elements();
        let Some(tuple) = elements.tuple else {
            let element = elements.rest.map_or(Type::Unknown, |rest| self.build(rest, depth + 1, level));
            return Type::Array(Box::new(element));
        };
        let first = tuple.iter().map(|element| self.build(schema.at(element), depth + 1, level)).collect();
        let rest = match elements.rest {
            Some(rest) if rest.is_false() => None,
            Some(rest) => Some(Box::new(self.build(rest, depth + 1, level))),
            None => Some(Box::new(Type::Unknown)),
        };
        Type::Tuple(first, rest)
    }

    fn object(&mut self, schema: SchemaView<'a>, depth: usize, level: usize) -> Type {
        let names = schema.required().count();
        self.schemas_left = self.schemas_left.saturating_sub(names / NAMES_OF_A_SCHEMA);
        let required: HashSet<&str> = schema.required().collect();
        let mut fields: Vec<Field> = Vec::new();
        let mut is_cut = false;
        for (name, field) in schema.properties() {
            if self.bytes_left == 0 {
                is_cut = true;
                break;
            }
            let mut description = String::new();
            if let Some(text) = field.text("description") {
                description = text::start(text, MAX_DESCRIPTION + 1).to_owned();
            }
            self.spend(name.len() + description.len());
            let value = self.build(field, depth + 1, level);
            let is_optional = !required.contains(name);
            fields.push(Field { name: name.to_owned(), is_optional, description, value });
        }
        let others = schema.one("additionalProperties");
        let has_patterns = schema.map("patternProperties").next().is_some();
        let is_open = match others {
            Some(others) if others.is_false() => has_patterns,
            Some(_) => true,
            None => has_patterns || fields.is_empty(),
        };
        let others = if is_open {
            let patterns = schema.map("patternProperties").map(|(_, schema)| schema);
            let others = others.filter(|others| others.keywords().is_some());
            let branches: Vec<SchemaView<'a>> = patterns.chain(others).take(MAX_CONSTANTS).collect();
            let built = branches.into_iter().map(|schema| self.build(schema, depth + 1, level)).collect();
            Some(Box::new(union(built)))
        } else {
            is_cut.then(|| Box::new(Type::Unknown))
        };
        Type::Object(Object { fields, others })
    }
}

/// `A | B`, flat and without duplicates. Unknown if a branch is unknown, or if there are no branches.
fn union(branches: Vec<Type>) -> Type {
    let mut flat: Vec<Type> = Vec::new();
    for branch in branches {
        let inner = if let Type::Union(inner) = branch { inner } else { vec![branch] };
        for branch in inner {
            if branch == Type::Unknown {
                return Type::Unknown;
            }
            if !flat.contains(&branch) {
                flat.push(branch);
            }
        }
    }
    match flat.len() {
        0 => Type::Unknown,
        1 => flat.remove(0),
        _ => Type::Union(flat),
    }
}

fn intersection(parts: Vec<Type>) -> Type {
    let mut kept: Vec<Type> = Vec::new();
    for part in parts {
        // `unknown & T` is `T`.
        if part != Type::Unknown && !kept.contains(&part) {
            kept.push(part);
        }
    }
    match kept.len() {
        0 => Type::Unknown,
        1 => kept.remove(0),
        _ => Type::Intersection(kept),
    }
}
