//! Runs the passes and prints the function.

use swc_common::sync::Lrc;
use swc_common::{BytePos, FileName, GLOBALS, Globals, LineCol, Mark, SourceMap, SyntaxContext};
use swc_ecma_ast::{Program, Script};
use swc_ecma_codegen::text_writer::JsWriter;
use swc_ecma_codegen::{Config as PrinterConfig, Emitter};
use swc_ecma_transforms_base::fixer::fixer;
use swc_ecma_transforms_base::helpers::{HELPERS, Helpers, inject_helpers};
use swc_ecma_transforms_base::hygiene::hygiene;
use swc_ecma_transforms_base::resolver;
use swc_ecma_transforms_proposal::decorator_2023_11::decorator_2023_11;
use swc_ecma_transforms_typescript::{Config, typescript};

use super::fence::Part;
use super::parse::Parsed;
use super::{Positions, StripError, Stripped, lower, namespaces, refuse, value};

/// Opens the function. The directive is the first statement of the body, which makes all of it strict.
const OPEN: &str = "(async () => {\"use strict\";\n";

/// Closes it.
const CLOSE: &str = "})";

/// Opens the function of a script with `export default`, whose value is called if it is a function. `then` is
/// used so that no name of the wrapper is in scope of the script.
const OPEN_EXPORT: &str = "(async () => (async () => {\"use strict\";\n";

/// Closes it. A class is a function whose `prototype` cannot be written to; it is a value, and not called.
const CLOSE_EXPORT: &str = "})().then((value) => typeof value === \"function\" && \
    Object.getOwnPropertyDescriptor(value, \"prototype\")?.writable !== false ? value(globalThis.input) : value))";

/// Lines of either opening.
const OPEN_LINES: u32 = 1;

/// Makes JavaScript of what was parsed.
pub(super) fn emit(part: Part<'_>, parsed: Parsed) -> Result<Stripped, StripError> {
    GLOBALS.set(&Globals::new(), || transpile(part, parsed))
}

fn transpile(part: Part<'_>, parsed: Parsed) -> Result<Stripped, StripError> {
    refuse::check(part, &parsed.module)?;
    let unresolved = Mark::new();
    let top_level = Mark::new();
    let mut program = Program::Module(parsed.module);
    program.mutate(resolver(unresolved, top_level, true));
    let Program::Module(module) = &mut program else { unreachable!("no pass makes a script of a module") };
    // A namespace in two blocks is written twice.
    if ["namespace", "module"].iter().map(|word| part.text.matches(word).count()).sum::<usize>() > 1 {
        namespaces::qualify(module, unresolved);
    }
    let value = value::decide(module, parsed.returns);

    // A pass costs a walk over the tree even where there is nothing to do, so the text is asked first. The
    // words cannot be written with escapes; found in a string or a comment they cost only the walk.
    let decorates = part.text.contains('@') || part.text.contains("accessor");
    if decorates {
        HELPERS.set(&Helpers::new(false), || {
            program.mutate(decorator_2023_11());
            program.mutate(inject_helpers(unresolved));
        });
    }
    let config = Config {
        // Fields stay the language's own.
        native_class_properties: true,
        // `tsc` reads members of enums that are not const at run time, and so do we.
        ts_enum_is_mutable: true,
        no_empty_export: true,
        ..Config::default()
    };
    program.mutate(typescript(config, unresolved, top_level));

    let Program::Module(module) = program else { unreachable!("no pass makes a script of a module") };
    let lowered = lower::lower(part, module, &value, SyntaxContext::empty().apply_mark(unresolved))?;
    let mut program =
        Program::Script(Script { span: swc_common::DUMMY_SP, body: lowered.body, shebang: None });
    // Only these make names, or move an author's name to where another of the same spelling is in scope.
    let renames = ["namespace", "module", "enum"].iter().any(|word| part.text.contains(word));
    if decorates || renames || lowered.made_up_name {
        program.mutate(hygiene());
    }
    program.mutate(fixer(None));

    let (open, close) = if lowered.calls_value { (OPEN_EXPORT, CLOSE_EXPORT) } else { (OPEN, CLOSE) };
    let (code, tokens) = print(part.text, &program, open, close);
    Ok(Stripped {
        code,
        imports: lowered.imports,
        positions: Positions::new(part.text, part.lines_before, tokens, OPEN_LINES),
    })
}

fn print(source: &str, program: &Program, open: &str, close: &str) -> (String, Vec<(BytePos, LineCol)>) {
    let map: Lrc<SourceMap> = Lrc::default();
    // The printer asks the map which nodes shared a line. Its first file begins where the parser began to count.
    map.new_source_file(Lrc::new(FileName::Anon), source.to_owned());
    let mut code = Vec::with_capacity(source.len() + source.len() / 4 + open.len() + close.len());
    code.extend_from_slice(open.as_bytes());
    let mut tokens = Vec::new();
    let mut writer = JsWriter::new(map.clone(), "\n", &mut code, Some(&mut tokens));
    // Indented code would grow with the square of its depth: a thousand blocks would take 4 MB.
    writer.set_indent_str("");
    let mut emitter = Emitter { cfg: PrinterConfig::default(), cm: map, comments: None, wr: writer };
    emitter.emit_program(program).expect("writing to memory does not fail");
    code.extend_from_slice(close.as_bytes());
    (String::from_utf8(code).expect("the printer writes UTF-8"), tokens)
}
