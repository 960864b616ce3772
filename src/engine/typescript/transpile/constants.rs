//! Limits the constants that the TypeScript pass evaluates.
//!
//! The pass evaluates every `const` and every member of an enum, because an enum may use them. It
//! copies the remaining expression once for each operator, so a sum of 4,000 numbers took twelve
//! seconds; and it builds every intermediate string, so `const b = a + a, c = b + b, …` took all
//! memory. So the same evaluation is done here first, on lengths only. A constant that is long or
//! takes many steps is hidden from the pass by a type annotation, which the pass removes; an enum
//! then reads it when the script runs. Members of enums cannot be hidden, and are refused.

use std::collections::HashMap;

use swc_common::{DUMMY_SP, Span, SyntaxContext};
use swc_ecma_ast::{
    BinaryOp, Expr, Id, Lit, MemberExpr, MemberProp, Module, Pat, TsEnumDecl, TsEnumMemberId, TsKeywordType,
    TsKeywordTypeKind, TsType, TsTypeAnn, UnaryOp, VarDecl, VarDeclKind,
};
use swc_ecma_visit::{VisitMut, VisitMutWith};

use super::error::{TranspileError, TranspileErrorKind};
use super::fence::Part;
use super::{refuse, work};

/// Maximum number of operators in a constant that is evaluated. The pass copies up to the square of
/// it.
const MAX_CONSTANT_STEPS: u32 = 32;

/// Maximum length of such a constant's text, in bytes. Names and paths are shorter; a longer text
/// is read at run time.
const MAX_CONSTANT_BYTES: usize = 4 << 10;

/// Maximum bytes of text of all enum members together, including intermediate strings: four times
/// the largest source.
const MAX_MEMBER_BYTES: usize = 4 << 20;

/// Maximum number of operators in one enum member. `bounds` counts them as work and refuses longer
/// members first.
const MAX_MEMBER_STEPS: u32 = 100_000;

/// Hides constants in a module whose names are resolved. `unresolved` is the context of names
/// without a declaration, which in an enum refer to its members.
pub(super) fn limit(
    part: Part<'_>,
    module: &mut Module,
    unresolved: SyntaxContext,
) -> Result<(), TranspileError> {
    // A constant needs one of these words, and neither can be written with escapes.
    let has_enums = part.text.contains("enum");
    if !has_enums && !part.text.contains("const") {
        return Ok(());
    }
    let mut limiter = Limiter { has_enums, unresolved, ..Limiter::default() };
    module.visit_mut_with(&mut limiter);
    match limiter.exceeded {
        None => Ok(()),
        Some(span) => {
            let hint = "the texts of its enums are longer than 4 MB: use objects";
            Err(refuse::error(part, TranspileErrorKind::Transpile, span, work::MESSAGE, hint))
        }
    }
}

/// The result of evaluating an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folded {
    Number,
    /// Text of this length in bytes.
    Text(usize),
    /// Known only when the script runs.
    Open,
}

/// Maximum length of a number as text, in bytes.
const NUMBER_BYTES: usize = 24;

impl Folded {
    /// Length in bytes when concatenated.
    fn bytes(self) -> Option<usize> {
        match self {
            Self::Number => Some(NUMBER_BYTES),
            Self::Text(bytes) => Some(bytes),
            Self::Open => None,
        }
    }
}

#[derive(Default)]
struct Limiter {
    has_enums: bool,
    unresolved: SyntaxContext,
    constants: HashMap<Id, Folded>,
    /// Keyed by the enum and the member's name.
    members: HashMap<(Id, String), Folded>,
    /// Bytes of the texts of members.
    bytes: usize,
    exceeded: Option<Span>,
}

/// One evaluation and its remaining budget.
struct Evaluation<'a> {
    limiter: &'a Limiter,
    /// The enum that the member belongs to.
    enum_id: Option<&'a Id>,
    steps: u32,
    /// Bytes of all intermediate texts.
    made: usize,
}

impl Evaluation<'_> {
    /// Evaluates `expression`. Returns `None` if that takes too many steps.
    fn evaluate(&mut self, expression: &Expr) -> Option<Folded> {
        self.steps = self.steps.checked_sub(1)?;
        let folded = match expression {
            Expr::Lit(Lit::Str(text)) => Folded::Text(text.value.len()),
            Expr::Lit(Lit::Num(_)) => Folded::Number,
            Expr::Ident(name) if name.ctxt == self.limiter.unresolved => {
                let member = self.enum_id.map_or(Folded::Open, |id| self.member(id.clone(), &name.sym));
                let is_number = matches!(&*name.sym, "Infinity" | "NaN");
                if member == Folded::Open && is_number { Folded::Number } else { member }
            }
            Expr::Ident(name) => self.limiter.constants.get(&name.to_id()).copied().unwrap_or(Folded::Open),
            Expr::Paren(inner) => self.evaluate(&inner.expr)?,
            Expr::TsAs(inner) => self.evaluate(&inner.expr)?,
            Expr::TsNonNull(inner) => self.evaluate(&inner.expr)?,
            Expr::TsTypeAssertion(inner) => self.evaluate(&inner.expr)?,
            Expr::TsConstAssertion(inner) => self.evaluate(&inner.expr)?,
            Expr::TsInstantiation(inner) => self.evaluate(&inner.expr)?,
            Expr::TsSatisfies(inner) => self.evaluate(&inner.expr)?,
            Expr::Unary(unary) if matches!(unary.op, UnaryOp::Plus | UnaryOp::Minus | UnaryOp::Tilde) => {
                match self.evaluate(&unary.arg)? {
                    Folded::Number => Folded::Number,
                    Folded::Text(_) | Folded::Open => Folded::Open,
                }
            }
            Expr::Bin(binary) => {
                let (left, right) = (self.evaluate(&binary.left)?, self.evaluate(&binary.right)?);
                match (left, right, binary.op) {
                    (Folded::Number, Folded::Number, _) => Folded::Number,
                    (left, right, BinaryOp::Add) => match (left.bytes(), right.bytes()) {
                        (Some(left), Some(right)) => Folded::Text(left.saturating_add(right)),
                        _ => Folded::Open,
                    },
                    _ => Folded::Open,
                }
            }
            Expr::Tpl(template) => {
                let mut bytes = template.quasis.iter().map(|quasi| quasi.raw.len()).sum::<usize>();
                let mut open = false;
                for inner in &template.exprs {
                    match self.evaluate(inner)?.bytes() {
                        Some(inner) => bytes = bytes.saturating_add(inner),
                        None => open = true,
                    }
                }
                if open { Folded::Open } else { Folded::Text(bytes) }
            }
            Expr::Member(member) => self.member_of(member),
            Expr::OptChain(chain) => {
                chain.base.as_member().map_or(Folded::Open, |member| self.member_of(member))
            }
            _ => Folded::Open,
        };
        self.made = self.made.saturating_add(folded.bytes().unwrap_or(0));
        Some(folded)
    }

    fn member(&self, id: Id, name: &str) -> Folded {
        self.limiter.members.get(&(id, name.to_owned())).copied().unwrap_or(Folded::Open)
    }

    fn member_of(&self, member: &MemberExpr) -> Folded {
        let Expr::Ident(object) = &*member.obj else {
            return Folded::Open;
        };
        match &member.prop {
            MemberProp::Ident(name) => self.member(object.to_id(), &name.sym),
            MemberProp::Computed(computed) => match &*computed.expr {
                Expr::Lit(Lit::Str(name)) => self.member(object.to_id(), &name.value.to_string_lossy()),
                Expr::Tpl(name) if name.exprs.is_empty() => name
                    .quasis
                    .first()
                    .and_then(|quasi| quasi.cooked.as_ref())
                    .map_or(Folded::Open, |name| self.member(object.to_id(), &name.to_string_lossy())),
                _ => Folded::Open,
            },
            MemberProp::PrivateName(_) => Folded::Open,
        }
    }
}

impl VisitMut for Limiter {
    fn visit_mut_var_decl(&mut self, declaration: &mut VarDecl) {
        for variable in &mut declaration.decls {
            variable.visit_mut_children_with(self);
            if declaration.kind != VarDeclKind::Const {
                continue;
            }
            let (Pat::Ident(name), Some(init)) = (&mut variable.name, &variable.init) else {
                continue;
            };
            if name.type_ann.is_some() {
                continue;
            }
            // Without enums no constant is used by the pass.
            let folded = self.has_enums.then(|| {
                let mut evaluation =
                    Evaluation { limiter: self, enum_id: None, steps: MAX_CONSTANT_STEPS, made: 0 };
                evaluation.evaluate(init).filter(|_| evaluation.made <= MAX_CONSTANT_BYTES)
            });
            match folded.flatten() {
                Some(Folded::Open) => {}
                Some(folded) => {
                    self.constants.insert(name.to_id(), folded);
                }
                None if !self.has_enums && !is_evaluated(init) => {}
                None => name.type_ann = Some(any()),
            }
        }
    }

    fn visit_mut_ts_enum_decl(&mut self, declared: &mut TsEnumDecl) {
        declared.visit_mut_children_with(self);
        let id = declared.id.to_id();
        let mut previous = Folded::Number;
        for member in &declared.members {
            let folded = match &member.init {
                None => previous,
                Some(init) => {
                    let mut evaluation =
                        Evaluation { limiter: self, enum_id: Some(&id), steps: MAX_MEMBER_STEPS, made: 0 };
                    let folded = evaluation.evaluate(init);
                    let made = evaluation.made;
                    self.bytes = self.bytes.saturating_add(made);
                    if folded.is_none() || self.bytes > MAX_MEMBER_BYTES {
                        self.exceeded.get_or_insert(member.span);
                    }
                    folded.unwrap_or(Folded::Open)
                }
            };
            previous = if folded == Folded::Number { Folded::Number } else { Folded::Open };
            let name = match &member.id {
                TsEnumMemberId::Ident(name) => name.sym.to_string(),
                TsEnumMemberId::Str(name) => name.value.to_string_lossy().into_owned(),
            };
            self.members.insert((id.clone(), name), folded);
        }
    }
}

/// Returns whether the pass copies `expression` to evaluate it. Names and literals are not copied.
fn is_evaluated(expression: &Expr) -> bool {
    !matches!(
        expression,
        Expr::Lit(_)
            | Expr::Ident(_)
            | Expr::Arrow(_)
            | Expr::Fn(_)
            | Expr::Class(_)
            | Expr::Call(_)
            | Expr::New(_)
            | Expr::Await(_)
            | Expr::Object(_)
            | Expr::Array(_)
    )
}

/// A type annotation. A constant that has one is not evaluated.
fn any() -> Box<TsTypeAnn> {
    let kind = TsKeywordTypeKind::TsAnyKeyword;
    let any = TsType::TsKeywordType(TsKeywordType { span: DUMMY_SP, kind });
    Box::new(TsTypeAnn { span: DUMMY_SP, type_ann: Box::new(any) })
}
