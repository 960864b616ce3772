//! The layers of the library and the graph of its files, checked by reading the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::source::{Module, cycles, graph, modules};
use crate::tidy::{code, files};

/// The layers from the top down. A module may name itself and those below it in this list, and nothing else.
const LAYERS: &[&[&str]] = &[
    &["server"],
    &["executor"],
    &["config", "engine"],
    &["telemetry"],
    &["run"],
    &["llm", "mcp"],
    &["net"],
    &["tools"],
    &["files", "nats", "queue"],
    &["storage"],
    &[
        "conventions",
        "durations",
        "error",
        "json",
        "lines",
        "machine",
        "pauses",
        "rate",
        "steps",
        "sync",
        "text",
    ],
];

/// Files that name all layers: the roots of the library, and of the part of it that fuzz targets link.
const ROOTS: &[&str] = &["lib.rs", "fuzz_lib.rs"];

/// The files of the command, which is a separate crate.
const COMMAND: &str = "src/bin/cx";

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

#[test]
fn modules_name_only_what_is_below_them() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for module in modules("src", ROOTS) {
        let own = &module.path[0];
        let Some(layer) = layer(own) else {
            wrong.push(format!("{} is in no layer", module.file));
            continue;
        };
        for name in module.names.own.iter().filter_map(|path| path.first()) {
            seen += 1;
            let is_allowed = name == own || self::layer(name).is_some_and(|below| below > layer);
            if !is_allowed {
                wrong.push(format!("{} names `{name}`", module.file));
            }
        }
    }
    assert!(wrong.is_empty(), "not below:\n{}", wrong.join("\n"));
    assert!(seen > 500, "only {seen} names were found");
}

/// A reader can understand a file together with those that it names, because they do not lead back to it. The exception
/// is two files that name each other: they are one thing in two files.
#[test]
fn no_more_than_two_files_name_each_other() {
    for (directory, roots, least) in [("src", ROOTS, 400), (COMMAND, &[][..], 10)] {
        let modules = modules(directory, roots);
        let graph = graph(&modules);
        let arrows: usize = graph.iter().map(|targets| targets.len()).sum();
        assert!(arrows > least, "only {arrows} arrows in {directory}");
        let long: Vec<Vec<usize>> = cycles(&graph).into_iter().filter(|cycle| cycle.len() > 2).collect();
        let shown: Vec<String> = long.iter().map(|cycle| show(cycle, &modules, &graph)).collect();
        assert!(long.is_empty(), "{directory} has {} cycles:\n\n{}", long.len(), shown.join("\n"));
    }
}

/// The files of a cycle, each with the members of the cycle that it names.
fn show(cycle: &[usize], modules: &[Module], graph: &[BTreeSet<usize>]) -> String {
    let mut shown = format!("{} files:\n", cycle.len());
    for &number in cycle {
        let named = cycle.iter().filter(|other| graph[number].contains(other));
        let named: Vec<String> = named.map(|&other| modules[other].path.join("::")).collect();
        writeln!(shown, "    {} names {}", modules[number].file, named.join(", ")).unwrap();
    }
    shown
}

/// As with files, so with folders: the parts of a folder, which are its files and the folders in it, form no cycle of
/// more than two. A file and the folder of its modules are one part.
#[test]
fn no_more_than_two_parts_of_a_folder_name_each_other() {
    let mut wrong = Vec::new();
    for (directory, roots, least) in [("src", ROOTS, 40), (COMMAND, &[][..], 5)] {
        let modules = modules(directory, roots);
        let graph = graph(&modules);
        let folders: BTreeSet<&[String]> =
            modules.iter().filter_map(|module| module.path.split_last()).map(|(_, folder)| folder).collect();
        assert!(folders.len() > least, "only {} folders in {directory}", folders.len());
        for folder in folders {
            for cycle in cycles_of_parts(folder, &modules, &graph) {
                wrong.push(format!("{directory}/{}: {}", folder.join("/"), cycle.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "parts that lead back to each other:\n{}", wrong.join("\n"));
}

/// The cycles of more than two parts of a folder.
fn cycles_of_parts<'a>(
    folder: &[String],
    modules: &'a [Module],
    graph: &[BTreeSet<usize>],
) -> Vec<Vec<&'a str>> {
    let part = |module: &'a Module| module.path.strip_prefix(folder)?.first().map(String::as_str);
    let names: BTreeSet<&str> = modules.iter().filter_map(part).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let numbers: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(number, name)| (*name, number)).collect();
    let number = |module: &'a Module| part(module).map(|part| numbers[part]);
    let mut arrows = vec![BTreeSet::new(); names.len()];
    for (module, targets) in modules.iter().zip(graph) {
        let Some(from) = number(module) else { continue };
        let targets = targets.iter().filter_map(|target| number(&modules[*target]));
        arrows[from].extend(targets.filter(|target| *target != from));
    }
    let long = cycles(&arrows).into_iter().filter(|cycle| cycle.len() > 2);
    long.map(|cycle| cycle.into_iter().map(|number| names[number]).collect()).collect()
}

/// The command reaches only what every embedder can reach: the compiler sees to that, unless a file of the library is
/// made a module of the command, or a public item is hidden from the documentation.
#[test]
fn the_command_uses_the_public_interface_only() {
    for path in files(COMMAND, ".rs") {
        let code = code(&path);
        for way_in in ["#[path", "include!("] {
            assert!(!code.contains(way_in), "{} has {way_in}", path.display());
        }
    }
    for path in files("src", ".rs") {
        assert!(!code(&path).contains("doc(hidden)"), "{} has something hidden", path.display());
    }
}

/// The fuzz targets are a separate workspace, which the other tests do not compile. Its root and its dependencies have
/// what the modules in it name. `make fuzz-check` compiles it.
#[test]
fn fuzz_targets_have_what_their_modules_name() {
    let read = |file: &str| std::fs::read_to_string(crate::tidy::root().join(file)).unwrap();
    let (product, fuzz) = (read("Cargo.toml"), read("fuzz/Cargo.toml"));
    let (whole, parts) = declared_modules(&read("src/fuzz_lib.rs"));
    assert!(whole.len() > 20 && parts.len() > 5, "{whole:?} {parts:?}");
    let modules = modules("src", ROOTS);
    let paths: BTreeSet<&[String]> = modules.iter().map(|module| module.path.as_slice()).collect();
    let is_whole = |path: &[String]| (1..=path.len()).any(|length| whole.contains(&path[..length]));
    let depends = |manifest: &str, name: &str| {
        let key = |line: &str| line.split([' ', '.']).next().is_some_and(|key| key.replace('-', "_") == name);
        manifest.lines().any(|line| line.contains('=') && key(line))
    };
    let mut wrong = BTreeSet::new();
    for module in modules.iter().filter(|module| is_whole(&module.path)) {
        for path in &module.names.own {
            // The innermost module of a path: the segments after it are an item.
            let named =
                (1..=path.len()).rev().map(|length| &path[..length]).find(|path| paths.contains(path));
            if let Some(named) = named.filter(|named| !is_whole(named) && !parts.contains(*named)) {
                let named = named.join("::");
                wrong.insert(format!("src/fuzz_lib.rs lacks `mod {named}`, which {} names", module.file));
            }
        }
        for name in &module.names.others {
            if depends(&product, name) && !depends(&fuzz, name) {
                wrong.insert(format!("fuzz/Cargo.toml lacks `{name}`, which {} names", module.file));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The paths of the modules that a formatted file declares: all modules with a file of their own, and the modules whose
/// parts it lists itself.
fn declared_modules(text: &str) -> (BTreeSet<Vec<String>>, BTreeSet<Vec<String>>) {
    let (mut whole, mut parts, mut path) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for line in text.lines() {
        let item = line.trim_start();
        let depth = (line.len() - item.len()) / 4;
        let item =
            ["pub(crate) ", "pub "].iter().find_map(|prefix| item.strip_prefix(prefix)).unwrap_or(item);
        let Some(name) = item.strip_prefix("mod ") else {
            continue;
        };
        path.truncate(depth);
        path.push(name.trim_end_matches([' ', '{', ';']).to_owned());
        let kind = if name.ends_with(';') { &mut whole } else { &mut parts };
        kind.insert(path.clone());
    }
    (whole, parts)
}
