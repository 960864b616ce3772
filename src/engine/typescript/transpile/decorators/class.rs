//! Lowers a class that needs the runtime.

use swc_common::{DUMMY_SP, SyntaxContext};
use swc_ecma_ast::{
    AwaitExpr, Class, ClassExpr, ClassMember, Expr, FnExpr, Ident, MethodKind, Pat, SeqExpr, Stmt, YieldExpr,
};
use swc_ecma_visit::VisitMutWith;

use super::super::make;
use super::members::{Members, decorator};
use super::scan::{Pauses, Rename};
use super::{ClassName, Surroundings, nodes};

/// Lowers a class that needs the runtime. Returns the expression that makes it. `name` is the value
/// of its property `name`, and `ident` its own name.
pub(super) fn lower(
    surroundings: Surroundings<'_>,
    unresolved: SyntaxContext,
    ident: Option<Ident>,
    name: Option<ClassName>,
    mut class: Box<Class>,
) -> Box<Expr> {
    let Surroundings { names, runtime, keyed_fields } = surroundings;
    let pauses = Pauses::scan(&class);
    let state = make::fresh("state");
    let mut statements = Vec::new();
    let name = name.map(|name| match name {
        ClassName::Fixed(name) => make::text(&name),
        ClassName::Key => {
            // This is evaluated first, because the script's own code may evaluate another key.
            let key = make::fresh("key");
            let last = Box::new(Expr::Member(make::member(make::name(runtime), "lastKey")));
            statements.push(make::constant(DUMMY_SP, Pat::from(key.clone()), last));
            make::name(&key)
        }
    });
    let decorators = std::mem::take(&mut class.decorators);
    let replaceable = !decorators.is_empty();
    // Inside of a class that may be replaced, its name refers to the replacement.
    let inner = replaceable.then(|| make::fresh(ident.as_ref().map_or("replaced", |ident| &*ident.sym)));
    if let (Some(ident), Some(inner)) = (&ident, &inner) {
        class.visit_mut_with(&mut Rename { from: ident.to_id(), to: inner });
    }
    let members = std::mem::take(&mut class.body);
    let mut lowered = Members {
        names: &mut *names,
        runtime,
        keyed_fields,
        state: &state,
        replaceable,
        count: 0,
        body: Vec::with_capacity(members.len() + 2),
        statics: Vec::new(),
        wrapper: Vec::new(),
        starts: false,
    };
    for member in members {
        lowered.member(member);
    }
    let Members { body, statics, wrapper, starts, .. } = lowered;

    let mut first = vec![make::statement(make::call_method(&state, "apply", vec![make::this()]))];
    if !statics.is_empty() {
        let target = make::member(make::name(&state), "statics");
        first.push(make::statement(make::set_member(target, make::arrow_body(statics, false))));
    }
    class.body.push(nodes::static_block(first));
    if starts {
        let storage = names.fresh();
        let start = make::call_method(&state, "start", vec![make::this()]);
        class.body.push(nodes::private_field(DUMMY_SP, &storage, Some(start), false));
    }
    class.body.extend(body);

    let class_name = name.clone().unwrap_or_else(|| make::text(""));
    let decorators = make::array(decorators.into_iter().map(decorator));
    let made = make::call(make::name(runtime), vec![decorators, class_name.clone()]);
    statements.push(make::constant(DUMMY_SP, Pat::from(state.clone()), made));
    let Some(inner) = inner else {
        let class = match (ident, name) {
            (None, Some(name)) => with_name(Box::new(Expr::Class(ClassExpr { ident: None, class })), name),
            (ident, _) => Box::new(Expr::Class(ClassExpr { ident, class })),
        };
        statements.push(make::returns(DUMMY_SP, class));
        return scope(unresolved, statements, pauses);
    };
    let class = Box::new(Expr::Class(ClassExpr { ident: None, class }));
    let class = with_name(class, class_name);
    statements.push(make::statement(if wrapper.is_empty() {
        class
    } else {
        wrapped(&state, wrapper, class)
    }));
    let decorated = make::call_method(&state, "decorated", Vec::new());
    statements.push(make::constant(DUMMY_SP, Pat::from(inner), decorated));
    statements.push(make::returns(DUMMY_SP, make::call_method(&state, "begin", Vec::new())));
    scope(unresolved, statements, pauses)
}

/// `state.install(class extends state.Instance { …; static [class]() {} })`: the class is evaluated
/// in a key, where the private names of the wrapper are in scope, and where `await` is allowed.
fn wrapped(state: &Ident, mut body: Vec<ClassMember>, class: Box<Expr>) -> Box<Expr> {
    let function = nodes::function(Vec::new(), Vec::new());
    // `(class, "")`: the key is not the class.
    let key = Box::new(Expr::Seq(SeqExpr { span: DUMMY_SP, exprs: vec![class, make::text("")] }));
    body.push(nodes::method(DUMMY_SP, make::computed(key), MethodKind::Method, function, true));
    let instance = Box::new(Expr::Member(make::member(make::name(state), "Instance")));
    let class = Box::new(Class { body, super_class: Some(instance), ..Class::default() });
    let class = Box::new(Expr::Class(ClassExpr { ident: None, class }));
    make::call_method(state, "install", vec![class])
}

/// Puts `statements` into a function that is called at once, so that each evaluation of a class has
/// its own state. `this` and `arguments` stay those of the surroundings.
fn scope(unresolved: SyntaxContext, statements: Vec<Stmt>, pauses: Pauses) -> Box<Expr> {
    if pauses.yields {
        let mut generator = nodes::function(Vec::new(), statements);
        generator.is_generator = true;
        generator.is_async = pauses.awaits;
        let generator = Box::new(Expr::Fn(FnExpr { ident: None, function: Box::new(generator) }));
        let arguments = make::global("arguments", unresolved);
        let apply = Box::new(Expr::Member(make::member(generator, "apply")));
        let arg = Some(make::call(apply, vec![make::this(), make::name(&arguments)]));
        return Box::new(Expr::Yield(YieldExpr { span: DUMMY_SP, arg, delegate: true }));
    }
    let called = make::call(make::arrow_body(statements, pauses.awaits), Vec::new());
    if pauses.awaits { Box::new(Expr::Await(AwaitExpr { span: DUMMY_SP, arg: called })) } else { called }
}

/// `{ [name]: class }[name]`, which gives an anonymous class its name before its static block runs.
fn with_name(class: Box<Expr>, name: Box<Expr>) -> Box<Expr> {
    let object = make::object(vec![(make::computed(name.clone()), class)]);
    Box::new(Expr::Member(make::element(object, name)))
}
