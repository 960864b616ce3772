//! The literals of a Python script that JSON can represent.

use ruff_python_ast::{Arguments, Expr, ExprDict, Number, UnaryOp};
use ruff_text_size::{Ranged as _, TextRange};
use serde_json::Number as JsonNumber;

use crate::run::check::survey::{Bytes, Field, Literal, ObjectBuilder, ValueCount};

/// A value that is not a literal.
pub(super) const UNKNOWN: Literal = Literal::Unknown { may_be_absent: false };

/// The byte offsets of a part of the text.
pub(super) fn bytes(range: TextRange) -> Bytes {
    range.start().to_usize()..range.end().to_usize()
}

/// The arguments of a tool that is called as a function: keywords, one dict, or both. Behind a dict are the options of
/// the call.
pub(super) fn arguments(given: &Arguments) -> Literal {
    match &*given.args {
        [] if given.keywords.is_empty() => Literal::Null,
        [] => Reader::default().keywords(given, ObjectBuilder::default(), &[]),
        [only] | [only, _] => Reader::default().with_keywords(Some(only), given, &[]),
        _ => UNKNOWN,
    }
}

/// The arguments of a tool that is called by a function which has them at `position`, or as keywords other than
/// `own`.
pub(super) fn by_name(given: &Arguments, position: usize, own: &[&str]) -> Literal {
    if given.args.iter().any(Expr::is_starred_expr) {
        return UNKNOWN;
    }
    let name = own.get(position).copied().unwrap_or_default();
    Reader::default().with_keywords(given.find_argument_value(name, position), given, own)
}

/// The value of an expression.
pub(super) fn read(expression: &Expr) -> Literal {
    Reader::default().read(expression, 0)
}

/// The text of an expression that is a string.
pub(super) fn string(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::StringLiteral(text) => Some(text.value.to_str()),
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
        match expression {
            Expr::NoneLiteral(_) => Literal::Null,
            Expr::BooleanLiteral(value) => Literal::Bool(value.value),
            Expr::StringLiteral(text) => Literal::Text(text.value.to_str().to_owned()),
            Expr::NumberLiteral(number) => of_number(&number.value, false),
            Expr::UnaryOp(unary) if unary.op == UnaryOp::USub => match &*unary.operand {
                Expr::NumberLiteral(number) => of_number(&number.value, true),
                _ => UNKNOWN,
            },
            Expr::List(list) => self.list(&list.elts, depth),
            Expr::Tuple(list) => self.list(&list.elts, depth),
            Expr::Dict(dict) => self.dict(dict, depth),
            _ => UNKNOWN,
        }
    }

    /// One argument and the keywords of a call other than `own`.
    fn with_keywords(&mut self, written: Option<&Expr>, given: &Arguments, own: &[&str]) -> Literal {
        let is_own = |name: &str| own.contains(&name);
        let has_more = given.keywords.iter().any(|one| one.arg.as_ref().is_none_or(|name| !is_own(name)));
        match written.map_or(Literal::Null, |written| self.read(written, 0)) {
            written if !has_more => written,
            Literal::Null if !own.is_empty() => self.keywords(given, ObjectBuilder::default(), own),
            Literal::Object(object) => self.keywords(given, object.into(), own),
            _ => UNKNOWN,
        }
    }

    /// Adds the keywords of a call other than `own`.
    fn keywords(&mut self, given: &Arguments, mut object: ObjectBuilder, own: &[&str]) -> Literal {
        for keyword in &given.keywords {
            match &keyword.arg {
                Some(name) if own.contains(&name.as_str()) => {}
                Some(name) => object.set(Field {
                    name: name.to_string(),
                    at: bytes(name.range),
                    value: self.read(&keyword.value, 0),
                    value_at: bytes(keyword.value.range()),
                }),
                None => object.open(),
            }
            if self.values.is_exceeded() {
                return UNKNOWN;
            }
        }
        Literal::Object(object.build())
    }

    fn list(&mut self, items: &[Expr], depth: usize) -> Literal {
        // How many items there are is not known.
        if items.iter().any(Expr::is_starred_expr) {
            return UNKNOWN;
        }
        let mut values = Vec::new();
        for item in items {
            values.push(self.read(item, depth + 1));
            if self.values.is_exceeded() {
                return UNKNOWN;
            }
        }
        Literal::List(values)
    }

    fn dict(&mut self, dict: &ExprDict, depth: usize) -> Literal {
        let mut object = ObjectBuilder::default();
        for item in &dict.items {
            let value = self.read(&item.value, depth + 1);
            if self.values.is_exceeded() {
                return UNKNOWN;
            }
            match &item.key {
                Some(Expr::StringLiteral(key)) => object.set(Field {
                    name: key.value.to_str().to_owned(),
                    at: bytes(key.range),
                    value,
                    value_at: bytes(item.value.range()),
                }),
                _ => object.spread(false),
            }
        }
        Literal::Object(object.build())
    }
}

fn of_number(number: &Number, is_negative: bool) -> Literal {
    let number = match number {
        Number::Int(integer) => {
            integer.as_i64().map(|value| JsonNumber::from(if is_negative { -value } else { value }))
        }
        Number::Float(value) => JsonNumber::from_f64(if is_negative { -value } else { *value }),
        Number::Complex { .. } => None,
    };
    number.map_or(UNKNOWN, Literal::Number)
}
