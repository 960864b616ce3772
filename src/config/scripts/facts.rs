//! The metadata that a script declares about itself, read and checked without running it.

use std::sync::Arc;

use serde_json::Value;

use super::front_matter::{self, FrontMatter};
use super::input_schema;
use crate::storage::scripts::{self, Extension};
use crate::text::{one_line, preview};
use crate::tools::Schema;
use crate::tools::arguments::ArgumentCheck;

/// Names with another meaning on the object `scripts`: its own function, and properties that promises look up.
const RESERVED: [&str; 3] = ["save", "then", "constructor"];

/// The folder of a workspace.
pub(in crate::config) const WORKSPACE_FOLDER: &str = ".cx/scripts";

/// The declared metadata of a source, one item per line, for a user who decides whether to trust it.
///
/// # Errors
///
/// Why the script cannot be used. Such a script cannot be trusted either.
pub(in crate::config) fn describe(
    name: &str,
    extension: Extension,
    source: &str,
) -> Result<Vec<String>, String> {
    if !scripts::is_name(name) {
        return Err("its file's name is none that a script can have".to_owned());
    }
    if source.len() as u64 > scripts::MAX_SCRIPT_BYTES {
        return Err(format!("it is larger than {} bytes", scripts::MAX_SCRIPT_BYTES));
    }
    let facts = facts(name, extension, source)?;
    let said = facts.description.as_deref().unwrap_or("nothing");
    Ok(vec![format!("script `{name}` says of itself: {}", one_line(said)), "its code:".to_owned()])
}

/// A name that may be wrong, for a message.
pub(super) fn shown_name(name: &str) -> String {
    one_line(&preview(name, scripts::MAX_NAME))
}

/// The checked metadata of a source.
pub(super) struct Facts {
    pub(super) description: Option<String>,
    pub(super) input: Option<Schema>,
    pub(super) check: Option<Arc<ArgumentCheck>>,
}

/// Reads and checks the metadata of a source.
///
/// # Errors
///
/// A description of what is wrong with it.
pub(super) fn facts(name: &str, extension: Extension, source: &str) -> Result<Facts, String> {
    if RESERVED.contains(&name) {
        return Err(format!("`{name}` is not a name for a script: it means something else on `scripts`"));
    }
    let FrontMatter { name: said, description, input, .. } = front_matter::read(source, extension)?;
    if let Some(said) = said
        && said != name
    {
        let said = shown_name(&said);
        return Err(format!(
            "its front matter says that its name is `{said}`, and its file's name says `{name}`"
        ));
    }
    let declared = match extension {
        Extension::Ts | Extension::Js => input_schema::declared(source)?,
        Extension::Py => None,
    };
    let input = match (input, declared) {
        (Some(_), Some(_)) => {
            return Err(
                "its input is declared twice: in the front matter, and as `export const input`".to_owned()
            );
        }
        (input, declared) => input.or(declared),
    };
    let Some(mut input) = input else { return Ok(Facts { description, input: None, check: None }) };
    if let Value::Object(fields) = &mut input {
        match fields.get("type") {
            None => drop(fields.insert("type".to_owned(), "object".into())),
            Some(Value::String(kind)) if kind == "object" => {}
            Some(_) => return Err("the schema of its input must have `type: object`".to_owned()),
        }
    }
    let schema = Schema::from(input);
    let check = ArgumentCheck::compile(&schema)
        .map_err(|problem| format!("the schema of its input cannot be used: {problem}"))?;
    Ok(Facts { description, input: Some(schema), check: Some(Arc::new(check)) })
}
