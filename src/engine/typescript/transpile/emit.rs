//! Runs the passes and checks between them whether the run has been stopped.

use std::collections::HashSet;

use swc_common::{GLOBALS, Globals, Mark, SyntaxContext};
use swc_ecma_ast::{Class, ClassExpr, Decl, Expr, ParenExpr, Pat, Program, Script, Stmt, VarDeclKind};
use swc_ecma_transforms_base::fixer::fixer;
use swc_ecma_transforms_base::hygiene::hygiene;
use swc_ecma_transforms_base::resolver;
use swc_ecma_transforms_typescript::{Config, typescript};
use swc_ecma_visit::{VisitMut, VisitMutWith};

use super::cancellation::Cancellation;
use super::error::TranspileError;
use super::make;
use super::output::Transpiled;
use super::parse::Parsed;
use super::positions::Positions;
use super::{constants, decorators, enums, imports, lower, namespaces, print, refuse, survey, value, work};
use crate::engine::fence::Part;

/// Start of the wrapper. Where classes are decorated, the runtime of decorators is the argument of
/// a function around it. The directive is the first statement of the body, which makes all of it
/// strict.
const OPEN: &str = "(async () => {\"use strict\";\n";

/// End of the wrapper.
const CLOSE: &str = "})";

/// Start of the wrapper of a script with `export default`, whose value is called if it is a
/// function. `then` is used so that no name of the wrapper is in scope of the script.
const OPEN_EXPORT: &str = "(async () => (async () => {\"use strict\";\n";

/// End of that wrapper. A class is a function whose `prototype` is not writable; it is not called.
const CLOSE_EXPORT: &str = "})().then((value) => typeof value === \"function\" && \
    Object.getOwnPropertyDescriptor(value, \"prototype\")?.writable !== false ? value(globalThis.input) : value))";

/// Number of lines of either start.
const OPEN_LINES: u32 = 1;

/// Generates JavaScript from the parsed module.
pub(super) fn emit(
    part: Part<'_>,
    parsed: Parsed,
    cancellation: Cancellation<'_>,
) -> Result<Transpiled, TranspileError> {
    GLOBALS.set(&Globals::new(), || transpile(part, parsed, cancellation))
}

fn transpile(
    part: Part<'_>,
    parsed: Parsed,
    cancellation: Cancellation<'_>,
) -> Result<Transpiled, TranspileError> {
    cancellation.check()?;
    refuse::check(part, &parsed.module)?;
    work::check(part, &parsed.module)?;
    cancellation.check()?;
    let unresolved = Mark::new();
    let top_level = Mark::new();
    let mut program = Program::Module(parsed.module);
    program.mutate(resolver(unresolved, top_level, true));
    cancellation.check()?;
    let Program::Module(module) = &mut program else { unreachable!("no pass makes a script of a module") };
    let unresolved_names = SyntaxContext::empty().apply_mark(unresolved);
    // A pass walks the tree even if there is nothing to do, so the text is checked first. The words
    // cannot be written with escapes; a match in a string or a comment costs only the walk.
    let mut lowered_enums = HashSet::new();
    if part.text.contains("enum") {
        lowered_enums = enums::lower(module, unresolved_names);
        cancellation.check()?;
    }
    // A namespace in two blocks contains the word twice.
    if ["namespace", "module"].iter().map(|word| part.text.matches(word).count()).sum::<usize>() > 1 {
        namespaces::qualify(module, &lowered_enums, unresolved_names);
    }
    let value = value::decide(module, parsed.returns);
    let survey = survey::survey(module, &value, unresolved_names);
    constants::hide(part, module);
    cancellation.check()?;

    let mut decorates = false;
    if part.text.contains('@') || part.text.contains("accessor") {
        decorates = decorators::lower(part, module, unresolved_names);
        cancellation.check()?;
    }
    let config = Config {
        // Class fields keep the language's own semantics.
        native_class_properties: true,
        no_empty_export: true,
        ..Config::default()
    };
    program.mutate(typescript(config, unresolved, top_level));
    cancellation.check()?;

    let Program::Module(module) = program else { unreachable!("no pass makes a script of a module") };
    let mut lowered = lower::lower(part, module, &value, unresolved_names)?;
    if part.text.contains("import") {
        lowered.made_up_name |= imports::bound(&mut lowered.body);
        cancellation.check()?;
    }
    let mut program =
        Program::Script(Script { span: swc_common::DUMMY_SP, body: lowered.body, shebang: None });
    // Only these create names, or move an author's name into the scope of another of the same
    // spelling.
    let renames = ["namespace", "module", "enum"].iter().any(|word| part.text.contains(word));
    if decorates || renames || lowered.made_up_name {
        work::check_names(part, &program)?;
        cancellation.check()?;
        program.mutate(hygiene());
    }
    cancellation.check()?;
    program.mutate(fixer(None));
    if part.text.contains("class") {
        program.visit_mut_with(&mut Classes);
    }
    cancellation.check()?;

    let (open, close) = if lowered.calls_value { (OPEN_EXPORT, CLOSE_EXPORT) } else { (OPEN, CLOSE) };
    let (open, close) = if decorates {
        let (name, runtime) = (decorators::RUNTIME_NAME, decorators::RUNTIME);
        // Two functions: with one, stack traces would call the script's frame by the first name in
        // the runtime.
        let open = format!("(({name}) => (({name}) => {open}");
        (open, format!("{close})({name}()))(() => {runtime})"))
    } else {
        (open.to_owned(), close.to_owned())
    };
    let (code, tokens) = print::print(part.text, &program, &open, &close, cancellation)?;
    Ok(Transpiled {
        code,
        imports: lowered.imports,
        survey,
        positions: Positions::new(part.text, part.lines_before, tokens, OPEN_LINES),
    })
}

/// Gives classes the form that the grammar and V8 need.
struct Classes;

impl VisitMut for Classes {
    /// Puts the heritage into parentheses if it needs them: the fixer removes all parentheses, and does not put back all
    /// that are needed.
    fn visit_mut_class(&mut self, class: &mut Class) {
        class.visit_mut_children_with(self);
        if let Some(heritage) = &mut class.super_class
            && needs_parentheses(heritage)
        {
            let expr = std::mem::take(heritage);
            **heritage = Expr::Paren(ParenExpr { span: swc_common::DUMMY_SP, expr });
        }
    }

    /// Makes `let C = class C {}` of `class C {}`. Scripts see no difference. V8 gives the evaluation of a declared
    /// class no location: an error there would have that of the statement before it.
    fn visit_mut_stmt(&mut self, statement: &mut Stmt) {
        statement.visit_mut_children_with(self);
        let Stmt::Decl(Decl::Class(declared)) = statement else { return };
        let (ident, class) = (declared.ident.clone(), std::mem::take(&mut declared.class));
        let span = class.span;
        let class = Box::new(Expr::Class(ClassExpr { ident: Some(ident.clone()), class }));
        *statement = make::variable(span, VarDeclKind::Let, Pat::from(ident), Some(class));
    }
}

fn needs_parentheses(heritage: &Expr) -> bool {
    matches!(
        heritage,
        Expr::Arrow(_)
            | Expr::Assign(_)
            | Expr::Await(_)
            | Expr::Bin(_)
            | Expr::Cond(_)
            | Expr::Seq(_)
            | Expr::Unary(_)
            | Expr::Update(_)
            | Expr::Yield(_)
    )
}
