//! Items of other crates that the public interface names are re-exported by `src/lib.rs`. Otherwise an embedder has to
//! find out which version of another crate cx is built with.
//!
//! Everything that is `pub` can be reached from the root of the crate: the lint `unreachable_pub` sees to that. Types
//! that cx makes and programs only read are `#[non_exhaustive]`, so that they can grow.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::libraries::dependencies;
use crate::source::{Module, Names, Token, end_of_bracket, modules, names, product_tokens};
use crate::tidy::{files, root};

/// The crate that a name comes from, by the module that imports or declares it and the name.
type Origins = BTreeMap<Vec<String>, String>;

/// What `src/lib.rs` re-exports: the crates, and the single items of others with their crates.
struct Reexports {
    crates: BTreeSet<String>,
    items: BTreeSet<(String, String)>,
}

impl Reexports {
    fn new(names: &Names) -> Self {
        let (crates, items): (Vec<_>, Vec<_>) =
            names.other_imports.iter().partition(|(name, origin)| name == origin);
        let items = items.into_iter().map(|(name, origin)| (origin.clone(), name.clone())).collect();
        Self { crates: crates.into_iter().map(|(name, _)| name.clone()).collect(), items }
    }

    fn has(&self, origin: &str, path: &[String]) -> bool {
        self.crates.contains(origin)
            || path.iter().any(|name| self.items.contains(&(origin.to_owned(), name.clone())))
    }
}

/// The parts of a file that users of the crate see: signatures, public fields, variants and traits.
fn public_parts(tokens: &[Token]) -> Vec<&[Token]> {
    let mut parts = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let is_public = word(tokens, index) == Some("pub") && !is(tokens, index + 1, '(');
        index += 1;
        if !is_public {
            continue;
        }
        let has_qualifier = |index| {
            matches!(word(tokens, index), Some("async" | "const" | "unsafe"))
                && matches!(word(tokens, index + 1), Some("async" | "unsafe" | "fn" | "trait"))
        };
        while has_qualifier(index) {
            index += 1;
        }
        let end = match word(tokens, index) {
            Some("fn" | "struct") => end_of_head(tokens, index, &['{', ';']),
            // Its variants and items are as public as it is.
            Some("enum" | "trait") => end_of_bracket(tokens, end_of_head(tokens, index, &['{'])),
            Some("type" | "use") => end_of_head(tokens, index, &[';']),
            Some("static" | "const") => end_of_head(tokens, index, &['=', ';']),
            Some("mod") => index,
            // A field.
            _ => end_of_head(tokens, index, &[',', '}', ')']),
        };
        // The fields of a tuple are public one by one.
        let is_tuple = word(tokens, index) == Some("struct");
        let shown = if is_tuple { end_of_head(tokens, index, &['{', ';', '(']) } else { end };
        parts.push(&tokens[index..shown]);
        index = shown;
    }
    parts
}

/// The heads of the blocks `impl Trait for Type` in a file whose type is one of `types`.
fn public_impls<'a>(tokens: &'a [Token], types: &BTreeSet<String>) -> Vec<&'a [Token]> {
    let mut impls = Vec::new();
    for index in (0..tokens.len()).filter(|index| word(tokens, *index) == Some("impl")) {
        // Elsewhere it is a type: `-> impl Future`.
        let is_item = index == 0 || matches!(tokens[index - 1], Token::Sign('}' | ';' | ']' | '{'));
        let head = &tokens[index..end_of_head(tokens, index, &['{', ';'])];
        let Some(target) = head.iter().position(|token| token.word() == Some("for")) else { continue };
        let names = paths(&head[target + 1..]);
        if is_item && names.first().and_then(|name| name.last()).is_some_and(|name| types.contains(name)) {
            impls.push(head);
        }
    }
    impls
}

/// The names of the types of a file that are public, or that are not.
fn types(tokens: &[Token], is_public: bool) -> BTreeSet<String> {
    let declared = (0..tokens.len()).filter(|index| matches!(word(tokens, *index), Some("struct" | "enum")));
    let before = |index: usize| index.checked_sub(1).and_then(|before| word(tokens, before));
    let declared = declared.filter(|index| (before(*index) == Some("pub")) == is_public);
    declared.filter_map(|index| word(tokens, index + 1).map(str::to_owned)).collect()
}

/// The index of the first of `ends` outside of brackets, from `start` on.
fn end_of_head(tokens: &[Token], start: usize, ends: &[char]) -> usize {
    let mut index = start;
    let mut angles = 0_usize;
    while let Some(token) = tokens.get(index) {
        let is_arrow = index > 0 && matches!(tokens[index - 1], Token::Sign('-' | '='));
        match token {
            Token::Sign(sign) if angles == 0 && ends.contains(sign) => break,
            Token::Sign('<') => angles += 1,
            Token::Sign('>') if !is_arrow => angles = angles.saturating_sub(1),
            Token::Sign('(' | '[' | '{') => {
                index = end_of_bracket(tokens, index);
                continue;
            }
            _ => {}
        }
        index += 1;
    }
    index
}

fn word(tokens: &[Token], index: usize) -> Option<&str> {
    tokens.get(index)?.word()
}

fn is(tokens: &[Token], index: usize, sign: char) -> bool {
    tokens.get(index).is_some_and(|token| token.is(sign))
}

/// The paths in a part of a file. Names of declarations are not paths.
fn paths(tokens: &[Token]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        let start = index;
        let mut path = Vec::new();
        while let Some(segment) = word(tokens, index) {
            path.push(segment.to_owned());
            index += 1;
            if tokens.get(index) != Some(&Token::Separator) || word(tokens, index + 1).is_none() {
                break;
            }
            index += 1;
        }
        let before = start.checked_sub(1).and_then(|before| word(tokens, before));
        let is_declared = matches!(before, Some("fn" | "struct" | "enum" | "trait" | "type"));
        // A field or an argument, or a variant.
        let is_declared = is_declared || [':', '{', '('].iter().any(|sign| is(tokens, index, *sign));
        if path.len() > 1 || (path.len() == 1 && !is_declared) {
            paths.push(path);
        }
        index = index.max(start + 1);
    }
    paths
}

/// The crate that a path in the module comes from, if it is one of `crates`.
fn origin(path: &[String], module: &Module, origins: &Origins, crates: &BTreeSet<String>) -> Option<String> {
    let first = path.first()?;
    let Names { own_imports, other_imports, .. } = &module.names;
    let around = || module.path.split_last().map_or(&[][..], |(_, around)| around);
    let found = match (other_imports.get(first), own_imports.get(first)) {
        (Some(origin), _) => Some(origin),
        (None, Some(own)) => origins.get(&[own.as_slice(), &path[1..]].concat()),
        (None, None) if path.len() > 1 && crates.contains(first) => Some(first),
        (None, None) => match first.as_str() {
            "crate" => origins.get(&path[1..]),
            "super" => origins.get(&[around(), &path[1..]].concat()),
            _ => origins.get(&[module.path.as_slice(), path].concat()),
        },
    };
    found.filter(|origin| crates.contains(*origin)).cloned()
}

/// The names in modules that stand for items of other crates: imports, and aliases of such types.
fn all_origins(modules: &[(Module, Vec<Token>)], crates: &BTreeSet<String>) -> Origins {
    let mut origins = Origins::new();
    for (module, _) in modules {
        let place = |name: &String| [module.path.clone(), vec![name.clone()]].concat();
        origins.extend(module.names.other_imports.iter().map(|(name, origin)| (place(name), origin.clone())));
    }
    for (module, tokens) in modules {
        for index in (0..tokens.len()).filter(|index| word(tokens, *index) == Some("type")) {
            let Some(name) = word(tokens, index + 1) else { continue };
            let target = &tokens[index + 2..end_of_head(tokens, index, &[';', '}'])];
            let target = paths(target).iter().find_map(|path| origin(path, module, &origins, crates));
            let place = [module.path.clone(), vec![name.to_owned()]].concat();
            origins.extend(target.map(|target| (place, target)));
        }
    }
    origins
}

/// A path in a public part of a file, and the crate that it comes from.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    file: String,
    path: Vec<String>,
    origin: String,
}

/// The items of `crates` that public parts of modules name.
fn named(modules: &[(Module, Vec<Token>)], crates: &BTreeSet<String>) -> BTreeSet<Named> {
    let origins = all_origins(modules, crates);
    let public: BTreeSet<String> = modules.iter().flat_map(|(_, tokens)| types(tokens, true)).collect();
    let mut named = BTreeSet::new();
    for (module, tokens) in modules {
        // A private type may have the name of a public one.
        let public = &public - &types(tokens, false);
        let parts = public_parts(tokens).into_iter().chain(public_impls(tokens, &public));
        for path in parts.flat_map(paths) {
            let origin = origin(&path, module, &origins, crates);
            named.extend(origin.map(|origin| Named { file: module.file.clone(), path, origin }));
        }
    }
    named
}

/// Those of them that are not re-exported, as text.
fn missing(named: &BTreeSet<Named>, reexports: &Reexports) -> Vec<String> {
    let missing = named.iter().filter(|named| !reexports.has(&named.origin, &named.path));
    missing.map(|named| format!("{}: {} of {}", named.file, named.path.join("::"), named.origin)).collect()
}

fn read(text: &str, file: &str, path: &[&str]) -> (Module, Vec<Token>) {
    let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
    let names = names(text, &path);
    (Module { file: file.to_owned(), path, names }, product_tokens(text))
}

/// Options are plain data that programs write: a literal takes the fields that it does not name from a default.
const PLAIN_DATA: &[&str] = &[
    "Grants",
    "HistoryLimits",
    "Limits",
    "LlmOptions",
    "LoadOptions",
    "ModelProvider",
    "Permissions",
    "RateLimit",
    "Root",
    "SamplingOptions",
    "SharedTenant",
    "WorkerProcesses",
];

/// The public types of a file to which a field or a variant cannot be added without breaking programs.
fn closed_types(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut closed = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let item = line.strip_prefix("pub enum ").or_else(|| line.strip_prefix("pub struct "));
        let Some(item) = item else { continue };
        let mut before = lines[..index].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
        if before.any(|line| line.trim() == "#[non_exhaustive]") {
            continue;
        }
        let is_end = |line: &&&str| line.starts_with('}') || line.ends_with(';') || line.ends_with("{}");
        let mut body = lines[index..].iter().take_while(|line| !is_end(line));
        // Programs can neither construct nor destructure a type without public fields.
        let is_seen = line.starts_with("pub enum ")
            || line.contains("(pub ")
            || body.any(|line| line.trim_start().starts_with("pub ") && line.starts_with(' '));
        if is_seen {
            closed.extend(item.split(|letter: char| !letter.is_alphanumeric()).next().map(str::to_owned));
        }
    }
    closed
}

#[test]
fn what_cx_makes_can_grow() {
    let mut closed = BTreeSet::new();
    for path in files("src", ".rs") {
        let is_test = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
        if !is_test && !path.starts_with("src/bin") {
            closed.extend(closed_types(&fs::read_to_string(root().join(&path)).unwrap()));
        }
    }
    let plain: BTreeSet<String> = PLAIN_DATA.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(closed, plain, "public types without `#[non_exhaustive]`");
}

#[test]
fn closed_types_are_found() {
    let open = "/// A.\n#[non_exhaustive]\n#[derive(Debug)]\npub enum A {\n    B,\n}\n";
    assert_eq!(closed_types(open), [""; 0]);
    assert_eq!(closed_types("pub enum A {\n    B,\n}\n\npub struct C {\n    d: E,\n}\n"), ["A"]);
    assert_eq!(
        closed_types("pub struct A;\npub struct B {\n    pub c: D,\n}\npub struct E(pub F);\n"),
        ["B", "E"]
    );
}

#[test]
fn the_crates_of_public_types_are_reexported() {
    let text = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let crates: BTreeSet<String> = dependencies().iter().map(|name| name.replace('-', "_")).collect();
    let reexports = Reexports::new(&names(&text("src/lib.rs"), &[]));
    assert!(reexports.crates.contains("serde_json"), "{:?}", reexports.crates);
    let with_tokens = |module: Module| {
        let tokens = product_tokens(&text(&module.file));
        (module, tokens)
    };
    let roots = ["lib.rs", "fuzz_lib.rs"];
    let modules: Vec<_> = modules("src", &roots).into_iter().map(with_tokens).collect();
    let named = named(&modules, &crates);
    let missing = missing(&named, &reexports);
    assert!(missing.is_empty(), "{missing:#?}");
    for unused in &reexports.crates {
        assert!(named.iter().any(|named| named.origin == *unused), "no signature needs {unused}");
    }
}

#[test]
fn each_form_of_a_public_type_is_found() {
    let other = "pub(crate) use http::Uri; pub(crate) type Name = http::HeaderName;";
    let found = |text: &str| {
        let modules = [read(text, "a.rs", &["a"]), read(other, "b.rs", &["b"])];
        let crates = ["http", "url"].map(str::to_owned).into();
        let reexports = Reexports::new(&names("pub use url; pub use http::Method;", &[]));
        missing(&named(&modules, &crates), &reexports).join(", ")
    };
    for (text, expected) in [
        ("pub fn f(x: http::Request<u8>) {}", "a.rs: http::Request of http"),
        ("use http::Request; pub async fn f<T>() -> Vec<Request<T>> {}", "a.rs: Request of http"),
        ("use http::request::Parts as P; pub fn f<T>() where T: Into<P>;", "a.rs: P of http"),
        ("use crate::b::Uri; pub struct S { x: Uri, pub y: Vec<Uri> }", "a.rs: Uri of http"),
        ("use crate::b::Name; pub struct S(pub Name);", "a.rs: Name of http"),
        ("type N = http::Uri; pub enum E { A(N), B { x: u8 } }", "a.rs: N of http"),
        ("pub trait T { fn f(&self, x: &http::Uri); }", "a.rs: http::Uri of http"),
        ("pub type T = Box<dyn Fn(http::Uri)>;", "a.rs: http::Uri of http"),
        ("pub const fn f() -> http::Uri {} pub const C: u8 = 1;", "a.rs: http::Uri of http"),
        ("pub const C: http::Uri = x();", "a.rs: http::Uri of http"),
        ("pub use http::Uri;", "a.rs: http::Uri of http"),
        ("pub fn f() -> super::b::Uri {}", "a.rs: super::b::Uri of http"),
        ("pub struct S; impl From<http::Uri> for S {}", "a.rs: http::Uri of http"),
        ("struct S; impl From<http::Uri> for S {}", ""),
        ("pub fn http(http: u8) -> url::Url { http::Uri::x() }", ""),
        ("use http::Method; pub fn f(x: Method, y: http::Method) {}", ""),
        ("pub struct S { x: http::Uri } pub struct T(http::Uri);", ""),
        ("pub(crate) fn f(x: http::Uri) {} fn g(x: http::Uri) {}", ""),
        ("#[cfg(test)] pub fn f(x: http::Uri) {}", ""),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}

/// The manifests, and what documents say of the oldest compiler that builds cx.
#[test]
fn the_oldest_rust_is_the_same_everywhere() {
    let text = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let manifest = text("Cargo.toml");
    let line = manifest.lines().find(|line| line.starts_with("rust-version = ")).unwrap();
    for file in ["python-wasm/Cargo.toml", "examples/library/Cargo.toml"] {
        assert!(text(file).lines().any(|other| other == line), "{file}");
    }
    let version = line.split('"').nth(1).unwrap();
    for page in ["docs/building.md", "docs/library.md"] {
        assert!(text(page).contains(&format!("Rust {version}")), "{page}");
    }
}
