use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::config::{Directories, TrustRequest, TrustStore};
use crate::storage::scripts::Extension;
use crate::tools::Language;

struct Place {
    directory: TempDir,
    directories: Directories,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let below = |name: &str| directory.path().join(name);
        let directories =
            Directories { cache: below("cache"), state: below("state"), config: below("config") };
        fs::create_dir_all(directory.path().join("work/.cx/scripts")).unwrap();
        Self { directory, directories }
    }

    fn library(&self) -> ScriptLibrary {
        ScriptLibrary::new(&self.directories, &self.directory.path().join("work"))
    }

    fn in_workspace(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join("work/.cx/scripts").join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

/// Name, description and schema of a source, or what is wrong with it.
fn facts(name: &str, extension: Extension, source: &str) -> Result<(Option<String>, Value), String> {
    let facts = facts::facts(name, extension, source)?;
    Ok((facts.description, facts.input.map_or(Value::Null, |schema| schema.to_value())))
}

#[test]
fn a_front_matter_in_each_form() {
    let schema = json!({ "type": "object", "properties": { "owner": { "type": "string" }, "most": { "type": "integer", "minimum": 1 } }, "required": ["owner"] });
    let yaml = "name: issues\ndescription: Lists the issues\ninput:\n  type: object\n  properties:\n    \
        owner: { type: string }\n    most:\n      type: integer\n      minimum: 1\n  required: [owner]\n";
    let commented = |mark: &str| {
        let lines: String = yaml.lines().map(|line| format!("{mark} {line}\n")).collect();
        format!("{mark} ---\n{lines}{mark} ---\nreturn 1\n")
    };
    let sources = [
        (Extension::Ts, commented("//")),
        (Extension::Ts, commented("#")),
        (Extension::Ts, format!("#!/usr/bin/env cx\n{}", commented("//"))),
        (Extension::Py, commented("#")),
        (Extension::Py, format!("\"\"\"\n---\n{yaml}---\nMore.\n\"\"\"\n1\n")),
        (
            Extension::Ts,
            format!(
                "/**\n * ---\n{} * ---\n */\nreturn 1\n",
                yaml.lines().map(|line| format!(" * {line}\n")).collect::<String>()
            ),
        ),
    ];
    for (extension, source) in sources {
        let found = facts("issues", extension, &source);
        assert_eq!(found, Ok((Some("Lists the issues".to_owned()), schema.clone())), "{source}");
    }
}

/// As files of Markdown and other programs' skills begin; no source in either language can.
#[test]
fn a_front_matter_outside_of_a_comment_is_named() {
    let problem = |extension, source: &str| facts("a", extension, source).unwrap_err();
    let matter = "---\ndescription: Counts\n---\nreturn 1\n";
    for source in [matter.to_owned(), format!("#!/usr/bin/env cx\n\n{matter}")] {
        let said = problem(Extension::Ts, &source);
        assert_eq!(said, "its front matter stands outside of a comment: put `// ` before each of its lines");
    }
    let said = problem(Extension::Py, matter);
    assert!(said.ends_with("put it into the docstring, or `# ` before each of its lines"), "{said}");
}

#[test]
fn without_one_the_first_line_describes() {
    let described = |extension, source| facts("a", extension, source).unwrap().0;
    assert_eq!(described(Extension::Ts, "// Counts things.\nreturn 1"), Some("Counts things.".to_owned()));
    assert_eq!(
        described(Extension::Py, "\"\"\"Counts things.\n\nMore.\"\"\"\n1"),
        Some("Counts things.".to_owned())
    );
    assert_eq!(described(Extension::Ts, "return 1"), None);
    assert_eq!(described(Extension::Py, ""), None);
}

#[test]
fn the_declared_input_of_typescript_is_read_without_running_it() {
    let declared = |text: &str| facts("a", Extension::Ts, text).map(|(_, schema)| schema);
    let schema =
        json!({ "type": "object", "properties": { "a": { "type": "string", "description": "it's {" } } });
    let sources = [
        "export const input = { type: 'object', properties: { a: { type: 'string', description: \"it's {\" \
            } } } as const;\nreturn 1",
        "// Says.\nexport const input: Schema = {\n  // a comment }\n  \"type\": \"object\",\n  properties: \
            { a: { type: \"string\", /* } */ description: 'it\\'s {', }, },\n}\nexport default (given) => given",
    ];
    for source in sources {
        assert_eq!(declared(source).unwrap(), schema, "{source}");
    }
    assert_eq!(declared("export const inputs = 1").unwrap(), Value::Null);
    assert_eq!(declared("const text = `x export const input = 1`").unwrap(), Value::Null);
    let wrong = [
        "export const input = make()",
        "export const input = { type: kind }",
        "export const input = { type: `object` }",
        "export const input = { ...other }",
        "export const input = { type: 'object'",
        "export const input = { type: 'array' }",
        "export const input = { type: 'object', type: 'object' }",
        "export const input = { properties: { a: { type: 'no type' } } }",
    ];
    for source in wrong {
        declared(source).unwrap_err();
    }
    let deep = format!("export const input = {}1{}", "{a:".repeat(40_000), "}".repeat(40_000));
    declared(&deep).unwrap_err();
    let twice = "// ---\n// input: { type: object }\n// ---\nexport const input = { type: 'object' }";
    assert!(declared(twice).unwrap_err().contains("twice"));
}

#[test]
fn a_front_matter_that_lies_or_is_broken_is_said() {
    let problem = |source: &str| facts("a", Extension::Ts, source).unwrap_err();
    assert!(problem("// ---\n// name: b\n// ---\n").contains("says that its name is `b`"));
    assert!(problem("// ---\n// name: a\n").contains("no end"));
    assert!(problem("// ---\n// desciption: x\n// ---\n").contains("did you mean `description`"));
    assert!(problem("// ---\n// description: [x]\n// ---\n").contains("must be a text"));
    assert!(problem("// ---\n// input: 5\n// ---\n").contains("JSON Schema"));
    assert!(problem(&format!("// ---\n// description: {}\n// ---\n", "x".repeat(2_000))).contains("1024"));
    assert!(facts("save", Extension::Ts, "1").unwrap_err().contains("no name"));
    let long = format!("// ---\n{}// ---\n", "// description: x\n".repeat(10_000));
    facts("a", Extension::Ts, &long).unwrap_err();
}

#[test]
fn a_script_is_saved_with_what_was_said_about_it() {
    let place = Place::new();
    let library = place.library();
    let description = "Says \"hi\": to # all, {everyone}";
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer", "description": "a: b, \
        c" }, "list": { "enum": ["x", 1, null, true] } }, "required": ["n"] });
    for (language, code) in [(Language::TypeScript, "return input.n"), (Language::Python, "inputs['n']")] {
        let mut request = SaveRequest::new("hi", language, code);
        request.description = Some(description.to_owned());
        request.input = Some(schema.clone());
        request.replace = true;
        let path = library.save(request).unwrap();
        let saved = library.get("hi").unwrap();
        assert_eq!((saved.language, saved.path.clone()), (language, path));
        assert_eq!(saved.description.as_deref(), Some(description), "{}", saved.source);
        assert_eq!(saved.input.as_ref().unwrap().to_value(), schema, "{}", saved.source);
        assert!(saved.source.ends_with(code));
        assert_eq!(saved.check_input(Some(json!({ "n": 1 }).into())).unwrap().text(), r#"{"n":1}"#);
        let wrong = saved.check_input(Some(json!({ "m": 1 }).into())).unwrap_err();
        assert!(wrong.message.contains('n'), "{wrong}");
        saved.check_input(Some(json!([1]).into())).unwrap_err();
        saved.check_input(None).unwrap_err();
    }
    let exists = library.save(SaveRequest::new("hi", Language::Python, "1")).unwrap_err();
    assert!(matches!(exists, ScriptsError::Exists(_)), "{exists}");
    library.remove("hi").unwrap();
    let gone = library.get("hi").unwrap_err().to_string();
    assert!(gone.starts_with("no saved script `hi`"), "{gone}");
}

#[test]
fn what_cannot_be_read_again_is_not_saved() {
    let place = Place::new();
    let library = place.library();
    let save = |change: &dyn Fn(&mut SaveRequest)| {
        let mut request = SaveRequest::new("a", Language::TypeScript, "return 1");
        change(&mut request);
        library.save(request).unwrap_err().to_string()
    };
    assert!(save(&|request| request.name = "../a".to_owned()).contains("no name"));
    assert!(save(&|request| request.name = "save".to_owned()).contains("no name"));
    assert!(save(&|request| request.code = " ".to_owned()).contains("empty"));
    assert!(save(&|request| request.code = "x".repeat(300 << 10)).contains("bytes"));
    assert!(save(&|request| request.input = Some(json!({ "type": "array" }))).contains("type: object"));
    assert!(save(&|request| request.description = Some("x".repeat(2_000))).contains("1024"));
    let block = "// ---\n// description: x\n// ---\nreturn 1";
    assert!(
        save(&|request| {
            request.code = block.to_owned();
            request.description = Some("y".to_owned());
        })
        .contains("has a front matter")
    );
    assert!(library.list().is_empty());
}

#[test]
fn a_description_cannot_break_out_of_its_comment() {
    let place = Place::new();
    let library = place.library();
    let hostile = "x\n// ---\nthrow 1 //\u{2028}\u{202e}\u{1b}[31m\" */";
    let mut request = SaveRequest::new("a", Language::TypeScript, "return 1");
    request.description = Some(hostile.to_owned());
    library.save(request).unwrap();
    let saved = library.get("a").unwrap();
    assert_eq!(saved.description.as_deref(), Some(hostile));
    let code: Vec<&str> = saved.source.lines().filter(|line| !line.starts_with("//")).collect();
    assert_eq!(code, ["return 1"]);
}

/// A comment of TypeScript ends there too, unlike a line of a text of Rust.
#[test]
fn v_771_metadata_cannot_end_its_comment_at_a_line_separator() {
    let place = Place::new();
    let library = place.library();
    for separator in ['\u{2028}', '\u{2029}'] {
        let hostile = format!("Lists{separator}evil() //");
        let mut request = SaveRequest::new("a", Language::TypeScript, "return 1");
        request.replace = true;
        request.description = Some(hostile.clone());
        request.input = Some(json!({
            "type": "object",
            "properties": { (hostile.as_str()): { "type": "string", "description": hostile } },
        }));
        let schema = request.input.clone();
        library.save(request).unwrap();
        let saved = library.get("a").unwrap();
        let mut lines = saved.source.split(['\n', '\r', '\u{2028}', '\u{2029}']);
        assert!(
            lines.all(|line| line.is_empty() || line.starts_with("//") || line == "return 1"),
            "{saved:?}"
        );
        assert_eq!(saved.description, Some(hostile));
        assert_eq!(saved.input.as_ref().map(|input| input.to_value()), schema);
    }
}

#[test]
fn scripts_of_a_workspace_have_to_be_trusted_with_their_content() {
    let place = Place::new();
    let library = place.library();
    let path = place.in_workspace("build.ts", "// Builds.\nreturn 1");
    assert!(library.list().is_empty());
    let problems = library.problems();
    assert_eq!((problems.len(), problems[0].is_untrusted), (1, true));
    assert!(library.get("build").unwrap_err().to_string().contains("cx trust"));
    let request = TrustRequest::read(&path).unwrap();
    assert_eq!(request.description[2..], ["// Builds.", "return 1"]);
    // Changed between the look at it and the approval: another content.
    place.in_workspace("build.ts", "return evil()");
    TrustStore::new(&place.directories).trust(&request).unwrap();
    assert!(library.list().is_empty(), "what was approved is not what is there");
    place.in_workspace("build.ts", "// Builds.\nreturn 1");
    assert_eq!(library.get("build").unwrap().source, "// Builds.\nreturn 1");
    place.in_workspace("build.ts", "// Builds.\nreturn 2");
    assert!(library.list().is_empty(), "a changed script needs trust again");
}

#[test]
fn hidden_text_of_a_script_is_shown_before_it_is_trusted() {
    let place = Place::new();
    let path = place.in_workspace("a.ts", "// Says\u{202e}\u{1b}[2J.\nreturn 1 //\u{200b}");
    let lines = TrustRequest::read(&path).unwrap().description;
    assert!(lines.iter().any(|line| line.starts_with("return 1 //")), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains(['\u{202e}', '\u{1b}', '\u{200b}'])), "{lines:?}");
    // What is wrong with it is said, and it cannot be trusted.
    let path = place.in_workspace("b.ts", "// ---\n// name: c\n// ---\n");
    let lies = TrustRequest::read(&path).unwrap_err().to_string();
    assert!(lies.contains("says that its name is `c`"), "{lies}");
}

#[test]
fn v_772_code_is_shown_on_the_line_on_which_it_begins_before_it_is_trusted() {
    let place = Place::new();
    let path = place.in_workspace("a.ts", "// Builds.\u{2028}evil()\nreturn 1");
    let lines = TrustRequest::read(&path).unwrap().description;
    assert!(lines.ends_with(&[r"// Builds.\u{2028}".to_owned(), "evil()".to_owned(), "return 1".to_owned()]));
}

#[test]
fn a_workspace_cannot_replace_a_script_of_the_user() {
    let place = Place::new();
    let library = place.library();
    library.save(SaveRequest::new("deploy", Language::Python, "1")).unwrap();
    let path = place.in_workspace("deploy.ts", "return 2");
    TrustStore::new(&place.directories).trust(&TrustRequest::read(&path).unwrap()).unwrap();
    assert_eq!(library.get("deploy").unwrap().source, "1");
    assert!(library.problems()[0].problem.contains("same name"));
}

#[test]
fn a_list_is_the_same_as_long_as_the_folder_is() {
    let place = Place::new();
    let library = place.library();
    let first = library.loaded(std::time::Duration::ZERO);
    assert_eq!(library.loaded(std::time::Duration::ZERO).generation, first.generation);
    library.save(SaveRequest::new("a", Language::Python, "1")).unwrap();
    let second = library.loaded(std::time::Duration::from_secs(60));
    assert!(second.generation > first.generation, "whoever saves may call at once");
    assert_eq!(second.tools.tools.len(), 2);
}

/// A person looks for a script with the command, a model with the search.
#[test]
fn an_unknown_name_is_answered_with_what_lists_the_scripts() {
    let place = Place::new();
    let library = place.library();
    let problem = || library.get("zzz").unwrap_err().to_string();
    assert_eq!(problem(), "no saved script `zzz`; there are no saved scripts");
    for number in 0..13 {
        library.save(SaveRequest::new(format!("script{number}"), Language::Python, "1")).unwrap();
    }
    assert_eq!(
        problem(),
        "no saved script `zzz`; there are 13 saved scripts, which `cx scripts list` lists and `search_tools` finds"
    );
}

/// Threat 416. A workspace's scripts are read before anybody trusts them.
#[test]
fn v_416_thousands_of_tags_are_not_parsed() {
    let source = format!("// ---\n// description: a!\n// {}k: v\n// ---\nreturn 1\n", "! ".repeat(15_000));
    let problem = facts("a", Extension::Ts, &source).unwrap_err();
    assert!(problem.contains("more than 128"), "{problem}");
}
