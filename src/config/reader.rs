//! Converts nodes to typed values. A value of the wrong type becomes a finding.
//!
//! This is not serde, because serde stops at the first mistake and its messages contain values, which may be secrets. A
//! deserializer that avoids both and reports locations would be longer than this file.

use std::time::Duration;

use super::amounts;
use super::document::{Content, Member, Node};
use super::error::{Finding, FindingKind, Key};
use super::expand::{Text, without_nul};
use crate::durations::milliseconds;
use crate::text;

/// A node with the path to it.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) key: Key,
    pub(super) node: &'a Node,
}

impl<'a> At<'a> {
    pub(super) fn unexpected(&self, expected: impl Into<String>) -> Finding {
        Finding::unexpected(&self.key, self.node.location, expected, self.node.kind())
    }

    pub(super) fn object(&self) -> Result<&'a [Member], Finding> {
        self.node.as_object().ok_or_else(|| self.unexpected("an object"))
    }

    pub(super) fn boolean(&self) -> Result<bool, Finding> {
        match &self.node.content {
            Content::Bool(value) => Ok(*value),
            Content::String(text) if self.node.from_variable && ["true", "1"].contains(&&**text) => Ok(true),
            Content::String(text) if self.node.from_variable && ["false", "0"].contains(&&**text) => {
                Ok(false)
            }
            _ => Err(self.unexpected("true or false")),
        }
    }

    pub(super) fn string(&self) -> Result<String, Finding> {
        let text = self.node.as_str().ok_or_else(|| self.unexpected("a string"))?;
        without_nul(&self.key, self.node.location, text)?;
        Ok(text.to_owned())
    }

    pub(super) fn text(&self) -> Result<Text, Finding> {
        Ok(Text { raw: self.string()?, key: self.key.clone(), location: self.node.location })
    }

    /// A text that is derived from this value.
    pub(super) fn text_of(&self, raw: &str) -> Text {
        Text { raw: raw.to_owned(), key: self.key.clone(), location: self.node.location }
    }

    /// An array of strings.
    pub(super) fn texts(&self) -> Result<Vec<Text>, Finding> {
        let Content::Array(items) = &self.node.content else {
            return Err(self.unexpected("an array of strings"));
        };
        let text = |(position, node)| At { key: self.key.item(position), node }.text();
        items.iter().enumerate().map(text).collect()
    }

    pub(super) fn strings(&self) -> Result<Vec<String>, Finding> {
        Ok(self.texts()?.into_iter().map(|text| text.raw).collect())
    }

    /// An object whose values are strings.
    pub(super) fn pairs(&self) -> Result<Vec<(String, Text)>, Finding> {
        let pair = |member: &'a Member| {
            let key = self.key.child(&member.name);
            Ok((member.name.clone(), At { key, node: &member.value }.text()?))
        };
        self.object()?.iter().map(pair).collect()
    }

    /// An integer number of `unit` within bounds.
    pub(super) fn number(&self, min: u64, max: u64, unit: &str) -> Result<u64, Finding> {
        let written = match &self.node.content {
            Content::Number(written) => Some(written),
            Content::String(text) if self.node.from_variable => Some(text),
            _ => None,
        };
        written
            .and_then(|written| written.parse().ok())
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| {
                let expected = format!("a whole number of {unit} from {min} to {max}");
                let found = match &self.node.content {
                    Content::Number(written) => text::start(written, 40).to_owned(),
                    _ => self.node.kind().to_owned(),
                };
                let hint = amounts::hint(&self.node.content, min, max, unit);
                Finding { hint, ..Finding::unexpected(&self.key, self.node.location, expected, found) }
            })
    }

    /// A time such as `30s` or `1m30s`; zero is `None`. A longer one counts as `max`.
    pub(super) fn duration(&self, max: Duration) -> Result<Option<Duration>, Finding> {
        let unexpected = |found: &str| {
            let expected = "a time such as `30s` or `1m30s`";
            Finding::unexpected(&self.key, self.node.location, expected, found)
        };
        let without_unit = || unexpected("a number").hint("write its unit too, in quotes: `\"30s\"`");
        let text = match &self.node.content {
            Content::Number(_) => return Err(without_unit()),
            Content::String(text) if text.parse::<u64>().is_ok_and(|number| number > 0) => {
                return Err(without_unit());
            }
            Content::String(text) => text,
            _ => return Err(unexpected(self.node.kind())),
        };
        let time = humantime::parse_duration(text).map_err(|_| unexpected("another text"))?;
        Ok((!time.is_zero()).then(|| time.min(max)))
    }

    /// A number of milliseconds, at least 1.
    pub(super) fn milliseconds(&self, max: Duration) -> Result<Duration, Finding> {
        self.number(1, milliseconds(max), "milliseconds").map(Duration::from_millis)
    }
}

/// The members of one object, and the list for mistakes found in them.
pub(super) struct Fields<'a, 'f> {
    pub(super) key: Key,
    members: &'a [Member],
    pub(super) findings: &'f mut Vec<Finding>,
}

impl<'a, 'f> Fields<'a, 'f> {
    /// The members of `node`. If it is not an object, the mistake is recorded.
    pub(super) fn read_members(key: Key, node: &'a Node, findings: &'f mut Vec<Finding>) -> Option<Self> {
        match node.as_object() {
            Some(members) => Some(Self { key, members, findings }),
            None => {
                findings.push(At { key, node }.unexpected("an object"));
                None
            }
        }
    }

    /// The members of an object in this one, if it is there.
    pub(super) fn section(&mut self, name: &str) -> Option<Fields<'a, '_>> {
        let (name, node) = self.find(&[name])?;
        Fields::read_members(self.key.child(name), node, self.findings)
    }

    /// Reads the first of `names` that is present. A value that cannot be read counts as missing,
    /// and the mistake is recorded.
    pub(super) fn read<T>(
        &mut self,
        names: &[&str],
        read: impl FnOnce(&At<'a>) -> Result<T, Finding>,
    ) -> Option<T> {
        let (name, node) = self.find(names)?;
        let key = self.key.child(name);
        read(&At { key, node }).map_err(|finding| self.findings.push(finding)).ok()
    }

    /// The first of `names` that is present, with its value.
    pub(super) fn find(&self, names: &[&str]) -> Option<(&'a str, &'a Node)> {
        let member = names.iter().find_map(|name| self.members.iter().find(|member| member.name == *name))?;
        Some((&member.name, &member.value))
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.find(names).is_some()
    }

    /// Records a mistake of the whole object, at the location of the first of `names`.
    pub(super) fn unexpected(&mut self, names: &[&str], expected: &str, found: &str) {
        let location = self.find(names).and_then(|(_, node)| node.location);
        self.findings.push(Finding::unexpected(&self.key, location, expected, found));
    }

    /// Records keys that have no meaning without another.
    pub(super) fn refuse(&mut self, names: &[&str], other: &str) {
        for &name in names {
            if let Some((_, node)) = self.find(&[name]) {
                let (key, expected) =
                    (self.key.child(name), format!("this key only together with `{other}`"));
                self.findings.push(Finding::unexpected(&key, node.location, expected, "it alone"));
            }
        }
    }

    /// Records every key that is not in `known`.
    pub(super) fn check_names(&mut self, known: &[&str]) {
        self.check_names_with(known, |_| None);
    }

    /// Does the same. `hint` may know more about a name than which one is similar.
    pub(super) fn check_names_with(&mut self, known: &[&str], hint: impl Fn(&str) -> Option<String>) {
        let unknown = self.members.iter().filter(|member| !known.contains(&member.name.as_str()));
        for member in unknown {
            // Searching for a hint costs time, and a file may have a hundred thousand mistakes of which only twenty are
            // shown.
            let hint = (self.findings.len() < MAX_HINTS)
                .then(|| hint(&member.name).unwrap_or_else(|| unknown_key_hint(&member.name, known)));
            let kind = FindingKind::UnknownKey { key: self.key.child(&member.name) };
            self.findings.push(Finding { kind, location: member.location, hint });
        }
    }
}

/// Maximum number of mistakes in a file for which the nearest valid name is searched.
const MAX_HINTS: usize = 100;

fn unknown_key_hint(name: &str, known: &[&str]) -> String {
    // The name that other clients use for the key.
    let other_name = match name {
        "disabled" if known.contains(&"enabled") => Some("write `\"enabled\": false`".to_owned()),
        "timeout" if known.contains(&"timeoutMs") => Some("write `timeoutMs`, in milliseconds".to_owned()),
        "cmd" if known.contains(&"command") => Some("write `command`".to_owned()),
        "serverUrl" | "httpUrl" if known.contains(&"url") => Some("write `url`".to_owned()),
        _ => None,
    };
    let nearest = || {
        // Long names would cost time and are not similar to any key.
        let name: String = text::start(name, 40).chars().flat_map(char::to_lowercase).collect();
        known
            .iter()
            .map(|known| (strsim::damerau_levenshtein(&known.to_lowercase(), &name), known))
            .min()
            .filter(|(distance, known)| *distance <= known.len() / 2)
            .map(|(_, known)| format!("did you mean `{known}`?"))
    };
    other_name.or_else(nearest).unwrap_or_else(|| format!("known keys: {}", known.join(", ")))
}
