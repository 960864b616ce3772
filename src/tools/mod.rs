//! Tools: definitions, names, policy and dispatch of tool calls.
//!
//! This module uses no engine and no protocol. A call comes in as two names and JSON text. It
//! leaves through a [`ToolDispatcher`]: one for native tools, one for MCP servers, one for saved
//! scripts.

mod dispatch;
mod elicitation;
mod error;
mod form;
mod private_addresses;
mod resource_updates;
mod result;
mod schema;
mod server_request;
mod stored_script;
mod tool;

pub(crate) mod approval;
pub(crate) mod arguments;
pub(crate) mod cache;
pub(crate) mod catalog;
pub(crate) mod caught;
pub(crate) mod declarations;
pub(crate) mod delayed_save;
pub(crate) mod direct;
pub(crate) mod in_force;
pub(crate) mod inferred;
pub(crate) mod names;
pub(crate) mod native;
pub(crate) mod pins;
pub(crate) mod policy;
pub(crate) mod rules;
pub(crate) mod sample;
pub(crate) mod search;
pub(crate) mod shape;
pub(crate) mod skill_pins;
pub(crate) mod tool_use;
pub(crate) mod trace_context;
pub(crate) mod unmatched;
pub(crate) mod usage;

pub use approval::{Approval, ApprovalRequest, AskAnnotation, AskReason};
pub use direct::{DirectTools, ToolMode};
pub(crate) use dispatch::{INTERFACE_SCHEME, INTERFACE_TYPE, INTERFACES, exact_json, interface_address};
pub use dispatch::{
    Progress, ProgressListener, RemoteServer, RequestContext, SentRequest, ServerDetails, ToolDefinition,
    ToolDispatcher, ToolList, ToolRequest,
};
pub(crate) use elicitation::Elicitor;
pub use elicitation::{
    ElicitationAnswer, ElicitationHandler, ElicitationMode, ElicitationRefusal, ElicitationRequest,
};
pub use error::{ServerFailure, ServerFailureKind, ToolError, ToolErrorCode};
pub use form::{FieldKind, Form, FormError, FormField, FormOption};
pub use pins::{DamagedPins, ToolChange};
pub use private_addresses::PrivateAddresses;
pub use resource_updates::ResourceUpdates;
pub use result::ToolResult;
pub use rules::ToolRules;
pub use schema::Schema;
pub use server_request::ServerRequest;
pub use skill_pins::SkillChange;
pub(crate) use stored_script::SCRIPTS_SERVER;
pub use stored_script::{
    Language, SavedScript, ScriptCaller, StoredScript, ToolKind, UnknownLanguage, UnsavedScript,
};
pub use tool::{KnownServer, Tool};
pub use trace_context::TraceContext;
pub use unmatched::UnmatchedPattern;

#[cfg(any(test, fuzzing))]
#[path = "../../fuzz/entries/tools.rs"]
pub(crate) mod fuzzing;
