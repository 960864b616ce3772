//! Grants of a person, as arguments and in their own configuration; the environment adds nothing to them.

use std::fs;

use serde_json::{Value, json};

use super::home::Home;
use crate::support::http_host::{HttpHost, Reply};
use crate::support::python_cache;

/// Reads, writes and fetches.
const TYPESCRIPT: &str = "
    const found = [];
    for (const action of [
        () => fs.readFile(input.in + '/a.txt', 'utf8'),
        async () => { await fs.writeFile(input.out + '/b.txt', 'b'); return 'written' },
        async () => await (await fetch(input.url)).text(),
    ]) try { found.push(await action()) } catch { found.push('refused') }
    return found";
const PYTHON: &str = "
found = []
try: found.append(open(inputs['in'] + '/a.txt').read())
except OSError: found.append('refused')
try:
    with open(inputs['out'] + '/b.txt', 'w') as file: file.write('b')
    found.append('written')
except OSError: found.append('refused')
try: found.append(await (await fetch(inputs['url'])).text())
except Exception: found.append('refused')
return found";

/// The value that a script returns with these arguments and variables.
fn value(home: &Home, arguments: &[&str], variables: &[(&str, String)], input: &Value, code: &str) -> Value {
    let language = if code == PYTHON { "py" } else { "ts" };
    let input = input.to_string();
    let fixed = ["run", "--json", "--lang", language, "--input", input.as_str(), "-e", code];
    let mut command = home.command(&[&fixed[..], arguments].concat());
    command.env("XDG_CACHE_HOME", python_cache());
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(result["success"], true, "{result}");
    result["value"].clone()
}

#[test]
fn arguments_and_the_users_configuration_grant_directories_and_hosts() {
    let host = HttpHost::start(|_asked| Reply::text("fetched"));
    let address = format!("127.0.0.1:{}", host.port);
    let by_arguments =
        ["--allow-read", "data/in", "--allow-write", "data/out", "--allow-net", address.as_str()];
    for code in [TYPESCRIPT, PYTHON] {
        let home = Home::new();
        home.write("data/in/a.txt", "a");
        fs::create_dir(home.path("data/out")).unwrap();
        let data = home.path("data").canonicalize().unwrap();
        let (reads, writes) = (data.join("in"), data.join("out"));
        let input = json!({ "in": reads, "out": writes, "url": host.url("/") });
        let run = |arguments: &[&str]| value(&home, arguments, &[], &input, code);
        assert_eq!(run(&[]), json!(["refused", "refused", "refused"]), "{code}");
        assert!(!writes.join("b.txt").exists());
        assert_eq!(run(&by_arguments), json!(["a", "written", "fetched"]), "{code}");
        fs::remove_file(writes.join("b.txt")).unwrap();
        // A grant of one kind is none of another kind.
        assert_eq!(run(&by_arguments[2..4]), json!(["refused", "written", "refused"]), "{code}");
        fs::remove_file(writes.join("b.txt")).unwrap();
        home.configure(&json!({ "grants": { "read": [reads], "write": [writes], "net": [address] } }));
        assert_eq!(run(&[]), json!(["a", "written", "fetched"]), "{code}");
        assert_eq!(fs::read_to_string(writes.join("b.txt")).unwrap(), "b");
    }
}

/// A proxy would see a script's requests, and could reach hosts that are not granted.
#[test]
fn requests_of_scripts_use_no_proxy_of_the_environment() {
    let host = HttpHost::start(|_asked| Reply::text("direct"));
    let proxy = HttpHost::start(|_asked| Reply::text("by the proxy"));
    let variables = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        .map(|name| (name, proxy.url("")));
    let address = format!("127.0.0.1:{}", host.port);
    let home = Home::new();
    let input = json!({ "in": "/none", "out": "/none", "url": host.url("/") });
    for code in [TYPESCRIPT, PYTHON] {
        let found = value(&home, &["--allow-net", &address], &variables, &input, code);
        assert_eq!(found[2], "direct", "{code}");
    }
    assert!(proxy.asked().is_empty(), "{:?}", proxy.asked());
}

/// A path that is relative to a granted directory is one in `/tmp`, where nothing is.
#[test]
fn the_error_of_a_missing_file_names_the_granted_directories() {
    let home = Home::new();
    home.write("data/a.txt", "a");
    let data = home.path("data").canonicalize().unwrap();
    let hint = format!("a granted directory has the path that it has on the machine: `{}`\n", data.display());
    let in_it = format!("open('{}/b.txt').read()", data.display());
    for (language, code, is_hinted) in [
        ("ts", "return await fs.readFile('data/a.txt', 'utf8')", true),
        ("ts", "return await fs.readFile('/data/a.txt', 'utf8')", true),
        ("py", "open('data/a.txt').read()", true),
        // The path is right, and there is no such file.
        ("py", &in_it, false),
    ] {
        let run = |arguments: &[&str]| {
            let fixed = ["run", "--lang", language, "-e", code];
            let mut command = home.command(&[&fixed[..], arguments].concat());
            let output = command.env("XDG_CACHE_HOME", python_cache()).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{code}");
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let said = run(&["--allow-read", "data", "--allow-write", "data"]);
        assert_eq!(said.contains(&hint), is_hinted, "{said}");
        let said = run(&[]);
        assert!(!said.contains("a granted directory"), "{said}");
    }
}
