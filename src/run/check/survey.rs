//! The survey of a script: the calls and imports in its text, as plain data. A worker process sends it as JSON.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::text::preview;

/// Maximum number of uses in a survey. Uses beyond them are not checked.
pub(crate) const MAX_USES: usize = 500;

/// Maximum number of values in the literal arguments of one call. More are unknown to the survey.
pub(crate) const MAX_VALUES: usize = 5_000;

/// Maximum depth of literal arguments. What is deeper is unknown.
pub(crate) const MAX_DEPTH: usize = 32;

/// Maximum number of syntax errors in a survey.
pub(crate) const MAX_MISTAKES: usize = 20;

/// Maximum number of imports of a survey that cannot succeed.
pub(crate) const MAX_IMPORTS: usize = 100;

/// If there are more syntax errors than this, and most lines have one, the text is of another language.
const FEW_MISTAKES: usize = 3;

/// An object with at most this many fields is searched for a name. Most have fewer.
const FEW_FIELDS: usize = 8;

/// Maximum characters of a syntax error's message.
const MAX_MESSAGE: usize = 300;

/// A span of a script, as byte offsets.
pub(crate) type Bytes = Range<usize>;

/// Moves a span by the offset of the text in which it was found.
fn shift(span: &mut Bytes, by: usize) {
    *span = span.start + by..span.end + by;
}

/// What a script does with servers and tools, as far as its text says.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Survey {
    /// Uses in the order in which they run, as far as that is known. Those that are not [certain](ToolUse::is_certain)
    /// may run at any time.
    pub(crate) uses: Vec<ToolUse>,
    /// The syntax errors, by location, at most one for each line. A script with syntax errors is not compiled, unless
    /// the engine knows more of the language than the reader does. The uses are then those of the parts that could be
    /// read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) mistakes: Vec<Mistake>,
    /// Imports that cannot be used, up to [`MAX_IMPORTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) imports: Vec<ImportProblem>,
    /// The part of the script that is the program: all of it, or what is inside a Markdown fence. Empty if no
    /// program was found.
    pub(crate) program: Bytes,
    /// How long the survey took.
    #[serde(skip)]
    pub(crate) took: Duration,
}

/// A syntax error, or something else for which a script cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mistake {
    /// A lowercase fragment.
    pub(crate) message: String,
    /// What the author can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    pub(crate) at: Bytes,
}

/// An import of a module that a script cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportProblem {
    /// The engine's message when the module is imported or used.
    pub(crate) message: String,
    /// The module's name.
    pub(crate) at: Bytes,
    /// Whether no run can succeed: the import fails, every run reaches it, and nothing catches its error.
    pub(crate) is_certain: bool,
}

/// One use of a server or a tool in a script.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolUse {
    pub(crate) target: Target,
    /// The argument of the call; `None` if the use is no call.
    pub(crate) arguments: Option<Literal>,
    /// The span of the whole expression.
    pub(crate) at: Bytes,
    /// The span of the server's name.
    pub(crate) server_at: Bytes,
    /// The span of the tool's name.
    pub(crate) tool_at: Bytes,
    /// Whether a run cannot succeed unless this use does: it is reached whatever the script's values are, and nothing
    /// catches its error.
    pub(crate) is_certain: bool,
    /// Whether it is a call that is not awaited.
    pub(crate) is_forgotten: bool,
}

impl ToolUse {
    /// Whether it is an import.
    pub(crate) fn is_import(&self) -> bool {
        self.arguments.is_none()
    }

    /// An import at `at`, of a server that is named at `server_at`.
    pub(crate) fn import(target: Target, at: Bytes, server_at: Bytes, is_certain: bool) -> Self {
        Self { target, arguments: None, tool_at: at.clone(), at, server_at, is_certain, is_forgotten: false }
    }

    /// A use for an object `{server, tool, args}` at `at`, in the list of calls that is passed to `call_tools`, which
    /// returns failures as values. `unknown` is the literal that stands for a value that is not written out.
    pub(crate) fn listed(written: &Object, at: &Bytes, unknown: Literal) -> Self {
        let field = |name: &str| written.fields.iter().find(|field| field.name == name);
        let text = |name: &str| match field(name).map(|field| &field.value) {
            Some(Literal::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let arguments = match field("args").or_else(|| field("arguments")) {
            Some(field) => field.value.clone(),
            None if written.is_open => unknown,
            None => Literal::Null,
        };
        let target = match (text("server"), text("tool")) {
            (Some(server), Some(tool)) => Target::Tool { server, tool },
            _ => Target::Unknown,
        };
        let span = |name: &str| field(name).map_or_else(|| at.clone(), |field| field.value_at.clone());
        Self {
            target,
            arguments: Some(arguments),
            server_at: span("server"),
            tool_at: span("tool"),
            at: at.clone(),
            is_certain: false,
            is_forgotten: false,
        }
    }
}

/// What is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Target {
    /// A server: imported, or named in a request for its resources.
    Server(String),
    /// A tool of a server.
    Tool { server: String, tool: String },
    /// A tool of a global variable, which may be a server of that name or something else.
    ToolOfGlobal { server: String, tool: String },
    /// A tool by its full name.
    Full(String),
    /// A tool whose name is not in the text.
    Unknown,
}

/// A value as far as it is written out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Self>),
    Object(Object),
    /// Computed when the script runs.
    Unknown {
        /// Whether it may be left out of an object, as `undefined` is.
        may_be_absent: bool,
    },
}

/// An object that is written out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Object {
    /// One field for each name: the last one in the source.
    pub(crate) fields: Vec<Field>,
    /// Whether it may have other fields too, because something is spread into it.
    pub(crate) is_open: bool,
}

/// One field of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// The name in the text.
    pub(crate) at: Bytes,
    pub(crate) value: Literal,
    /// The value in the text.
    pub(crate) value_at: Bytes,
}

impl Literal {
    fn shift(&mut self, by: usize) {
        match self {
            Self::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            Self::Object(object) => {
                for field in &mut object.fields {
                    shift(&mut field.at, by);
                    shift(&mut field.value_at, by);
                    field.value.shift(by);
                }
            }
            _ => {}
        }
    }
}

/// Builds an object from its fields in their order. Each takes constant time, because a script has thousands.
#[derive(Default)]
pub(crate) struct ObjectBuilder {
    object: Object,
    /// The position of each field by its name, if there are more than [`FEW_FIELDS`].
    positions: HashMap<String, usize>,
    /// The fields that were set since the last spread.
    set: Vec<usize>,
}

impl ObjectBuilder {
    /// Sets a field, in place of one of the same name.
    pub(crate) fn set(&mut self, field: Field) {
        let position = self.position(&field.name).unwrap_or(self.object.fields.len());
        self.set.push(position);
        if let Some(present) = self.object.fields.get_mut(position) {
            *present = field;
            return;
        }
        if !self.positions.is_empty() {
            self.positions.insert(field.name.clone(), position);
        }
        self.object.fields.push(field);
        if self.positions.is_empty() && self.object.fields.len() > FEW_FIELDS {
            let fields = self.object.fields.iter().enumerate();
            self.positions = fields.map(|(position, field)| (field.name.clone(), position)).collect();
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        match self.positions.is_empty() {
            true => self.object.fields.iter().position(|field| field.name == name),
            false => self.positions.get(name).copied(),
        }
    }

    /// Spreads an unknown value into the object: the fields before it may then have any value.
    pub(crate) fn spread(&mut self, may_be_absent: bool) {
        self.object.is_open = true;
        for position in self.set.drain(..) {
            self.object.fields[position].value = Literal::Unknown { may_be_absent };
        }
    }

    /// Records that the object may have other fields, which replace none of those that are written out.
    pub(crate) fn open(&mut self) {
        self.object.is_open = true;
    }

    /// The object.
    pub(crate) fn build(self) -> Object {
        self.object
    }
}

impl From<Object> for ObjectBuilder {
    fn from(object: Object) -> Self {
        let mut builder = Self::default();
        builder.object.is_open = object.is_open;
        object.fields.into_iter().for_each(|field| builder.set(field));
        builder
    }
}

impl Survey {
    /// Makes a survey of `program`, which is a slice of `script`, one of `script`: shifts all spans
    /// by the offset of the slice.
    pub(crate) fn relocate(&mut self, program: &str, script: &str) {
        let by = program.as_ptr().addr().saturating_sub(script.as_ptr().addr());
        self.program = by..by + program.len();
        if by == 0 {
            return;
        }
        self.mistakes.iter_mut().for_each(|mistake| shift(&mut mistake.at, by));
        self.imports.iter_mut().for_each(|import| shift(&mut import.at, by));
        for one in &mut self.uses {
            shift(&mut one.at, by);
            shift(&mut one.server_at, by);
            shift(&mut one.tool_at, by);
            if let Some(arguments) = &mut one.arguments {
                arguments.shift(by);
            }
        }
    }

    /// The uses as text, for tests: each with `!` if it is certain and `~` if it is not awaited.
    #[cfg(test)]
    pub(crate) fn render_uses(&self) -> Vec<String> {
        let shown = self.uses.iter().map(|one| {
            let name = match &one.target {
                Target::Server(server) => server.clone(),
                Target::Tool { server, tool } => format!("{server}.{tool}"),
                Target::ToolOfGlobal { server, tool } => format!("{server}?.{tool}"),
                Target::Full(name) => name.clone(),
                Target::Unknown => "?".to_owned(),
            };
            let certain = if one.is_certain { "!" } else { "" };
            let forgotten = if one.is_forgotten { "~" } else { "" };
            format!("{name}{certain}{forgotten}")
        });
        shown.collect()
    }

    /// Adds the syntax errors of `program`, at most one for each line, because later ones in a line mostly follow from
    /// the first. If most lines have one, the text is of another language, and only the first error is kept.
    pub(crate) fn add_mistakes(&mut self, mistakes: impl IntoIterator<Item = Mistake>, program: &str) {
        self.mistakes.extend(mistakes);
        self.mistakes.sort_by_key(|mistake| mistake.at.start);
        let mut before = None;
        self.mistakes.retain(|mistake| {
            let start = program.floor_char_boundary(mistake.at.start);
            before.replace(start).is_none_or(|before: usize| program[before..start].contains('\n'))
        });
        let lines = program.lines().filter(|line| !line.trim().is_empty()).count();
        let is_other = self.mistakes.len() > FEW_MISTAKES && self.mistakes.len() * 2 > lines;
        self.mistakes.truncate(if is_other { 1 } else { MAX_MISTAKES });
        for mistake in &mut self.mistakes {
            mistake.message = preview(&mistake.message, MAX_MESSAGE);
        }
    }

    /// Marks the survey as partial: a part of the script could not be read, so a call that seems not to be awaited may
    /// be awaited there.
    pub(crate) fn mark_partial(&mut self) {
        self.uses.iter_mut().for_each(|one| one.is_forgotten = false);
    }

    /// Adds a use, up to the bound.
    pub(crate) fn add(&mut self, one: ToolUse) {
        if self.uses.len() < MAX_USES {
            self.uses.push(one);
        }
    }

    /// Adds an import that a script cannot use, up to the bound.
    pub(crate) fn add_import(&mut self, problem: ImportProblem) {
        if self.imports.len() < MAX_IMPORTS {
            self.imports.push(problem);
        }
    }

    /// Whether a check could find that no run of the script succeeds.
    pub(crate) fn has_certain(&self) -> bool {
        self.uses.iter().any(|one| one.is_certain) || self.imports.iter().any(|one| one.is_certain)
    }
}

/// Counts the values of literal arguments that were read.
#[derive(Default)]
pub(crate) struct ValueCount(usize);

impl ValueCount {
    /// Counts one more at `depth`. Returns whether it is within the bounds.
    pub(crate) fn count(&mut self, depth: usize) -> bool {
        self.0 += 1;
        depth <= MAX_DEPTH && !self.is_exceeded()
    }

    /// Whether there were more values than are read. The argument that they are part of is then unknown.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0 > MAX_VALUES
    }
}

#[cfg(test)]
mod tests;
