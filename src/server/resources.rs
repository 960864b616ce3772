//! Resources that a client can read: the guide and its run history.

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use super::guide;
use super::yielded::YieldedRuns;
use crate::run::history::{History, RunRecord};

/// The URI of the guide.
pub(crate) const GUIDE: &str = "cx://guide";

/// Prefix of the URIs of run records.
const RUNS: &str = "cx://runs/";

/// The `calls` part of a run without calls.
const NO_CALLS: &str = "[]";

pub(crate) const MARKDOWN: &str = "text/markdown";
pub(crate) const PLAIN: &str = "text/plain";
const JSON: &str = "application/json";

/// A part of a run record.
#[derive(Clone, Copy)]
enum Part {
    Output,
    Value,
    Calls,
}

impl Part {
    const ALL: [Self; 3] = [Self::Output, Self::Value, Self::Calls];

    /// The part of this name, or `None`.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Value => "value",
            Self::Calls => "calls",
        }
    }

    const fn mime_type(self) -> &'static str {
        match self {
            Self::Output => PLAIN,
            Self::Value | Self::Calls => JSON,
        }
    }

    fn content(self, run: &RunRecord) -> Option<&str> {
        match self {
            Self::Output => Some(&run.output),
            Self::Value => run.value.as_deref(),
            Self::Calls => Some(&run.calls),
        }
    }
}

/// Lists everything that `client` can read, newest runs first. The run history bounds the number.
pub(crate) fn list(history: Option<&History>, client: &str) -> Vec<Resource> {
    let guide = Resource::new(GUIDE, "guide")
        .with_title("How to write scripts for cx")
        .with_mime_type(MARKDOWN)
        .with_size(guide::GUIDE.len() as u64);
    let mut resources = vec![guide];
    for run in history.map_or_else(Vec::new, |history| history.list(client)) {
        for part in Part::ALL {
            let Some(text) = part.content(&run).filter(|text| !matches!(*text, "" | NO_CALLS)) else {
                continue;
            };
            let uri = format!("{RUNS}{}/{}", run.id, part.name());
            let name = format!("{} of run {}", part.name(), run.id);
            resources
                .push(Resource::new(uri, name).with_mime_type(part.mime_type()).with_size(text.len() as u64));
        }
    }
    resources
}

/// The URI templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let description = "The record of a run; part is output, value or calls. \
        Answers that leave something out have its id.";
    vec![ResourceTemplate::new(format!("{RUNS}{{id}}/{{part}}"), "run").with_description(description)]
}

/// The part of a run that a URI names, if it is one.
fn part_of(uri: &str) -> Option<Part> {
    let (_id, name) = uri.strip_prefix(RUNS)?.split_once('/')?;
    Part::from_name(name)
}

/// Whether a URI names a part of a run.
pub(crate) fn is_part(uri: &str) -> bool {
    part_of(uri).is_some()
}

/// Whether a URI names what a run has printed, which grows while the run goes on.
pub(crate) fn is_output(uri: &str) -> bool {
    matches!(part_of(uri), Some(Part::Output))
}

/// Reads the resource at the URI of a run that goes on and has printed `output` so far.
///
/// # Errors
///
/// If there is no such resource, or not before the run has ended.
fn read_running(uri: &str, output: &str) -> Result<ReadResourceResult, ErrorData> {
    match part_of(uri) {
        Some(Part::Output) => {
            let contents = ResourceContents::text(output, uri).with_mime_type(PLAIN);
            Ok(ReadResourceResult::new(vec![contents]))
        }
        Some(Part::Value | Part::Calls) => {
            let problem = "the run goes on; its part `output` has what it has printed so far, and the tool `wait` has \
                           the rest when it has ended";
            Err(ErrorData::resource_not_found(problem, Some(json!({ "uri": uri }))))
        }
        None => read(uri, None),
    }
}

/// The run whose record a URI names.
pub(crate) fn run_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(RUNS)?.split('/').next()
}

/// Reads the guide, or a part of a run of the client: of its record, or of what it has printed so far.
///
/// # Errors
///
/// If there is no such resource, or the record cannot be read now.
pub(crate) async fn read_for(
    client: &str,
    uri: &str,
    history: Option<&History>,
    yielded: &YieldedRuns,
) -> Result<ReadResourceResult, ErrorData> {
    let id = run_of(uri);
    // Taken first: the run may end meanwhile, and has a record then.
    let so_far = id.and_then(|id| yielded.printed(id)).and_then(|printed| printed.so_far());
    if let Some(output) = so_far {
        return read_running(uri, &output);
    }
    let record = match (id, history) {
        (Some(id), Some(history)) => history.find(client, id).await,
        _ => Ok(None),
    };
    let unavailable =
        |error| ErrorData::internal_error(format!("the record cannot be read now: {error}"), None);
    read(uri, record.map_err(unavailable)?.as_deref())
}

/// Reads the resource at a URI; `record` is the run record that the URI names, if the client has it.
///
/// # Errors
///
/// If there is no such resource.
fn read(uri: &str, record: Option<&RunRecord>) -> Result<ReadResourceResult, ErrorData> {
    let contents = |text: &str, mime_type: &str| {
        let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
        Ok(ReadResourceResult::new(vec![contents]))
    };
    if uri == GUIDE {
        return contents(guide::GUIDE, MARKDOWN);
    }
    let missing = |problem: &str| {
        Err(ErrorData::resource_not_found(format!("{problem}: {uri}"), Some(json!({ "uri": uri }))))
    };
    let Some((_id, name)) = uri.strip_prefix(RUNS).and_then(|path| path.split_once('/')) else {
        return missing("expected `cx://guide` or `cx://runs/<id>/<part>`");
    };
    let Some(part) = Part::from_name(name) else {
        return missing("the parts of a run are `output`, `value` and `calls`");
    };
    let Some(run) = record else {
        return missing("no record of this run is kept");
    };
    match part.content(run) {
        Some(text) => contents(text, part.mime_type()),
        None => missing("this run failed and has no value"),
    }
}
