//! Requests to a server for what is not a tool: resources and prompts.

use serde_json::{Map, Value, json};

use super::error::{ToolError, ToolErrorCode};
use super::resource_updates::ResourceUpdates;

/// A request for resources or prompts. Results are the protocol's own JSON.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerRequest {
    /// All resources that the server lists, as one array.
    ListResources,
    /// The contents of a resource.
    ReadResource {
        /// The resource's URI.
        uri: String,
    },
    /// All prompts that the server lists, as one array.
    ListPrompts,
    /// Reports of the changes of a resource, which follow the answer until the subscriber is gone. The answer is an
    /// empty object.
    Subscribe {
        /// The resource's URI.
        uri: String,
        /// Receives the reports.
        updates: ResourceUpdates,
    },
    /// The messages of a prompt.
    GetPrompt {
        /// The prompt's name.
        name: String,
        /// The prompt's arguments.
        arguments: Map<String, Value>,
    },
}

impl ServerRequest {
    /// The methods of all requests.
    pub(crate) const METHODS: [&'static str; 5] =
        ["resources/list", Self::READ, "resources/subscribe", "prompts/list", "prompts/get"];

    /// The method of [`ReadResource`](Self::ReadResource).
    pub(crate) const READ: &'static str = "resources/read";

    /// The protocol's method. Policies treat it as a tool name.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::ListResources => "resources/list",
            Self::ReadResource { .. } => Self::READ,
            Self::Subscribe { .. } => "resources/subscribe",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt { .. } => "prompts/get",
        }
    }

    /// The same request with other parameters, such as [`parameters`](Self::parameters) returns.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` if the method does not take them.
    pub(crate) fn with_parameters(self, mut parameters: Map<String, Value>) -> Result<Self, ToolError> {
        let mut text = |name: &str| match parameters.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => {
                let message = format!("expected the parameter `{name}` as a string");
                Err(ToolError::new(ToolErrorCode::InvalidArguments, message))
            }
        };
        Ok(match self {
            Self::ListResources | Self::ListPrompts => self,
            Self::ReadResource { .. } => Self::ReadResource { uri: text("uri")? },
            Self::Subscribe { updates, .. } => Self::Subscribe { uri: text("uri")?, updates },
            Self::GetPrompt { .. } => Self::GetPrompt {
                name: text("name")?,
                arguments: match parameters.remove("arguments") {
                    Some(Value::Object(arguments)) => arguments,
                    _ => Map::new(),
                },
            },
        })
    }

    /// The parameters of the protocol's method, without the cursors of paginated lists.
    pub fn parameters(&self) -> Map<String, Value> {
        let parameters = match self {
            Self::ListResources | Self::ListPrompts => Value::Null,
            Self::ReadResource { uri } | Self::Subscribe { uri, .. } => json!({ "uri": uri }),
            Self::GetPrompt { name, arguments } => json!({ "name": name, "arguments": arguments }),
        };
        match parameters {
            Value::Object(parameters) => parameters,
            _ => Map::new(),
        }
    }
}
