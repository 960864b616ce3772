//! Refuses TypeScript that parses but cannot run here.

use swc_common::{Span, Spanned};
use swc_ecma_ast::{
    CallExpr, Callee, ExportSpecifier, Expr, ImportDecl, ImportPhase, MetaPropExpr, MetaPropKind, Module,
    ModuleDecl, ModuleExportName, ModuleItem, Param, TsModuleRef,
};
use swc_ecma_visit::{Visit, VisitWith};

use super::error::{TranspileError, TranspileErrorKind};
use super::patterns::find_heavy;
use super::positions::location_of;
use crate::engine::fence::Part;
use crate::engine::typescript::instead;
use crate::text;

/// Maximum characters of a specifier that an error shows.
const MAX_SHOWN: usize = 100;

/// The scheme with which servers are imported.
pub(super) const SERVER_PREFIX: &str = "mcp:";

/// The names of the module of files, which are those of Node. The first is its own.
pub(crate) const FILE_MODULES: [&str; 4] = ["node:fs/promises", "fs/promises", "node:fs", "fs"];

/// Returns an error of this kind at a span of `part`.
pub(super) fn error(
    part: Part<'_>,
    kind: TranspileErrorKind,
    span: Span,
    message: &str,
    hint: &str,
) -> TranspileError {
    TranspileError {
        kind,
        message: message.to_owned(),
        location: Some(location_of(part.text, part.lines_before, span.lo)),
        hint: Some(hint.to_owned()),
    }
}

/// Returns an error for the first construct in `module` that cannot run.
pub(super) fn check(part: Part<'_>, module: &Module) -> Result<(), TranspileError> {
    let mut default: Option<Span> = None;
    for item in &module.body {
        let ModuleItem::ModuleDecl(declaration) = item else {
            continue;
        };
        check_declaration(part, declaration)?;
        if exports_default(declaration) && default.replace(declaration.span()).is_some() {
            return Err(error(
                part,
                TranspileErrorKind::Syntax,
                declaration.span(),
                "a script has one `export default`, this is the second",
                "export an object that holds both",
            ));
        }
    }
    if let Some(span) = find_heavy(part.text, module) {
        return Err(error(
            part,
            TranspileErrorKind::Transpile,
            span,
            "this regular expression has too many classes, names or characters to be compiled",
            "use at most 200 `\\p{…}`, 1,000 `\\w` or the like, 4,000 named groups, 10,000 `[`, 524,288 characters, \
             and with `v` 4,096 characters and 30 `\\p{RGI_Emoji}`",
        ));
    }
    // These words cannot be written with escapes, so text without them needs no walk over the tree.
    if part.text.contains('@') || part.text.contains("import") {
        let mut finder = Finder::default();
        module.visit_with(&mut finder);
        if let Some((span, message, hint)) = finder.found {
            return Err(error(part, TranspileErrorKind::Transpile, span, message, hint));
        }
    }
    Ok(())
}

fn check_declaration(part: Part<'_>, declaration: &ModuleDecl) -> Result<(), TranspileError> {
    let transpile =
        |span, message, hint| Err(error(part, TranspileErrorKind::Transpile, span, message, hint));
    match declaration {
        ModuleDecl::Import(import) => check_phase(part, import),
        ModuleDecl::TsImportEquals(import)
            if !import.is_type_only && matches!(import.module_ref, TsModuleRef::TsExternalModuleRef(_)) =>
        {
            transpile(
                import.span,
                "`import … = require(…)` is not available",
                "write `import { tool } from \"mcp:server\"`, or call `tools.server.tool(…)`",
            )
        }
        ModuleDecl::TsExportAssignment(export) => transpile(
            export.span,
            "`export =` is not available",
            "`return` the value, or write `export default`",
        ),
        ModuleDecl::TsNamespaceExport(export) => {
            transpile(export.span, "`export as namespace` is not available", "leave it out")
        }
        ModuleDecl::ExportAll(export) if !export.type_only => exported_from(part, &export.src, export.span),
        ModuleDecl::ExportNamed(export) if !export.type_only => match &export.src {
            // `export { type A } from "…"`: nothing is left of it.
            Some(_) if !export.specifiers.is_empty() && export.specifiers.iter().all(is_type) => Ok(()),
            Some(source) => exported_from(part, source, export.span),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn is_type(specifier: &ExportSpecifier) -> bool {
    matches!(specifier, ExportSpecifier::Named(named) if named.is_type_only)
}

fn check_phase(part: Part<'_>, import: &ImportDecl) -> Result<(), TranspileError> {
    if import.phase != ImportPhase::Evaluation {
        return Err(error(
            part,
            TranspileErrorKind::Transpile,
            import.span,
            "`import source` and `import defer` are not available",
            "write `import { tool } from \"mcp:server\"`",
        ));
    }
    if let Some(attributes) = &import.with {
        return Err(error(
            part,
            TranspileErrorKind::Transpile,
            attributes.span,
            "import attributes are not available",
            "write `import { tool } from \"mcp:server\"` without `with`; a file of JSON is read with \
             `JSON.parse(await fs.readFile(path, \"utf8\"))`",
        ));
    }
    Ok(())
}

fn exported_from(part: Part<'_>, source: &swc_ecma_ast::Str, span: Span) -> Result<(), TranspileError> {
    check_specifier(part, source)?;
    Err(error(
        part,
        TranspileErrorKind::Transpile,
        span,
        "a script cannot export from a server",
        "import the tool, call it and `return` what it gives",
    ))
}

/// Returns the specifier if it names a server, or the module of files.
pub(super) fn check_specifier(part: Part<'_>, source: &swc_ecma_ast::Str) -> Result<String, TranspileError> {
    let specifier = source.value.to_string_lossy().into_owned();
    let is_server = specifier.strip_prefix(SERVER_PREFIX).is_some_and(|server| !server.is_empty());
    if is_server || FILE_MODULES.contains(&specifier.as_str()) {
        return Ok(specifier);
    }
    let hint = instead::of_import(&specifier);
    let name = text::preview(&specifier, MAX_SHOWN);
    let message = format!("cannot import `{name}`: scripts have no packages and no URLs");
    Err(error(part, TranspileErrorKind::Syntax, source.span, &message, hint))
}

fn exports_default(declaration: &ModuleDecl) -> bool {
    match declaration {
        ModuleDecl::ExportDefaultExpr(_) => true,
        ModuleDecl::ExportDefaultDecl(export) => match &export.decl {
            swc_ecma_ast::DefaultDecl::Fn(function) => function.function.body.is_some(),
            swc_ecma_ast::DefaultDecl::Class(_) => true,
            swc_ecma_ast::DefaultDecl::TsInterfaceDecl(_) => false,
        },
        ModuleDecl::ExportNamed(export) if !export.type_only => export.specifiers.iter().any(|specifier| {
            matches!(specifier, ExportSpecifier::Named(named)
                if !named.is_type_only
                    && matches!(&named.exported, Some(ModuleExportName::Ident(name)) if name.sym == "default"))
        }),
        _ => false,
    }
}

/// Searches for constructs that a script cannot use.
#[derive(Default)]
struct Finder {
    found: Option<(Span, &'static str, &'static str)>,
}

impl Finder {
    fn find(&mut self, span: Span, message: &'static str, hint: &'static str) {
        self.found.get_or_insert((span, message, hint));
    }
}

impl Visit for Finder {
    fn visit_param(&mut self, parameter: &Param) {
        if let Some(decorator) = parameter.decorators.first() {
            self.find(
                decorator.span,
                "decorators of parameters are not available",
                "decorate the method or the class: standard decorators have none for parameters",
            );
        }
        parameter.visit_children_with(self);
    }

    fn visit_ts_param_prop(&mut self, parameter: &swc_ecma_ast::TsParamProp) {
        if let Some(decorator) = parameter.decorators.first() {
            self.find(
                decorator.span,
                "decorators of parameters are not available",
                "decorate the method or the class: standard decorators have none for parameters",
            );
        }
        parameter.visit_children_with(self);
    }

    fn visit_meta_prop_expr(&mut self, meta: &MetaPropExpr) {
        if meta.kind == MetaPropKind::ImportMeta {
            self.find(
                meta.span,
                "`import.meta` is not available",
                "a script has no file and no URL; write what follows `if (import.meta.main)` without the condition",
            );
        }
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Import(import) = &call.callee
            && (import.phase != ImportPhase::Evaluation || call.args.len() > 1)
        {
            self.find(
                call.span,
                "import attributes and phases are not available",
                "write `await import(\"mcp:server\")`",
            );
        }
        call.visit_children_with(self);
    }

    fn visit_expr(&mut self, expression: &Expr) {
        expression.visit_children_with(self);
    }
}
