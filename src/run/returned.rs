//! The shapes of the results of a run's tools. A failed run reports them, because its author has not seen the results:
//! only the script has.

use std::collections::{BTreeMap, BTreeSet};

use crate::run::result::ReturnedShape;
use crate::tools::shape::Shape;

/// Maximum number of tools of a run whose results are examined: as many as a reply lists.
const MAX_TOOLS: usize = 50;

/// Maximum number of results of one tool that are examined. The first ones show what the tool returns, and each costs
/// up to some tenths of a millisecond.
const MAX_RESULTS: u64 = 10;

/// Maximum characters of one shape, and of all shapes together: enough to see the fields, and little next to the error.
const MAX_SHAPE_CHARACTERS: usize = 300;
const MAX_CHARACTERS: usize = 4_000;

/// The shapes by server and tool.
#[derive(Default)]
pub(super) struct Returned {
    servers: BTreeMap<String, BTreeMap<String, Shape>>,
    tools: usize,
}

/// An object that a call has returned.
pub(crate) struct ReturnedObject {
    pub(crate) server: String,
    pub(crate) tool: String,
    /// The names of all its fields.
    pub(crate) fields: Vec<String>,
}

impl Returned {
    /// Whether another result of the tool should be examined.
    pub(super) fn wants(&self, server: &str, tool: &str) -> bool {
        match self.servers.get(server).and_then(|tools| tools.get(tool)) {
            Some(shape) => shape.calls() < MAX_RESULTS,
            None => self.tools < MAX_TOOLS,
        }
    }

    pub(super) fn add(&mut self, server: &str, tool: &str, shape: Shape) {
        let tools = match self.servers.get_mut(server) {
            Some(tools) => tools,
            None => self.servers.entry(server.to_owned()).or_default(),
        };
        if let Some(known) = tools.get_mut(tool) {
            known.merge(shape);
        } else if self.tools < MAX_TOOLS {
            tools.insert(tool.to_owned(), shape);
            self.tools += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools == 0
    }

    /// Whether any returned value has a field of this name, at any level.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.servers.values().flat_map(BTreeMap::values).any(|shape| shape.has_field(name))
    }

    /// The name of the field that all returned values have, objects with nothing else.
    pub(super) fn only_field(&self) -> Option<&str> {
        let mut shapes = self.servers.values().flat_map(BTreeMap::values);
        let first = shapes.next()?.only_field()?;
        shapes.all(|shape| shape.only_field() == Some(first)).then_some(first)
    }

    /// The only returned value, if it is an object.
    pub(super) fn only_object(&self) -> Option<ReturnedObject> {
        let (server, tools) = self.servers.iter().next()?;
        let (tool, shape) = tools.iter().next()?;
        let is_only = self.tools == 1 && shape.calls() == 1;
        let fields = shape.object_fields().filter(|_| is_only)?;
        let fields = fields.into_iter().map(str::to_owned).collect();
        Some(ReturnedObject { server: server.clone(), tool: tool.clone(), fields })
    }

    /// The names of all fields of returned values, at any level. `None` if there are `max` or more, or if some are not
    /// known.
    pub(super) fn fields(&self, max: usize) -> Option<BTreeSet<String>> {
        let shapes = || self.servers.values().flat_map(BTreeMap::values);
        if self.tools >= MAX_TOOLS || shapes().any(Shape::hides_fields) {
            return None;
        }
        let mut fields = BTreeSet::new();
        shapes().for_each(|shape| shape.collect_fields(&mut fields, max));
        (fields.len() < max).then_some(fields)
    }

    /// The shapes as text, by the names of servers and tools.
    pub(super) fn shapes(&self) -> Vec<ReturnedShape> {
        let mut room = MAX_CHARACTERS;
        let mut shapes = Vec::new();
        for (server, tools) in &self.servers {
            for (tool, shape) in tools {
                let shape = shape.render(MAX_SHAPE_CHARACTERS.min(room));
                room = room.saturating_sub(shape.chars().count());
                if room > 0 {
                    shapes.push(ReturnedShape { server: server.clone(), tool: tool.clone(), shape });
                }
            }
        }
        shapes
    }
}

#[cfg(test)]
mod tests;
