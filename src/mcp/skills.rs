//! Digests of a server's skills (SEP-2640): a file that its list describes is used only if it is the one that is meant.

use std::collections::HashMap;

use parking_lot::Mutex;
use rmcp::model::SkillResource;
use serde::Deserialize;

use crate::json::{self, Json};

/// The files of the skills that a server has listed last, by address. Bounded as its list is.
#[derive(Default)]
pub(crate) struct SkillFiles(Mutex<HashMap<String, SkillResource>>);

/// A skill in a list. The files of a dynamic one have no digests.
#[derive(Deserialize)]
struct ListedFiles {
    resources: Vec<SkillResource>,
}

/// A text in the answer to `resources/read`.
#[derive(Deserialize)]
struct ReadText {
    uri: String,
    text: String,
}

impl SkillFiles {
    /// Takes the files of an array of skills in place of those that are known.
    pub(crate) fn set(&self, skills: &Json) {
        let mut files = HashMap::new();
        let read = json::each_item(skills.text(), |skill| {
            if let Ok(ListedFiles { resources }) = serde_json::from_str(skill.get()) {
                files.extend(resources.into_iter().map(|file| (file.uri.clone(), file)));
            }
            Ok(())
        });
        if read.is_ok() {
            *self.0.lock() = files;
        }
    }

    /// Compares the texts of an answer to `resources/read` with the list.
    ///
    /// # Errors
    ///
    /// Which of them is another one than the list says.
    pub(crate) fn check(&self, answer: &Json) -> Result<(), String> {
        let files = self.0.lock();
        if files.is_empty() {
            return Ok(());
        }
        let mut wrong = None;
        // What cannot be read here is no text of a skill.
        let _read = json::each_field(answer.text(), |field, value| {
            if field == "contents" {
                let _read = json::each_item(value.get(), |content| {
                    if let Ok(ReadText { uri, text }) = serde_json::from_str(content.get())
                        && let Some(Err(error)) = files.get(&uri).map(|file| file.verify(text.as_bytes()))
                    {
                        wrong.get_or_insert(error.to_string());
                    }
                    Ok(())
                });
            }
        });
        wrong.map_or(Ok(()), Err)
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
        let read = |uri: &str, text: &str| json!({ "contents": [{ "uri": uri, "text": text }] }).into();
        assert_eq!(known.check(&read("skill://a/SKILL.md", "wrong")), Ok(()));
        known.set(&json!([{ "resources": "dynamic" }, { "resources": [file] }]).into());
        assert_eq!(known.check(&read("skill://a/SKILL.md", "right")), Ok(()));
        assert_eq!(known.check(&read("skill://b/SKILL.md", "other")), Ok(()));
        assert!(known.check(&read("skill://a/SKILL.md", "wrong")).unwrap_err().contains("digest"));
        assert!(known.check(&read("skill://a/SKILL.md", "longer text")).unwrap_err().contains("11 bytes"));
    }
}
