//! Each third-party library is used by one module of `src`, so that it can be replaced there, and so that a reader
//! knows how far its types reach. Exceptions name their reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::source::modules;
use crate::tidy::root;

/// Which folders and files of `src` may name a library.
enum Users {
    One(&'static str),
    Several(&'static [&'static str], &'static str),
    /// All of them, with the reason.
    All(&'static str),
}

use Users::{All, One, Several};

/// Every library of `[dependencies]` in Cargo.toml. A module may use only the libraries that this list assigns to it.
const LIBRARIES: &[(&str, Users)] = &[
    ("tokio", All("the async runtime")),
    ("tokio-util", All("the cancellation of a run reaches from its caller to its calls at upstream servers")),
    ("futures", All("boxed futures and the small combinators")),
    ("serde", All("JSON is what crosses the trust boundary")),
    ("serde_json", All("as serde")),
    ("parking_lot", All("locks without poisoning")),
    ("thiserror", All("each module has its errors")),
    ("tracing", All("each module has its log")),
    ("cap-std", One("files/granted")),
    ("rustix", All("safe calls of the operating system, which have no common subject")),
    // TypeScript.
    ("deno_core", One("engine/typescript")),
    ("deno_error", One("engine/typescript")),
    ("deno_web", One("engine/typescript")),
    ("deno_webidl", One("engine/typescript")),
    ("swc_common", One("engine/typescript/transpile")),
    ("swc_ecma_ast", One("engine/typescript/transpile")),
    ("swc_ecma_codegen", One("engine/typescript/transpile")),
    ("swc_ecma_parser", One("engine/typescript/transpile")),
    ("swc_ecma_transforms_base", One("engine/typescript/transpile")),
    ("swc_ecma_transforms_typescript", One("engine/typescript/transpile")),
    ("swc_ecma_visit", One("engine/typescript/transpile")),
    // Python.
    ("wasmtime", One("engine/python")),
    ("wasmtime-wasi", One("engine/python")),
    ("wasmparser", One("engine/python/image")),
    ("ruff_python_ast", One("engine/python/survey")),
    ("ruff_python_parser", One("engine/python/survey")),
    ("ruff_text_size", One("engine/python/survey")),
    ("ruzstd", One("engine/python/unpack")),
    (
        "flate2",
        Several(&["engine/python/unpack", "net/gunzip"], "machine code in the program; bodies of responses"),
    ),
    ("cx-python-component", One("engine/python/interpreter")),
    // Worker processes.
    ("postcard", One("engine/process/frames")),
    ("landlock", One("engine/process/sandbox")),
    ("seccompiler", One("engine/process/sandbox")),
    (
        "libc",
        Several(
            &[
                "engine",
                "machine/sandbox",
                "bin/cx/allocator",
                "bin/cx/exit",
                "bin/cx/process",
                "bin/cx/signals",
            ],
            "calls that no safe crate has, each beside what needs it",
        ),
    ),
    (
        "getrandom",
        Several(
            &["engine/typescript", "text/ids", "nats"],
            "`crypto` of scripts, ids and names that cannot be guessed, nonces of messages",
        ),
    ),
    // The Model Context Protocol and HTTP.
    ("rmcp", Several(&["mcp", "server"], "both sides of the protocol")),
    (
        "http",
        Several(
            &[
                "mcp",
                "net",
                "server",
                "config/formats",
                "config/resolve",
                "executor/remote_worker",
                "executor/worker_upgrade",
            ],
            "types of rmcp, reqwest and axum; names of headers in files",
        ),
    ),
    (
        "url",
        Several(
            &["lib", "mcp", "net", "server/http", "config", "bin/cx/auth", "executor/remote_worker"],
            "the type of an address, in interfaces too",
        ),
    ),
    (
        "axum",
        Several(
            &["server/http", "mcp/oauth"],
            "the server, and the one request of OAuth's loopback redirect",
        ),
    ),
    ("hyper", One("server/http")),
    ("hyper-util", One("server/http")),
    ("subtle", One("server/http/token")),
    (
        "reqwest",
        Several(
            &["mcp", "net", "llm/provider", "executor/remote_worker"],
            "each has connections of its own, with bounds of its own",
        ),
    ),
    ("rustls", Several(&["net/tls", "mcp/oauth/assertion"], "TLS, and keys in files")),
    ("regex", One("llm/filter")),
    ("keyring", One("mcp/oauth")),
    ("backon", One("mcp/backoff")),
    ("httpdate", One("durations")),
    (
        "base64",
        Several(
            &[
                "engine/host_calls/files",
                "mcp/http/headers",
                "mcp/oauth/assertion",
                "mcp/oauth/dpop",
                "mcp/skills",
                "net",
                "telemetry/audit/note",
            ],
            "bytes of files; headers that are not ASCII; files of skills; bodies of requests; keys and signatures",
        ),
    ),
    (
        "ring",
        Several(
            &["telemetry/audit/note", "nats/seal", "mcp/oauth/assertion", "mcp/oauth/dpop"],
            "signatures of the audit trail; seals of messages; assertions and proofs of clients that sign in",
        ),
    ),
    ("async-nats", One("nats")),
    ("hex", All("hashes and keys as text")),
    ("governor", One("rate")),
    (
        "metrics",
        Several(
            &[
                "lib",
                "mcp",
                "server",
                "executor",
                "run/models/measured",
                "tools/catalog",
                "engine/python/compiled",
                "telemetry",
                "bin/cx/metrics",
                "bin/cx/trace",
            ],
            "a facade: each counts what it does",
        ),
    ),
    ("toon-format", One("server/answer")),
    ("pollster", One("executor")),
    // Tools, state, configuration.
    ("memchr", One("json/numbers")),
    ("jsonschema", One("tools")),
    ("lru", One("tools")),
    (
        "strsim",
        Several(
            &["tools/names", "config/reader", "run/time_zone"],
            "\"did you mean\" for names of tools and time zones, and for keys of files",
        ),
    ),
    ("wildmatch", One("tools/policy")),
    (
        "sha2",
        Several(
            &["engine/python", "mcp/settings", "run/tape/random", "server", "storage/files", "telemetry"],
            "each has a fingerprint of its own: of code, of a server, of a token, of a file, of a source or a line; \
             and the random numbers of a recorded run",
        ),
    ),
    (
        "tempfile",
        Several(
            &[
                "engine/python/memory",
                "bin/cx/document",
                "bin/cx/running",
                "bin/cx/typecheck",
                "bin/cx/ui",
                "storage/replace",
            ],
            "a memory image without a name, files that replace others or go with their process, and what type checkers read",
        ),
    ),
    ("rusqlite", One("storage/state")),
    (
        "jsonc-parser",
        Several(&["config/document", "config/setup/edit"], "files are read, and those of clients changed"),
    ),
    ("toml", One("config/document")),
    ("toml_edit", One("config/setup/edit")),
    ("icu_normalizer", One("config/setup/own_entry")),
    (
        "yaml-edit",
        Several(
            &["config/document", "config/setup/edit", "mcp/skills/front_matter"],
            "goose's file is read, and changed; skills of servers",
        ),
    ),
    // The command.
    ("clap", One("bin/cx")),
    ("anyhow", One("bin/cx")),
    ("anstream", One("bin/cx/terminal")),
    ("annotate-snippets", One("bin/cx/diagnostic")),
    (
        "humantime",
        Several(
            &["bin/cx", "config/amounts", "config/reader", "text/time"],
            "times on the command line, in files and in texts",
        ),
    ),
    (
        "bytesize",
        Several(
            &["bin/cx", "config/amounts"],
            "sizes on the command line, and units in files that have none",
        ),
    ),
    ("open", One("bin/cx/browser")),
    ("ratatui", One("bin/cx/top")),
    ("tracing-subscriber", One("bin/cx")),
    ("opentelemetry", One("telemetry/otel")),
    ("opentelemetry_sdk", One("telemetry/otel")),
    ("opentelemetry-otlp", One("telemetry/otel")),
    ("opentelemetry-http", One("telemetry/otel/client")),
    ("metrics-exporter-prometheus", One("bin/cx/metrics")),
    ("inquire", One("bin/cx/setup_command")),
    ("indicatif", One("bin/cx/progress")),
    ("reedline", One("bin/cx/repl")),
    ("comfy-table", One("bin/cx/repl")),
    ("listenfd", One("bin/cx/http")),
    (
        "bpe-openai",
        Several(&["bin/cx/savings", "llm/estimate"], "the command counts definitions, a run its prompts"),
    ),
    ("clap_complete", Several(&["bin/cx/args", "bin/cx/completions"], "the names of shells are arguments")),
    ("clap_mangen", One("bin/cx/completions")),
];

/// The names of the libraries in the manifest.
pub(crate) fn dependencies() -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let linux = &manifest["target"]["cfg(target_os = \"linux\")"]["dependencies"];
    let tables = [&manifest["dependencies"], linux];
    tables.into_iter().flat_map(|table| table.as_table().unwrap().keys().cloned()).collect()
}

/// For each library, the files of `src` that name it, as paths of modules: `engine/python/image`.
fn users() -> BTreeMap<String, BTreeSet<String>> {
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for module in modules("src", &["fuzz_lib.rs"]).into_iter().chain(modules("src/bin/cx", &[])) {
        let file = module.file.strip_prefix("src/").unwrap().trim_end_matches(".rs").trim_end_matches("/mod");
        for name in module.names.others {
            users.entry(name).or_default().insert(file.to_owned());
        }
    }
    users
}

fn is_below(file: &str, module: &str) -> bool {
    file.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[test]
fn each_library_is_named_by_one_module() {
    let users = users();
    let no_files = BTreeSet::new();
    let mut wrong = Vec::new();
    let listed: BTreeSet<String> = LIBRARIES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let dependencies = dependencies();
    wrong.extend(
        dependencies.difference(&listed).map(|name| format!("{name} is not in the list of its users")),
    );
    wrong.extend(listed.difference(&dependencies).map(|name| format!("{name} is no dependency")));
    for (name, allowed) in LIBRARIES {
        let files = users.get(&name.replace('-', "_")).unwrap_or(&no_files);
        let (modules, reason) = match allowed {
            One(module) => (std::slice::from_ref(module), "one module"),
            Several(modules, reason) => (*modules, *reason),
            All(reason) => (&[][..], *reason),
        };
        assert!(!reason.is_empty(), "{name}: why several modules?");
        if files.is_empty() {
            wrong.push(format!("nothing names {name}"));
        } else if !modules.is_empty() {
            let others = files.iter().filter(|file| !modules.iter().any(|module| is_below(file, module)));
            wrong.extend(others.map(|file| format!("src/{file} names {name}")));
            let idle = modules.iter().filter(|module| !files.iter().any(|file| is_below(file, module)));
            wrong.extend(idle.map(|module| format!("{module} does not name {name} any more")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// With a clock before 1970, which no test can set, rustls panics in whatever sends a request.
#[test]
fn what_sends_requests_checks_the_clock() {
    let mut senders = BTreeMap::new();
    for module in modules("src", &["fuzz_lib.rs"]) {
        let text = fs::read_to_string(root().join(&module.file)).unwrap();
        let has_client = module.names.others.contains("reqwest") || text.contains("web::Client");
        if has_client && [".send()", ".execute("].iter().any(|call| text.contains(call)) {
            senders.insert(module.file, text.contains("check_clock("));
        }
    }
    assert!(senders.contains_key("src/llm/provider.rs"), "{senders:?}");
    let unchecked: Vec<_> = senders.iter().filter(|(_, is_checked)| !**is_checked).collect();
    assert!(unchecked.is_empty(), "{unchecked:?}");
}
