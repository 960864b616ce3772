//! Digests of a server's skills (SEP-2640): a file that its list describes is used only with the listed digest.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rmcp::model::SkillResource;
use serde::Deserialize;

use crate::json::{self, Json};

/// The files of the skills that a server has listed last, by address. Bounded as its list is.
#[derive(Default)]
pub(crate) struct SkillFiles(Mutex<Arc<HashMap<String, SkillResource>>>);

/// A skill in a list. The files of a dynamic one have no digests.
#[derive(Deserialize)]
struct ListedFiles {
    resources: Vec<SkillResource>,
}

/// A file in the answer to `resources/read`.
#[derive(Deserialize)]
struct ReadFile {
    uri: String,
    text: Option<String>,
    blob: Option<String>,
}

impl ReadFile {
    /// Its bytes. `None` if it has none that can be read.
    fn bytes(self) -> Option<Vec<u8>> {
        match (self.text, self.blob) {
            (Some(text), _) => Some(text.into_bytes()),
            (None, Some(blob)) => STANDARD.decode(blob).ok(),
            (None, None) => None,
        }
    }
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
            *self.0.lock() = Arc::new(files);
        }
    }

    /// Compares the files in the answer to `resources/read` of `requested` with the list.
    ///
    /// # Errors
    ///
    /// Which of them differs from the list.
    pub(crate) fn check(&self, requested: &str, answer: &Json) -> Result<(), String> {
        let files = Arc::clone(&self.0.lock());
        if files.is_empty() {
            return Ok(());
        }
        let mut wrong = None;
        // An answer that cannot be read here has no file of a skill.
        let _read = json::each_field(answer.text(), |field, value| {
            if field == "contents" {
                let _read = json::each_item(value.get(), |content| {
                    let read: ReadFile = serde_json::from_str(content.get())?;
                    // A server could answer for a listed file with the address of another one.
                    if let Some(listed) = files.get(&read.uri).or_else(|| files.get(requested)) {
                        let verified = match read.bytes() {
                            Some(bytes) => listed.verify(&bytes).map_err(|error| error.to_string()),
                            None => Err(format!("`{}` has neither text nor base64", listed.uri)),
                        };
                        if let Err(problem) = verified {
                            wrong.get_or_insert(problem);
                        }
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
    }
}
