//! Pinned skills of servers (SEP-2640): trust on first use, as for tool definitions. A skill tells a
//! model what to do, and its server can change it at any time.
//!
//! The first text that a server sends for a `skill://` address is pinned, by its digest. A later
//! text that differs is recorded, and reported to the script that reads it; in strict mode it is
//! refused until the user accepts it. The user accepts the recorded text: texts that the server
//! sends after that are compared with it.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::storage::files::{self, Store};
use crate::text::visible;

/// The scheme of the addresses of skills.
pub(crate) const SKILL_SCHEME: &str = "skill://";

const VERSION: u32 = 1;

/// Maximum number of pinned addresses of one server. Further skills count as different: otherwise a server could
/// displace a pin by inventing addresses.
const MAX_SKILLS: usize = 1_000;

/// Maximum bytes of a pinned address. Skills with longer ones count as different: a script chooses addresses, and a
/// server can answer for any.
const MAX_ADDRESS: usize = 2 << 10;

const PREFIX: &str = "skills-";

/// The pinned skills of all servers, one file per server name.
#[derive(Clone, Debug)]
pub(crate) struct SkillPins(Store);

#[derive(Clone, Default, Serialize, Deserialize)]
struct ServerSkills {
    server: String,
    /// SHA-256 by address.
    skills: BTreeMap<String, String>,
    /// SHA-256 of the last text that differed from the pinned one, by address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    different: BTreeMap<String, String>,
}

/// A skill of a server whose text differs from the pinned one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillChange {
    /// The server.
    pub server: String,
    /// The skill's address, `skill://…`.
    pub uri: String,
    /// SHA-256 of the pinned text, in hexadecimal digits. `None` for a skill beyond the number of skills of
    /// one server that are pinned.
    pub pinned: Option<String>,
    /// SHA-256 of the text that was read last.
    pub current: String,
}

/// The result of comparing a text with the pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkillPin {
    /// The text equals the pin, or was pinned now.
    Same,
    /// The text differs from the pin, or there is no space for another pin or for its address.
    Different,
}

impl SkillPins {
    pub(crate) fn new(store: Store) -> Self {
        Self(store.binding())
    }

    /// Compares the text that a server has sent for an address with the pin, and pins it if there is none. Blocks.
    ///
    /// # Errors
    ///
    /// If the pins cannot be read or written.
    pub(crate) fn check(&self, server: &str, uri: &str, contents: &str) -> io::Result<SkillPin> {
        if uri.len() > MAX_ADDRESS {
            return Ok(SkillPin::Different);
        }
        let (name, digest) = (file_name(server), files::sha256(contents.as_bytes()));
        let known: Option<ServerSkills> = self.0.read(&name, VERSION)?;
        if let Some(pin) = known.and_then(|known| known.compared(uri, &digest)) {
            return Ok(pin);
        }
        self.0.update(&name, VERSION, |known: Option<ServerSkills>| {
            let mut known = known.unwrap_or_default();
            server.clone_into(&mut known.server);
            let pin = known.take_up(uri, digest);
            (known, pin)
        })
    }

    /// The skills of servers that differ from their pins, by address.
    ///
    /// # Errors
    ///
    /// If the pins cannot be read. It names the server.
    pub(crate) fn changes<'a>(&self, servers: impl Iterator<Item = &'a str>) -> io::Result<Vec<SkillChange>> {
        let mut changes = Vec::new();
        for server in servers {
            let known = self.0.read::<ServerSkills>(&file_name(server), VERSION).map_err(|error| {
                io::Error::new(error.kind(), format!("those of the server `{}`: {error}", visible(server)))
            })?;
            let ServerSkills { skills, different, .. } = known.unwrap_or_default();
            changes.extend(different.into_iter().map(|(uri, current)| {
                let pinned = skills.get(&uri).cloned();
                SkillChange { server: server.to_owned(), uri, pinned, current }
            }));
        }
        Ok(changes)
    }

    /// Pins the recorded texts of a server's skills. Returns how many differed. Damaged pins are deleted.
    ///
    /// # Errors
    ///
    /// If the file cannot be changed.
    pub(crate) fn accept(&self, server: &str) -> io::Result<usize> {
        let name = file_name(server);
        match self.0.read::<ServerSkills>(&name, VERSION) {
            Ok(None) => return Ok(0),
            Ok(Some(known)) if known.different.is_empty() => return Ok(0),
            Ok(Some(_)) => {}
            // The user accepts the loss of a damaged file.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.0.remove(&name)?;
                return Ok(1);
            }
            Err(error) => return Err(error),
        }
        self.0.update(&name, VERSION, |known: Option<ServerSkills>| {
            let mut known = known.unwrap_or_default();
            let accepted = known.accept();
            (known, accepted)
        })
    }
}

impl ServerSkills {
    /// The result of comparing a text with its pin. `None` if the result is not recorded yet.
    fn compared(&self, uri: &str, digest: &str) -> Option<SkillPin> {
        let different = self.different.get(uri);
        if self.skills.get(uri).is_some_and(|pinned| pinned == digest) {
            return different.is_none().then_some(SkillPin::Same);
        }
        different.is_some_and(|known| known == digest).then_some(SkillPin::Different)
    }

    /// Pins a text, or records that it differs.
    fn take_up(&mut self, uri: &str, digest: String) -> SkillPin {
        if self.skills.len() < MAX_SKILLS && !self.skills.contains_key(uri) {
            self.skills.insert(uri.to_owned(), digest.clone());
        }
        if self.skills.get(uri) == Some(&digest) {
            self.different.remove(uri);
            return SkillPin::Same;
        }
        if self.different.len() < MAX_SKILLS || self.different.contains_key(uri) {
            self.different.insert(uri.to_owned(), digest);
        }
        SkillPin::Different
    }

    /// Pins the texts that differ. If there is no space for all of them in addition to the existing pins, those are
    /// dropped.
    fn accept(&mut self) -> usize {
        let accepted = std::mem::take(&mut self.different);
        let added = accepted.keys().filter(|uri| !self.skills.contains_key(*uri)).count();
        if self.skills.len() + added > MAX_SKILLS {
            self.skills.clear();
        }
        let count = accepted.len();
        self.skills.extend(accepted);
        count
    }
}

fn file_name(server: &str) -> String {
    files::hashed_name(PREFIX, server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_is_pinned_for_its_server_and_address() {
        let directory = tempfile::tempdir().unwrap();
        let pins = SkillPins::new(Store::new(directory.path()));
        let check = |server: &str, uri: &str, text: &str| pins.check(server, uri, text).unwrap();
        assert_eq!(check("a", "skill://x/SKILL.md", "one"), SkillPin::Same);
        assert_eq!(check("a", "skill://x/SKILL.md", "one"), SkillPin::Same);
        assert_eq!(check("a", "skill://x/SKILL.md", "two"), SkillPin::Different);
        assert_eq!(check("a", "skill://x/SKILL.md", "one"), SkillPin::Same, "the pin has stayed");
        assert_eq!(check("a", "skill://y/SKILL.md", "two"), SkillPin::Same);
        assert_eq!(check("b", "skill://x/SKILL.md", "two"), SkillPin::Same);
        assert_eq!(check("b", "skill://x/SKILL.md", "three"), SkillPin::Different);
        let changes = pins.changes(["a", "b"].into_iter()).unwrap();
        let changed = |change: &SkillChange| (change.server.clone(), change.uri.clone());
        assert_eq!(
            changes.iter().map(changed).collect::<Vec<_>>(),
            [("b".into(), "skill://x/SKILL.md".into())]
        );
    }

    #[test]
    fn what_is_accepted_is_the_text_that_was_read() {
        let directory = tempfile::tempdir().unwrap();
        let pins = SkillPins::new(Store::new(directory.path()));
        let check = |text: &str| pins.check("a", "skill://x/SKILL.md", text).unwrap();
        check("one");
        assert_eq!((check("two"), check("two")), (SkillPin::Different, SkillPin::Different));
        let digest = |text: &str| files::sha256(text.as_bytes());
        let change = SkillChange {
            server: "a".to_owned(),
            uri: "skill://x/SKILL.md".to_owned(),
            pinned: Some(digest("one")),
            current: digest("two"),
        };
        assert_eq!(pins.changes(["a"].into_iter()).unwrap(), [change]);
        assert_eq!((pins.accept("a").unwrap(), pins.accept("a").unwrap()), (1, 0));
        assert_eq!(check("three"), SkillPin::Different, "it was never shown to anybody");
        assert_eq!(check("two"), SkillPin::Same);
        assert_eq!(
            pins.changes(["a"].into_iter()).unwrap(),
            [],
            "the server has gone back to the pinned text"
        );
    }

    #[test]
    fn a_server_cannot_unpin_a_skill_by_inventing_others() {
        let directory = tempfile::tempdir().unwrap();
        let pins = SkillPins::new(Store::new(directory.path()));
        let skills = (0..MAX_SKILLS).map(|number| (format!("skill://{number}"), files::sha256(b"text")));
        let full =
            ServerSkills { server: "a".to_owned(), skills: skills.collect(), different: BTreeMap::new() };
        pins.0.update(&file_name("a"), VERSION, |_: Option<ServerSkills>| (full, ())).unwrap();
        assert_eq!(pins.check("a", "skill://more", "text").unwrap(), SkillPin::Different);
        assert_eq!(pins.check("a", "skill://0", "other").unwrap(), SkillPin::Different);
        assert_eq!(pins.accept("a").unwrap(), 2, "the user can still accept one");
        assert_eq!(pins.check("a", "skill://more", "text").unwrap(), SkillPin::Same);
    }

    #[test]
    fn v_540_addresses_of_skills_do_not_fill_the_pins() {
        let directory = tempfile::tempdir().unwrap();
        let pins = SkillPins::new(Store::new(directory.path()));
        let address = |length: usize| format!("{SKILL_SCHEME}{}", "x".repeat(length - SKILL_SCHEME.len()));
        let check = |length: usize| pins.check("a", &address(length), "text").unwrap();
        assert_eq!((check(MAX_ADDRESS), check(MAX_ADDRESS)), (SkillPin::Same, SkillPin::Same));
        assert_eq!((check(MAX_ADDRESS + 1), check(1 << 20)), (SkillPin::Different, SkillPin::Different));
        let bytes = std::fs::metadata(pins.0.path(&file_name("a"))).unwrap().len();
        assert!(bytes < 4_000, "{bytes}");
    }

    #[test]
    fn damaged_pins_are_no_second_first_use() {
        let directory = tempfile::tempdir().unwrap();
        let pins = SkillPins::new(Store::new(directory.path()));
        pins.check("a", "skill://x", "one").unwrap();
        std::fs::write(pins.0.path(&file_name("a")), "{").unwrap();
        pins.check("a", "skill://x", "two").unwrap_err();
        pins.changes(["a"].into_iter()).unwrap_err();
        pins.accept("a").unwrap();
        assert_eq!(pins.check("a", "skill://x", "two").unwrap(), SkillPin::Same);
    }
}
