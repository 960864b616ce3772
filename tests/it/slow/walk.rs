//! docs/threats.md, built-in functions: a walker over everything that a script can reach, with hostile
//! receivers and arguments.
//!
//! A script finds the functions (`tests/walk/surface.js`, `surface.py`), so new functions are included automatically.
//! Calls with values of a corpus (`corpus.js`, `corpus.py`) are generated from a seed, the same for the same seed, and
//! many share one run. If such a run is not as it should be, each call gets its own run, twice, and the culprit is
//! printed with a script. The runs are in canary processes, which may die.
//!
//! `make walk` makes 200,000 calls. Without `CX_WALK_CALLS` a short form runs with the other tests. `CX_WALK_SEED` sets
//! the seed, `CX_WALK_ONLY` selects functions whose expression contains it, `CX_WALK_WRITE=1` adds the findings to the
//! lists of known ones.

/// Walks over the functions of each language.
mod walks;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use cx::{Limits, Script};
use serde_json::{Value, json};

use crate::support::python_cache;

/// Calls of the short form: a few more than there are functions.
const SHORT: u64 = 2_000;

/// Calls that share a run. Most return at once; with more of them the failing call is harder to find.
const BATCH: u64 = 16;

/// Limits of a run. Every call that never ends takes this whole time; a script in Python first imports the modules that
/// it uses. The interpreter itself has 35 MB.
const WALL_MS: u64 = 300;
const PYTHON_WALL_MS: u64 = 1_500;
const MEMORY_MB: u64 = 64;

/// The promises: how late an answer may be, and how far the process may grow beyond the run's limit.
const MAX_LATE_MS: u64 = 500;
const MAX_BEYOND_MB: u64 = 256;

/// A canary that is silent for this time has hung. A run, the grace period of its thread, and honest runs take five
/// seconds; the rest is for low-priority threads on a busy machine.
const SILENCE: Duration = Duration::from_secs(240);

/// The number of canaries at once. Lateness that they cause each other is tolerated, but establishing that takes time.
const CANARIES: usize = 2;

/// What can be wrong with a run. Two kinds of findings may be known; see [`Known`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The thread was not released.
    Parked,
    /// The process grew.
    Memory(u64),
    /// Anything else, in words: always a failure.
    Other(String),
}

/// A function that can be called.
struct Function {
    expression: String,
    receiver: String,
    parameters: u64,
}

/// One language's half of the walk.
struct Surface {
    python: bool,
    prelude: &'static str,
    functions: Vec<Function>,
    values: Vec<String>,
}

/// Functions that are known to hang a thread, or to take memory that no meter sees, until that is mended.
struct Known {
    parked: BTreeSet<String>,
    memory: BTreeSet<String>,
}

impl Known {
    const FILES: [&'static str; 2] = ["uninterruptible.txt", "memory.txt"];

    fn read() -> Self {
        let lines = |name: &str| {
            let text = fs::read_to_string(directory().join(name)).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
            lines.map(str::to_owned).collect()
        };
        Self { parked: lines(Self::FILES[0]), memory: lines(Self::FILES[1]) }
    }

    fn has(&self, function: &str, fault: &Fault) -> bool {
        match fault {
            Fault::Parked => self.parked.contains(function),
            Fault::Memory(_) => self.memory.contains(function) || self.parked.contains(function),
            Fault::Other(_) => false,
        }
    }

    fn write(found: &BTreeMap<(String, Fault), String>) {
        for (index, name) in Self::FILES.iter().enumerate() {
            let path = directory().join(name);
            let text = fs::read_to_string(&path).unwrap();
            let (head, known): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
            let mut lines: BTreeSet<&str> = known.into_iter().filter(|line| !line.is_empty()).collect();
            lines.extend(found.keys().filter_map(|(function, fault)| {
                let belongs = matches!((index, fault), (0, Fault::Parked) | (1, Fault::Memory(_)));
                belongs.then_some(function.as_str())
            }));
            let all: Vec<&str> = head.into_iter().chain(lines).collect();
            fs::write(path, all.join("\n") + "\n").unwrap();
        }
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walk")
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Numbers that are the same for the same seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = self.below(list.len() as u64);
        &list[usize::try_from(index).unwrap()]
    }
}

impl Surface {
    async fn read(python: bool) -> Self {
        let prelude =
            if python { include_str!("../../walk/corpus.py") } else { include_str!("../../walk/corpus.js") };
        let find = if python {
            include_str!("../../walk/surface.py")
        } else {
            include_str!("../../walk/surface.js")
        };
        let names = if python {
            "return [name for name in vars(hostile) if name[0] != '_'] + 4 * likely"
        } else {
            "return [...Object.keys(hostile), ...likely, ...likely, ...likely, ...likely]"
        };
        // In a debug build, the surface script takes long: it imports and calls everything once.
        let limits = Limits {
            wall_time: Duration::from_secs(120),
            cpu_time: Duration::from_secs(120),
            memory_bytes: 512 << 20,
            ..Limits::default()
        };
        let executor = if python { crate::support::python().await.0 } else { crate::support::executor().0 };
        let run = async |source: String| {
            let script = if python { Script::python(source) } else { Script::typescript(source) };
            let result = executor.run(script.limits(limits)).await.unwrap();
            result.value().cloned().unwrap_or_else(|| panic!("{}", result.to_json()))
        };
        let mut found = run(format!("{prelude}\n{find}")).await;
        if let Some(text) = found.as_str() {
            found = serde_json::from_str(text).unwrap();
        }
        let values = run(format!("{prelude}\n{names}")).await;
        let only = std::env::var("CX_WALK_ONLY").unwrap_or_default();
        let functions = found.as_array().unwrap().iter().map(|function| Function {
            expression: function[0].as_str().unwrap().to_owned(),
            receiver: function[1].as_str().unwrap().to_owned(),
            parameters: function[2].as_u64().unwrap_or(1),
        });
        Self {
            python,
            prelude,
            functions: functions.filter(|function| function.expression.contains(&only)).collect(),
            values: serde_json::from_value(values).unwrap(),
        }
    }

    /// The function of a call, and the call's text. Every function is called once before one is called twice; functions
    /// of one module do not follow each other, so that a short form covers all modules.
    fn call(&self, seed: u64, number: u64) -> (&Function, String) {
        let count = self.functions.len() as u64;
        let common = |mut left: u64, mut right: u64| {
            while right != 0 {
                (left, right) = (right, left % right);
            }
            left
        };
        // Any large number without a common factor works.
        let stride = (7_919..).find(|stride| common(*stride, count) == 1).unwrap_or(1);
        let place = (number % count) * stride % count;
        let function = &self.functions[usize::try_from(place).unwrap()];
        let mut random = Random(seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let count = random.below(function.parameters.max(2) + 2);
        let values: Vec<String> =
            (0..count).map(|_| format!("hostile.{}()", random.one_of(&self.values))).collect();
        let values = values.join(", ");
        let expression = &function.expression;
        let hostile = random.below(100) < 45;
        let text = match random.below(8) {
            0 if !self.python => format!("make({expression}, [{values}])"),
            _ if expression.starts_with("syntax.") => format!("{expression}({values})"),
            _ => {
                let receiver = if hostile {
                    format!("hostile.{}()", random.one_of(&self.values))
                } else {
                    function.receiver.clone()
                };
                if self.python {
                    format!("call(lambda: {expression}, lambda: {receiver}, lambda: [{values}])")
                } else {
                    format!("call({expression}, {receiver}, [{values}])")
                }
            }
        };
        (function, text)
    }

    /// A script that makes these calls one after the other, whatever they do. It prints the number of the next one, so
    /// that after a call that never ends the others can continue in another run.
    fn script(&self, calls: &[(&Function, String)]) -> String {
        let mut script = format!("{}\n", self.prelude);
        for (index, (_, call)) in calls.iter().enumerate() {
            let line = if self.python {
                format!("say('call {index}')\n{call}\n")
            } else {
                format!("say('call {index}'); try {{ use({call}) }} catch {{}}\n")
            };
            script.push_str(&line);
        }
        script.push_str("return \"done\"\n");
        script
    }
}

/// A canary process.
struct Canary {
    child: Child,
    stdin: ChildStdin,
    answers: mpsc::Receiver<Value>,
    stderr: PathBuf,
}

impl Canary {
    fn start(python: bool) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let test_binary = std::env::current_exe().unwrap();
        let program = test_binary.parent().unwrap().parent().unwrap().join("examples/canary");
        let name = format!("walk-{}-{}.log", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let stderr = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = Command::new(program);
        command.arg("walk");
        if python {
            command.arg(python_cache());
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .expect("the canary is built with the tests");
        let (sender, answers) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        Self { child, stdin, answers, stderr }
    }

    fn ask(&mut self, source: &str, python: bool, wall_ms: u64, beside: bool) -> Option<Value> {
        let task =
            json!({ "source": source, "python": python, "ms": wall_ms, "mb": MEMORY_MB, "beside": beside });
        writeln!(self.stdin, "{task}").ok()?;
        self.answers.recv_timeout(SILENCE).ok()
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.stderr);
    }
}

/// A canary that is replaced when it dies or its state has changed.
pub(crate) struct Stage {
    python: bool,
    /// Wall time of its runs in milliseconds.
    wall_ms: u64,
    canary: Option<Canary>,
    runs: u64,
}

impl Stage {
    pub(crate) fn new(python: bool) -> Self {
        Self { python, wall_ms: if python { PYTHON_WALL_MS } else { WALL_MS }, canary: None, runs: 0 }
    }

    /// Gives its runs another wall time.
    pub(crate) fn with_wall_ms(self, wall_ms: u64) -> Self {
        Self { wall_ms, ..self }
    }

    /// Runs a script, and returns what is wrong and how many of its calls were begun: all of them if it ran to its end.
    fn run(&mut self, source: &str, calls: usize, beside: bool) -> (Vec<Fault>, usize) {
        let (faults, answer) = self.look(source, beside);
        let result = &answer["result"];
        if result["value"] == "done" {
            return (faults, calls);
        }
        let lines = result["output"].as_str().unwrap_or_default().lines();
        let begun = lines.filter_map(|line| line.strip_prefix("call ")?.parse::<usize>().ok()).max();
        // At least one, so that the walk advances.
        (faults, begun.map_or(1, |index| index + 1).min(calls))
    }

    /// Runs a script, and returns what is wrong and the canary's report.
    pub(crate) fn look(&mut self, source: &str, beside: bool) -> (Vec<Fault>, Value) {
        self.runs += 1;
        let (python, wall_ms) = (self.python, self.wall_ms);
        let canary = self.canary.get_or_insert_with(|| Canary::start(python));
        let Some(answer) = canary.ask(source, python, wall_ms, beside) else {
            let ended = canary.child.try_wait().ok().flatten();
            let said = canary.said();
            self.canary = None;
            let said: String = said.chars().take(2_000).collect();
            let fault = match ended {
                Some(status) => format!("the process ended with {status}: {said}"),
                None => format!("no answer within {SILENCE:?}: {said}"),
            };
            return (vec![Fault::Other(fault)], Value::Null);
        };
        let mut faults = judge(&answer, wall_ms, beside);
        let said = canary.said();
        if said.contains("panicked at") {
            faults.push(Fault::Other(format!("a panic: {said}")));
        }
        if !faults.is_empty() {
            self.canary = None;
        }
        (faults, answer)
    }
}

fn judge(answer: &Value, wall_ms: u64, beside: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    let number = |name: &str| answer[name].as_u64().unwrap();
    if number("lost") > 0 {
        faults.push(Fault::Parked);
    }
    let growth = number("growthMb");
    if growth > MEMORY_MB + MAX_BEYOND_MB {
        faults.push(Fault::Memory(growth));
    }
    if let Some(error) = answer["result"]["executorError"].as_str() {
        faults.push(Fault::Other(format!("the executor failed: {error}")));
    }
    // On a loaded machine everything is late, even a thread that only looks at the clock.
    if number("ms") > wall_ms + MAX_LATE_MS + 50 + 2 * number("lateMs") {
        let (ms, late) = (number("ms"), number("lateMs"));
        faults.push(Fault::Other(format!(
            "the answer came after {ms} ms, on a machine that was {late} ms late"
        )));
    }
    if answer["next"]["value"] != 2 || (beside && answer["honest"]["value"] != 200) {
        faults.push(Fault::Other(format!("an honest run: {} {}", answer["honest"], answer["next"])));
    }
    faults
}
