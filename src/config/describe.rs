//! Describes what a file would start and change, for users who decide whether to trust it. Every
//! text of the file is shown on one line, with hidden characters written out.

use std::fmt::Write as _;
use std::path::Path;

use super::clients::Client;
use super::document::{Content, Member, Node, parse_json};
use super::entry::{OAuthEntry, ServerEntry, Target};
use super::environment::Environment;
use super::error::Finding;
use super::file;
use super::foreign::Becomes;
use super::mask;
use super::own::{FILE_KEYS, FileKind, own_file};
use super::references;
use crate::text::{one_line, shell_word};

/// Describes everything in the file that has an effect once it is trusted.
///
/// # Errors
///
/// All mistakes in the file.
pub(super) fn describe(path: &Path, bytes: &[u8]) -> Result<Vec<String>, Vec<Finding>> {
    let text = file::text(bytes).map_err(|finding| vec![finding])?;
    let mut lines = Vec::new();
    if let Some(client) = Client::of_project_file(path) {
        let root = client.parse(text)?;
        let (entries, findings) = client.servers(&root, path, path.parent().unwrap_or(path));
        if !findings.is_empty() {
            return Err(findings);
        }
        entries.iter().for_each(|entry| server_lines(entry, &mut lines));
        return Ok(lines);
    }
    let mut findings = Vec::new();
    // Settings are shown as they are written, and checked as they are used.
    let written = parse_json(text)?;
    let mut root = parse_json(text)?;
    references::resolve(&mut root, FILE_KEYS, &Environment::from_process())?;
    let file = own_file(root, FileKind::from_path(path), &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    file.servers.iter().for_each(|entry| server_lines(entry, &mut lines));
    let foreign = file.foreign.iter().flat_map(|(program, _)| program.settings);
    let foreign = foreign.filter(|setting| matches!(setting.becomes, Becomes::Key(..)));
    let own = FILE_KEYS.iter().copied().filter(|name| !["$schema", "mcpServers"].contains(name));
    for name in own.chain(foreign.map(|setting| setting.name)) {
        if let Some(node) = written.at(name) {
            lines.push(one_line(&format!("setting `{name}`: {}", json(node))));
        }
    }
    Ok(lines)
}

/// A setting's value as JSON. Settings contain no secrets.
fn json(node: &Node) -> String {
    match &node.content {
        Content::Null => "null".to_owned(),
        Content::Bool(value) => value.to_string(),
        Content::Number(written) => written.clone(),
        Content::String(text) => serde_json::Value::from(text.as_str()).to_string(),
        Content::Array(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", ")),
        Content::Object(members) => {
            let member = |member: &Member| format!("{}: {}", member.name, json(&member.value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

fn server_lines(entry: &ServerEntry, lines: &mut Vec<String>) {
    let state = if entry.enabled == Some(false) { " (disabled)" } else { "" };
    lines.push(one_line(&format!("server `{}`{state}", entry.name)));
    let mut line = |name: &str, text: &str| lines.push(one_line(&format!("    {name}: {text}")));
    match &entry.target {
        Some(Target::Stdio(target)) => {
            line("command", &target.command.raw);
            target.args.iter().for_each(|argument| line("argument", &argument.raw));
            target.env.iter().for_each(|(name, text)| line("variable", &with_references(name, &text.raw)));
            target.cwd.iter().for_each(|cwd| line("directory", &cwd.raw));
        }
        Some(Target::Http(target)) => {
            line("address", &target.url.raw);
            target.headers.iter().for_each(|(name, text)| line("header", &with_references(name, &text.raw)));
            if let Some(oauth) = &target.oauth {
                oauth_lines(oauth, &mut line);
            }
        }
        None => {}
    }
    entry.roots.iter().for_each(|root| line("is told the root", &root.raw));
    if let Some(elicitation) = entry.elicitation {
        line("may ask the user", if elicitation { "yes" } else { "no" });
    }
    if let Some(addresses) = entry.private_addresses {
        line("private addresses in arguments", addresses.as_str());
    }
    for (name, patterns) in [
        ("allow", entry.allow.as_deref().unwrap_or_default()),
        ("deny", &entry.deny),
        ("ask", &entry.ask),
        ("read-only", entry.read_only.as_deref().unwrap_or_default()),
    ] {
        patterns.iter().for_each(|pattern| line(name, pattern));
    }
}

/// Writes how a server is signed in to: each line has a name and a text.
fn oauth_lines(oauth: &OAuthEntry, line: &mut impl FnMut(&str, &str)) {
    for (name, text) in [
        ("clientId", &oauth.client_id),
        ("clientSecret", &oauth.client_secret),
        ("privateKey", &oauth.private_key),
        ("identityClientId", &oauth.identity_client_id),
        ("identityClientSecret", &oauth.identity_client_secret),
    ] {
        text.iter().for_each(|text| line("signs in with", &with_references(name, &text.raw)));
    }
    for file in [&oauth.assertion_file, &oauth.id_token_file] {
        file.iter().for_each(|file| line("signs in with the file", &file.raw));
    }
    oauth.identity_provider.iter().for_each(|provider| line("vouched for by", &provider.raw));
    oauth.client_metadata_url.iter().for_each(|document| line("signs in with the client", &document.raw));
    oauth.issuer.iter().for_each(|issuer| line("signs in at", &issuer.raw));
    if oauth.client_credentials {
        line("signs in", "by itself, without a user");
    }
    if !oauth.scopes.is_empty() {
        line("requests scopes", &oauth.scopes.join(" "));
    }
}

/// The name of a variable or header, and the user's environment variables that its value refers to:
/// a malicious file would use such references to leak secrets.
fn with_references(name: &str, raw: &str) -> String {
    let mut shown = name.to_owned();
    let mut references: Vec<&str> = raw.strip_prefix("env:").into_iter().collect();
    for part in raw.split("${").skip(1) {
        let reference = part.split('}').next().unwrap_or_default();
        references
            .push(reference.strip_prefix("env:").unwrap_or(reference).split(":-").next().unwrap_or_default());
    }
    references.extend(raw.split("{env:").skip(1).filter_map(|part| part.split('}').next()));
    // Every text between two signs, because the set variables decide which sign opens a reference.
    let between: Vec<&str> = raw.split('%').collect();
    let between = between.get(1..between.len().saturating_sub(1)).unwrap_or_default();
    references.extend(
        between
            .iter()
            .filter(|name| !name.is_empty() && !name.contains(|c: char| !c.is_alphanumeric() && c != '_')),
    );
    references.dedup();
    if !references.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(shown, " (from your environment: {})", references.join(", "));
    }
    shown
}

/// The program or URL of an entry, on one line and without secrets.
pub(super) fn summary(entry: &ServerEntry) -> String {
    match &entry.target {
        Some(Target::Stdio(target)) => {
            let args = mask::arguments(target.args.iter().map(|text| text.raw.as_str()));
            let words = std::iter::once(target.command.raw.clone()).chain(args);
            words.map(|word| shell_word(&word)).collect::<Vec<_>>().join(" ")
        }
        Some(Target::Http(target)) => one_line(&mask::raw_url(&target.url.raw)),
        None => String::new(),
    }
}
