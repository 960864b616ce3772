//! `cx completions` and `cx man`, as read by shells and by `man`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn cx(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cx")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a program, if it is installed.
#[expect(clippy::print_stdout, reason = "what is left out is for people to read")]
fn installed(program: &str, arguments: &[&str], directory: &Path) -> Option<Output> {
    match Command::new(program).args(arguments).current_dir(directory).env("HOME", directory).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("SKIP: `{program}` is not installed");
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

#[test]
fn shells_read_their_completions_and_offer_commands() {
    let directory = tempfile::tempdir().unwrap();
    // The completions that the shell offers for `cx setup --dry-` and for `cx tools l`.
    let bash = "source ./script; COMP_WORDS=(cx setup --dry-); COMP_CWORD=2; _cx cx --dry- setup; echo \"${COMPREPLY[@]}\"; \
                COMP_WORDS=(cx tools l); COMP_CWORD=2; _cx cx l tools; echo \"${COMPREPLY[@]}\"";
    let zsh = "autoload -U compinit; compinit -D; source ./script; print ${_comps[cx]}";
    let fish = "source ./script; complete -C 'cx setup --dry-'; complete -C 'cx tools l'";
    for (shell, offers) in [("bash", bash), ("zsh", zsh), ("fish", fish)] {
        fs::write(directory.path().join("script"), cx(&["completions", shell])).unwrap();
        let Some(checked) = installed(shell, &["-n", "script"], directory.path()) else { continue };
        assert!(checked.status.success() && printed(&checked).is_empty(), "{shell}: {}", printed(&checked));
        let offered = installed(shell, &["-c", offers], directory.path()).unwrap();
        let offered = printed(&offered);
        match shell {
            // Seeing the completions of zsh needs a terminal and keys: here it has registered the function for `cx`.
            "zsh" => assert_eq!(offered, "_cx\n"),
            _ => assert!(offered.contains("--dry-run") && offered.contains("list"), "{shell}: {offered}"),
        }
        // The same check notices a text that is no script of this shell.
        fs::write(directory.path().join("script"), "if then (((\n").unwrap();
        assert!(!installed(shell, &["-n", "script"], directory.path()).unwrap().status.success(), "{shell}");
    }
}

#[test]
fn pages_have_no_mistakes_of_their_format() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man");
    cx(&["man", "--out", pages.to_str().unwrap()]);
    fs::write(pages.join("cx.1"), cx(&["man"])).unwrap();
    let mut names: Vec<String> =
        fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in ["cx.1", "cx-run.1", "cx-setup.1", "cx-tools-list.1"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("help")), "{names:?}");
    let title = format!("\"cx {}\"", env!("CARGO_PKG_VERSION"));
    for name in &names {
        let page = fs::read_to_string(pages.join(name)).unwrap();
        let has_title = |line: &str| line.starts_with(".TH ") && line.contains(&title);
        assert!(page.lines().any(has_title), "{name}: {page}");
        if let Some(checked) = installed("mandoc", &["-T", "lint", "-W", "error", name], &pages) {
            assert!(checked.status.success(), "{name}: {}", printed(&checked));
        }
        let arguments = ["--warnings", "-E", "UTF-8", "-P", "cat", "-l", name];
        if let Some(shown) = installed("man", &arguments, &pages) {
            let error = String::from_utf8_lossy(&shown.stderr);
            assert!(shown.status.success() && error.is_empty(), "{name}: {error}");
            let text = String::from_utf8_lossy(&shown.stdout);
            let command = name.trim_end_matches(".1").replacen("cx-", "cx ", 1);
            assert!(text.contains("SYNOPSIS") && text.contains("cx"), "{command}: {text}");
        }
    }
}
