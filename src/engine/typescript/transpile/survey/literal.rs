//! The literals of a script that JSON can represent.

use serde_json::Number;
use swc_common::Spanned as _;
use swc_ecma_ast::{
    ArrayLit, CallExpr, Expr, ExprOrSpread, Lit, ObjectLit, Prop, PropName, PropOrSpread, UnaryOp,
};

use super::syntax::{bytes, plain};
use crate::run::check::survey::{Field, Literal, ObjectBuilder, ValueCount};

/// `Number.MAX_SAFE_INTEGER`: up to it, a JavaScript number represents every integer exactly.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// A value that is not a literal, and may be `undefined`.
pub(super) const UNKNOWN: Literal = Literal::Unknown { may_be_absent: true };

/// The argument of a call at `position`; `null` if there is none.
pub(super) fn argument(call: &CallExpr, position: usize) -> Literal {
    if call.args.iter().take(position + 1).any(|argument| argument.spread.is_some()) {
        return UNKNOWN;
    }
    let Some(argument) = call.args.get(position) else { return Literal::Null };
    read(&argument.expr)
}

/// The value of an expression.
pub(super) fn read(expression: &Expr) -> Literal {
    Reader::default().read(expression, 0)
}

/// The text of an expression that is a string.
pub(super) fn string(expression: &Expr) -> Option<String> {
    match plain(expression) {
        Expr::Lit(Lit::Str(text)) => text.value.as_str().map(str::to_owned),
        Expr::Tpl(template) if template.exprs.is_empty() => {
            let [only] = template.quasis.as_slice() else { return None };
            only.cooked.as_ref()?.as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// Reads a value, and counts what it has read.
#[derive(Default)]
struct Reader {
    values: ValueCount,
}

impl Reader {
    fn read(&mut self, expression: &Expr, depth: usize) -> Literal {
        if !self.values.count(depth) {
            return UNKNOWN;
        }
        if let Some(text) = string(expression) {
            return Literal::Text(text);
        }
        match plain(expression) {
            Expr::Lit(Lit::Null(_)) => Literal::Null,
            Expr::Lit(Lit::Bool(value)) => Literal::Bool(value.value),
            Expr::Lit(Lit::Num(number)) => of_number(number.value),
            Expr::Unary(unary) if unary.op == UnaryOp::Minus => match plain(&unary.arg) {
                Expr::Lit(Lit::Num(number)) => of_number(-number.value),
                _ => UNKNOWN,
            },
            Expr::Array(array) => self.list(array, depth),
            Expr::Object(object) => self.object(object, depth),
            _ => UNKNOWN,
        }
    }

    /// Counts a value that is not read any further.
    fn counted(&mut self, value: Literal, depth: usize) -> Literal {
        if self.values.count(depth) { value } else { UNKNOWN }
    }

    fn list(&mut self, array: &ArrayLit, depth: usize) -> Literal {
        let mut items = Vec::new();
        for item in &array.elems {
            let item = match item {
                Some(ExprOrSpread { spread: None, expr }) => self.read(expr, depth + 1),
                // How many items there are is not known.
                Some(ExprOrSpread { spread: Some(_), .. }) => return UNKNOWN,
                None => self.counted(Literal::Null, depth + 1),
            };
            if self.values.is_exceeded() {
                return UNKNOWN;
            }
            items.push(item);
        }
        Literal::List(items)
    }

    fn object(&mut self, written: &ObjectLit, depth: usize) -> Literal {
        let mut object = ObjectBuilder::default();
        for property in &written.props {
            let value = match property {
                PropOrSpread::Prop(property) => match &**property {
                    Prop::KeyValue(field) => self.read(&field.value, depth + 1),
                    _ => self.counted(UNKNOWN, depth + 1),
                },
                PropOrSpread::Spread(_) => self.counted(UNKNOWN, depth + 1),
            };
            if self.values.is_exceeded() {
                return UNKNOWN;
            }
            let PropOrSpread::Prop(property) = property else {
                object.spread(true);
                continue;
            };
            let (name, at, value_at) = match &**property {
                Prop::Shorthand(name) => {
                    let at = bytes(name.span);
                    (Some(name.sym.to_string()), at.clone(), at)
                }
                Prop::KeyValue(field) => {
                    (name_of(&field.key), key_bytes(&field.key), span_bytes(&field.value))
                }
                Prop::Getter(getter) => {
                    (name_of(&getter.key), key_bytes(&getter.key), key_bytes(&getter.key))
                }
                Prop::Setter(_) | Prop::Assign(_) => (None, 0..0, 0..0),
                Prop::Method(method) => {
                    (name_of(&method.key), key_bytes(&method.key), key_bytes(&method.key))
                }
            };
            match name {
                // The method decides what the object becomes in JSON.
                Some(name) if name == "toJSON" => return UNKNOWN,
                Some(name) if name != "__proto__" => object.set(Field { name, at, value, value_at }),
                Some(_) | None => object.spread(true),
            }
        }
        Literal::Object(object.build())
    }
}

fn of_number(value: f64) -> Literal {
    let number = if value.fract() == 0.0 && value.abs() <= MAX_INTEGER {
        #[expect(clippy::cast_possible_truncation, reason = "it is an integer, and small enough")]
        let integer = value as i64;
        Some(Number::from(integer))
    } else {
        Number::from_f64(value)
    };
    number.map_or(UNKNOWN, Literal::Number)
}

/// The name of a field; `None` if it is computed.
fn name_of(key: &PropName) -> Option<String> {
    match key {
        PropName::Ident(name) => Some(name.sym.to_string()),
        PropName::Str(name) => name.value.as_str().map(str::to_owned),
        PropName::Num(number) => match of_number(number.value) {
            Literal::Number(number) => Some(number.to_string()),
            _ => None,
        },
        PropName::Computed(computed) => string(&computed.expr),
        PropName::BigInt(_) => None,
    }
}

fn key_bytes(key: &PropName) -> std::ops::Range<usize> {
    bytes(key.span())
}

fn span_bytes(expression: &Expr) -> std::ops::Range<usize> {
    bytes(expression.span())
}
