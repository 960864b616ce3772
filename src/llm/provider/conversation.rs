//! The messages of a conversation, as all wire formats but Gemini's have them.

use serde_json::{Value, json};

use crate::llm::model::{ModelRequest, ModelRole};

/// The messages, without the system prompt.
pub(crate) fn messages(request: &ModelRequest) -> impl Iterator<Item = Value> {
    request.messages.iter().map(|message| {
        let role = match message.role {
            ModelRole::User => "user",
            ModelRole::Assistant => "assistant",
        };
        json!({ "role": role, "content": message.text })
    })
}

/// The messages, the first of which is the system prompt if there is one.
pub(crate) fn messages_after_system_prompt(request: &ModelRequest) -> Vec<Value> {
    let system_prompt = request.system_prompt.iter();
    let system_prompt = system_prompt.map(|prompt| json!({ "role": "system", "content": prompt }));
    system_prompt.chain(messages(request)).collect()
}
