//! Checks files of skills against the server's list (SEP-2640): a file is used only with the listed digest, and a
//! `SKILL.md` only with the listed front matter.

mod front_matter;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rmcp::model::SkillResource;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{self, Json};

/// Maximum number of front matters of one answer that are compared: an answer usually has one file, and parsing YAML is
/// slow.
const MAX_COMPARED: usize = 2;

/// The skills in the last list of a server. The bounds of lists bound their number.
#[derive(Default)]
pub(crate) struct SkillFiles(Mutex<Arc<Listed>>);

#[derive(Default)]
struct Listed {
    /// The files of the skills, by address.
    files: HashMap<String, SkillResource>,
    /// The front matter of each skill, by the address of its `SKILL.md`. `None` if the list has the skill twice, with
    /// different front matters: a script may have chosen by either.
    front_matters: HashMap<String, Option<Box<RawValue>>>,
}

/// The files of a skill in a list. The files of a dynamic skill have no digests.
#[derive(Deserialize)]
struct ListedFiles {
    resources: Vec<SkillResource>,
}

/// A skill in a server's list.
#[derive(Deserialize)]
struct ListedSkill {
    uri: String,
    frontmatter: Box<RawValue>,
}

/// A file in the answer to `resources/read`.
#[derive(Deserialize)]
struct ReadFile {
    uri: String,
    text: Option<String>,
    blob: Option<String>,
}

impl ReadFile {
    /// The bytes of the file. `None` if it has no readable content.
    fn bytes(self) -> Option<Vec<u8>> {
        match (self.text, self.blob) {
            (Some(text), _) => Some(text.into_bytes()),
            (None, Some(blob)) => STANDARD.decode(blob).ok(),
            (None, None) => None,
        }
    }
}

impl SkillFiles {
    /// Replaces the known skills by those of an array.
    pub(crate) fn set(&self, skills: &Json) {
        let mut listed = Listed::default();
        let read = json::each_item(skills.text(), |skill| {
            if let Ok(ListedFiles { resources }) = serde_json::from_str(skill.get()) {
                listed.files.extend(resources.into_iter().map(|file| (file.uri.clone(), file)));
            }
            if let Ok(ListedSkill { uri, frontmatter }) = serde_json::from_str(skill.get()) {
                match listed.front_matters.entry(uri) {
                    Entry::Vacant(first) => {
                        first.insert(Some(frontmatter));
                    }
                    Entry::Occupied(mut first) => {
                        let is_same =
                            first.get().as_ref().is_some_and(|first| first.get() == frontmatter.get());
                        if !is_same {
                            first.insert(None);
                        }
                    }
                }
            }
            Ok(())
        });
        if read.is_ok() {
            *self.0.lock() = Arc::new(listed);
        }
    }

    /// Compares the files in the answer to `resources/read` of `requested` with the list.
    ///
    /// # Errors
    ///
    /// Which file differs from the list.
    pub(crate) fn check(&self, requested: &str, answer: &Json) -> Result<(), String> {
        let listed = Arc::clone(&self.0.lock());
        if listed.files.is_empty() && listed.front_matters.is_empty() {
            return Ok(());
        }
        let mut compared = 0;
        let mut checked = Ok(());
        // An answer that cannot be parsed here contains no file of a skill.
        let _read = json::each_field(answer.text(), |field, value| {
            if field == "contents" {
                let _read = json::each_item(value.get(), |content| {
                    if checked.is_ok() {
                        checked = match serde_json::from_str(content.get()) {
                            Ok(read) => listed.check(requested, read, &mut compared),
                            // A script could still read an entry that has two texts, or a number as its address.
                            Err(_) if listed.has(requested) => {
                                Err(format!("`{requested}` has contents that are not a file"))
                            }
                            Err(_) => Ok(()),
                        };
                    }
                    Ok(())
                });
            }
        });
        checked
    }
}

impl Listed {
    fn has(&self, uri: &str) -> bool {
        self.files.contains_key(uri) || self.front_matters.contains_key(uri)
    }

    /// Compares a file in an answer. Counts the front matters that were `compared`.
    fn check(&self, requested: &str, read: ReadFile, compared: &mut usize) -> Result<(), String> {
        // A server could answer for a listed file with the address of another one.
        let uri = if self.has(&read.uri) { read.uri.clone() } else { requested.to_owned() };
        let (file, front_matter) = (self.files.get(&uri), self.front_matters.get(&uri));
        if file.is_none() && front_matter.is_none() {
            return Ok(());
        }
        let bytes = read.bytes().ok_or_else(|| format!("`{uri}` has neither text nor base64"))?;
        if let Some(file) = file {
            file.verify(&bytes).map_err(|error| error.to_string())?;
        }
        let Some(front_matter) = front_matter else { return Ok(()) };
        let Some(front_matter) = front_matter else {
            return Err(format!("`{uri}` is listed twice, with another front matter"));
        };
        *compared += 1;
        if *compared > MAX_COMPARED {
            return Err(format!("there are more than {MAX_COMPARED} files `SKILL.md` in one answer"));
        }
        front_matter::check(&bytes, front_matter).map_err(|problem| format!("`{uri}` {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_the_one_that_was_listed() {
        let file = SkillResource::from_bytes("skill://a/SKILL.md", b"right");
        let known = SkillFiles::default();
        let (a, b) = ("skill://a/SKILL.md", "skill://b/SKILL.md");
        let answer = |uri: &str, field: &str, value: &str| {
            json!({ "contents": [{ "uri": uri, field: value }] }).into()
        };
        let check = |uri: &str, text: &str| known.check(uri, &answer(uri, "text", text));
        assert_eq!(check(a, "wrong"), Ok(()));
        known.set(&json!([{ "resources": "dynamic" }, { "resources": [file] }]).into());
        assert_eq!(check(a, "right"), Ok(()));
        assert_eq!(check(b, "other"), Ok(()));
        assert!(check(a, "wrong").unwrap_err().contains("digest"));
        assert!(check(a, "longer text").unwrap_err().contains("11 bytes"));
        // The same in other forms.
        assert_eq!(known.check(a, &answer(a, "blob", "cmlnaHQ=")), Ok(()));
        assert!(known.check(a, &answer(a, "blob", "d3Jvbmc=")).unwrap_err().contains("digest"));
        assert!(known.check(a, &answer(a, "blob", "?")).unwrap_err().contains("neither"));
        assert!(known.check(a, &answer(b, "text", "wrong")).unwrap_err().contains("digest"));
        assert!(known.check(b, &answer(a, "text", "wrong")).unwrap_err().contains("digest"));
        // An entry that is not a file hides no file, and counts as no file.
        let sent = |contents: &str| Json::parse(&format!(r#"{{ "contents": {contents} }}"#)).unwrap();
        let wrong = format!(r#"{{ "uri": "{a}", "text": "wrong" }}"#);
        assert!(known.check(b, &sent(&format!("[5, {wrong}]"))).unwrap_err().contains("digest"));
        for contents in [r#"[{ "uri": 5, "text": "wrong" }]"#, r#"[{ "text": "right", "text": "wrong" }]"#] {
            assert!(known.check(a, &sent(contents)).unwrap_err().contains("no file"), "{contents}");
            assert_eq!(known.check(b, &sent(contents)), Ok(()), "{contents}");
        }
    }

    #[test]
    fn a_skill_says_of_itself_what_its_list_says() {
        let (uri, other) = ("skill://a/SKILL.md", "skill://a/more.md");
        let text = |description: &str| format!("---\nname: a\ndescription: {description}\n---\nText\n");
        let known = SkillFiles::default();
        let list = |text: &str| {
            let file = SkillResource::from_bytes(uri, text.as_bytes());
            let beside = SkillResource::from_bytes(other, b"more");
            let frontmatter = json!({ "name": "a", "description": "Reads files" });
            known.set(
                &json!([{ "uri": uri, "frontmatter": frontmatter, "resources": [file, beside] }]).into(),
            );
        };
        let check = |contents: serde_json::Value| known.check(uri, &json!({ "contents": contents }).into());
        let (same, different) = (text("Reads files"), text("Reads keys"));
        list(&same);
        assert_eq!(check(json!([{ "uri": uri, "text": same }, { "uri": other, "text": "more" }])), Ok(()));
        // The digest is that of the file.
        list(&different);
        let problem = check(json!([{ "uri": uri, "text": different }])).unwrap_err();
        assert!(problem.contains("another `description`"), "{problem}");
        let problem = check(json!([{ "uri": "skill://b/x", "text": different }])).unwrap_err();
        assert!(problem.contains("another `description`"), "{problem}");
        // Without digests too.
        let frontmatter = json!({ "name": "a", "description": "Reads files" });
        known.set(&json!([{ "uri": uri, "frontmatter": frontmatter, "resources": "dynamic" }]).into());
        assert_eq!(check(json!([{ "uri": uri, "text": same }])), Ok(()));
        assert!(check(json!([{ "uri": uri, "text": different }])).is_err());
        let problem = check(vec![json!({ "uri": uri, "text": same }); MAX_COMPARED + 1].into()).unwrap_err();
        assert!(problem.contains("more than 2"), "{problem}");
    }

    /// A client shows the one, and the file is the other one.
    #[test]
    fn v_562_a_skill_that_is_listed_twice_says_one_thing() {
        let uri = "skill://a/SKILL.md";
        let listed = |description: &str| {
            let frontmatter = json!({ "name": "a", "description": description });
            json!({ "uri": uri, "frontmatter": frontmatter, "resources": "dynamic" })
        };
        let file = json!({ "uri": uri, "text": "---\nname: a\ndescription: Reads keys\n---\n" });
        let known = SkillFiles::default();
        let check = |skills: serde_json::Value| {
            known.set(&skills.into());
            known.check(uri, &json!({ "contents": [file] }).into())
        };
        let (files, keys) = (listed("Reads files"), listed("Reads keys"));
        assert_eq!(check(json!([keys, keys])), Ok(()));
        for skills in [json!([files, keys]), json!([keys, files]), json!([files, keys, keys])] {
            let problem = check(skills).unwrap_err();
            assert!(problem.contains("is listed twice"), "{problem}");
        }
    }
}
