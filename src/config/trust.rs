//! Trusted workspace files, identified by path and content.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::clients::Client;
use super::entry::{Entry, Target};
use super::environment::{Directories, canonical};
use super::error::{ConfigError, Finding, Key};
use super::file::{self, Origin};
use super::{document, own};
use crate::storage::files::{Store, sha256};
use crate::text::one_line;

const NAME: &str = "trust";
const VERSION: u32 = 1;

/// Maximum number of trusted files: more workspaces than a user ever has, and the file stays small.
const MAX_FILES: usize = 10_000;

#[derive(Serialize, Deserialize, Default)]
struct Document {
    files: BTreeMap<String, TrustedContent>,
}

#[derive(Serialize, Deserialize)]
struct TrustedContent {
    sha256: String,
}

/// The user's list of trusted files, in the state directory.
#[derive(Clone, Debug)]
pub struct TrustStore {
    store: Store,
}

/// A file before it is trusted, with a description of what it would start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TrustRequest {
    /// The file's path, with links resolved.
    pub path: PathBuf,
    /// SHA-256, in hexadecimal, of the same bytes that [`description`](Self::description) was made
    /// from.
    pub sha256: String,
    /// What the file would start and change, one item per line, in full but with control characters
    /// escaped. Of variables and headers only the names.
    pub description: Vec<String>,
}

/// A trusted file, and whether it has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustedFile {
    /// The file's path, with links resolved.
    pub path: PathBuf,
    /// SHA-256 of the trusted content, in hexadecimal.
    pub sha256: String,
    /// Whether the file still has that content.
    pub is_unchanged: bool,
}

impl TrustStore {
    /// The list in the state directory. The file is created when something is trusted.
    pub fn new(directories: &Directories) -> Self {
        Self { store: Store::new(&directories.state) }
    }

    /// Whether the file with exactly this content was trusted.
    ///
    /// # Errors
    ///
    /// If the list cannot be read, or other users can write to it.
    pub(super) fn is_trusted(&self, path: &Path, bytes: &[u8]) -> io::Result<bool> {
        let document: Document = self.store.read(NAME, VERSION)?.unwrap_or_default();
        let Some(path) = path.to_str() else { return Ok(false) };
        Ok(document.files.get(path).is_some_and(|content| content.sha256 == sha256(bytes)))
    }

    /// Trusts a file with the content that was described.
    ///
    /// # Errors
    ///
    /// If the list cannot be written or is full, or the path is not UTF-8.
    pub fn trust(&self, request: &TrustRequest) -> io::Result<()> {
        let path = request.path.to_str().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "only files whose path is UTF-8 can be trusted")
        })?;
        let content = TrustedContent { sha256: request.sha256.clone() };
        self.store.update(NAME, VERSION, |document: Option<Document>| {
            let mut document = document.unwrap_or_default();
            if document.files.len() >= MAX_FILES && !document.files.contains_key(path) {
                let message = format!("{MAX_FILES} files are trusted already: revoke some");
                return (document, Err(io::Error::new(io::ErrorKind::StorageFull, message)));
            }
            document.files.insert(path.to_owned(), content);
            (document, Ok(()))
        })?
    }

    /// Revokes the trust in a file, which need not exist any more. Returns whether it was trusted.
    ///
    /// # Errors
    ///
    /// If the list cannot be written.
    pub fn revoke(&self, path: &Path) -> io::Result<bool> {
        let resolved = canonical(path).to_string_lossy().into_owned();
        let written = path.to_string_lossy().into_owned();
        self.store.update(NAME, VERSION, |document: Option<Document>| {
            let mut document = document.unwrap_or_default();
            let removed = [resolved, written].map(|path| document.files.remove(&path).is_some());
            (document, removed.contains(&true))
        })
    }

    /// All trusted files, by path.
    ///
    /// # Errors
    ///
    /// If the list cannot be read.
    pub fn list(&self) -> io::Result<Vec<TrustedFile>> {
        let document: Document = self.store.read(NAME, VERSION)?.unwrap_or_default();
        let file = |(path, content): (String, TrustedContent)| {
            let path = PathBuf::from(path);
            let bytes = file::read(&path, Origin::Workspace).ok().flatten();
            let is_unchanged = bytes.is_some_and(|bytes| sha256(&bytes) == content.sha256);
            TrustedFile { path, sha256: content.sha256, is_unchanged }
        };
        Ok(document.files.into_iter().map(file).collect())
    }
}

impl TrustRequest {
    /// Reads a file once, both to hash and to describe it.
    ///
    /// # Errors
    ///
    /// If it cannot be read or has mistakes: a file that cannot be parsed cannot be trusted.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let error = |findings| ConfigError::new(path, findings);
        let bytes = file::read(&resolved, Origin::Named).map_err(|finding| error(vec![finding]))?;
        let bytes = bytes.unwrap_or_default();
        let description = describe(&resolved, &bytes).map_err(error)?;
        Ok(Self { path: resolved, sha256: sha256(&bytes), description })
    }
}

/// Describes everything in the file that has an effect once it is trusted.
fn describe(path: &Path, bytes: &[u8]) -> Result<Vec<String>, Vec<Finding>> {
    let text = file::text(bytes).map_err(|finding| vec![finding])?;
    let workspace = path.parent().unwrap_or(path);
    let mut lines = Vec::new();
    if let Some(client) = Client::of_project_file(path) {
        let root = if client.is_toml() { document::parse_toml(text)? } else { document::parse_json(text)? };
        let (entries, findings) = client.servers(&root, path, workspace);
        if !findings.is_empty() {
            return Err(findings);
        }
        entries.iter().for_each(|entry| server_lines(entry, &mut lines));
        return Ok(lines);
    }
    let root = document::parse_json(text)?;
    let mut findings = Vec::new();
    let file = own::parse(&root, own::FILE_KEYS, &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    file.servers.iter().for_each(|entry| server_lines(entry, &mut lines));
    for name in own::FILE_KEYS.iter().filter(|name| !["$schema", "mcpServers"].contains(*name)) {
        if let Some(node) = root.get(name) {
            lines.push(format!("setting `{name}`: {}", one_line(&shown(node))));
        }
    }
    Ok(lines)
}

/// A setting's value as JSON. Settings contain no secrets.
fn shown(node: &document::Node) -> String {
    use document::Content;
    match &node.content {
        Content::Null => "null".to_owned(),
        Content::Bool(value) => value.to_string(),
        Content::Number(written) => written.clone(),
        Content::String(text) => format!("{text:?}"),
        Content::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Content::Object(members) => {
            let member = |member: &document::Member| format!("{}: {}", member.name, shown(&member.value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

fn server_lines(entry: &Entry, lines: &mut Vec<String>) {
    let state = if entry.enabled == Some(false) { " (switched off)" } else { "" };
    lines.push(format!("server `{}`{state}", entry.name));
    let mut line = |name: &str, text: &str| lines.push(format!("    {name}: {}", one_line(text)));
    match &entry.target {
        Some(Target::Stdio { command, args, env, cwd }) => {
            line("command", &command.raw);
            args.iter().for_each(|argument| line("argument", &argument.raw));
            env.iter().for_each(|(name, text)| line("variable", &named(name, &text.raw)));
            if let Some(cwd) = cwd {
                line("directory", &cwd.raw);
            }
        }
        Some(Target::Http { url, headers, oauth, .. }) => {
            line("address", &url.raw);
            headers.iter().for_each(|(name, text)| line("header", &named(name, &text.raw)));
            if let Some(oauth) = oauth {
                let secrets = [("clientId", &oauth.client_id), ("clientSecret", &oauth.client_secret)];
                for (name, text) in secrets {
                    text.iter().for_each(|text| line("signs in with", &named(name, &text.raw)));
                }
                if let Some(issuer) = &oauth.issuer {
                    line("signs in at", &issuer.raw);
                }
                if oauth.client_credentials {
                    line("signs in", "by itself, without a person");
                }
                if !oauth.scopes.is_empty() {
                    line("asks for", &oauth.scopes.join(" "));
                }
            }
        }
        None => {}
    }
    for (name, patterns) in [
        ("allow", entry.allow.as_deref().unwrap_or_default()),
        ("deny", &entry.deny),
        ("ask", &entry.ask),
        ("only reads", entry.read_only.as_deref().unwrap_or_default()),
    ] {
        patterns.iter().for_each(|pattern| line(name, pattern));
    }
}

/// The name of a variable or header, and the user's environment variables that its value refers to:
/// a malicious file would use such references to leak secrets.
fn named(name: &str, raw: &str) -> String {
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

/// The program or URL of an entry, on one line.
pub(super) fn summary(entry: &Entry) -> String {
    match &entry.target {
        Some(Target::Stdio { command, args, .. }) => {
            let args = super::mask::arguments(args.iter().map(|text| text.raw.as_str()));
            let words = std::iter::once(command.raw.clone()).chain(args);
            let words: Vec<String> = words
                .map(|word| {
                    let plain = !word.is_empty()
                        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c));
                    if plain { word } else { format!("'{}'", one_line(&word)) }
                })
                .collect();
            words.join(" ")
        }
        Some(Target::Http { url, .. }) => one_line(&super::mask::raw_url(&url.raw)),
        None => Key::default().to_string(),
    }
}
