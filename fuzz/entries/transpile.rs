//! Targets of the transpiler.

use std::time::Duration;

use arbitrary::{Arbitrary as _, Result, Unstructured};
use swc_common::BytePos;
use swc_ecma_ast::{ArrowExpr, EsVersion, Expr, Pat, Stmt, TsType};
use swc_ecma_parser::lexer::Lexer;
use swc_ecma_parser::{EsSyntax, Parser, StringInput, Syntax};
use swc_ecma_visit::{Visit, VisitWith};

use super::{STACK_BYTES, TranspileErrorKind, bounds, parse, transpile};
use crate::fuzzing::nestings::{Nesting, generate as generate_nesting};

/// Largest source of a target: passes that double their work are refused well below.
const MAX_BYTES: usize = 1 << 20;

/// What `transpile` promises for `source`, whatever it is: no panic; JavaScript that parses; locations in the
/// source; an error with a location in the source.
fn check(source: &str) {
    let lines = source.split(['\n', '\r', '\u{2028}', '\u{2029}']).count();
    let transpiled = match transpile(source, MAX_BYTES, &|| false) {
        Ok(transpiled) => transpiled,
        Err(failed) => {
            for mistake in &failed.survey.mistakes {
                assert!(source.get(mistake.at.clone()).is_some(), "{mistake:?}");
            }
            let error = failed.error;
            assert_ne!(error.kind, TranspileErrorKind::Stopped, "it was not stopped");
            if let Some(location) = error.location {
                assert!(
                    location.line >= 1 && location.line as usize <= lines && location.column >= 1,
                    "{error:?}"
                );
            }
            return;
        }
    };
    if let Err(problem) = parses(&transpiled.code) {
        assert!(
            has_generic_arrow(source),
            "{source:?} became {:?}, which does not parse: {problem}",
            transpiled.code
        );
    }
    for (line, text) in transpiled.code.lines().enumerate().take(50) {
        for column in [1, text.encode_utf16().count() / 2 + 1, text.encode_utf16().count() + 1] {
            let (line, column) = (u32::try_from(line + 1), u32::try_from(column));
            let (Ok(line), Ok(column)) = (line, column) else { continue };
            if let Some(location) = transpiled.positions.original(line, column) {
                assert!(
                    location.line >= 1 && location.line as usize <= lines && location.column >= 1,
                    "{location:?}"
                );
            }
        }
    }
}

/// Whether `code` is one expression of JavaScript. Early errors are V8's to report: names that are declared twice, say,
/// and `super` where there is none, which TypeScript's syntax allows.
fn parses(code: &str) -> std::result::Result<(), String> {
    let syntax = Syntax::Es(EsSyntax {
        allow_super_outside_method: true,
        explicit_resource_management: true,
        ..EsSyntax::default()
    });
    let end = BytePos(1 + u32::try_from(code.len()).expect("code is bounded"));
    let lexer = Lexer::new(syntax, EsVersion::latest(), StringInput::new(code, BytePos(1), end), None);
    let script = Parser::new_from(lexer).parse_script().map_err(|error| format!("{error:?}"))?;
    if script.body.len() == 1 { Ok(()) } else { Err(format!("{} statements", script.body.len())) }
}

/// Whether a source has an arrow function with type parameters. The parser reads one on trial, and drops what it finds
/// wrong in it, such as a string without an end. V8 reports that, at the same place.
fn has_generic_arrow(source: &str) -> bool {
    #[derive(Default)]
    struct GenericArrow(bool);
    impl Visit for GenericArrow {
        fn visit_arrow_expr(&mut self, arrow: &ArrowExpr) {
            self.0 |= arrow.type_params.is_some();
            arrow.visit_children_with(self);
        }
    }
    let mut found = GenericArrow::default();
    parse::tree(source).is_ok_and(|module| {
        module.visit_with(&mut found);
        found.0
    })
}

/// Runs `task` with the stack that `transpile` needs.
fn on_large_stack(task: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, task);
        if let Err(panic) = thread.expect("a thread starts").join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Any text.
pub(crate) fn text(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    on_large_stack(|| check(&source));
}

/// Programs of a grammar, and constructs in any nesting.
pub(crate) fn program(data: &[u8]) {
    if let Ok(source) = generate(data) {
        on_large_stack(|| check(&source));
    }
}

/// The scanner of `bounds` against the parser: no source that it lets pass has a higher tree than it weighed.
pub(crate) fn bounds(data: &[u8]) {
    let source = String::from_utf8_lossy(data);
    on_large_stack(|| {
        let Ok(weight) = bounds::weight(&source) else { return };
        // swc's own assertions, which a build for fuzzing has, fail for `<!--` and a line of `/`.
        let parsed = std::panic::catch_unwind(|| parse::tree(&source));
        let Ok(Ok(tree)) = parsed else { return };
        let mut height = Height::default();
        tree.visit_with(&mut height);
        assert!(
            height.highest <= weight + LEVELS_WITHOUT_WEIGHT,
            "{source:?}: {} levels of the tree, weight {weight}",
            height.highest
        );
    });
}

/// CPU time that any source may take. What is read again and not counted doubles with each level, so this may be many
/// times what an unoptimized build needs.
const LEAST: Duration = Duration::from_millis(250);

/// CPU time of the parser for each byte of work that the scanner counts: several times what a slow build needs.
#[cfg(test)]
const PARSED: Duration = Duration::from_micros(5);

/// The same for all of `transpile`, which may repair a source and parse it again dozens of times.
const TRANSPILED: Duration = Duration::from_micros(100);

/// Few levels are added at a time, so that what doubles with each is noticed while it still ends.
const LEVELS: &[usize] = &[4, 7, 10, 12, 14, 16, 18, 20, 22, 24, 28, 34, 42, 60, 100, 200, 400, 900];

/// Largest work of a source that is read: as much as 64 KB without nesting.
const MAX_COUNTED: u64 = 64 << 10;

/// The scanner of `bounds` against the time of swc: no nesting that it lets pass takes much longer than it counted.
pub(crate) fn nestings(data: &[u8]) {
    let Ok(nesting) = generate_nesting(&mut Unstructured::new(data)) else { return };
    on_large_stack(|| {
        climb(&nesting, LEVELS, MAX_COUNTED, TRANSPILED, |source| {
            drop(transpile(source, MAX_BYTES, &|| false));
        });
    });
}

/// Reads sources of more and more levels, until the scanner counts more than `max_work`. Panics if one takes longer
/// than its work allows.
fn climb(nesting: &Nesting, levels: &[usize], max_work: u64, per_byte: Duration, read: impl Fn(&str)) {
    for levels in levels {
        let source = nesting.source(*levels);
        let counted =
            bounds::work(&source).ok().filter(|work| *work <= max_work && source.len() <= MAX_BYTES);
        let Some(work) = counted else { return };
        let time = cpu_time(|| read(&source));
        let allowed = LEAST + per_byte * u32::try_from(work).unwrap_or(u32::MAX);
        assert!(time < allowed, "{levels} levels of {nesting:?}: {time:?} for {work} bytes of work");
    }
}

/// The CPU time that `task` takes on this thread.
#[cfg(test)]
fn cpu_time(task: impl FnOnce()) -> Duration {
    let meter = crate::engine::watchdog::CpuMeter::start();
    task();
    meter.elapsed()
}

/// The CPU time that `task` takes on this thread. The crate of the targets does not have the product's meter.
#[cfg(not(test))]
fn cpu_time(task: impl FnOnce()) -> Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
        Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0))
    };
    let before = now();
    task();
    now().saturating_sub(before)
}

/// Levels of a tree that the scanner does not weigh: the statement, its declaration, its first operand.
const LEVELS_WITHOUT_WEIGHT: u32 = 16;

#[derive(Default)]
struct Height {
    now: u32,
    highest: u32,
}

impl Height {
    fn level(&mut self, children: impl FnOnce(&mut Self)) {
        self.now += 1;
        self.highest = self.highest.max(self.now);
        children(self);
        self.now -= 1;
    }
}

impl Visit for Height {
    fn visit_expr(&mut self, expression: &Expr) {
        self.level(|height| expression.visit_children_with(height));
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        self.level(|height| statement.visit_children_with(height));
    }

    fn visit_pat(&mut self, pattern: &Pat) {
        self.level(|height| pattern.visit_children_with(height));
    }

    fn visit_ts_type(&mut self, kind: &TsType) {
        self.level(|height| kind.visit_children_with(height));
    }
}

/// A program of the subset whose meaning `fuzz/differential` compares with another compiler's: it only uses what it
/// declares, and logs what it does.
pub(crate) fn generate(data: &[u8]) -> Result<String> {
    let mut input = Unstructured::new(data);
    let mut program = Generator { input: &mut input, text: String::new(), names: Vec::new(), next: 0 };
    program.text.push_str(PRELUDE);
    program.statements(3)?;
    Ok(program.text)
}

/// The prelude of generated programs: `log` keeps values, `d` is a decorator of every kind that only writes to the log.
const PRELUDE: &str = "const out: string[] = [];
function log(...values: unknown[]) { out.push(values.map((value) => show(value)).join(' ')); }
function show(value: any): string {
  if (typeof value === 'function') return 'function';
  if (typeof value !== 'object' || value === null) return String(value);
  return JSON.stringify(Object.entries(value).map(([key, value]) => [key, show(value)]));
}
function d(value: any, context: any) { log('d', context.kind, context.name); }
";

struct Generator<'a, 'b> {
    input: &'a mut Unstructured<'b>,
    text: String,
    /// Values that a program can read here.
    names: Vec<String>,
    next: usize,
}

impl Generator<'_, '_> {
    fn fresh(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    fn statements(&mut self, depth: u32) -> Result<()> {
        let count = self.input.int_in_range(1..=5)?;
        for _ in 0..count {
            self.statement(depth)?;
        }
        Ok(())
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn statement(&mut self, depth: u32) -> Result<()> {
        match self.input.int_in_range(0..=9)? {
            0 | 1 => self.declare_enum(),
            2 | 3 if depth > 0 => self.namespace(depth),
            4..=6 if depth > 0 => self.class(depth),
            7 => {
                let name = self.fresh("v");
                let value = self.expression(2)?;
                let kind = *self.input.choose(&["const", "let", "var"])?;
                self.push(&format!("{kind} {name} = {value}; log('{name}', {name});\n"));
                self.names.push(name);
                Ok(())
            }
            _ => {
                let value = self.expression(3)?;
                self.push(&format!("log({value});\n"));
                Ok(())
            }
        }
    }

    fn declare_enum(&mut self) -> Result<()> {
        // Sometimes the name of an enum that is there: merged.
        let name = if bool::arbitrary(self.input)? { "Merged".to_owned() } else { self.fresh("E") };
        let is_const = name != "Merged" && bool::arbitrary(self.input)?;
        let count = self.input.int_in_range(1..=4)?;
        let mut members = Vec::new();
        let mut text = String::new();
        for _ in 0..count {
            let member = self.fresh("m");
            let value = match self.input.int_in_range(0..=6)? {
                0 => " = 'text'".to_owned(),
                1 => format!(" = {}", self.input.int_in_range(-5..=99)?),
                2 => " = 1 << 3 | 2".to_owned(),
                3 if !members.is_empty() => format!(" = {}", self.input.choose(&members)?),
                4 if !is_const => " = 'abc'.length".to_owned(),
                5 => " = -(2 ** 3) % 5".to_owned(),
                // Only the first member, or one after a number, may go without.
                _ if members.is_empty() && name != "Merged" => String::new(),
                _ => format!(" = {}", self.next),
            };
            text.push_str(&format!("{member}{value}, "));
            members.push(member);
        }
        let prefix = if is_const { "const " } else { "" };
        self.push(&format!("{prefix}enum {name} {{ {text}}}\n"));
        let member = self.input.choose(&members)?.clone();
        self.push(&format!("log({name}.{member});\n"));
        if !is_const {
            self.push(&format!("log({name});\n"));
            self.names.push(format!("{name}.{member}"));
        }
        Ok(())
    }

    fn namespace(&mut self, depth: u32) -> Result<()> {
        let name = self.fresh("N");
        let exported = self.fresh("x");
        let value = self.expression(2)?;
        let outer = self.names.len();
        self.push(&format!("namespace {name} {{\nexport let {exported} = {value};\n"));
        self.names.push(exported.clone());
        self.push(&format!(
            "export function f({name}: number) {{ {exported} += 1; return [{exported}, {name}]; }}\n"
        ));
        self.statements(depth - 1)?;
        self.push("}\n");
        self.names.truncate(outer);
        self.push(&format!("log({name}.{exported}, {name}.f(2), {name}.{exported});\n"));
        self.names.push(format!("{name}.{exported}"));
        Ok(())
    }

    fn class(&mut self, depth: u32) -> Result<()> {
        let name = self.fresh("C");
        let decorates = bool::arbitrary(self.input)?;
        if decorates && bool::arbitrary(self.input)? {
            self.push("@d ");
        }
        self.push(&format!("class {name}<T = any> {{\n"));
        for _ in 0..self.input.int_in_range(0..=4)? {
            let member = self.fresh("k");
            let value = self.expression(2)?;
            if decorates && bool::arbitrary(self.input)? {
                self.push("@d ");
            }
            let is_static = if bool::arbitrary(self.input)? { "static " } else { "" };
            let text = match self.input.int_in_range(0..=5)? {
                0 => format!("{is_static}{member} = {value};\n"),
                1 => format!("{is_static}{member}(a = {value}) {{ return a; }}\n"),
                2 => format!("{is_static}accessor {member} = {value};\n"),
                3 => format!("{is_static}get {member}() {{ return {value}; }}\n"),
                4 => format!("{is_static}#{member} = {value};\n"),
                _ => format!("{is_static}['{member}'] = {value};\n"),
            };
            self.push(&text);
        }
        let value = self.expression(2)?;
        self.push(&format!(
            "constructor(public p: any = {value}, private readonly q?: T) {{ log('new', this.p); }}\n"
        ));
        self.push("}\n");
        self.push(&format!("log(new {name}(1, 2), {name}.name, Object.keys(new {name}()));\n"));
        if depth > 1 && bool::arbitrary(self.input)? {
            let derived = self.fresh("D");
            self.push(&format!(
                "class {derived} extends {name} {{ constructor(public r = 3) {{ super(r); log(this.r); }} }}\nlog(new {derived}());\n"
            ));
        }
        Ok(())
    }

    fn expression(&mut self, depth: u32) -> Result<String> {
        if depth == 0 {
            return Ok(match self.input.int_in_range(0..=3)? {
                0 if !self.names.is_empty() => self.input.choose(&self.names)?.clone(),
                1 => "'s'".to_owned(),
                _ => self.input.int_in_range(0..=9)?.to_string(),
            });
        }
        let (left, right) = (self.expression(depth - 1)?, self.expression(depth - 1)?);
        Ok(match self.input.int_in_range(0..=9)? {
            0 => format!("({left} as any) + {right}"),
            1 => format!("({left} ? {right} : <any>0)"),
            2 => format!("((a: any) => [a, {left}])({right})"),
            3 => format!("`${{{left}}}-${{{right}}}`"),
            4 => format!("({{ a: {left} }}.a satisfies unknown)"),
            5 => format!("({left} ?? {right})!"),
            6 => format!("[{left}, {right}].length"),
            7 => format!("(function <T>(this: void, a?: T) {{ return a ?? {left}; }})({right})"),
            8 => format!("({left} as any) - ({right} as any)"),
            _ => left,
        })
    }
}

/// Returns what the program compiles to, for `fuzz/differential`.
#[cfg(fuzzing)]
pub(crate) fn compiled(source: &str) -> std::result::Result<String, String> {
    transpile(source, MAX_BYTES, &|| false)
        .map(|transpiled| transpiled.code)
        .map_err(|failed| failed.error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use crate::fuzzing::constructs::{NESTS, PAYLOADS, SEQUENCES, TRIGGERS, nested, sequence};
    use crate::fuzzing::nestings::pairs;
    use crate::fuzzing::smoke;

    #[test]
    fn v_302_any_text() {
        smoke("transpile", 1_500, super::text);
    }

    #[test]
    fn v_302_generated_programs() {
        smoke("program", 1_500, super::program);
    }

    #[test]
    fn v_303_the_scanner_never_weighs_less_than_the_tree() {
        smoke("bounds", 3_000, super::bounds);
    }

    #[test]
    fn v_690_generated_nestings() {
        smoke("nestings", 300, super::nestings);
    }

    /// Each level doubles what is read again: what takes 50 ns takes 0.4 seconds with the last of these, and what more
    /// than doubles is noticed before.
    const LEVELS: &[usize] = &[10, 16, 23];

    /// What is not counted at all has less work than this with the last of these levels. What is counted wrong is found
    /// by the target, which reads longer sources.
    const MAX_COUNTED: u64 = 4 << 10;

    /// Only the parser reads again what it has read, so no pass is needed.
    #[test]
    fn v_690_every_two_constructs_nested_in_each_other() {
        let pairs = pairs();
        assert!(pairs.len() > 30_000, "only {} pairs", pairs.len());
        super::on_large_stack(|| {
            for nesting in &pairs {
                super::climb(nesting, LEVELS, MAX_COUNTED, super::PARSED, |source| {
                    // swc's own assertions, which this build has, fail for some sources.
                    drop(std::panic::catch_unwind(|| parse::tree(source)));
                });
            }
        });
    }

    #[test]
    fn v_302_every_construct_in_a_row_and_nested() {
        for trigger in TRIGGERS {
            for construct in SEQUENCES {
                super::text(sequence(trigger, construct, 600).as_bytes());
            }
            for nest in NESTS {
                for payload in PAYLOADS {
                    super::text(nested(trigger, *nest, 4, payload, false, 400).as_bytes());
                }
            }
        }
    }
}
