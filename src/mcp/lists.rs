//! Lists of a server over its connection: all pages, within bounds.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::ServiceError;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::answers::RequestTrace;
use super::connection::{CallFailure, Connection};
use super::definitions::{self, ListBuilder, MAX_TOOLS};
use super::errors;
use super::pages::{ListCut, Pages};
use crate::json::{self, Json};
use crate::text::preview;
use crate::tools::{ToolError, ToolErrorCode, ToolList};

/// Maximum time for listing the tools, all pages together. All known servers list from memory.
pub(crate) const LIST_TIMEOUT: Duration = Duration::from_secs(10);

impl Connection {
    /// Lists all tools, within bounds.
    pub(crate) async fn list(&self) -> Result<ToolList, ToolError> {
        let pages = self.list_pages(self.list_changes());
        let mut list = timeout(LIST_TIMEOUT, pages).await.unwrap_or_else(|_elapsed| {
            Err(ToolError::new(
                ToolErrorCode::ToolTimeout,
                format!(
                    "server `{}` did not list its tools within {} s",
                    self.server,
                    LIST_TIMEOUT.as_secs()
                ),
            ))
        })?;
        self.has_answered.store(true, Ordering::Relaxed);
        // Without a handshake each request states the capabilities, and during this one nobody can be asked.
        list.with_elicitation = (!self.is_stateless()).then(|| self.notifications.questions().may_ask());
        Ok(list)
    }

    /// `changes` is how many the server has announced before.
    async fn list_pages(&self, changes: u64) -> Result<ToolList, ToolError> {
        let mut list = ListBuilder::new(&self.server);
        let mut ttl = None;
        let mut pages = Pages::new();
        let mut cursor = None;
        let cut = loop {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest::with_param(page);
            let page = match self
                .exchange(ClientRequest::ListToolsRequest(request), None, &RequestTrace::default(), None)
                .await
            {
                Ok(page) => page,
                // The server has only prompts or resources, and has declared that.
                Err(ServiceError::McpError(error))
                    if error.code == ErrorCode::METHOD_NOT_FOUND && !self.has_tools() =>
                {
                    return Ok(ToolList::default());
                }
                Err(ServiceError::McpError(error)) => return Err(errors::list_error(&self.server, &error)),
                Err(error) => return Err(self.lost(error, "it listed its tools").await),
            };
            let page = definitions::read_tools(&page, MAX_TOOLS + 1)
                .map_err(|error| errors::unreadable(&self.server, &error.to_string()))?;
            // The shortest lifetime of all pages applies to the whole list.
            ttl = [ttl, page.ttl].into_iter().flatten().min();
            if let Some(cut) = push_all(&mut list, page.tools) {
                break cut;
            }
            let Some(next) = page.next_cursor else { return Ok(self.finish(list, ttl, changes)) };
            match pages.follow(next) {
                Ok(next) => cursor = Some(next),
                Err(cut) => break cut,
            }
        };
        self.note_cut("tools/list", &pages, cut);
        Ok(self.finish(list, ttl, changes))
    }

    /// The list, after the connection has learned from it how its tools are called.
    fn finish(&self, mut list: ListBuilder<'_>, ttl: Option<Duration>, changes: u64) -> ToolList {
        self.task_tools.set(list.take_task_tools(), changes);
        list.finish(ttl)
    }

    fn has_tools(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some())
    }

    /// Returns everything that a list method lists as one array, within the bounds of a list of
    /// tools.
    pub(crate) async fn list_all(
        &self,
        method: &str,
        key: &str,
        trace: &RequestTrace,
    ) -> Result<Json, CallFailure> {
        let unreadable = |error: serde_json::Error| {
            CallFailure::after_sending(errors::unreadable(&self.server, &error.to_string()))
        };
        let mut all = String::from("[");
        let mut count = 0;
        let mut pages = Pages::new();
        let mut parameters = json!({});
        let cut = loop {
            let page = self.request_text(method, parameters, trace).await?;
            let mut next = None;
            let mut items = Ok(Vec::new());
            json::each_field(&page, |field, value| {
                if field == key && value.get().starts_with('[') {
                    // One more than the maximum is read, to detect that there are more.
                    items = json::items(value.get(), MAX_TOOLS + 1 - count);
                } else if field == "nextCursor" {
                    next = serde_json::from_str::<String>(value.get()).ok();
                }
            })
            .map_err(unreadable)?;
            let mut cut = None;
            for item in items.map_err(unreadable)? {
                if count >= MAX_TOOLS {
                    cut = Some(ListCut::ManyEntries { max: MAX_TOOLS });
                    break;
                }
                if all.len() + item.get().len() > definitions::SERVER_BYTES {
                    cut = Some(ListCut::Large { max: definitions::SERVER_BYTES });
                    break;
                }
                if count > 0 {
                    all.push(',');
                }
                all.push_str(item.get());
                count += 1;
            }
            if cut.is_some() {
                break cut;
            }
            let Some(next) = next else { break None };
            match pages.follow(next) {
                Ok(cursor) => parameters = json!({ "cursor": cursor }),
                Err(cut) => break Some(cut),
            }
        };
        if let Some(cut) = cut {
            self.note_cut(method, &pages, cut);
        }
        all.push(']');
        Json::parse(&all).map_err(unreadable)
    }

    /// Returns all resources, and the skills (SEP-2640) that are not among them, each as the resource that describes
    /// it.
    pub(crate) async fn list_resources(&self, trace: &RequestTrace) -> Result<Json, CallFailure> {
        let listed = self.list_all("resources/list", "resources", trace).await?;
        if !self.peer.peer_info().is_some_and(|info| info.capabilities.supports_skills()) {
            return Ok(listed);
        }
        match self.list_all("skills/list", "skills", trace).await {
            Ok(skills) => {
                self.skill_files.set(&skills);
                Ok(with_skills(&listed, &skills).unwrap_or(listed))
            }
            Err(failure) => {
                let problem = format!(
                    "server `{}`: its skills are missing in the list: {}",
                    self.server, failure.error.message
                );
                tracing::warn!(server = &*self.server, "{problem}");
                *self.list_problem.lock() = Some(problem);
                Ok(listed)
            }
        }
    }

    /// What is wrong with the files in the answer to `resources/read` of `requested`, if they belong to a skill. The
    /// list is read again first, because the skill may have changed since.
    pub(crate) async fn skill_problem(
        &self,
        requested: &str,
        answer: &Json,
        trace: &RequestTrace,
    ) -> Option<String> {
        let problem = self.skill_files.check(requested, answer).err()?;
        let trace = RequestTrace { sent: None, ..trace.clone() };
        let Ok(skills) = self.list_all("skills/list", "skills", &trace).await else { return Some(problem) };
        self.skill_files.set(&skills);
        self.skill_files.check(requested, answer).err()
    }

    /// Records that a list is incomplete. The entries so far can be used.
    fn note_cut(&self, method: &str, pages: &Pages, cut: ListCut) {
        let (server, page) = (&*self.server, pages.number());
        let problem = format!(
            "server `{server}`: the list of `{method}` is cut at page {page}, and what is on later pages is missing: {cut}"
        );
        tracing::warn!(server, method, page, "{problem}");
        *self.list_problem.lock() = Some(problem);
    }

    /// Removes and returns the reason why a list was cut.
    pub(crate) fn take_list_problem(&self) -> Option<String> {
        self.list_problem.lock().take()
    }
}

/// Maximum characters of a skill's name and description in a list. The format has the same bounds.
const MAX_SKILL_NAME: usize = 64;
const MAX_SKILL_DESCRIPTION: usize = 1_024;

/// A resource in a list.
#[derive(Deserialize)]
struct ListedResource {
    uri: String,
}

/// A skill in a list.
#[derive(Deserialize)]
struct ListedSkill {
    /// The address of the file that describes it.
    uri: String,
    frontmatter: Frontmatter,
}

#[derive(Deserialize)]
struct Frontmatter {
    name: String,
    #[serde(default)]
    description: String,
}

impl Frontmatter {
    fn shown_description(&self) -> String {
        preview(&self.description, MAX_SKILL_DESCRIPTION)
    }
}

/// Adds missing skills to the array of resources. A skill in it without a description gets that of its front matter.
/// Entries of `skills` that are not skills are left out.
fn with_skills(resources: &Json, skills: &Json) -> serde_json::Result<Json> {
    // By position, so that the order of the list is kept.
    let (mut described, mut positions) = (Vec::new(), HashMap::new());
    json::each_item(skills.text(), |skill| {
        let Ok(ListedSkill { uri, frontmatter }) = serde_json::from_str(skill.get()) else { return Ok(()) };
        if let Entry::Vacant(position) = positions.entry(uri.clone()) {
            position.insert(described.len());
            described.push(Some((uri, frontmatter)));
        }
        Ok(())
    })?;
    let mut all = Vec::new();
    json::each_item(resources.text(), |resource| {
        let resource = resource.get();
        let listed: Option<ListedResource> = serde_json::from_str(resource).ok();
        let skill = listed.and_then(|one| described.get_mut(*positions.get(&one.uri)?)?.take());
        all.push(match skill {
            Some((_, frontmatter)) => with_description(resource, &frontmatter.shown_description()),
            None => resource.to_owned(),
        });
        Ok(())
    })?;
    all.extend(described.into_iter().flatten().map(|(uri, frontmatter)| {
        let (name, description) =
            (preview(&frontmatter.name, MAX_SKILL_NAME), frontmatter.shown_description());
        json!({ "uri": uri, "name": name, "description": description, "mimeType": "text/markdown" })
            .to_string()
    }));
    Json::parse(&format!("[{}]", all.join(",")))
}

/// A resource, as text, with a description if it has none.
fn with_description(resource: &str, description: &str) -> String {
    let mut has_one = false;
    let read = json::each_field(resource, |field, _| has_one |= field == "description");
    match resource.strip_suffix('}') {
        Some(fields) if read.is_ok() && !has_one && !description.is_empty() => {
            format!("{fields},\"description\":{}}}", Value::from(description))
        }
        _ => resource.to_owned(),
    }
}

/// Adds the tools of a page. Returns why some of them do not fit, if any.
fn push_all(list: &mut ListBuilder<'_>, tools: Vec<&RawValue>) -> Option<ListCut> {
    for tool in tools {
        if list.len() >= MAX_TOOLS {
            return Some(ListCut::ManyEntries { max: MAX_TOOLS });
        }
        if list.is_full() {
            return Some(ListCut::Large { max: definitions::SERVER_BYTES });
        }
        list.push(tool);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_resources_that_are_listed_once() {
        let frontmatter = json!({ "name": "n", "description": "d", "x": 1 });
        let skill = |uri: &str| json!({ "uri": uri, "frontmatter": frontmatter, "resources": [] });
        let resource =
            |uri: &str| json!({ "uri": uri, "name": "n", "description": "d", "mimeType": "text/markdown" });
        let own = json!({ "uri": "skill://a/SKILL.md", "name": "own", "description": "its own" });
        let bare = json!({ "uri": "skill://a/SKILL.md", "name": "own" });
        for (resources, skills, expected) in [
            (json!([]), json!([]), json!([])),
            (json!([]), json!([skill("skill://b/SKILL.md")]), json!([resource("skill://b/SKILL.md")])),
            (
                json!([own]),
                json!([skill("skill://a/SKILL.md"), 5, { "uri": "u" }, skill("skill://b/SKILL.md")]),
                json!([own, resource("skill://b/SKILL.md")]),
            ),
            // The front matter describes it.
            (
                json!([bare, { "uri": "u" }]),
                json!([skill("skill://a/SKILL.md"), skill("skill://a/SKILL.md")]),
                json!([{ "uri": "skill://a/SKILL.md", "name": "own", "description": "d" }, { "uri": "u" }]),
            ),
        ] {
            let all = with_skills(&resources.into(), &skills.into()).unwrap();
            assert_eq!(all.value(), Some(&expected));
        }
    }

    #[test]
    fn what_a_list_says_of_a_skill_is_bounded() {
        let long = "x".repeat(100_000);
        let frontmatter = json!({ "name": long, "description": long });
        let skills = json!([{ "uri": "skill://a/SKILL.md", "frontmatter": frontmatter }]);
        let bare = json!([{ "uri": "skill://a/SKILL.md" }]);
        for resources in [json!([]), bare] {
            let all = with_skills(&resources.into(), &skills.clone().into()).unwrap();
            assert!(all.text().len() < 2_000, "{}", all.text().len());
        }
    }
}
