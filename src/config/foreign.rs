//! Settings in the files and variables of other programs, and their counterparts in cx.

use std::collections::BTreeSet;

use super::document::{Content, Member, Node};
use super::error::{Finding, Key, Location};
use super::limits::{LimitKey, LimitRole, LimitSetting};
use super::parsed::Settings;
use super::reader::At;

/// Another program with a configuration of its own.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) settings: &'static [ForeignSetting],
    /// Called after all settings were read, for settings that depend on several.
    pub(super) finish: fn(&mut Settings, &mut Foreign),
}

/// A setting of another program.
#[derive(Debug)]
pub(super) struct ForeignSetting {
    /// The path of keys to it, separated by dots, or the name of the variable.
    pub(super) name: &'static str,
    pub(super) becomes: Becomes,
}

pub(super) const fn setting(name: &'static str, becomes: Becomes) -> ForeignSetting {
    ForeignSetting { name, becomes }
}

/// The counterpart of a setting.
#[derive(Debug)]
pub(super) enum Becomes {
    /// The value of this key, in the notation of `cx config show`.
    Key(&'static str, Read),
    /// A key of the server, which is read with the server's entry.
    OfServer,
    /// It has no counterpart. The function returns whether a value asks only for what cx does anyway, so that nothing
    /// is lost.
    Nothing(fn(&Node) -> bool),
}

/// Reads a value into the settings.
type Read = fn(&At<'_>, &mut Settings) -> Result<(), Finding>;

/// Maximum number of settings without a counterpart that are named in the warning. Users do not
/// read more.
const MAX_NAMED: usize = 20;

/// Findings in one file, in addition to the values that are used.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// The keys that got a value, with its location.
    pub(super) used: Vec<(&'static str, Option<Location>)>,
    /// Values that cannot be read.
    pub(super) mistakes: Vec<Finding>,
    /// The settings that have no counterpart, each once.
    lost: BTreeSet<String>,
    /// The first of them, in the order of the file.
    first_lost: Vec<String>,
    lost_at: Option<Location>,
}

impl Foreign {
    /// Reads all settings of a file, except those of `own_keys`.
    pub(super) fn read(
        &mut self,
        program: &Program,
        root: &Node,
        own_keys: &[&str],
        settings: &mut Settings,
    ) {
        let members = root.as_object().unwrap_or_default();
        for member in members.iter().filter(|member| !own_keys.contains(&member.name.as_str())) {
            self.read_member(program, &Key::default(), "", member, settings);
        }
        (program.finish)(settings, self);
    }

    /// Reads a setting, or the section that contains it. `path` is the section's path with a trailing dot. Recurses no
    /// deeper than the names in the program's table.
    fn read_member(
        &mut self,
        program: &Program,
        key: &Key,
        path: &str,
        member: &Member,
        settings: &mut Settings,
    ) {
        let (key, path) = (key.child(&member.name), format!("{path}{}", member.name));
        if let Some(setting) = program.settings.iter().find(|setting| setting.name == path) {
            return self.read_value(setting, &At { key, node: &member.value }, settings);
        }
        let section = format!("{path}.");
        let is_section = program.settings.iter().any(|setting| setting.name.starts_with(&section));
        match &member.value.content {
            Content::Object(members) if is_section => {
                for member in members {
                    self.read_member(program, &key, &section, member, settings);
                }
            }
            // Null sets nothing.
            Content::Null => {}
            _ => self.lose(&key, member.location),
        }
    }

    /// Reads one value.
    pub(super) fn read_value(&mut self, setting: &ForeignSetting, at: &At<'_>, settings: &mut Settings) {
        match &setting.becomes {
            Becomes::Key(key, read) => match read(at, settings) {
                Ok(()) => self.used.push((*key, at.node.location)),
                Err(finding) => self.mistakes.push(finding),
            },
            Becomes::OfServer => {}
            Becomes::Nothing(is_met) if is_met(at.node) => {}
            Becomes::Nothing(_) => self.lose(&at.key, at.node.location),
        }
    }

    /// Reads the keys of servers that are not read with their entries. The same keys are lost for every server, so the
    /// warning does not name the server.
    pub(super) fn read_servers(&mut self, program: &Program, list: &Node) {
        let has_list = program.settings.iter().any(|setting| setting.name.starts_with("mcpServers[]"));
        let Content::Array(servers) = &list.content else { return };
        if !has_list {
            return;
        }
        let (key, mut none) = (Key::default().child("mcpServers[]"), Settings::default());
        for member in servers.iter().filter_map(Node::as_object).flatten() {
            self.read_member(program, &key, "mcpServers[].", member, &mut none);
        }
    }

    /// Records a setting that has no counterpart.
    pub(super) fn lose(&mut self, key: &Key, location: Option<Location>) {
        let name = format!("`{key}`");
        self.lost_at = self.lost_at.or(location);
        if self.lost.insert(name.clone()) && self.first_lost.len() < MAX_NAMED {
            self.first_lost.push(name);
        }
    }

    /// The warning about all settings without a counterpart, and the location of the first.
    pub(super) fn warning(&self, program: &Program) -> Option<(String, Option<Location>)> {
        if self.lost.is_empty() {
            return None;
        }
        let more = match self.lost.len() - self.first_lost.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "settings of {} without a counterpart here are ignored: {}{more}",
            program.name,
            self.first_lost.join(", ")
        );
        Some((message, self.lost_at))
    }
}

/// Reads a limit. A value beyond cx's bounds becomes the nearest one within them.
pub(super) fn limit(
    at: &At<'_>,
    name: &str,
    role: LimitRole,
    settings: &mut Settings,
) -> Result<(), Finding> {
    if let Some(key) = LimitKey::named(name) {
        let value = at.number(key.min.min(1), u64::from(u32::MAX), key.unit)?;
        set_limit(at, name, value, role, settings);
    }
    Ok(())
}

/// Sets a limit to the nearest value that it can have.
pub(super) fn set_limit(at: &At<'_>, name: &str, value: u64, role: LimitRole, settings: &mut Settings) {
    if let Some(key) = LimitKey::named(name) {
        let value = value.clamp(key.min, key.max);
        settings.limits.push(LimitSetting { key, value, role, location: at.node.location });
    }
}

/// Every value counts as lost.
pub(super) fn never(_: &Node) -> bool {
    false
}

/// No value counts as lost, because cx behaves that way for every value, or the setting concerns nothing that cx has.
pub(super) fn always(_: &Node) -> bool {
    true
}

/// Whether a value disables something or is empty.
pub(super) fn is_off(node: &Node) -> bool {
    match &node.content {
        Content::Null | Content::Bool(false) => true,
        Content::Bool(true) => false,
        Content::Number(written) => written == "0",
        Content::String(text) => ["", "0", "false", "off"].contains(&text.as_str()),
        Content::Array(items) => items.is_empty(),
        Content::Object(members) => members.is_empty() || node.get("enabled").is_some_and(is_off),
    }
}

/// Whether a value enables something.
pub(super) fn is_on(node: &Node) -> bool {
    match &node.content {
        Content::Bool(value) => *value,
        Content::String(text) => ["1", "true", "on"].contains(&text.as_str()),
        _ => false,
    }
}
