//! `cx scripts`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use cx::text::{one_line, start};
use cx::{Language, SaveRequest, SavedScript, ScriptLibrary, ScriptsError};
use serde_json::{Value, json};

use crate::args::ScriptsCommand;
use crate::exit::ExitStatus;
use crate::output::{print_json, print_text};
use crate::text::{revealed, shown_path};
use crate::{check, diagnostic, setup, source};

/// Maximum characters of a description in a list.
const MAX_DESCRIPTION: usize = 90;

/// Fields of schemas, which a script may read of its own.
const SCHEMA_KEYS: [&str; 5] = ["additionalProperties", "description", "properties", "required", "type"];

/// Lists, shows, saves or removes scripts.
///
/// # Errors
///
/// If there is no such script, or a folder or a file cannot be used.
pub(crate) fn run(command: ScriptsCommand) -> anyhow::Result<ExitStatus> {
    let library = setup::saved_scripts()?;
    match command {
        ScriptsCommand::List { json } => list(&library, json)?,
        ScriptsCommand::Show { name, json } => {
            let script = library.get(&name)?;
            show(&script, json)?;
        }
        ScriptsCommand::Save { file, name, description, replace } => {
            let request = request(&file, name, description, replace)?;
            request.check().map_err(|error| explained(error, &library))?;
            let errors = check::syntax_errors(&request.code, request.language)?;
            if !errors.is_empty() {
                diagnostic::print_findings(&errors, &shown_path(&file));
                diagnostic::print_note("nothing was saved: the script cannot be compiled");
                return Ok(ExitStatus::Failed);
            }
            let name = request.name.clone();
            let reads_schema = request.language == Language::TypeScript && reads_schema(&request.code);
            let path = library.save(request).map_err(|error| explained(error, &library))?;
            print_text(&format!("saved as {}; `cx run {name}` runs it", shown_path(&path)))?;
            if reads_schema {
                diagnostic::print_warning(
                    "`input` in this script is the schema that it exports: read the input from `inputs`, or from the \
                     parameter of an exported function",
                );
            }
        }
        ScriptsCommand::Remove { name } => {
            library.remove(&name).map_err(|error| explained(error, &library))?;
            print_text(&format!("removed: {name}"))?;
        }
    }
    Ok(ExitStatus::Success)
}

/// The error with what the user of the command can do, and the folder.
fn explained(error: ScriptsError, library: &ScriptLibrary) -> anyhow::Error {
    match &error {
        ScriptsError::Exists(_) => anyhow!("{error}; `--replace` replaces it"),
        ScriptsError::Files(cause) => {
            let folder = library.directory().map(shown_path).unwrap_or_default();
            anyhow!("the folder of saved scripts `{folder}` cannot be used: {cause}")
        }
        _ => error.into(),
    }
}

fn request(
    file: &Path,
    name: Option<String>,
    description: Option<String>,
    replace: bool,
) -> anyhow::Result<SaveRequest> {
    let extension = file.extension().and_then(|extension| extension.to_str());
    let language = match extension {
        Some("ts" | "js") => Language::TypeScript,
        Some("py") => Language::Python,
        _ => bail!("`{}`: expected a file that ends with .ts, .js or .py", shown_path(file)),
    };
    let stem = file.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let name = name.or(stem).context("the file's name is not UTF-8: give the script's with --name")?;
    let mut request = SaveRequest::new(name, language, source::read_file(file, "the script")?);
    (request.description, request.replace) = (description, replace);
    Ok(request)
}

/// Whether a script that exports its schema as `input` seems to read its input by that name, which would be
/// undefined. A parameter of that name may be meant, so that it is not said then.
fn reads_schema(source: &str) -> bool {
    let is_exported = source.lines().any(|line| line.starts_with("export const input"));
    if !is_exported || source.contains("(input") {
        return false;
    }
    let is_of_name = |character: char| character.is_alphanumeric() || matches!(character, '_' | '$');
    let reads_field = source.match_indices("input.").any(|(at, found)| {
        let before = source[..at].chars().next_back();
        let field = source[at + found.len()..].split(|character| !is_of_name(character)).next();
        !before.is_some_and(|before| is_of_name(before) || before == '.')
            && field.is_some_and(|field| !field.is_empty() && !SCHEMA_KEYS.contains(&field))
    });
    reads_field || source.contains("} = input;")
}

fn list(library: &ScriptLibrary, is_json: bool) -> anyhow::Result<()> {
    let (scripts, problems) = (library.list(), library.problems());
    if is_json {
        let problems = problems.iter().map(|problem| {
            json!({
                "path": problem.path.display().to_string(),
                "problem": problem.problem,
                "isUntrusted": problem.is_untrusted,
            })
        });
        let scripts: Value = scripts.iter().map(|script| to_json(script)).collect();
        print_json(&json!({ "scripts": scripts, "problems": problems.collect::<Value>() }).to_string())?;
        return Ok(());
    }
    let mut text = String::new();
    let width = scripts.iter().map(|script| script.name.len()).max().unwrap_or(0);
    for script in &scripts {
        let description = one_line(script.description.as_deref().unwrap_or_default());
        let description = start(&description, MAX_DESCRIPTION);
        let place = if script.is_of_workspace { " (workspace)" } else { "" };
        // Writing to a string cannot fail.
        let line = format!("{:width$}  {:<10}  {description}{place}", script.name, script.language.as_str());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for problem in &problems {
        let _ = writeln!(text, "{}: not used: {}", shown_path(&problem.path), one_line(&problem.problem));
    }
    if text.is_empty() {
        let folder = library.directory().map(shown_path).unwrap_or_default();
        text = format!("no saved scripts; `cx scripts save FILE` saves one in {folder}\n");
    }
    print_text(&text)?;
    Ok(())
}

fn show(script: &SavedScript, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        let mut shown = to_json(script);
        shown["code"] = script.source.as_str().into();
        print_json(&shown.to_string())?;
        return Ok(());
    }
    let mut text = format!("{}: {}, {}\n", script.name, script.language.as_str(), shown_path(&script.path));
    if let Some(description) = &script.description {
        let _ = writeln!(text, "{}", one_line(description));
    }
    if let Some(input) = &script.input {
        let _ = writeln!(text, "input: {}", one_line(input.text()));
    }
    text.push('\n');
    // The code of a workspace's script is untrusted text.
    text.push_str(&revealed(&script.source));
    print_text(&text)?;
    Ok(())
}

fn to_json(script: &SavedScript) -> Value {
    json!({
        "name": script.name,
        "description": script.description,
        "language": script.language.as_str(),
        "input": script.input.as_ref().map(cx::Schema::to_value),
        "path": script.path.display().to_string(),
        "sha256": script.sha256,
        "isOfWorkspace": script.is_of_workspace,
    })
}
