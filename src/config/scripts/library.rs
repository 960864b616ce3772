//! The saved scripts of a user: those of `~/.config/cx/scripts`, and those of `.cx/scripts` in a workspace that the
//! user has trusted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

use super::dispatcher;
use super::facts::{Facts, WORKSPACE_FOLDER, facts, shown_name};
use super::front_matter;
use crate::config::environment::{Directories, canonical};
use crate::config::trust::TrustStore;
use crate::storage::files::sha256;
use crate::storage::scripts::{self, Extension, FolderList, FolderOwner, ScriptFile, ScriptFolder};
use crate::tools::names::{SuggestionBudget, suggestion};
use crate::tools::{Language, SavedScript, ToolList, UnsavedScript};

/// A file in a folder of scripts that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptProblem {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be used.
    pub problem: String,
    /// Whether the only problem is that the user has not trusted this content.
    pub is_untrusted: bool,
}

/// A script to be saved.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SaveRequest {
    /// Its name: 1 to 64 of `a-z0-9_-`.
    pub name: String,
    /// Its language.
    pub language: Language,
    /// Its source.
    pub code: String,
    /// A description, if the source does not have one.
    pub description: Option<String>,
    /// JSON Schema of its input, if the source does not declare it.
    pub input: Option<Value>,
    /// Whether it may replace a script of the same name.
    pub replace: bool,
}

impl SaveRequest {
    /// A script whose source contains its metadata, and that does not replace another.
    pub fn new(name: impl Into<String>, language: Language, code: impl Into<String>) -> Self {
        let (name, code) = (name.into(), code.into());
        Self { name, language, code, description: None, input: None, replace: false }
    }

    /// Checks the name, the size and what the source says about itself, as [`ScriptLibrary::save`] does.
    ///
    /// # Errors
    ///
    /// [`ScriptsError::Invalid`].
    pub fn check(&self) -> Result<(), ScriptsError> {
        compose(self, self.extension()).map(drop)
    }

    fn extension(&self) -> Extension {
        match self.language {
            Language::TypeScript => Extension::Ts,
            Language::Python => Extension::Py,
        }
    }
}

/// Why a saved script cannot be used or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptsError {
    /// No saved script has this name.
    #[error("no saved script `{name}`{suggestion}")]
    NotFound {
        /// The name.
        name: String,
        /// The nearest names, as the end of the sentence.
        suggestion: String,
    },
    /// Its file cannot be used.
    #[error("the script {} cannot be used: {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A script that is to be saved has a mistake.
    #[error("{0}")]
    Invalid(String),
    /// There is a script of this name already.
    #[error("there is a saved script `{0}` already")]
    Exists(String),
    /// The folder cannot be used.
    #[error("the folder of saved scripts cannot be used: {0}")]
    Files(#[from] io::Error),
}

/// The folders of saved scripts. Their content is read again when it has changed.
#[derive(Debug)]
pub struct ScriptLibrary {
    user: Option<ScriptFolder>,
    workspace: Option<ScriptFolder>,
    trust: Option<(TrustStore, PathBuf)>,
    state: Mutex<LibraryState>,
}

#[derive(Debug, Default)]
struct LibraryState {
    /// The state of the folders and of the list of trusted files when they were read.
    read_of: Option<Snapshot>,
    looked: Option<Instant>,
    loaded: Arc<Loaded>,
}

/// A snapshot that differs when anything has changed that scripts depend on.
#[derive(Debug, PartialEq)]
struct Snapshot {
    user: Result<FolderList, String>,
    workspace: Result<FolderList, String>,
    trust: Option<(u64, u64, i64, i64)>,
}

/// The scripts as they were read.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// Increases with each change.
    pub(super) generation: u64,
    /// In the order of their names.
    pub(super) scripts: Vec<Arc<SavedScript>>,
    pub(super) problems: Vec<ScriptProblem>,
    /// The scripts as tools of a server.
    pub(super) tools: Arc<ToolList>,
}

impl ScriptLibrary {
    /// The scripts of a user in a workspace. Reads nothing.
    pub fn new(directories: &Directories, workspace: &Path) -> Self {
        let user = ScriptFolder::new(directories.config.join("scripts"), FolderOwner::User);
        let folder = canonical(workspace).join(WORKSPACE_FOLDER);
        Self {
            user: Some(user),
            workspace: Some(ScriptFolder::new(folder, FolderOwner::Workspace)),
            trust: Some((TrustStore::new(directories), TrustStore::path(directories))),
            state: Mutex::default(),
        }
    }

    /// The scripts of one folder, which only the user can change, and none of a workspace. Reads nothing.
    pub fn of_folder(directory: impl Into<PathBuf>) -> Self {
        let user = Some(ScriptFolder::new(directory.into(), FolderOwner::User));
        Self { user, workspace: None, trust: None, state: Mutex::default() }
    }

    /// The user's own folder.
    pub fn directory(&self) -> Option<&Path> {
        self.user.as_ref().map(ScriptFolder::directory)
    }

    /// The scripts that can be used, in the order of their names. Reads files.
    pub fn list(&self) -> Vec<Arc<SavedScript>> {
        self.loaded(Duration::ZERO).scripts.clone()
    }

    /// The files that look like scripts and cannot be used, and folders that cannot be read.
    pub fn problems(&self) -> Vec<ScriptProblem> {
        self.loaded(Duration::ZERO).problems.clone()
    }

    /// The script of this name.
    ///
    /// # Errors
    ///
    /// [`ScriptsError::NotFound`]; [`ScriptsError::Unusable`] if there is a file of this name that cannot
    /// be used.
    pub fn get(&self, name: &str) -> Result<Arc<SavedScript>, ScriptsError> {
        self.loaded(Duration::ZERO).get(name)
    }

    /// Saves a script in the user's own folder, and returns its file. It does not ask for approval: the caller has
    /// shown the code to the user, or the user has given the command.
    ///
    /// # Errors
    ///
    /// [`ScriptsError::Invalid`] says what is wrong with the script, [`ScriptsError::Exists`],
    /// [`ScriptsError::Files`].
    pub fn save(&self, request: SaveRequest) -> Result<PathBuf, ScriptsError> {
        let no_folder = || io::Error::new(io::ErrorKind::NotFound, "HOME is not set");
        let folder = self.user.as_ref().ok_or_else(no_folder)?;
        let extension = request.extension();
        let text = compose(&request, extension)?;
        let saved = folder.save(&request.name, extension, &text, request.replace);
        // Makes the saved script callable immediately.
        self.state.lock().looked = None;
        saved.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => ScriptsError::Exists(request.name),
            _ => error.into(),
        })
    }

    /// The script that [`save`](Self::save) would store. Reads the folders.
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save), as far as it is known before.
    pub(super) fn unsaved(&self, request: SaveRequest) -> Result<UnsavedScript, ScriptsError> {
        let source = compose(&request, request.extension())?;
        let SaveRequest { name, language, code, replace, .. } = request;
        let loaded = self.loaded(Duration::ZERO);
        let is_there = |script: &Arc<SavedScript>| !script.is_of_workspace && script.name == name;
        if !replace && loaded.scripts.iter().any(is_there) {
            return Err(ScriptsError::Exists(name));
        }
        let lines = |text: &str| u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX);
        let lines_before = lines(&source).saturating_sub(lines(&code));
        Ok(UnsavedScript { lines_before, ..UnsavedScript::new(name, language, source) })
    }

    /// Removes a script from the user's own folder.
    ///
    /// # Errors
    ///
    /// [`ScriptsError::NotFound`], [`ScriptsError::Files`].
    pub fn remove(&self, name: &str) -> Result<(), ScriptsError> {
        let removed = self.user.as_ref().map_or(Ok(false), |folder| folder.remove(name))?;
        self.state.lock().looked = None;
        if removed { Ok(()) } else { Err(self.loaded(Duration::ZERO).missing(name)) }
    }

    /// The scripts as they were read at most `max_age` ago.
    pub(super) fn loaded(&self, max_age: Duration) -> Arc<Loaded> {
        let mut state = self.state.lock();
        if state.looked.is_some_and(|looked| looked.elapsed() < max_age) {
            return Arc::clone(&state.loaded);
        }
        let snapshot = self.snapshot();
        if state.read_of.as_ref() != Some(&snapshot) {
            let generation = state.loaded.generation + 1;
            state.loaded = Arc::new(self.read(&snapshot, generation));
            state.read_of = Some(snapshot);
        }
        state.looked = Some(Instant::now());
        Arc::clone(&state.loaded)
    }

    fn snapshot(&self) -> Snapshot {
        let list = |folder: &Option<ScriptFolder>| match folder {
            Some(folder) => folder.list().map_err(|error| error.to_string()),
            None => Ok(FolderList::default()),
        };
        let trust = self.trust.as_ref().and_then(|(_, path)| {
            let file = fs::metadata(path).ok()?;
            Some((file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
        });
        Snapshot { user: list(&self.user), workspace: list(&self.workspace), trust }
    }

    fn read(&self, snapshot: &Snapshot, generation: u64) -> Loaded {
        let mut loaded = Loaded { generation, ..Loaded::default() };
        if let Some(folder) = &self.user {
            loaded.add(folder, &snapshot.user, |_path, _source| Ok(()), false);
        }
        let is_trusted = |path: &Path, source: &str| {
            let store = self.trust.as_ref().map(|(store, _)| store);
            match store.map(|store| store.is_trusted(path, source.as_bytes())) {
                Some(Ok(true)) => Ok(()),
                Some(Err(error)) => Err(format!("the list of trusted files cannot be read: {error}")),
                Some(Ok(false)) | None => {
                    Err("it is in a workspace, and this content of it is not trusted: `cx trust` shows it \
                        and asks"
                        .to_owned())
                }
            }
        };
        if let Some(folder) = &self.workspace {
            loaded.add(folder, &snapshot.workspace, is_trusted, true);
        }
        loaded.scripts.sort_by(|one, other| one.name.cmp(&other.name));
        loaded.tools = Arc::new(dispatcher::tools(&loaded.scripts, self.user.is_some()));
        loaded
    }
}

impl Loaded {
    pub(super) fn get(&self, name: &str) -> Result<Arc<SavedScript>, ScriptsError> {
        let found = self.scripts.iter().find(|script| script.name == name);
        found.cloned().ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> ScriptsError {
        let is_of = |problem: &&ScriptProblem| {
            problem.path.file_stem().is_some_and(|stem| stem == name)
                && Extension::from_path(&problem.path).is_some()
        };
        if let Some(ScriptProblem { path, problem, .. }) = self.problems.iter().find(is_of) {
            return ScriptsError::Unusable { path: path.clone(), problem: problem.clone() };
        }
        let names = self.scripts.iter().map(|script| script.name.as_str());
        let name = shown_name(name);
        let what = ("saved scripts", "which `cx scripts list` lists and `search_tools` finds");
        let suggestion = suggestion(&name, what, names, &SuggestionBudget::of_message());
        ScriptsError::NotFound { suggestion, name }
    }

    fn add(
        &mut self,
        folder: &ScriptFolder,
        list: &Result<FolderList, String>,
        permit: impl Fn(&Path, &str) -> Result<(), String>,
        is_of_workspace: bool,
    ) {
        let list = match list {
            Ok(list) => list,
            Err(problem) => {
                let path = folder.directory().to_owned();
                self.problems.push(ScriptProblem { path, problem: problem.clone(), is_untrusted: false });
                return;
            }
        };
        for (path, problem) in &list.problems {
            let (path, problem) = (path.clone(), problem.clone());
            self.problems.push(ScriptProblem { path, problem, is_untrusted: false });
        }
        for file in &list.files {
            match self.usable(folder, file, &permit, is_of_workspace) {
                Ok(script) => self.scripts.push(Arc::new(script)),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// The script of a file.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    fn usable(
        &self,
        folder: &ScriptFolder,
        file: &ScriptFile,
        permit: impl Fn(&Path, &str) -> Result<(), String>,
        is_of_workspace: bool,
    ) -> Result<SavedScript, ScriptProblem> {
        let unusable = |problem: String, is_untrusted: bool| {
            let path = file.path.clone();
            ScriptProblem { path, problem, is_untrusted }
        };
        let source = folder.read(file).map_err(|error| unusable(error.to_string(), false))?;
        let script = parse(file, source, is_of_workspace).map_err(|problem| unusable(problem, false))?;
        permit(&file.path, &script.source).map_err(|problem| unusable(problem, true))?;
        // The user's own scripts come first, so that a workspace cannot replace one of them.
        match self.scripts.iter().find(|other| other.name == script.name) {
            Some(other) => {
                let problem = format!("{} has the same name, and is used", other.path.display());
                Err(unusable(problem, false))
            }
            None => Ok(script),
        }
    }
}

fn parse(file: &ScriptFile, source: String, is_of_workspace: bool) -> Result<SavedScript, String> {
    let Facts { description, input, check } = facts(&file.name, file.extension, &source)?;
    Ok(SavedScript {
        name: file.name.clone(),
        description,
        language: language(file.extension),
        input,
        sha256: sha256(source.as_bytes()),
        source,
        path: file.path.clone(),
        is_of_workspace,
        check,
    })
}

fn language(extension: Extension) -> Language {
    match extension {
        Extension::Ts | Extension::Js => Language::TypeScript,
        Extension::Py => Language::Python,
    }
}

/// The text of the file: the code, with the metadata of the request as front matter.
fn compose(request: &SaveRequest, extension: Extension) -> Result<String, ScriptsError> {
    let SaveRequest { name, code, description, input, .. } = request;
    let invalid = ScriptsError::Invalid;
    if !scripts::is_name(name) {
        return Err(invalid(format!(
            "`{}` is not a name for a script: expected 1 to {} of `a-z`, `0-9`, `_` and `-`, the first a \
                letter or a digit",
            shown_name(name),
            scripts::MAX_NAME
        )));
    }
    let too_large = |bytes: usize| bytes as u64 > scripts::MAX_SCRIPT_BYTES;
    if too_large(code.len()) {
        let most = scripts::MAX_SCRIPT_BYTES;
        return Err(invalid(format!("the code has {} bytes, a saved script at most {most}", code.len())));
    }
    if code.trim().is_empty() {
        return Err(invalid("the code is empty".to_owned()));
    }
    let text = match (description, input) {
        (None, None) => code.clone(),
        _ => with_front_matter(request, extension).map_err(invalid)?,
    };
    if too_large(text.len()) {
        return Err(invalid(format!("the script has more than {} bytes", scripts::MAX_SCRIPT_BYTES)));
    }
    let read = facts(name, extension, &text).map_err(invalid)?;
    let expected =
        description.as_ref().is_none_or(|description| read.description.as_ref() == Some(description));
    if !expected {
        return Err(invalid("the description has characters that a comment cannot hold".to_owned()));
    }
    Ok(text)
}

/// The code with the description and the input of the request as front matter.
///
/// # Errors
///
/// Why the code or the description cannot have it.
fn with_front_matter(request: &SaveRequest, extension: Extension) -> Result<String, String> {
    let SaveRequest { name, code, description, input, .. } = request;
    if front_matter::read(code, extension)?.has_block {
        let problem = "the code has a front matter: put the description and the input there, or leave it out";
        return Err(problem.to_owned());
    }
    let most = front_matter::MAX_DESCRIPTION;
    if description.as_ref().is_some_and(|text| text.chars().count() > most) {
        return Err(format!("the description has more than {most} characters"));
    }
    let block = front_matter::write(extension, name, description.as_deref(), input.as_ref());
    Ok(match code.split_once('\n') {
        // The line that names an interpreter has to be the first one.
        Some((first, rest)) if first.starts_with("#!") => format!("{first}\n{block}{rest}"),
        _ => format!("{block}{code}"),
    })
}
