//! Imports of Python modules that scripts cannot use: they are found before anything of a script runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cx::{ErrorCode, Executor, Script, Severity};
use serde_json::{Value, json};

use crate::support::{python, python_cache};

/// An executor with one native tool, and a counter of its calls.
async fn executor() -> (Executor, Arc<AtomicUsize>) {
    python().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let answer = move |arguments: Value| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(arguments) }
    };
    let builder = Executor::builder().cache_directory(python_cache());
    (builder.tool("a.b", json!({ "type": "object" }), answer).build().unwrap(), calls)
}

const SOURCE: &str = "import json, requests\nimport numpy as np\nimport subprocess\nawait tools.a.b()\n";

const NUMPY: &str = "No module named 'numpy': use math, statistics, fractions, decimal, array and itertools";

#[tokio::test]
async fn all_imports_that_cannot_succeed_are_found_at_once_with_their_locations() {
    let (executor, calls) = executor().await;
    let found = executor.check(Script::python(SOURCE)).await.unwrap().findings;
    let spans: Vec<_> = found
        .iter()
        .map(|finding| (finding.severity, finding.line, finding.column, finding.end_column))
        .collect();
    let expected = [
        (Severity::Error, Some(1), Some(14), Some(22)),
        (Severity::Error, Some(2), Some(8), Some(13)),
        (Severity::Warning, Some(3), Some(8), Some(18)),
    ];
    assert_eq!(spans, expected, "{found:#?}");
    assert!(found.iter().all(|finding| finding.code.as_str() == "MODULE_UNAVAILABLE"), "{found:#?}");
    assert_eq!(found[1].message, NUMPY);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_script_with_imports_that_cannot_succeed_is_not_run() {
    let (executor, calls) = executor().await;
    let source = format!("await tools.a.b()\n{SOURCE}");
    let result = executor.run(Script::python(source)).await.unwrap();
    let error = result.error().unwrap();
    assert_eq!((error.code, error.line), (ErrorCode::CheckFailed, Some(2)), "{error}");
    assert!(
        error.message.starts_with("2 calls or imports cannot succeed: line 2: No module named 'requests'")
    );
    assert!(error.message.ends_with(&format!("; line 3: {NUMPY}")), "{error}");
    assert_eq!((error.problems.len(), calls.load(Ordering::SeqCst)), (3, 0), "{error:?}");
}

#[tokio::test]
async fn imports_that_a_script_can_do_without_do_not_prevent_a_run() {
    let (executor, _) = executor().await;
    for (source, expected) in [
        ("try:\n    import requests\nexcept ImportError:\n    requests = None\nrequests", json!(null)),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd\n1", json!(1)),
        ("def plot():\n    import matplotlib\ndef add(a):\n    return a + 1\nadd(1)", json!(2)),
        ("import importlib.util\nif importlib.util.find_spec('numpy'):\n    import numpy\n3", json!(3)),
        (
            "import sys, types\nsys.modules['requests'] = types.ModuleType('requests')\nimport requests\nrequests.__name__",
            json!("requests"),
        ),
        ("import subprocess, socket\nsubprocess.list2cmdline(['a', 'b c'])", json!("a \"b c\"")),
    ] {
        let result = executor.run(Script::python(source)).await.unwrap();
        assert_eq!(result.value(), Some(&expected), "{source}: {}", result.to_json());
    }
}

#[tokio::test]
async fn a_failed_run_says_which_imports_would_fail_besides() {
    let (executor, _) = executor().await;
    let source = "def plot():\n    import matplotlib\ndef add(a):\n    raise ValueError('x')\nadd(1)";
    let result = executor.run(Script::python(source)).await.unwrap();
    let error = result.error().unwrap();
    assert_eq!(error.code, ErrorCode::RuntimeError, "{error}");
    let found: Vec<_> = error.problems.iter().map(|problem| (problem.severity, problem.line)).collect();
    assert_eq!(found, [(Severity::Warning, Some(2))], "{error:?}");
}

/// The reason is in the error. Of another import it is not.
#[tokio::test]
async fn a_failed_run_gives_the_reason_of_an_import_once() {
    let (executor, _) = executor().await;
    for (source, expected) in [
        ("import subprocess\nsubprocess.run(['ls'])", [].as_slice()),
        ("import http.client\nhttp.client.HTTPSConnection('localhost')", &[]),
        ("import subprocess\nimport webbrowser\nsubprocess.run(['ls'])", &[Some(2)]),
        ("import subprocess\nraise ValueError('x')", &[Some(1)]),
    ] {
        let result = executor.run(Script::python(source)).await.unwrap();
        let error = result.error().unwrap();
        let found: Vec<_> = error.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(found, expected, "{source}: {error:?}");
    }
}

#[tokio::test]
async fn an_import_of_a_server_says_how_servers_are_imported() {
    python().await;
    let answer = |arguments: Value| async move { Ok::<_, String>(arguments) };
    let mut builder = Executor::builder().cache_directory(python_cache());
    for tool in ["redis.get", "my-notes.add"] {
        builder = builder.tool(tool, json!({ "type": "object" }), answer);
    }
    let executor = builder.build().unwrap();
    let source = "import redis\nfrom my_notes import add\nimport numpy\n1";
    let found = executor.check(Script::python(source)).await.unwrap().findings;
    let said = found.iter().map(|finding| finding.message.split_once("; here a server has this name: "));
    let said: Vec<_> = said.map(|parts| parts.map(|(_, how)| how)).collect();
    let expected = [Some("`from mcp_tools import redis`"), Some("`from mcp_tools import my_notes`"), None];
    assert_eq!(said, expected, "{found:#?}");
}
