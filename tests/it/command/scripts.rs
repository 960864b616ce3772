//! `cx scripts`, `cx run NAME`, and the trust in scripts of a workspace.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir(home.work()).unwrap();
        home
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// What a command prints, and its exit status.
    fn cx(&self, arguments: &[&str]) -> (String, String, i32) {
        let output = Command::new(env!("CARGO_BIN_EXE_cx"))
            .args(arguments)
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.0.path())
            .env("XDG_CACHE_HOME", crate::support::python_cache())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let (stdout, stderr, status) = self.cx(arguments);
        assert_eq!(status, 0, "{arguments:?}: {stdout}{stderr}");
        stdout
    }

    /// What a command that fails writes to stderr.
    fn fails(&self, arguments: &[&str], status: i32) -> String {
        let (stdout, stderr, actual) = self.cx(arguments);
        assert_eq!(actual, status, "{arguments:?}: {stdout}{stderr}");
        stderr
    }
}

const ADD: &str = "// Adds two numbers.\nexport const input = { type: 'object', properties: { a: { type: \
    'number' }, b: { type: 'number' } }, required: ['a', 'b'] };\nexport default ({ a, b }) => a + b;\n";

#[test]
fn a_script_is_saved_listed_shown_run_and_removed() {
    let home = Home::new();
    assert!(home.ok(&["scripts", "list"]).contains("no saved scripts"));
    home.write("add.ts", ADD);
    assert!(home.ok(&["scripts", "save", "add.ts"]).contains("`cx run add`"));
    let file = home.0.path().join(".config/cx/scripts/add.ts");
    assert_eq!(fs::read_to_string(&file).unwrap(), ADD);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(home.fails(&["scripts", "save", "add.ts"], 2).contains("already; `--replace` replaces it"));
    home.ok(&["scripts", "save", "add.ts", "--replace"]);
    home.write("hi.py", "print('hi')\ninputs\n");
    home.ok(&["scripts", "save", "hi.py", "--name", "say-hi", "--description", "Says hi: to # all"]);
    let list = home.ok(&["scripts", "list"]);
    assert_eq!(list, "add     typescript  Adds two numbers.\nsay-hi  python      Says hi: to # all\n");
    let json: Value = serde_json::from_str(&home.ok(&["scripts", "list", "--json"])).unwrap();
    assert_eq!(json["scripts"][0]["input"]["required"], json!(["a", "b"]));
    assert!(home.ok(&["scripts", "show", "add"]).ends_with(&format!("\n\n{ADD}")));
    assert_eq!(home.ok(&["run", "add", "--input", r#"{"a": 40, "b": 2}"#]), "42\n");
    assert_eq!(home.ok(&["run", "say-hi", "--input", "[1]"]), "hi\n[1]\n");
    assert!(
        home.fails(&["run", "say-hi", "--lang", "ts"], 2).contains("`say-hi` is Python: leave out `--lang`")
    );
    assert_eq!(home.ok(&["run", "say-hi", "--lang", "py", "--input", "1"]), "hi\n1\n");
    let wrong = home.fails(&["run", "add", "--input", r#"{"a": 40, "c": 2}"#], 2);
    assert!(wrong.contains("INVALID_ARGUMENTS") && wrong.contains('b'), "{wrong}");
    assert!(home.fails(&["run", "ad"], 2).contains("did you mean `add`"));
    // Scripts call it; `cx tools` knows it.
    assert_eq!(home.ok(&["run", "-e", "return await scripts.add({ a: 1, b: 2 })"]), "3\n");
    assert!(home.ok(&["types", "--lang", "ts"]).contains("add"));
    home.ok(&["scripts", "remove", "add"]);
    assert!(home.fails(&["scripts", "remove", "add"], 2).contains("no saved script `add`"));
    assert!(home.fails(&["run", "add"], 2).contains("no saved script `add`"));
}

#[test]
fn what_cannot_be_compiled_is_not_saved() {
    let home = Home::new();
    home.write("typo.ts", "// Adds.\nconst sum = 1 +;\nreturn sum");
    home.write("typo.py", "def add(a:\n    return a");
    for (file, location) in [("typo.ts", "typo.ts:2:"), ("typo.py", "typo.py:1:")] {
        let said = home.fails(&["scripts", "save", file], 1);
        assert!(said.contains("error[SYNTAX_ERROR]") && said.contains(location), "{said}");
        assert!(said.contains("nothing was saved"), "{said}");
    }
    home.write("skill.ts", "---\ndescription: Adds\n---\nreturn 1");
    let said = home.fails(&["scripts", "save", "skill.ts"], 2);
    assert!(said.contains("its front matter stands outside of a comment"), "{said}");
    assert!(home.ok(&["scripts", "list"]).contains("no saved scripts"));
    // A tool that is not there yet, and a configuration that cannot be read, are no reasons.
    home.write("later.ts", "return await tools.later.go({})");
    home.write(".mcp.json", "{ broken");
    home.ok(&["scripts", "save", "later.ts"]);
}

/// The schema that a script exports has the name of the global with the input.
#[test]
fn a_script_that_reads_its_schema_for_its_input_is_warned_of() {
    let home = Home::new();
    let schema = "export const input = { type: 'object', properties: { name: { type: 'string' } } };\n";
    let saved = |code: &str| {
        home.write("hi.ts", &format!("// The input.\n{schema}{code}\n"));
        let (_, said, status) = home.cx(&["scripts", "save", "hi.ts", "--replace"]);
        assert_eq!(status, 0, "{said}");
        said.contains("`input` in this script is the schema")
    };
    assert!(saved("return 'hi ' + input.name"));
    assert!(saved("const { name } = input;\nreturn name"));
    for right in [
        "return 'hi ' + inputs.name",
        "export default ({ name }) => name",
        "export default (input) => input.name",
        "return Object.keys(input.properties)",
        "const it = { input: inputs };\nreturn it.input.name",
    ] {
        assert!(!saved(right), "{right}");
    }
}

#[test]
fn a_file_of_the_same_name_does_not_take_the_place_of_a_script() {
    let home = Home::new();
    home.write("deploy.ts", "return 'mine'");
    home.ok(&["scripts", "save", "deploy.ts"]);
    home.write("deploy", "return 'of a repository'");
    let (stdout, stderr, _) = home.cx(&["run", "deploy"]);
    assert_eq!(stdout, "\"mine\"\n");
    assert!(stderr.contains("`./deploy` is the file"), "{stderr}");
    assert_eq!(home.ok(&["run", "./deploy"]), "\"of a repository\"\n");
    home.ok(&["scripts", "remove", "deploy"]);
    assert_eq!(home.ok(&["run", "deploy"]), "\"of a repository\"\n", "as before there were saved scripts");
}

#[test]
fn a_script_of_a_workspace_is_trusted_first_and_again_when_it_changes() {
    let home = Home::new();
    home.write(".cx/scripts/build.ts", "// Builds \u{202e}it.\nreturn 1");
    let list = home.ok(&["scripts", "list"]);
    assert!(list.contains("build.ts: not used") && list.contains("cx trust"), "{list}");
    assert!(home.fails(&["run", "build"], 2).contains("cx trust"));
    assert!(home.fails(&["run", "-e", "return await scripts.build()"], 1).contains("TOOL_NOT_FOUND"));
    let shown = home.ok(&["trust", ".cx/scripts/build.ts", "--yes"]);
    assert!(shown.contains("// Builds \\u{202e}it.") && shown.contains("return 1"), "{shown}");
    assert_eq!(home.ok(&["run", "build"]), "1\n");
    assert!(home.ok(&["scripts", "list"]).contains("(workspace)"));
    home.write(".cx/scripts/build.ts", "return 2");
    assert!(home.fails(&["run", "build"], 2).contains("not trusted"));
    assert!(home.ok(&["trust", "--list"]).contains("changed since"));
    home.write("other.ts", "return 1");
    let said = home.fails(&["trust", "other.ts", "--yes"], 2);
    assert!(said.contains("only scripts in a folder `.cx/scripts` need trust"), "{said}");
}

#[test]
fn hostile_files_in_a_folder_are_named_and_not_used() {
    let home = Home::new();
    home.write("a.ts", "return 1");
    home.ok(&["scripts", "save", "a.ts"]);
    let folder = home.0.path().join(".config/cx/scripts");
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link.ts")).unwrap();
    fs::write(folder.join("lies.ts"), "// ---\n// name: a\n// ---\n").unwrap();
    fs::write(folder.join("\u{1b}[31m.ts"), "1").unwrap();
    fs::write(folder.join("huge.py"), vec![b'1'; 300 << 10]).unwrap();
    let list = home.ok(&["scripts", "list"]);
    assert!(list.starts_with("a  typescript"), "{list}");
    for part in [
        "link.ts: not used: it is a link",
        "lies.ts: not used: its front matter says",
        "huge.py: not used",
        "\\u{1b}[31m.ts: not used",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    assert!(!list.contains('\u{1b}'));
    assert!(home.fails(&["run", "link"], 2).contains("is a link"));
    assert!(home.fails(&["scripts", "show", "lies"], 2).contains("front matter"));
}
