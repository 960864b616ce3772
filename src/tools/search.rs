//! Ranked search over tool definitions.

mod builder;
mod index;
mod query;
mod terms;
mod words;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::builder::{Builder, Document};
use super::dispatch::ToolDefinition;

pub(crate) use self::index::SearchIndex;

/// Maximum number of a tool's parameters that are indexed.
const MAX_PARAMETERS: usize = 64;

/// Builds an index of servers' names and tool definitions.
pub(crate) fn build_index<'a>(tools: impl Iterator<Item = (&'a str, &'a ToolDefinition)>) -> SearchIndex {
    let mut index = Builder::default();
    for (server, definition) in tools {
        let parameters = parameters(definition.input_schema.text());
        index.add(&Document {
            server,
            tool: &definition.name,
            description: definition.description.as_deref().unwrap_or_default(),
            parameters: &parameters,
        });
    }
    index.finish()
}

/// The names and descriptions of an object schema's properties.
///
/// Sorted by name, so that the index does not depend on the order in which a server writes them.
fn parameters(schema: &str) -> Vec<(String, String)> {
    // All other keywords are skipped without being stored.
    #[derive(Deserialize)]
    struct ObjectSchema<'a> {
        #[serde(borrow, default)]
        properties: BTreeMap<String, &'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Property {
        #[serde(default)]
        description: String,
    }
    // A schema of another form has no parameters to index.
    let Ok(ObjectSchema { properties }) = serde_json::from_str(schema) else { return Vec::new() };
    let named = properties.into_iter().take(MAX_PARAMETERS).map(|(name, property)| {
        let property: Property = serde_json::from_str(property.get()).unwrap_or_default();
        (name, property.description)
    });
    named.collect()
}

#[cfg(test)]
mod tests;
