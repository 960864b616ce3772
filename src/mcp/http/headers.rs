//! The headers that repeat parts of a message, so that proxies need not parse it (revision
//! 2026-07-28).

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json;
use crate::mcp::definitions::{MAX_TOOLS, schema_tree};

/// Bounds on a server's declarations: the number of arguments that one tool may promote to headers,
/// and their depth in the arguments.
const MAX_PROMOTED: usize = 32;
const MAX_DEPTH: usize = 16;

/// Maximum bytes of the names in one argument's path. The path of each argument is copied.
const MAX_PATH_BYTES: usize = 1 << 10;

/// Maximum bytes that the declarations of one server take in memory. Those of a hundred tools with four arguments each
/// take about 50 KB.
const MAX_BYTES: usize = 8 << 20;

/// Maximum bytes of a promoted value. Most servers would refuse longer headers anyway.
const MAX_VALUE: usize = 4096;

/// An argument that is also sent as a header: its path and the header's name.
type Promoted = (Vec<String>, HeaderName);

/// The arguments that are sent as headers, by tool, according to the last list.
#[derive(Default)]
pub(crate) struct Promotions(Mutex<Learned>);

/// What the lists of one server have declared.
#[derive(Default)]
struct Learned {
    by_tool: HashMap<String, Vec<Promoted>>,
    /// What they take in memory.
    bytes: usize,
}

impl Learned {
    fn forget(&mut self, tool: &str) {
        if let Some((tool, promoted)) = self.by_tool.remove_entry(tool) {
            self.bytes -= memory_of(&tool, &promoted);
        }
    }

    /// Stores the declarations of a tool in place of earlier ones. Returns whether there is space for them.
    fn keep(&mut self, tool: String, promoted: Vec<Promoted>) -> bool {
        self.forget(&tool);
        let bytes = memory_of(&tool, &promoted);
        let has_space = self.by_tool.len() < MAX_TOOLS && self.bytes + bytes <= MAX_BYTES;
        if has_space {
            self.bytes += bytes;
            self.by_tool.insert(tool, promoted);
        }
        has_space
    }
}

/// The bytes that the declarations of a tool take in memory.
fn memory_of(tool: &str, promoted: &[Promoted]) -> usize {
    let of_path = |path: &[String]| path.iter().map(|name| size_of::<String>() + name.len()).sum::<usize>();
    let of_one = |(path, header): &Promoted| size_of::<Promoted>() + of_path(path) + header.as_str().len();
    tool.len() + promoted.iter().map(of_one).sum::<usize>()
}

impl Promotions {
    /// Reads the declarations of a page of a list of tools. Returns the page with `null` for tools
    /// with invalid declarations, which must be omitted according to the specification, and for tools for whose
    /// declarations there is no space: they could not be called. `None` if there are none of these.
    pub(crate) fn learn(&self, page: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: &'a RawValue,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tool<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow)]
            input_schema: &'a RawValue,
        }
        // Invalid pages and tools are reported by the code that parses the list.
        let read: Page<'_> = serde_json::from_str(page).ok()?;
        let mut promotions = self.0.lock();
        let mut refused = Vec::new();
        let mut too_many = 0_usize;
        for written in json::items(read.tools.get(), MAX_TOOLS).ok()? {
            let Ok(tool) = serde_json::from_str::<Tool<'_>>(written.get()) else { continue };
            // A schema that is too large is omitted from the list too.
            let schema = schema_tree(tool.input_schema).unwrap_or_default();
            let mut found = Vec::new();
            if collect(&schema, &mut Vec::new(), &mut found).is_none() {
                tracing::warn!(tool = &*tool.name, "a tool with unusable `x-mcp-header` was left out");
                refused.push(json::range_in(page, written));
            } else if found.is_empty() {
                promotions.forget(&tool.name);
            } else if !promotions.keep(tool.name.into_owned(), found) {
                // Tools of earlier lists are still known, because nothing says which page is the first.
                too_many += 1;
                refused.push(json::range_in(page, written));
            }
        }
        if too_many > 0 {
            tracing::warn!(
                tools = too_many,
                "tools were left out: there is no space for their `x-mcp-header`"
            );
        }
        if refused.is_empty() {
            return None;
        }
        // Copied once, because there can be ten thousand of them in a page of megabytes.
        let mut kept = String::with_capacity(page.len());
        let mut copied = 0;
        for range in refused {
            kept.push_str(&page[copied..range.start]);
            kept.push_str("null");
            copied = range.end;
        }
        kept.push_str(&page[copied..]);
        Some(kept)
    }

    /// The headers for one message.
    pub(crate) fn headers(&self, message: &[u8]) -> HeaderMap {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            method: Cow<'a, str>,
            #[serde(borrow)]
            params: Option<Parameters<'a>>,
        }
        #[derive(Deserialize)]
        struct Parameters<'a> {
            #[serde(borrow)]
            name: Option<Cow<'a, str>>,
            #[serde(borrow)]
            uri: Option<Cow<'a, str>>,
            #[serde(borrow, rename = "taskId")]
            task: Option<Cow<'a, str>>,
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
        }
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(&encoded(value)) {
                headers.insert(name, value);
            }
        };
        // Methods with other parameters get no further headers.
        let Ok(Message { method, params }) = serde_json::from_slice::<Message<'_>>(message) else {
            return headers;
        };
        add(HeaderName::from_static("mcp-method"), &method);
        let Some(parameters) = params else { return headers };
        let name = match &*method {
            "tools/call" | "prompts/get" => parameters.name,
            "resources/read" => parameters.uri,
            "tasks/get" | "tasks/update" | "tasks/cancel" => parameters.task,
            _ => None,
        };
        let Some(name) = name else { return headers };
        add(HeaderName::from_static("mcp-name"), &name);
        if method == "tools/call"
            && let Some(promoted) = self.0.lock().by_tool.get(&*name)
        {
            let arguments = parameters.arguments.map_or("{}", RawValue::get);
            let tree = json::tree(arguments, json::budget(arguments.len())).unwrap_or_default();
            for (path, header) in promoted {
                let argument = path.iter().try_fold(&tree, |value, key| value.get(key));
                let text = match argument {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Bool(flag)) => flag.to_string(),
                    Some(Value::Number(number)) => number.to_string(),
                    _ => continue,
                };
                if text.len() <= MAX_VALUE {
                    add(header.clone(), &text);
                }
            }
        }
        headers
    }
}

/// Collects the declarations; `None` if one of them is invalid.
fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Promoted>) -> Option<()> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Some(()) };
    if path.len() >= MAX_DEPTH {
        return Some(());
    }
    for (key, property) in properties {
        if !property.is_object() {
            continue;
        }
        path.push(key.clone());
        if let Some(declared) = property.get("x-mcp-header") {
            let is_primitive =
                matches!(property.get("type")?.as_str()?, "string" | "integer" | "number" | "boolean");
            let name = declared.as_str().filter(|name| !name.is_empty())?;
            let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).ok()?;
            let is_known = found.iter().any(|(_, known)| *known == header);
            let is_long = path.iter().map(String::len).sum::<usize>() > MAX_PATH_BYTES;
            if !is_primitive || is_known || is_long || found.len() >= MAX_PROMOTED {
                return None;
            }
            found.push((path.clone(), header));
        }
        collect(property, path, found)?;
        path.pop();
    }
    Some(())
}

/// Encodes a value for a header: unchanged, or in Base64 between markers if it contains characters
/// that a header would not preserve.
fn encoded(value: &str) -> String {
    let is_padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let is_visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_visible && !is_padded && !value.starts_with("=?base64?") {
        return value.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(value))
}

#[cfg(test)]
mod tests;
