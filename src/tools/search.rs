//! Ranked search over tool definitions.

mod builder;
mod deprecated;
mod document;
mod index;
mod learned;
mod nearest;
mod query;
mod related;
mod terms;
mod values;
mod words;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::builder::Builder;
use self::deprecated::deprecated;
use self::document::Document;
use self::related::Related;
use super::dispatch::ToolDefinition;
use super::schema::Schema;

pub(crate) use self::index::SearchIndex;
pub(crate) use self::learned::Learned;
pub(crate) use self::nearest::nearest;

/// Maximum number of an object's properties that are indexed.
const MAX_PROPERTIES: usize = 64;

/// A tool to be indexed.
pub(crate) struct IndexedTool<'a> {
    /// The server's name.
    pub(crate) server: &'a str,
    pub(crate) definition: &'a ToolDefinition,
    /// Length in bytes of the beginning that the description shares with others of its server.
    pub(crate) shared: usize,
}

/// Builds an index of servers' names and tool definitions.
pub(crate) fn build_index<'a>(tools: impl Iterator<Item = IndexedTool<'a>>) -> SearchIndex {
    let tools: Vec<(IndexedTool<'a>, Members, Members)> = tools
        .map(|tool| {
            let parameters = properties(tool.definition.input_schema.text());
            let results = tool.definition.output_schema.as_ref().map(Schema::unwrapped);
            let results = results.map(|schema| properties(schema.text())).unwrap_or_default();
            (tool, parameters, results)
        })
        .collect();
    let documents: Vec<Document<'_>> = tools
        .iter()
        .map(|(tool, parameters, results)| {
            let description = tool.definition.description.as_deref().unwrap_or_default();
            let (shared, description) =
                description.split_at_checked(tool.shared).unwrap_or(("", description));
            let server = tool.server;
            Document { server, tool: &tool.definition.name, shared, description, parameters, results }
        })
        .collect();
    let mut index = Builder::default();
    documents.iter().for_each(|document| index.add(document));
    index.finish(Related::new(&documents)).with_deprecated(deprecated(&documents))
}

/// Names of properties with their descriptions.
type Members = Vec<(String, String)>;

/// The names and descriptions of an object schema's properties.
///
/// Sorted by name, so that the index does not depend on the order in which a server writes them.
fn properties(schema: &str) -> Members {
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
    // A schema of another form has nothing to index.
    let Ok(ObjectSchema { properties }) = serde_json::from_str(schema) else { return Vec::new() };
    let named = properties.into_iter().take(MAX_PROPERTIES).map(|(name, property)| {
        let property: Property = serde_json::from_str(property.get()).unwrap_or_default();
        (name, property.description)
    });
    named.collect()
}

#[cfg(test)]
mod tests;
