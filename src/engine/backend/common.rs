//! What sandboxes of any language ask for, as methods: state, tools, help, progress and language models.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::value::RawValue;

use super::host_client::unreadable;
use super::run::BackendRun;
use crate::engine::host_calls::query::Query;
use crate::json::Json;
use crate::llm::call::LlmCall;
use crate::storage::state::StateCall;
use crate::tools::{Progress, ToolError};

/// The detail of each tool in the result of a search: that of `searchTools` in scripts.
const SEARCH_DETAIL: &str = "usage";

impl BackendRun {
    /// The value that the script's state has under a key; `None` if there is none.
    ///
    /// # Errors
    ///
    /// `STATE_UNAVAILABLE` if the run has no state or it cannot be read, `INVALID_ARGUMENTS` for a key that is not 1 to
    /// 256 characters long.
    pub fn state_get(&self, key: &str) -> BoxFuture<'static, Result<Option<Json>, ToolError>> {
        let call = StateCall::Get { key: key.to_owned(), tagged: false };
        let entry = self.client.read::<Vec<Box<RawValue>>>(&Query::State { call });
        async move {
            let value = entry.await?.into_iter().next();
            value.map(|text| Json::parse(text.get())).transpose().map_err(|error| unreadable(&error))
        }
        .boxed()
    }

    /// Keeps a value of at most 1 MiB of JSON under a key. [`query`](Self::query) can do so only if the value was not
    /// changed meanwhile.
    ///
    /// # Errors
    ///
    /// As [`state_get`](Self::state_get); `STATE_FULL` beyond the bounds of the store.
    pub fn state_set(&self, key: &str, value: &Json) -> BoxFuture<'static, Result<(), ToolError>> {
        let call = StateCall::Set { key: key.to_owned(), value: value.text().to_owned(), expected: None };
        let answer = self.client.ask(&Query::State { call });
        async move { answer.await.map(drop) }.boxed()
    }

    /// Removes a key, and returns whether it existed.
    ///
    /// # Errors
    ///
    /// As [`state_get`](Self::state_get).
    pub fn state_delete(&self, key: &str) -> BoxFuture<'static, Result<bool, ToolError>> {
        self.client.read(&Query::State { call: StateCall::Delete { key: key.to_owned() } })
    }

    /// The keys that begin with a prefix, sorted.
    ///
    /// # Errors
    ///
    /// As [`state_get`](Self::state_get).
    pub fn state_keys(&self, prefix: &str) -> BoxFuture<'static, Result<Vec<String>, ToolError>> {
        self.client.read(&Query::State { call: StateCall::Keys { prefix: prefix.to_owned() } })
    }

    /// The tools that fit some words best, at most `limit`: a list of objects with `name`, `server`, `description`,
    /// `parameters` and `usage`, a line that says how a script of the run's language calls it.
    ///
    /// # Errors
    ///
    /// `RESULT_TOO_LARGE` if the answer is longer than a result may be.
    pub fn search_tools(&self, words: &str, limit: u32) -> BoxFuture<'static, Result<Json, ToolError>> {
        let query = Query::Search {
            query: words.to_owned(),
            server: None,
            limit: Some(f64::from(limit)),
            detail: SEARCH_DETAIL.to_owned(),
        };
        self.json(&query)
    }

    /// What is known of a tool, with its schemas; `None` if there is no such tool.
    ///
    /// # Errors
    ///
    /// Why its server does not list its tools.
    pub fn tool_schema(&self, tool: &str) -> BoxFuture<'static, Result<Option<Json>, ToolError>> {
        let schema = self.json(&Query::Schema { name: tool.to_owned() });
        async move { schema.await.map(|schema| Some(schema).filter(|schema| !schema.is_null())) }.boxed()
    }

    /// The guide to what scripts have; with a topic its section, or the description of a server or a tool.
    ///
    /// # Errors
    ///
    /// `TOOL_NOT_FOUND` if there is no such topic.
    pub fn help(&self, topic: Option<&str>) -> BoxFuture<'static, Result<String, ToolError>> {
        self.client.read(&Query::Help { topic: topic.map(str::to_owned) })
    }

    /// Reports the script's progress to the client: amounts from 0 on, and at most 1,000 characters of a message.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENTS` for other amounts.
    pub fn report_progress(&self, progress: Progress) -> BoxFuture<'static, Result<(), ToolError>> {
        let Progress { progress: done, total, message } = progress;
        let answer = self.client.ask(&Query::Progress { done, total, message });
        async move { answer.await.map(drop) }.boxed()
    }

    /// Asks a language model. The question is an object as `llm.think` takes it: `prompt` or `messages`, and
    /// `schema`, `model`, `maxTokens`, `systemPrompt` as options. Returns text, or a value that fits the schema.
    ///
    /// # Errors
    ///
    /// `MODEL_UNAVAILABLE` if the run has no model, and whatever else a script gets: `MODEL_BUDGET_EXCEEDED`,
    /// `MODEL_TIMEOUT`.
    pub fn ask_model(&self, question: &Json) -> BoxFuture<'static, Result<Json, ToolError>> {
        self.json(&Query::Llm { call: LlmCall::Ask(question.text().to_owned()) })
    }

    fn json(&self, query: &Query) -> BoxFuture<'static, Result<Json, ToolError>> {
        let answer = self.client.ask(query);
        async move { Json::parse(&answer.await?).map_err(|error| unreadable(&error)) }.boxed()
    }
}
