//! Lowers the members of a class that needs the runtime.

use std::collections::HashSet;

use swc_common::{BytePos, DUMMY_SP, Span};
use swc_ecma_ast::{
    ArrowExpr, ArrowFunctionBody, AutoAccessor, BinaryOp, ClassMember, ClassMethod, ClassProp, Decorator,
    Expr, Function, FunctionBody, Ident, Key, MemberExpr, MemberProp, MethodKind, Pat, PrivateMethod,
    PrivateName, PrivateProp, SeqExpr, Stmt, SuperProp,
};
use swc_ecma_visit::VisitMutWith;

use super::super::make;
use super::accessors::{is_simple, simple_accessor};
use super::names::PrivateNames;
use super::nodes;
use super::scan::{Pauses, ReplaceThis};

/// The members of a class that needs the runtime.
pub(super) struct Members<'a> {
    pub(super) names: &'a mut PrivateNames,
    /// The runtime's name.
    pub(super) runtime: &'a Ident,
    /// Fields whose key names the class in them.
    pub(super) keyed_fields: &'a HashSet<BytePos>,
    pub(super) state: &'a Ident,
    /// Whether decorators of the class may replace it.
    pub(super) replaceable: bool,
    /// Number of elements that the runtime knows.
    pub(super) count: usize,
    pub(super) body: Vec<ClassMember>,
    /// What initializes the static elements of a class that may be replaced.
    pub(super) statics: Vec<Stmt>,
    /// Its static private names, as members of instances of a class around it.
    pub(super) wrapper: Vec<ClassMember>,
    /// Whether a decorated method may have initializers that run for each instance.
    pub(super) starts: bool,
}

/// What the runtime has to know of an element.
struct Element {
    kind: &'static str,
    is_static: bool,
    /// Whether it is defined under a symbol, which the runtime removes.
    is_hidden: bool,
    decorators: Vec<Decorator>,
    key: Box<Expr>,
    /// The element's private name.
    private: Option<PrivateName>,
}

impl Members<'_> {
    pub(super) fn member(&mut self, member: ClassMember) {
        match member {
            ClassMember::Method(method) => self.method(method),
            ClassMember::PrivateMethod(method) => self.private_method(method),
            ClassMember::ClassProp(field) => self.field(field),
            ClassMember::PrivateProp(field) => self.private_field(field),
            ClassMember::AutoAccessor(accessor) => self.accessor(accessor),
            ClassMember::StaticBlock(mut block) if self.replaceable => {
                block.body.visit_mut_with(&mut ReplaceThis { state: self.state });
                self.statics.push(Stmt::Block(block.body));
            }
            member => self.body.push(member),
        }
    }

    /// `state.add(index, kind, isStatic, isHidden, decorators, key, access)`. Returns the index too.
    fn add(&mut self, element: Element) -> (usize, Box<Expr>) {
        let index = self.count;
        self.count += 1;
        self.starts |= !element.is_static && element.kind != "field" && !element.decorators.is_empty();
        let decorators = element.decorators.into_iter().map(decorator);
        let mut arguments = vec![
            make::number(index as f64),
            make::text(element.kind),
            Box::new(Expr::from(element.is_static)),
            Box::new(Expr::from(element.is_hidden)),
            make::array(decorators),
            element.key,
        ];
        arguments.extend(element.private.map(|name| access(&name, element.kind)));
        (index, make::call_method(self.state, "add", arguments))
    }

    /// `state.list[index]`
    fn of_state(&self, list: &str, index: usize) -> Box<Expr> {
        let list = Box::new(Expr::Member(make::member(make::name(self.state), list)));
        Box::new(Expr::Member(make::element(list, make::number(index as f64))))
    }

    /// `state.target`
    fn target(&self) -> Box<Expr> {
        Box::new(Expr::Member(make::member(make::name(self.state), "target")))
    }

    /// Adds a method without effect, whose key evaluates `key`. The runtime removes it.
    fn carry(&mut self, key: Box<Expr>) {
        let function = nodes::function(Vec::new(), Vec::new());
        self.body.push(nodes::method(DUMMY_SP, make::computed(key), MethodKind::Method, function, true));
    }

    fn method(&mut self, mut method: ClassMethod) {
        let decorators = std::mem::take(&mut method.function.decorators);
        if method.is_abstract || method.function.body.is_none() {
            return;
        }
        if !decorators.is_empty() {
            let (_, key) = self.add(Element {
                kind: nodes::kind_name(method.kind),
                is_static: method.is_static,
                is_hidden: false,
                decorators,
                key: nodes::key_expression(method.key),
                private: None,
            });
            method.key = make::computed(key);
        }
        self.body.push(ClassMember::Method(method));
    }

    fn private_method(&mut self, mut declared: PrivateMethod) {
        let decorators = std::mem::take(&mut declared.function.decorators);
        let moves = self.replaceable && declared.is_static;
        if declared.is_abstract || declared.function.body.is_none() {
            return;
        }
        if decorators.is_empty() && !moves {
            self.body.push(ClassMember::PrivateMethod(declared));
            return;
        }
        let name = declared.key;
        let (index, key) = self.add(Element {
            kind: nodes::kind_name(declared.kind),
            is_static: declared.is_static,
            is_hidden: true,
            decorators,
            key: make::text(&format!("#{}", name.name)),
            private: Some(name.clone()),
        });
        self.body.push(ClassMember::Method(ClassMethod {
            span: declared.span,
            key: make::computed(key),
            function: declared.function,
            kind: declared.kind,
            is_static: declared.is_static,
            ..ClassMethod::default()
        }));
        let value = self.of_state("values", index);
        let call =
            |arguments| make::call(Box::new(Expr::Member(make::member(value.clone(), "call"))), arguments);
        let (kind, function) = match declared.kind {
            MethodKind::Method => {
                (MethodKind::Getter, nodes::function(Vec::new(), vec![make::returns(DUMMY_SP, value)]))
            }
            MethodKind::Getter => {
                let result = call(vec![make::this()]);
                (MethodKind::Getter, nodes::function(Vec::new(), vec![make::returns(DUMMY_SP, result)]))
            }
            MethodKind::Setter => {
                let parameter = make::fresh("value");
                let set = call(vec![make::this(), make::name(&parameter)]);
                (MethodKind::Setter, nodes::function(vec![&parameter], vec![make::statement(set)]))
            }
        };
        self.expose(&name, kind, function, declared.is_static);
    }

    /// Defines a private method where its name is declared.
    fn expose(&mut self, name: &PrivateName, kind: MethodKind, function: Function, is_static: bool) {
        if self.replaceable && is_static {
            self.wrapper.push(nodes::private_method(name, kind, function, false));
        } else {
            self.body.push(nodes::private_method(name, kind, function, is_static));
        }
    }

    fn field(&mut self, mut field: ClassProp) {
        let decorators = std::mem::take(&mut field.decorators);
        if field.declare || field.is_abstract {
            return;
        }
        let moves = self.replaceable && field.is_static;
        let is_keyed = self.keyed_fields.contains(&field.span.lo);
        if decorators.is_empty() && !moves && !is_keyed {
            self.body.push(ClassMember::ClassProp(field));
            return;
        }
        let fixed = nodes::fixed_key(&field.key);
        let (index, key) = self.add(Element {
            kind: "field",
            is_static: field.is_static,
            is_hidden: moves,
            decorators,
            key: nodes::key_expression(field.key),
            private: None,
        });
        let name = fixed.unwrap_or_else(|| self.of_state("keys", index));
        let value = field.value.map(|value| self.named(value, name, is_keyed));
        if moves {
            self.carry(key);
            let value = self.moved(value);
            let defined = vec![make::number(index as f64), value];
            self.statics.push(make::statement(make::call_method(self.state, "field", defined)));
            return;
        }
        let value = Some(self.init(index, make::this(), value));
        let (span, is_static) = (field.span, field.is_static);
        let key = make::computed(key);
        self.body.push(ClassMember::ClassProp(ClassProp {
            span,
            key,
            value,
            is_static,
            ..ClassProp::default()
        }));
        self.extra(index, is_static);
    }

    fn private_field(&mut self, mut field: PrivateProp) {
        let decorators = std::mem::take(&mut field.decorators);
        let moves = self.replaceable && field.is_static;
        if decorators.is_empty() && !moves {
            self.body.push(ClassMember::PrivateProp(field));
            return;
        }
        let name = field.key;
        let text = make::text(&format!("#{}", name.name));
        let value = field.value.map(|value| nodes::named(value, text.clone()));
        let (index, key) = self.add(Element {
            kind: "field",
            is_static: field.is_static,
            is_hidden: true,
            decorators,
            key: text,
            private: Some(name.clone()),
        });
        self.carry(key);
        self.store(field.span, index, &name, value, field.is_static);
    }

    /// Declares a private field that begins with `value`.
    fn store(
        &mut self,
        span: Span,
        index: usize,
        name: &PrivateName,
        value: Option<Box<Expr>>,
        is_static: bool,
    ) {
        if !(self.replaceable && is_static) {
            let value = Some(self.init(index, make::this(), value));
            self.body.push(nodes::private_field(span, name, value, is_static));
            self.extra(index, is_static);
            return;
        }
        self.wrapper.push(nodes::private_field(span, name, None, false));
        let value = self.moved(value);
        let value = self.init(index, self.target(), Some(value));
        let target = nodes::private_member(self.target(), name);
        self.statics.push(make::statement(make::set_member(target, value)));
        let extra = vec![make::number(index as f64), self.target()];
        self.statics.push(make::statement(make::call_method(self.state, "extra", extra)));
    }

    fn accessor(&mut self, mut accessor: AutoAccessor) {
        if accessor.is_abstract {
            return;
        }
        if is_simple(&accessor) {
            simple_accessor(self.names, accessor, &mut self.body);
            return;
        }
        let (span, is_static) = (accessor.span, accessor.is_static);
        let storage = self.names.fresh();
        let (read, write) =
            nodes::storage_functions(if is_static { self.target() } else { make::this() }, &storage);
        let fixed = match &accessor.key {
            Key::Private(name) => Some(make::text(&format!("#{}", name.name))),
            Key::Public(key) => nodes::fixed_key(key),
        };
        let (is_hidden, key, private) = match accessor.key {
            Key::Private(name) => (true, make::text(&format!("#{}", name.name)), Some(name)),
            Key::Public(key) => (false, nodes::key_expression(key), None),
        };
        let (index, key) = self.add(Element {
            kind: "accessor",
            is_static,
            is_hidden,
            decorators: std::mem::take(&mut accessor.decorators),
            key,
            private: private.clone(),
        });
        let second = self.of_state(if is_hidden { "hidden" } else { "keys" }, index);
        self.body.push(nodes::method(span, make::computed(key), MethodKind::Getter, read, is_static));
        self.body.push(nodes::method(span, make::computed(second), MethodKind::Setter, write, is_static));
        if let Some(name) = private {
            let part = |role, arguments| {
                let part = Box::new(Expr::Member(make::member(self.of_state("values", index), role)));
                make::call(Box::new(Expr::Member(make::member(part, "call"))), arguments)
            };
            let value = make::fresh("value");
            let read = vec![make::returns(DUMMY_SP, part("get", vec![make::this()]))];
            let write = vec![make::statement(part("set", vec![make::this(), make::name(&value)]))];
            let (read, write) = (nodes::function(Vec::new(), read), nodes::function(vec![&value], write));
            self.expose(&name, MethodKind::Getter, read, is_static);
            self.expose(&name, MethodKind::Setter, write, is_static);
        }
        let name = fixed.unwrap_or_else(|| self.of_state("keys", index));
        let is_keyed = self.keyed_fields.contains(&span.lo);
        let value = accessor.value.map(|value| self.named(value, name, is_keyed));
        self.store(span, index, &storage, value, is_static);
    }

    /// Gives `value` the name `key` if it is a function or a class without a name. With `is_keyed` it is a class
    /// that is lowered, and takes its name from the runtime: `(runtime.key(key), value)`.
    fn named(&self, value: Box<Expr>, key: Box<Expr>, is_keyed: bool) -> Box<Expr> {
        if !is_keyed {
            return nodes::named(value, key);
        }
        let exprs = vec![make::call_method(self.runtime, "key", vec![key]), value];
        Box::new(Expr::Seq(SeqExpr { span: DUMMY_SP, exprs }))
    }

    /// `state.init(index, self, value)`
    fn init(&self, index: usize, receiver: Box<Expr>, value: Option<Box<Expr>>) -> Box<Expr> {
        let mut arguments = vec![make::number(index as f64), receiver];
        arguments.extend(value);
        make::call_method(self.state, "init", arguments)
    }

    /// Runs the initializers that decorators have added to a field, once the field is defined.
    fn extra(&mut self, index: usize, is_static: bool) {
        let call = make::call_method(self.state, "extra", vec![make::number(index as f64), make::this()]);
        if is_static {
            self.body.push(nodes::static_block(vec![make::statement(call)]));
        } else {
            let storage = self.names.fresh();
            self.body.push(nodes::private_field(DUMMY_SP, &storage, Some(call), false));
        }
    }

    /// The value of a static element that is initialized outside of its field.
    fn moved(&self, value: Option<Box<Expr>>) -> Box<Expr> {
        let mut value = value.unwrap_or_else(|| Expr::undefined(DUMMY_SP));
        value.visit_mut_with(&mut ReplaceThis { state: self.state });
        value
    }
}

/// `{ has: (o) => #name in o, get: (o) => o.#name, set: (o, value) => o.#name = value }`
fn access(name: &PrivateName, kind: &str) -> Box<Expr> {
    let (object, value) = (make::fresh("object"), make::fresh("value"));
    let member = || nodes::private_member(make::name(&object), name);
    let brand = Box::new(Expr::PrivateName(name.clone()));
    let has = make::arrow(vec![&object], make::binary(brand, BinaryOp::In, make::name(&object)));
    let mut functions = vec![(make::property("has"), has)];
    if kind != "setter" {
        let get = make::arrow(vec![&object], Box::new(Expr::Member(member())));
        functions.push((make::property("get"), get));
    }
    if !matches!(kind, "getter" | "method") {
        let set = make::statement(make::set_member(member(), make::name(&value)));
        let mut arrow = ArrowExpr {
            params: vec![Pat::from(object.clone()), Pat::from(value.clone())],
            ..ArrowExpr::default()
        };
        arrow.body =
            Box::new(ArrowFunctionBody::FunctionBody(FunctionBody { span: DUMMY_SP, stmts: vec![set] }));
        functions.push((make::property("set"), Box::new(Expr::Arrow(arrow))));
    }
    make::object(functions)
}

/// A decorator as a pair: the object that it is called on, and the function.
pub(super) fn decorator(decorator: Decorator) -> Box<Expr> {
    let mut expression = decorator.expr;
    while let Expr::Paren(inner) = *expression {
        expression = inner.expr;
    }
    match *expression {
        Expr::Member(member) => {
            let pauses =
                matches!(&member.prop, MemberProp::Computed(key) if Pauses::in_expression(&key.expr));
            if matches!(*member.obj, Expr::Ident(_) | Expr::This(_)) || pauses {
                let receiver = if pauses { Expr::undefined(member.span) } else { member.obj.clone() };
                return make::array(vec![receiver, Box::new(Expr::Member(member))]);
            }
            let receiver = make::fresh("receiver");
            let function = MemberExpr { obj: make::name(&receiver), ..member.clone() };
            let pair = make::array(vec![make::name(&receiver), Box::new(Expr::Member(function))]);
            make::call(make::arrow(vec![&receiver], pair), vec![member.obj])
        }
        Expr::SuperProp(member) if !matches!(&member.prop, SuperProp::Computed(_)) => {
            make::array(vec![make::this(), Box::new(Expr::SuperProp(member))])
        }
        other => make::array(vec![Expr::undefined(decorator.span), Box::new(other)]),
    }
}
