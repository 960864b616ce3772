//! Skills that clients can read (SEP-2640): cx's guide, and the user's saved scripts. Each is a
//! directory of resources below `skill://cx/`. Reading one runs nothing.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rmcp::model::{
    DIRECTORY_MIME_TYPE, ErrorData, GetSkillResult, ListResourcesResult, ListSkillsResult,
    ReadResourceResult, Resource, ResourceContents, Skill, SkillFrontmatter, SkillResource, SkillResources,
};
use serde_json::{Value, json};

use super::guide;
use super::resources::{MARKDOWN, PLAIN};
use super::tools::{EXECUTE_PYTHON, EXECUTE_TYPESCRIPT};
use crate::executor::Executor;
use crate::tools::{Language, SavedScript};

/// Prefix of the URIs.
pub(crate) const PREFIX: &str = "skill://cx/";

/// The directory of all skills.
const ROOT: &str = "skill://cx";

/// The file that describes a skill.
const SKILL_FILE: &str = "SKILL.md";

/// The name of the guide as a skill. No script can have this name: see [`of_scripts`].
const GUIDE: &str = "cx-guide";

/// The description of a script that has none. The format requires one.
const NO_DESCRIPTION: &str = "A saved script";

/// How long a client may cache a list, in milliseconds. The user may save a script at any time.
const FRESH_MS: u64 = 10 * 1000;

/// A skill: its files, the first of which is `SKILL.md`.
struct SkillFiles {
    name: String,
    description: String,
    files: Vec<(String, String)>,
}

impl SkillFiles {
    fn uri(&self, file: &str) -> String {
        format!("{PREFIX}{}/{file}", self.name)
    }

    fn entry(&self) -> Skill {
        let files =
            self.files.iter().map(|(file, text)| SkillResource::from_bytes(self.uri(file), text.as_bytes()));
        let frontmatter = SkillFrontmatter::new(&self.name, &self.description);
        Skill::new(self.uri(SKILL_FILE), frontmatter, SkillResources::Files(files.collect()))
    }

    /// Its directory as a resource.
    fn directory(&self) -> Resource {
        Resource::new(format!("{PREFIX}{}", self.name), self.name.clone())
            .with_description(self.description.clone())
            .with_mime_type(DIRECTORY_MIME_TYPE)
    }

    /// Its files as resources.
    fn resources(&self) -> Vec<Resource> {
        let described = self.files.iter().map(|(file, text)| {
            let is_entry = file == SKILL_FILE;
            let name = if is_entry { self.name.clone() } else { format!("{}/{file}", self.name) };
            let resource = Resource::new(self.uri(file), name)
                .with_mime_type(if is_entry { MARKDOWN } else { PLAIN })
                .with_size(text.len() as u64);
            if is_entry { resource.with_description(self.description.clone()) } else { resource }
        });
        described.collect()
    }
}

/// All skills, cx's guide first. Reads files.
fn all(executor: &Executor) -> Vec<SkillFiles> {
    std::iter::once(of_guide()).chain(of_scripts(executor)).collect()
}

/// The skill of this name. Reads files, and copies those of no other skill: a client may ask for many, one by one.
fn of_name(executor: &Executor, name: &str) -> Option<SkillFiles> {
    if name == GUIDE {
        return Some(of_guide());
    }
    let scripts = executor.saved_scripts();
    scripts.iter().find(|script| script.name == name).map(|script| of_script(script))
}

fn of_guide() -> SkillFiles {
    let description = "How to write scripts for cx, which call the tools of MCP servers".to_owned();
    let text = format!("{}\n{}", front_matter(GUIDE, &description), guide::GUIDE);
    SkillFiles { name: GUIDE.to_owned(), description, files: vec![(SKILL_FILE.to_owned(), text)] }
}

fn of_scripts(executor: &Executor) -> impl Iterator<Item = SkillFiles> {
    let scripts = executor.saved_scripts().into_iter().filter(|script| script.name != GUIDE);
    scripts.map(|script| of_script(&script))
}

fn of_script(script: &SavedScript) -> SkillFiles {
    let description = script.description.clone().filter(|text| !text.trim().is_empty());
    let description = description.unwrap_or_else(|| NO_DESCRIPTION.to_owned());
    let code_file = code_file(script);
    let text = describe(script, &description, &code_file);
    let files = vec![(SKILL_FILE.to_owned(), text), (code_file, script.source.clone())];
    SkillFiles { name: script.name.clone(), description, files }
}

/// The name of a skill and of its file, in the URI of a file.
fn parts(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(PREFIX)?.split_once('/')
}

fn code_file(script: &SavedScript) -> String {
    format!("script.{}", script.language.extension())
}

/// The front matter as YAML. The values are JSON strings, which are valid YAML.
fn front_matter(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {}\n---\n", Value::from(description))
}

fn describe(script: &SavedScript, description: &str, code_file: &str) -> String {
    let name = &script.name;
    let tool = if script.language == Language::Python { EXECUTE_PYTHON } else { EXECUTE_TYPESCRIPT };
    let mut text = front_matter(name, description);
    text.push_str(&format!(
        "\nA saved script of cx. Run it with the tool `{tool}`: `{{\"script\": \"{name}\", \"input\": {{…}}}}`. \
         A script calls it as `tools.scripts[\"{name}\"]`. Its code is in [{code_file}]({code_file}).\n"
    ));
    if let Some(input) = &script.input {
        text.push_str(&format!("\nIts input, as JSON Schema:\n\n```json\n{}\n```\n", input.text()));
    }
    text
}

/// A number for each file of a skill, by URI, that differs when the file has changed. Reads files.
pub(crate) fn digests(executor: &Executor) -> HashMap<String, u64> {
    let mut digests = HashMap::new();
    for skill in all(executor) {
        for (file, text) in &skill.files {
            digests.insert(skill.uri(file), hash(text));
        }
    }
    digests
}

/// The number of one file among [`digests`]; `None` if there is no such file. Reads files.
pub(crate) fn digest(executor: &Executor, uri: &str) -> Option<u64> {
    let (name, file) = parts(uri)?;
    let skill = of_name(executor, name)?;
    skill.files.iter().find(|(own, _)| own == file).map(|(_, text)| hash(text))
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The addresses of the files of all skills. Reads files.
pub(crate) fn addresses(executor: &Executor) -> HashSet<String> {
    let scripts = executor.saved_scripts().into_iter().filter(|script| script.name != GUIDE);
    let of_scripts = scripts.flat_map(|script| {
        [SKILL_FILE, &code_file(&script)].map(|file| format!("{PREFIX}{}/{file}", script.name))
    });
    of_scripts.chain([format!("{PREFIX}{GUIDE}/{SKILL_FILE}")]).collect()
}

/// The skills as `skills/list` returns them.
pub(crate) fn list(executor: &Executor) -> ListSkillsResult {
    let skills = all(executor).iter().map(SkillFiles::entry).collect();
    ListSkillsResult::with_all_items(skills).with_ttl_ms(FRESH_MS)
}

/// One skill as `skills/get` returns it.
///
/// # Errors
///
/// If there is no skill at this URI.
pub(crate) fn get(executor: &Executor, uri: &str) -> Result<GetSkillResult, ErrorData> {
    let name = parts(uri).filter(|(_, file)| *file == SKILL_FILE).map(|(name, _)| name);
    match name.and_then(|name| of_name(executor, name)) {
        Some(skill) => Ok(GetSkillResult::new(skill.entry()).with_ttl_ms(FRESH_MS)),
        None => {
            let problem = format!("no skill at this address; `skills/list` has all: {uri}");
            Err(ErrorData::invalid_params(problem, Some(json!({ "uri": uri }))))
        }
    }
}

/// The files of the saved scripts as resources. The guide is listed under its own address.
pub(crate) fn resources(executor: &Executor) -> Vec<Resource> {
    of_scripts(executor).flat_map(|skill| skill.resources()).collect()
}

/// The files of a skill, or the directories of all skills, as `resources/directory/read` returns them.
///
/// # Errors
///
/// If there is no directory at this URI.
pub(crate) fn directory(executor: &Executor, uri: &str) -> Result<ListResourcesResult, ErrorData> {
    let path = uri.strip_suffix('/').unwrap_or(uri);
    let skills = all(executor);
    let children = if path == ROOT {
        Some(skills.iter().map(SkillFiles::directory).collect())
    } else {
        let name = path.strip_prefix(PREFIX);
        skills.iter().find(|skill| name == Some(skill.name.as_str())).map(SkillFiles::resources)
    };
    match children {
        Some(children) => Ok(ListResourcesResult::with_all_items(children).with_ttl_ms(FRESH_MS)),
        None => {
            let problem = format!("no directory at this address; `{ROOT}` has all: {uri}");
            Err(ErrorData::invalid_params(problem, Some(json!({ "uri": uri }))))
        }
    }
}

/// Reads a file of a skill.
///
/// # Errors
///
/// If there is no such file.
pub(crate) fn read(executor: &Executor, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let found = parts(uri).and_then(|(name, file)| {
        let skill = of_name(executor, name)?;
        skill.files.into_iter().find(|(own, _)| own == file)
    });
    let Some((file, text)) = found else {
        let problem = format!("no skill has this file; `skills/list` has all: {uri}");
        return Err(ErrorData::resource_not_found(problem, Some(json!({ "uri": uri }))));
    };
    let mime_type = if file == SKILL_FILE { MARKDOWN } else { PLAIN };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime_type)]))
}
