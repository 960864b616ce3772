//! Checks types of scripts with external type checkers: `tsc` and `pyright`, if they are installed.

use std::fs;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use cx::command::read_regular;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::exit::Interrupted;
use crate::signals::Endings;
use crate::type_problem::TypeProblem;

/// How long a type checker may take. It starts in seconds.
const MAX_TIME: Duration = Duration::from_secs(120);

/// How often it is checked how much a type checker has printed.
const LOOK: Duration = Duration::from_millis(20);

/// Maximum bytes that a type checker may print: some hundred thousand problems.
const MAX_PRINTED: u64 = 64 << 20;

/// Maximum number of problems that are shown.
const MAX_PROBLEMS: usize = 100;

/// The start of the function that contains the script. `return` and `await` are allowed in it; imports are not, so a
/// script with imports stays a module.
const OPEN: &str = "export {};\nasync function __script() {\n";
const OPEN_LINES: u32 = 2;

/// The libraries are those of a worker of the web: what scripts have of the web, and no `document` or `alert`.
const TSCONFIG: &str = r#"{
  "compilerOptions": {
    "target": "esnext", "module": "esnext", "moduleResolution": "bundler", "moduleDetection": "force",
    "lib": ["esnext", "webworker", "webworker.iterable", "webworker.asynciterable"], "types": [],
    "strict": true, "useUnknownInCatchVariables": false, "noEmit": true, "skipLibCheck": true,
    "allowUnreachableCode": true, "allowUnusedLabels": true, "experimentalDecorators": false
  },
  "files": ["cx.d.ts", "modules.d.ts", "script.ts"]
}"#;

/// Declarations of Node's modules, which an editor takes from `@types/node` if that is installed.
const MODULES: &str = include_str!("typecheck/modules.d.ts");

/// A `return` at the top level of a module, and a namespace in the function around a script.
const ALLOWED_IN_TYPESCRIPT: [&str; 2] = ["TS1108", "TS1235"];

/// Whether the code, from TS7005 to TS7057, is about a missing annotation that makes a type implicitly `any`. Scripts
/// need no annotations. With `noImplicitAny` off there are none, and an empty list can have no items.
fn is_of_implicit_types(code: &str) -> bool {
    code.len() == 6 && code.starts_with("TS7")
}

/// Start of a proposal of `tsc` to install a package, which a script could not use.
const PROPOSAL: &str = " Do you need to ";

/// Checks a TypeScript script with `tsc`.
///
/// # Errors
///
/// If it is not installed, or fails for reasons other than the script.
pub(crate) fn typescript(declarations: &str, script: &str) -> anyhow::Result<Vec<TypeProblem>> {
    let directory = tempfile::tempdir().context("failed to make a temporary directory")?;
    let path = directory.path();
    let is_module = script.lines().any(|line| line.starts_with("import ") || line.starts_with("export "));
    let (text, lines_before) = if is_module {
        (script.to_owned(), 0)
    } else {
        (format!("{OPEN}{script}\n}}\nvoid __script;\n"), OPEN_LINES)
    };
    write(path, "cx.d.ts", declarations)?;
    write(path, "modules.d.ts", MODULES)?;
    write(path, "script.ts", &text)?;
    write(path, "tsconfig.json", TSCONFIG)?;
    let printed = perform("tsc", &["--pretty", "false", "-p", "tsconfig.json"], path)?;
    let mut problems: Vec<TypeProblem> = Vec::new();
    let mut is_left_out = true;
    let mut has_found = false;
    for line in printed.text.lines() {
        if line.starts_with(' ') {
            // It continues the problem before it.
            if let (Some(last), false) = (problems.last_mut(), is_left_out) {
                last.message = sentences([&*last.message, line].into_iter());
            }
            continue;
        }
        has_found |= line.contains("): error TS");
        let found = tsc_problem(line);
        is_left_out = found.is_none();
        if let Some(mut problem) = found {
            problem.line = problem.line.saturating_sub(lines_before).max(1);
            problems.push(problem);
        } else if line.starts_with("error ") {
            bail!("`tsc` failed: {line}");
        }
    }
    if let (Some(failure), false) = (printed.failure, has_found) {
        bail!("`tsc` failed: {failure}");
    }
    problems.truncate(MAX_PROBLEMS);
    Ok(problems)
}

/// Parses `script.ts(3,7): error TS2345: …`. `None` for other lines, and for errors about constructs that scripts may
/// use.
fn tsc_problem(line: &str) -> Option<TypeProblem> {
    let rest = line.strip_prefix("script.ts(")?;
    let (location, rest) = rest.split_once("): error ")?;
    let (line, column) = location.split_once(',')?;
    let (code, message) = rest.split_once(": ")?;
    if ALLOWED_IN_TYPESCRIPT.contains(&code) || is_of_implicit_types(code) {
        return None;
    }
    let message = message.split_once(PROPOSAL).map_or(message, |(message, _)| message);
    Some(TypeProblem {
        code: code.to_owned(),
        message: message.to_owned(),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

/// At the top level of a script `return` and `await` are allowed, which pyright does not support.
const PYRIGHT: &str = r#"{
  "include": ["script.py"], "typeCheckingMode": "standard", "pythonVersion": "3.14",
  "reportAttributeAccessIssue": true, "reportMissingModuleSource": false, "reportUnusedCoroutine": true
}"#;

/// The packages of scripts besides the standard library, and the modules of cx that are not in the stubs.
#[rustfmt::skip]
const PACKAGES: [&str; 18] = [
    "attr", "attrs", "bs4", "dateutil", "jmespath", "jsonschema", "mcp", "mcp_tools", "more_itertools", "packaging",
    "pyrsistent", "sortedcontainers", "soupsieve", "tabulate", "typing_extensions", "tzdata", "xmltodict", "yaml",
];

/// Checks a Python script with `pyright`.
///
/// # Errors
///
/// If it is not installed, or fails for reasons other than the script.
pub(crate) fn python(stubs: &[(&'static str, String)], script: &str) -> anyhow::Result<Vec<TypeProblem>> {
    let directory = tempfile::tempdir().context("failed to make a temporary directory")?;
    let path = directory.path();
    for (name, text) in stubs {
        write(path, name, text)?;
    }
    write(path, "script.py", script)?;
    write(path, "pyrightconfig.json", PYRIGHT)?;
    let printed = perform("pyright", &["--outputjson", "-p", "pyrightconfig.json"], path)?;
    let report: Value = serde_json::from_str(&printed.text).unwrap_or_default();
    let found = report["generalDiagnostics"].as_array().cloned().unwrap_or_default();
    if let (Some(failure), true) = (printed.failure, found.is_empty()) {
        bail!("`pyright` failed: {failure}");
    }
    ensure!(report.is_object(), "`pyright` printed something else than JSON");
    let problem = |one: &Value| {
        let message = one["message"].as_str()?;
        if one["severity"] != "error" || is_allowed_in_python(message) {
            return None;
        }
        let start = &one["range"]["start"];
        let from_one = |name: &str| u32::try_from(start[name].as_u64()?).ok()?.checked_add(1);
        Some(TypeProblem {
            code: one["rule"].as_str().unwrap_or("pyright").to_owned(),
            message: sentences(message.lines()),
            line: from_one("line")?,
            column: from_one("character")?,
        })
    };
    Ok(found.iter().filter_map(problem).take(MAX_PROBLEMS).collect())
}

/// Whether pyright complains about what scripts may do: `await`, `return`, `async for` and `async with` at the top
/// level, and imports of modules that the interpreter has and pyright does not know.
fn is_allowed_in_python(message: &str) -> bool {
    let at_top_level =
        ["\"await\" allowed only", "\"return\" can be used only", "Use of \"async\" not allowed outside"];
    if at_top_level.iter().any(|start| message.starts_with(start)) {
        return true;
    }
    let module =
        message.strip_prefix("Import \"").and_then(|rest| rest.split_once("\" could not be resolved"));
    module.is_some_and(|(module, _)| PACKAGES.contains(&module.split('.').next().unwrap_or(module)))
}

/// The lines of a message as one line.
fn sentences<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let Some((last, others)) = lines.split_last() else { return String::new() };
    let others = others.iter().map(|line| format!("{}: ", line.trim_end_matches('.')));
    others.chain([(*last).to_owned()]).collect()
}

fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    fs::write(&path, text).with_context(|| format!("failed to write `{}`", path.display()))
}

/// What a type checker has printed, and how it ended.
struct Printed {
    text: String,
    /// Its exit status and the last line of its stderr, if it was not successful: it has found problems, or failed.
    failure: Option<String>,
}

/// Runs a type checker in a directory.
///
/// # Errors
///
/// If it is not installed, takes too long or prints too much; [`Interrupted`] after a signal.
fn perform(program: &str, arguments: &[&str], directory: &Path) -> anyhow::Result<Printed> {
    let (stdout, stderr) = (directory.join("stdout"), directory.join("stderr"));
    let create = |path: &Path| fs::File::create(path).context("failed to write beside the script");
    #[expect(
        clippy::disallowed_methods,
        reason = "a type checker is no server of scripts, and runs none of them"
    )]
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.stdout(create(&stdout)?).stderr(create(&stderr)?);
    // A group of its own: what it starts is ended with it, and Ctrl-C comes from this process only.
    command.process_group(0).kill_on_drop(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(wait(command, program, &[&stdout, &stderr]))?;
    let text = read_regular(&stdout, MAX_PRINTED);
    let text = text.with_context(|| format!("failed to read what `{program}` printed"))?;
    let failure = (!status.success()).then(|| {
        let said = read_regular(&stderr, MAX_PRINTED).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        match said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(last) => format!("{status}: {}", last.trim()),
            None => status.to_string(),
        }
    });
    Ok(Printed { text: String::from_utf8_lossy(&text).into_owned(), failure })
}

/// Starts a type checker, waits for its end, and ends it at its limits and after a signal.
async fn wait(mut command: Command, program: &str, printed: &[&Path]) -> anyhow::Result<ExitStatus> {
    // Before the start. A signal would end this process, and the temporary directory would stay.
    let mut endings = Endings::new()?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let package = if program == "tsc" { "typescript" } else { "pyright" };
            bail!("`--types` needs `{program}` on the path: install it with `npm install -g {package}`");
        }
        Err(error) => return Err(error).with_context(|| format!("failed to start `{program}`")),
    };
    let is_large = |path: &&Path| path.metadata().is_ok_and(|found| found.len() > MAX_PRINTED);
    let began = Instant::now();
    let problem: anyhow::Error = loop {
        tokio::select! {
            status = child.wait() => {
                return status.with_context(|| format!("failed to wait for `{program}`"));
            }
            _signal = endings.received() => break Interrupted.into(),
            () = tokio::time::sleep(LOOK) => {}
        }
        if began.elapsed() > MAX_TIME {
            break anyhow!("`{program}` was stopped after {} s", MAX_TIME.as_secs());
        }
        if printed.iter().any(is_large) {
            break anyhow!("`{program}` was stopped because it printed more than {MAX_PRINTED} bytes");
        }
    };
    kill_group(&child);
    // Waits for its end, so that it does not write into the directory while that is removed.
    let _ended = child.kill().await;
    Err(problem)
}

/// Kills a type checker and what it has started: under its name there is often a script that starts the real one.
fn kill_group(child: &Child) {
    if let Some(leader) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        let _gone_already = kill_process_group(leader, Signal::KILL);
    }
}
