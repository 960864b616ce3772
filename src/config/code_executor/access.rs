//! What code-executor-mcp lets scripts reach, as grants, and its audit log, as a trail.

use crate::config::document::Content;
use crate::config::error::Finding;
use crate::config::expand::Text;
use crate::config::foreign::{Foreign, is_off};
use crate::config::parsed::{GrantFields, Settings};
use crate::config::reader::At;
use crate::run::grants::HostPattern;

/// The program's own maximum for the days that it keeps logs.
const MAX_LOG_DAYS: u64 = 365;

/// Hosts that the program's own sandbox needs for tool calls. cx does not need them, and granting them would expose
/// services of the user's machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Directories to read. In the program an empty list means the working directory. Here it means nothing, because the
/// working directory is wherever the client was started.
pub(super) fn read(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    if !is_off(at.node) {
        settings.grants.read = Some(directories(at.texts()?));
    }
    Ok(())
}

/// Directories to write to; `true` means the directories to read.
pub(super) fn write(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    match &at.node.content {
        Content::Bool(true) => settings.writes_as_reads = Some(at.text_of("true")),
        _ if is_off(at.node) => settings.grants.write = Some(Vec::new()),
        _ => settings.grants.write = Some(directories(at.texts()?)),
    }
    Ok(())
}

/// Hosts; `true` means all names. A host that cannot be parsed grants nothing and is a mistake.
pub(super) fn hosts(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    let (hosts, mistake) = match &at.node.content {
        Content::Bool(true) => (vec![GrantFields::host(at.text_of("*"))?], None),
        _ if is_off(at.node) => (Vec::new(), None),
        _ => {
            let named = at.texts()?.into_iter().filter(|text| !LOOPBACK.contains(&text.raw.as_str()));
            let (hosts, mistakes): (Vec<_>, Vec<_>) = named.map(GrantFields::host).partition(Result::is_ok);
            let hosts: Vec<HostPattern> = hosts.into_iter().flatten().collect();
            (hosts, mistakes.into_iter().find_map(Result::err))
        }
    };
    settings.grants.net = Some(hosts);
    mistake.map_or(Ok(()), Err)
}

/// `ALLOWED_PROJECTS`: directories to read, separated by colons.
pub(super) fn projects(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    let text = at.string()?;
    let paths = text.split(':').filter(|path| !path.is_empty());
    settings.grants.read = Some(directories(paths.map(|path| at.text_of(path)).collect()));
    Ok(())
}

/// The scratch directory needs no grant.
fn directories(mut texts: Vec<Text>) -> Vec<Text> {
    texts.retain(|text| text.raw.trim_end_matches('/') != "/tmp");
    texts
}

pub(super) fn audit_enabled(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.foreign_audit.enabled = Some(at.boolean()?);
    Ok(())
}

/// The path of the log. It does not enable a trail by itself.
pub(super) fn audit_path(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.foreign_audit.directory = Some(at.text()?);
    Ok(())
}

pub(super) fn audit_days(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.foreign_audit.retention_days = u32::try_from(at.number(1, MAX_LOG_DAYS, "days")?).ok();
    Ok(())
}

/// Resolves settings that depend on several keys.
pub(super) fn finish(settings: &mut Settings, foreign: &mut Foreign) {
    let Some(text) = settings.writes_as_reads.take() else { return };
    match &settings.grants.read {
        Some(read) => settings.grants.write = Some(read.clone()),
        None => foreign.lose(&text.key, text.location),
    }
}
