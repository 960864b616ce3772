//! Python stubs of tools: a class for each server, with an `async` method for each tool.
//!
//! Everything that a server chose is either a string literal that it cannot terminate, or a name of ASCII letters,
//! digits and `_` that is neither a keyword nor taken. Names that Python cannot write are reached by `["name"]`, which
//! is not typed.

mod full_names;
mod literals;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use self::full_names::FullNames;
use self::literals::{constant, documentation, is_name, pascal, string};
use super::model::{Field, Model, Object, Type};
use super::{MAX_BYTES, MAX_TOOL_BYTES, ServerTools, ToolTypes, parsed};
use crate::text;
use crate::tools::names::{forms, python_name};

/// The globals of scripts, which precede the servers' names.
const GLOBALS: &str = include_str!("globals.pyi");

/// Names that are not used for a server's global: names of cx and of Python.
#[rustfmt::skip]
const TAKEN: &[&str] = &[
    "abs", "aiter", "all", "anext", "any", "ascii", "asyncio", "bin", "bool", "breakpoint",
    "builtins", "bytearray", "bytes", "call_mcp_tool", "call_mcp_tool_sync", "call_tool",
    "call_tools", "callable", "chr", "classmethod", "compile", "complex", "copyright", "credits",
    "delattr", "dict", "dir", "discover_mcp_tools", "discover_mcp_tools_sync", "divmod", "ellipsis",
    "emit", "enumerate", "eval", "exec", "exit", "fetch", "fetch_sync", "filter", "float", "format", "frozenset",
    "function", "get_tool_schema", "get_tool_schema_sync", "getattr", "globals", "hasattr", "hash",
    "help", "hex", "id", "input", "inputs", "int", "isinstance", "issubclass", "iter", "len",
    "license", "list", "llm", "locals", "map", "max", "mcp", "mcp_servers", "memoryview", "min", "next",
    "object", "oct", "open", "ord", "pow", "print", "progress", "property", "quit", "range", "repr",
    "reveal_locals", "reveal_type", "reversed", "round", "search_tools", "search_tools_sync", "set",
    "setattr", "slice", "sorted", "state", "staticmethod", "str", "sum", "super", "tools", "tuple",
    "type", "vars", "zip",
];

/// How the names of a server's tools, and those of servers, are looked at: `for tool in tools.files`.
const NAMES: &str = "    def __iter__(self) -> _t.Iterator[_b.str]: ...
    def __contains__(self, name: _b.object, /) -> _b.bool: ...
";

/// The files of the stubs: names below their directory, and texts.
pub(crate) fn stubs<'a>(servers: impl Iterator<Item = ServerTools<'a>>) -> Vec<(&'static str, String)> {
    let servers: Vec<ServerTools<'_>> = servers.collect();
    let mut writer = Writer::new(servers.iter().filter_map(|server| server.tools.as_ref()).flatten());
    writer.names.extend(servers.iter().flat_map(|server| [server.name.to_owned(), python_name(server.name)]));
    let all = writer.name("Tools");
    let options = writer.name("CallOptions");
    writer.options = format!(", options: {options} = ...");
    let mut classes = Vec::new();
    let mut full_names = FullNames::beside(servers.iter().map(|server| server.name));
    for server in &servers {
        let class = server.tools.as_ref().map(|tools| {
            let (class, methods) = writer.server(server.name, tools, NAMES);
            full_names.add(&mut writer, server.name, &class, &methods);
            class
        });
        classes.push(class);
    }
    let mut globals = GLOBALS.replace("_cx.Tools", &format!("_cx.{all}"));
    let mut modules = String::new();
    let mut members = String::new();
    let server_forms = forms(servers.iter().map(|server| server.name), python_name);
    let mut declared = HashSet::new();
    for ((server, form), class) in servers.iter().zip(&server_forms).zip(&classes) {
        let names = [Some(server.name), form.as_deref()];
        // A server that was never listed has no known types.
        let (local, global) = match class {
            Some(class) => (class.clone(), format!("_cx.{class}")),
            None => ("_t.Any".to_owned(), "_t.Any".to_owned()),
        };
        for name in names.into_iter().flatten().filter(|name| is_name(name)) {
            let _ = writeln!(members, "    {name}: {local}");
            let _ = writeln!(modules, "{name}: {global}");
            if !TAKEN.contains(&name) {
                let _ = writeln!(globals, "{name}: {global}");
                declared.insert(name.to_owned());
            }
        }
    }
    // As scripts of other hosts have the servers, whose results have other types.
    for (server, form) in servers.iter().zip(&server_forms) {
        let name = format!("mcp_{}", form.as_deref().unwrap_or(server.name));
        if is_name(&name) && !TAKEN.contains(&&*name) && declared.insert(name.clone()) {
            let _ = writeln!(globals, "{name}: _t.Any");
        }
    }
    // Type checkers complain about an import that is not used.
    let imports = [("_t.", "import typing as _t\n"), ("_cx.", "import cx_tools as _cx\n")];
    let imports = imports.iter().filter(|(used, _)| modules.contains(used));
    let imports: String = imports.map(|(_, import)| *import).collect();
    let modules = format!(
        "# The servers as `from mcp_tools import server`. Written by `cx types`.\n{imports}\n{modules}"
    );
    let text = format!(
        "# The tools that scripts can call. Written by `cx types`.\nimport builtins as _b\nimport typing as _t\n\n\
         class {options}(_t.TypedDict, total=False):\n    timeout: _b.float | None\n    timeoutMs: _b.float | None\n\
         {}{}\n\
         class {all}:\n{members}{}    def __getitem__(self, name: _b.str, /) -> _t.Any: ...\n\
         {NAMES}    def __len__(self) -> _b.int: ...\n\ntools: {all}\n",
        writer.text, full_names.servers, full_names.members
    );
    vec![("__builtins__.pyi", globals), ("cx_tools.pyi", text), ("mcp_tools.pyi", modules)]
}

/// The stub of one tool: its types, and a class with its method.
pub(crate) fn tool_stub(tool: ToolTypes<'_>) -> String {
    let tools = [tool];
    let mut writer = Writer::new(tools.iter());
    writer.server("", &tools, "");
    without_modules(writer.text.trim_start())
}

/// The text with `str` and `Any` in place of `_b.str` and `_t.Any`, for readers.
fn without_modules(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("_b.").into_iter().chain(rest.find("_t.")).min() {
        let before = &rest[..at];
        // `lib_b.so` in a description is not a module.
        let is_name = before.ends_with(|last: char| last.is_alphanumeric() || "_./".contains(last));
        shown.push_str(before);
        if is_name {
            shown.push_str(&rest[at..at + 3]);
        }
        rest = &rest[at + 3..];
    }
    shown.push_str(rest);
    shown
}

/// The direction in which values are passed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Arguments,
    Result,
}

struct Writer {
    text: String,
    /// The parameter of every method behind its arguments: the options of a call. Empty where one tool is shown.
    options: String,
    /// The names of classes, and names that no class may have.
    names: HashSet<String>,
    /// The names of classes in the order in which they were taken.
    taken: Vec<String>,
    /// The number that the next class whose name begins with this gets.
    numbers: HashMap<String, usize>,
}

impl Writer {
    fn new<'a>(tools: impl Iterator<Item = &'a ToolTypes<'a>>) -> Self {
        let mut names: HashSet<String> = ["None", "True", "False"].map(str::to_owned).into();
        for tool in tools {
            names.extend([tool.definition.name.clone(), python_name(&tool.definition.name)]);
        }
        Self {
            text: String::new(),
            options: String::new(),
            names,
            taken: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// An unused class name that begins with `hint`.
    fn name(&mut self, hint: &str) -> String {
        let hint = if hint.is_empty() { "Type" } else { text::start(hint, 120) };
        let mut name = hint.to_owned();
        if !self.names.insert(name.clone()) {
            // Not counted from 2 again: thousands of tools can have the same hint.
            let at = self.numbers.entry(hint.to_owned()).or_insert(2);
            loop {
                name = format!("{hint}{at}");
                *at += 1;
                if self.names.insert(name.clone()) {
                    break;
                }
            }
        }
        self.taken.push(name.clone());
        name
    }

    /// Takes back what was written and named since the text had `bytes` and there were `count` names.
    fn take_back(&mut self, bytes: usize, count: usize) {
        self.text.truncate(bytes);
        for name in self.taken.drain(count..) {
            self.names.remove(&name);
        }
    }

    /// Writes the class of a server, with `more` at its end, and returns its name and those of its methods.
    fn server(&mut self, name: &str, tools: &[ToolTypes<'_>], more: &str) -> (String, Vec<String>) {
        let prefix = pascal(name);
        let class = self.name(&format!("{prefix}Tools"));
        let tool_forms = forms(tools.iter().map(|tool| &*tool.definition.name), python_name);
        let mut methods = String::new();
        let mut names = Vec::new();
        let mut seen = HashSet::new();
        for (tool, form) in tools.iter().zip(&tool_forms) {
            let name = &*tool.definition.name;
            if !seen.insert(name) {
                // If two tools have the same name, only the first can be called.
                continue;
            }
            if self.text.len() + methods.len() > MAX_BYTES {
                methods.push_str("    # More tools are left out: these are too many to declare.\n");
                break;
            }
            let shown = form.as_deref().unwrap_or(name);
            if is_name(shown) {
                methods.push_str(&self.method(*tool, shown, &prefix));
                names.push(shown.to_owned());
                if shown != name && is_name(name) {
                    let _ = writeln!(methods, "    {name} = {shown}");
                    names.push(name.to_owned());
                }
            }
        }
        let _ = write!(
            self.text,
            "\nclass {class}:\n{methods}    def __getitem__(self, name: _b.str, /) -> \
             _t.Callable[..., _t.Coroutine[_t.Any, _t.Any, _t.Any]]: ...\n{more}"
        );
        (class, names)
    }

    /// A tool's method. Its types are written before.
    fn method(&mut self, tool: ToolTypes<'_>, shown: &str, prefix: &str) -> String {
        let (bytes, count) = (self.text.len(), self.taken.len());
        let remarks = documentation(&tool.remarks(), 8);
        let hint = format!("{prefix}{}", pascal(shown));
        let body = self.signatures(tool, shown, &hint, &remarks);
        if self.text.len() - bytes + body.len() > MAX_TOOL_BYTES {
            self.take_back(bytes, count);
            return format!(
                "    async def {shown}(self, arguments: _t.Mapping[_b.str, _t.Any] = ...{}, /, **named: _t.Any) -> \
                 _t.Any:{}\n",
                self.options,
                if remarks.is_empty() { " ..." } else { &remarks }
            );
        }
        body
    }

    fn signatures(&mut self, tool: ToolTypes<'_>, shown: &str, hint: &str, remarks: &str) -> String {
        let result = match tool.output_schema() {
            Some(schema) => {
                let model = Model::new(&schema, true);
                self.types(&model, &format!("{hint}Result"), Direction::Result).root(self, &model)
            }
            None => "_t.Any".to_owned(),
        };
        let body = if remarks.is_empty() { " ..." } else { remarks };
        let model = Model::new(&parsed(&tool.definition.input_schema), true);
        let class = format!("{hint}Arguments");
        let options = self.options.clone();
        let types = self.types(&model, &class, Direction::Arguments);
        let Some(object) = model.object(&model.root).filter(|object| !object.fields.is_empty()) else {
            // The field names are unknown: the argument is a mapping, keywords, or nothing.
            let arguments = match types.root(self, &model) {
                any if any == "_t.Any" => "_t.Mapping[_b.str, _t.Any]".to_owned(),
                arguments => arguments,
            };
            return format!(
                "    async def {shown}(self, arguments: {arguments} = ...{options}, /, **named: _t.Any) -> \
                 {result}:{body}\n"
            );
        };
        let class = self.name(&class);
        let values = types.class(self, &model, &object, &class);
        let named = types.keywords(self, &model, &object, &values);
        let is_optional = object.fields.iter().all(|field| field.is_optional);
        let arguments = if is_open(&object) { format!("{class} | _b.dict[_b.str, _t.Any]") } else { class };
        let Some(named) = named else {
            let default = if is_optional { " = ..." } else { "" };
            return format!(
                "    async def {shown}(self, arguments: {arguments}{default}{options}, /) -> {result}:{body}\n"
            );
        };
        format!(
            "    @_t.overload\n    async def {shown}(self{named}) -> {result}:{body}\n    @_t.overload\n    \
             async def {shown}(self, arguments: {arguments}{options}, /) -> {result}: ...\n"
        )
    }

    /// Names and writes the recursive types of a model.
    fn types(&mut self, model: &Model, hint: &str, direction: Direction) -> Types {
        let names: Vec<String> = model.named.iter().map(|_| self.name(&format!("{hint}Type"))).collect();
        let types = Types { names, direction, hint: hint.to_owned() };
        for (name, body) in types.names.iter().zip(&model.named) {
            if let Type::Object(object) = body
                && !object.fields.is_empty()
            {
                let _written = types.class(self, model, object, name);
            } else {
                let body = types.text(self, model, body, name);
                let _ = write!(self.text, "\ntype {name} = {body}\n");
            }
        }
        types
    }
}

/// How the types of one schema are written.
struct Types {
    names: Vec<String>,
    direction: Direction,
    hint: String,
}

impl Types {
    fn root(&self, writer: &mut Writer, model: &Model) -> String {
        self.text(writer, model, &model.root, &self.hint)
    }

    /// A type as an annotation. `hint` begins the names of the classes that it needs.
    fn text(&self, writer: &mut Writer, model: &Model, of: &Type, hint: &str) -> String {
        match of {
            Type::Unknown => "_t.Any".to_owned(),
            Type::Never => "_t.Never".to_owned(),
            Type::String => "_b.str".to_owned(),
            Type::Integer => "_b.int".to_owned(),
            Type::Number => "_b.float".to_owned(),
            Type::Boolean => "_b.bool".to_owned(),
            Type::Null => "None".to_owned(),
            Type::Constant(value) => constant(value),
            Type::Array(element) => {
                let element = self.text(writer, model, element, &format!("{hint}Item"));
                self.array(&element)
            }
            Type::Tuple(first, rest) => self.tuple(writer, model, first, rest.as_deref(), hint),
            Type::Object(object) => self.object(writer, model, object, hint),
            Type::Union(branches) => {
                let texts: Vec<String> =
                    branches.iter().map(|branch| self.text(writer, model, branch, hint)).collect();
                alternatives(texts)
            }
            Type::Intersection(parts) => match (model.object(of), parts.first()) {
                (Some(object), _) => self.object(writer, model, &object, hint),
                // Python has no intersections: the value satisfies the first part.
                (None, Some(first)) => self.text(writer, model, first, hint),
                (None, None) => "_t.Any".to_owned(),
            },
            Type::Named(at) => self.names.get(*at).map_or_else(|| "_t.Any".to_owned(), Clone::clone),
        }
    }

    /// An array. `list` is invariant in its element type, so arguments are typed as sequences; but a text is a sequence
    /// of texts.
    fn array(&self, element: &str) -> String {
        let may_be_text = ["_b.str", "_t.Any", "Type"].iter().any(|text| element.contains(text));
        if self.direction == Direction::Arguments && !may_be_text {
            format!("_t.Sequence[{element}]")
        } else {
            format!("_b.list[{element}]")
        }
    }

    fn tuple(
        &self,
        writer: &mut Writer,
        model: &Model,
        first: &[Type],
        rest: Option<&Type>,
        hint: &str,
    ) -> String {
        let item = format!("{hint}Item");
        let mut elements: Vec<String> =
            first.iter().map(|element| self.text(writer, model, element, &item)).collect();
        let rest = rest.map(|rest| self.text(writer, model, rest, &item));
        let all = alternatives(elements.iter().cloned().chain(rest.clone()).collect());
        // JSON has only lists.
        let list = format!("_b.list[{all}]");
        if self.direction == Direction::Result {
            return list;
        }
        if elements.is_empty() && rest.is_none() {
            return "_b.tuple[()]".to_owned();
        }
        elements.extend(rest.map(|rest| format!("*_b.tuple[{rest}, ...]")));
        let text = format!("_b.tuple[{}] | {list}", elements.join(", "));
        // Twice as long as its elements: tuples in tuples would double at each level.
        if text.len() > MAX_TOOL_BYTES { "_t.Any".to_owned() } else { text }
    }

    fn object(&self, writer: &mut Writer, model: &Model, object: &Object, hint: &str) -> String {
        if object.fields.is_empty() {
            let value = match &object.others {
                Some(others) => self.text(writer, model, others, &format!("{hint}Value")),
                None => "_t.Never".to_owned(),
            };
            return match self.direction {
                Direction::Arguments => format!("_t.Mapping[_b.str, {value}]"),
                Direction::Result => format!("_b.dict[_b.str, {value}]"),
            };
        }
        let name = writer.name(hint);
        let _written = self.class(writer, model, object, &name);
        // A `TypedDict` has no other fields.
        if is_open(object) { format!("{name} | _b.dict[_b.str, _t.Any]") } else { name }
    }

    /// Writes a `TypedDict`: as a class if its fields can be written in one. Returns their types.
    fn class(&self, writer: &mut Writer, model: &Model, object: &Object, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        for field in &object.fields {
            // The empty name is not valid in Python.
            if field.name.is_empty() {
                values.push("_t.Any".to_owned());
                continue;
            }
            values.push(self.text(writer, model, &field.value, &format!("{name}{}", pascal(&field.name))));
        }
        // A field hides a type with its name in the rest of its class.
        let is_plain = object.fields.iter().all(|field| {
            let may_be_class = field.name.starts_with(|first: char| first.is_ascii_uppercase());
            is_name(&field.name) && !(may_be_class && writer.names.contains(&field.name))
        });
        let kind = |field: &Field| if field.is_optional { "_t.NotRequired" } else { "_t.Required" };
        if is_plain {
            let _ = write!(writer.text, "\nclass {name}(_t.TypedDict):\n");
            for (field, value) in object.fields.iter().zip(&values) {
                let remark = documentation(&field.description, 4);
                let _ = if field.is_optional {
                    writeln!(writer.text, "    {}: {}[{value}]{remark}", field.name, kind(field))
                } else {
                    writeln!(writer.text, "    {}: {value}{remark}", field.name)
                };
            }
            return values;
        }
        let _ = write!(writer.text, "\n{name} = _t.TypedDict({}, {{\n", string(name));
        for (field, value) in object.fields.iter().zip(&values) {
            if !field.name.is_empty() {
                let _ = writeln!(writer.text, "    {}: {}[{value}],", string(&field.name), kind(field));
            }
        }
        writer.text.push_str("})\n");
        values
    }

    /// The fields, whose types are `values`, as keyword parameters; `None` if a required field cannot be a parameter.
    fn keywords(
        &self,
        writer: &mut Writer,
        model: &Model,
        object: &Object,
        values: &[String],
    ) -> Option<String> {
        let mut text = String::new();
        for (field, value) in object.fields.iter().zip(values) {
            let name = &field.name;
            let _ = match (is_name(name) && name != "self", field.is_optional) {
                (false, true) => continue,
                (false, false) => return None,
                (true, false) => write!(text, ", {name}: {value}"),
                (true, true) if value == "_t.Any" || value.split(" | ").any(|part| part == "None") => {
                    write!(text, ", {name}: {value} = ...")
                }
                // An optional argument that is None is left out.
                (true, true) => write!(text, ", {name}: {value} | None = ..."),
            };
        }
        if !text.is_empty() {
            text.insert_str(0, ", *");
        }
        if let Some(others) = &object.others {
            let value = self.text(writer, model, others, &format!("{}Value", self.hint));
            let is_free = |name: &&str| object.fields.iter().all(|field| field.name != *name);
            let name = ["others", "more", "further", "named"].into_iter().find(is_free)?;
            let _ = write!(text, ", **{name}: {value}");
        }
        Some(text)
    }
}

/// Whether an object may have fields that a `TypedDict` cannot name.
fn is_open(object: &Object) -> bool {
    object.others.is_some() || object.fields.iter().any(|field| field.name.is_empty())
}

/// `A | B` without duplicates.
fn alternatives(texts: Vec<String>) -> String {
    let mut seen = HashSet::new();
    let texts: Vec<String> = texts.into_iter().filter(|text| seen.insert(text.clone())).collect();
    if texts.is_empty() || seen.contains("_t.Any") { "_t.Any".to_owned() } else { texts.join(" | ") }
}
