//! What a script binds and uses, which decides what names can mean.

use std::collections::HashMap;

use ruff_python_ast::visitor::{Visitor, walk_except_handler, walk_expr, walk_pattern, walk_stmt};
use ruff_python_ast::{
    Alias, Comprehension, ExceptHandler, Expr, ExprCall, ExprContext, ExprNumberLiteral, ModModule, Number,
    Parameter, Pattern, Stmt, StmtFunctionDef, StmtIf,
};

/// Maximum number of names for which there is space before they are read.
const MAX_EXPECTED: usize = 256;

/// Whether a script that has this name can change what others mean, or end early with success. Then nothing is certain.
fn is_of_meanings(name: &str) -> bool {
    matches!(
        name,
        "globals"
            | "locals"
            | "vars"
            | "exec"
            | "eval"
            | "setattr"
            | "__builtins__"
            | "exit"
            | "quit"
            | "_exit"
            | "SystemExit"
    )
}

/// Whether a script that has this name can change what an import finds.
fn is_of_imports(name: &str) -> bool {
    matches!(
        name,
        "__dict__"
            | "__import__"
            | "_bootstrap"
            | "attrgetter"
            | "getattr"
            | "load_module"
            | "meta_path"
            | "modules"
            | "patch"
            | "path_hooks"
    )
}

/// Whether it is a function of Python that changes no list that it is given.
fn is_reader(name: &str) -> bool {
    matches!(
        name,
        "enumerate"
            | "len"
            | "list"
            | "max"
            | "min"
            | "print"
            | "reversed"
            | "set"
            | "sorted"
            | "str"
            | "sum"
            | "tuple"
            | "zip"
    )
}

/// Whether coroutines or futures have an attribute of this name.
pub(super) fn is_of_coroutine(name: &str) -> bool {
    matches!(
        name,
        "add_done_callback"
            | "cancel"
            | "cancelled"
            | "cancelling"
            | "close"
            | "done"
            | "exception"
            | "get_coro"
            | "get_loop"
            | "get_name"
            | "remove_done_callback"
            | "result"
            | "send"
            | "set_name"
            | "throw"
            | "uncancel"
    ) || name.starts_with("cr_")
        || name.starts_with('_')
}

/// How the names of a script are used.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// One entry for each name, so that a name in the text is looked up once.
    names: HashMap<&'a str, NameUse>,
    /// Whether there is a name that is, or is a part of, a list that `call_tools` gets.
    has_lists_of_calls: bool,
    /// Whether the script can change what names mean in ways that the text does not show.
    pub(super) is_opaque: bool,
    /// Whether it can change what its imports find.
    pub(super) changes_imports: bool,
    /// Whether `asyncio` is bound by something else than an import of that module.
    rebinds_asyncio: bool,
}

/// How one name is used.
#[derive(Debug, Default)]
struct NameUse {
    /// How often it is bound, in any scope.
    bound: usize,
    /// Whether it is read.
    is_used: bool,
    /// Whether some use may change the list that it is.
    may_change: bool,
    /// Whether some use could await it, if it is a coroutine.
    is_held: bool,
    /// Whether it is bound to a list of at least one item.
    is_filled: bool,
    /// Whether it is, or is a part of, a list that `call_tools` gets.
    is_list_of_calls: bool,
    /// Whether it is noted what a script can do that has it.
    is_noted: bool,
}

impl<'a> Names<'a> {
    /// Reads all names of a module.
    pub(super) fn read(module: &'a ModModule) -> Self {
        // Some two names for each statement; a script has few that its statements share.
        let expected = (2 * module.body.len()).min(MAX_EXPECTED);
        let mut names = Self { names: HashMap::with_capacity(expected), ..Self::default() };
        names.visit_body(&module.body);
        names
    }

    /// Whether the script binds the name in any scope.
    pub(super) fn is_bound(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|one| one.bound > 0)
    }

    /// Whether the script binds the name exactly once.
    pub(super) fn is_bound_once(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|one| one.bound == 1)
    }

    /// Whether the script reads the name.
    pub(super) fn is_used(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|one| one.is_used)
    }

    /// Whether the coroutine that a variable is set to could be awaited. It cannot if all uses read what coroutines and
    /// futures do not have.
    pub(super) fn may_be_awaited(&self, name: &str) -> bool {
        self.names.get(name).is_none_or(|one| one.is_held || one.bound != 1)
    }

    /// Whether the name is, or is a part of, a list that `call_tools` gets.
    pub(super) fn is_list_of_calls(&self, name: &str) -> bool {
        self.has_lists_of_calls
            && self.names.get(name).is_some_and(|one| one.is_list_of_calls)
            && !self.is_bound("call_tools")
    }

    /// Whether the name is that of the module, imported or not.
    pub(super) fn is_module(&self, name: &str) -> bool {
        name == "asyncio" && !self.rebinds_asyncio
    }

    /// Whether an expression is a list with at least one item, whatever the script computes: it is written out, or a
    /// variable that is one and is used in no way that could change it.
    pub(super) fn is_filled(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Name(name) => {
                let is_kept =
                    |one: &NameUse| one.is_filled && one.bound == 1 && one.is_used && !one.may_change;
                self.names.get(name.id.as_str()).is_some_and(is_kept)
            }
            Expr::Call(call) => self.makes_filled(call),
            Expr::ListComp(made) => made
                .generators
                .iter()
                .all(|one| !one.is_async && one.ifs.is_empty() && self.is_filled(&one.iter)),
            other => has_item(other),
        }
    }

    /// Whether a call of one of Python's functions gives at least one item.
    fn makes_filled(&self, call: &ExprCall) -> bool {
        let arguments = &call.arguments;
        match &*call.func {
            Expr::Name(name) if self.is_bound(&name.id) => false,
            Expr::Name(name) => match (name.id.as_str(), &*arguments.args) {
                ("range", [end]) => number(end).is_some_and(|end| end > 0),
                ("range", [start, end]) => {
                    number(start).zip(number(end)).is_some_and(|(start, end)| start < end)
                }
                ("enumerate" | "list" | "reversed" | "set" | "sorted" | "tuple", [list, ..]) => {
                    self.is_filled(list)
                }
                ("zip", lists @ [_, ..]) => lists.iter().all(|list| self.is_filled(list)),
                _ => false,
            },
            Expr::Attribute(method) => match (&*method.value, method.attr.as_str()) {
                (Expr::StringLiteral(text), "split") => {
                    arguments.is_empty() && !text.value.to_str().trim().is_empty()
                }
                (dict @ Expr::Dict(_), "items" | "keys" | "values") => has_item(dict),
                _ => false,
            },
            _ => false,
        }
    }

    /// Notes a use that does not change the list that a name is.
    fn reads(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if matches!(name.ctx, ExprContext::Load) => {
                self.note(&name.id).is_used = true;
            }
            other => self.visit_expr(other),
        }
    }

    /// Notes the variables of a list that `call_tools` gets.
    fn note_list_of_calls(&mut self, list: &'a Expr) {
        match list {
            Expr::Name(name) => {
                self.has_lists_of_calls = true;
                self.names.entry(&name.id).or_default().is_list_of_calls = true;
            }
            Expr::List(list) => {
                let starred = list.elts.iter().filter_map(Expr::as_starred_expr);
                starred.for_each(|item| self.note_list_of_calls(&item.value));
            }
            Expr::BinOp(joined) => {
                self.note_list_of_calls(&joined.left);
                self.note_list_of_calls(&joined.right);
            }
            _ => {}
        }
    }

    /// The entry of a name. Notes what a script that has the name can do.
    fn note(&mut self, name: &'a str) -> &mut NameUse {
        let one = self.names.entry(name).or_default();
        if !one.is_noted {
            one.is_noted = true;
            self.is_opaque |= is_of_meanings(name);
            self.changes_imports |= is_of_imports(name);
        }
        one
    }

    /// Notes what a script that has this name can do, which is no variable's.
    fn note_powers(&mut self, name: &str) {
        self.is_opaque |= is_of_meanings(name);
        self.changes_imports |= is_of_imports(name);
    }

    fn bind(&mut self, name: &'a str) {
        self.rebinds_asyncio |= name == "asyncio";
        self.names.entry(name).or_default().bound += 1;
    }
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.bind(&function.name),
            Stmt::ClassDef(class) => self.bind(&class.name),
            // Star imports bind names that are not in the text.
            Stmt::ImportFrom(import) => {
                let module = import.module.as_deref().unwrap_or_default();
                let is_star = import.names.iter().any(|alias| &*alias.name == "*");
                self.is_opaque |= is_star && !module.starts_with("mcp");
            }
            Stmt::Assign(assigned) => {
                if let [Expr::Name(name)] = assigned.targets.as_slice()
                    && has_item(&assigned.value)
                {
                    self.names.entry(&name.id).or_default().is_filled = true;
                }
            }
            Stmt::For(each) => {
                self.reads(&each.iter);
                self.visit_expr(&each.target);
                self.visit_body(&each.body);
                return self.visit_body(&each.orelse);
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Call(call) = expression
            && matches!(&*call.func, Expr::Name(name) if name.id == "call_tools")
            && let Some(list) = call.arguments.find_argument_value("calls", 0)
        {
            self.note_list_of_calls(list);
        }
        match expression {
            Expr::Name(name) => {
                let one = self.note(&name.id);
                if matches!(name.ctx, ExprContext::Load) {
                    (one.is_used, one.may_change, one.is_held) = (true, true, true);
                } else {
                    one.bound += 1;
                    self.rebinds_asyncio |= name.id == "asyncio";
                }
            }
            Expr::Subscript(part) if matches!(part.ctx, ExprContext::Load) => {
                self.reads(&part.value);
                return self.visit_expr(&part.slice);
            }
            Expr::Call(call) if matches!(&*call.func, Expr::Name(name) if is_reader(&name.id)) => {
                self.visit_expr(&call.func);
                call.arguments.args.iter().for_each(|given| self.reads(given));
                return call.arguments.keywords.iter().for_each(|given| self.visit_keyword(given));
            }
            Expr::Attribute(member) => {
                self.note_powers(&member.attr);
                if let Expr::Name(object) = &*member.value
                    && !is_of_coroutine(&member.attr)
                {
                    let one = self.note(&object.id);
                    (one.is_used, one.may_change) = (true, true);
                    return;
                }
            }
            _ => {}
        }
        walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.reads(&comprehension.iter);
        self.visit_expr(&comprehension.target);
        comprehension.ifs.iter().for_each(|test| self.visit_expr(test));
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let name: &'a str = match &alias.asname {
            Some(name) => name,
            None => alias.name.split('.').next().unwrap_or_default(),
        };
        self.note_powers(name);
        self.note_powers(&alias.name);
        if name == "asyncio" && &*alias.name == "asyncio" {
            self.names.entry(name).or_default().bound += 1;
        } else {
            self.bind(name);
        }
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bind(&parameter.name);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(named) = handler;
        if let Some(name) = &named.name {
            self.bind(name);
        }
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(named) => named.name.as_ref(),
            Pattern::MatchStar(named) => named.name.as_ref(),
            Pattern::MatchMapping(named) => named.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.bind(name);
        }
        walk_pattern(self, pattern);
    }
}

fn number(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::NumberLiteral(ExprNumberLiteral { value: Number::Int(number), .. }) => number.as_i64(),
        _ => None,
    }
}

/// Whether it is a list, or the like, of which at least one item is written out.
fn has_item(expression: &Expr) -> bool {
    let items = match expression {
        Expr::List(list) => &list.elts,
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::Set(set) => &set.elts,
        Expr::Dict(dict) => return dict.items.iter().any(|item| item.key.is_some()),
        _ => return false,
    };
    items.iter().any(|item| !item.is_starred_expr())
}

/// Whether a statement belongs to the head of a script, which only imports: nothing in it can change what a later
/// import finds, or end the script with success.
pub(super) fn is_of_head(statement: &Stmt) -> bool {
    match statement {
        Stmt::Import(_) | Stmt::ImportFrom(_) | Stmt::Pass(_) => true,
        Stmt::Expr(expression) => expression.value.is_string_literal_expr(),
        _ => false,
    }
}

/// Whether the test is `TYPE_CHECKING`, which never holds.
pub(super) fn is_type_checking(statement: &StmtIf) -> bool {
    match &*statement.test {
        Expr::Name(name) => name.id == "TYPE_CHECKING",
        Expr::Attribute(member) => member.attr.as_str() == "TYPE_CHECKING",
        _ => false,
    }
}

/// Whether the statements return, not counting the functions in them.
pub(super) fn returns(body: &[Stmt]) -> bool {
    let mut finder = Returns { found: false };
    finder.visit_body(body);
    finder.found
}

struct Returns {
    found: bool,
}

impl<'a> Visitor<'a> for Returns {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Return(_) => self.found = true,
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, _expression: &'a Expr) {}
}

/// Whether a function is a generator: calling it runs nothing.
pub(super) fn yields(function: &StmtFunctionDef) -> bool {
    let mut finder = Yields { found: false };
    finder.visit_body(&function.body);
    finder.found
}

struct Yields {
    found: bool,
}

impl<'a> Visitor<'a> for Yields {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Yield(_) | Expr::YieldFrom(_) => self.found = true,
            Expr::Lambda(_) => {}
            other => walk_expr(self, other),
        }
    }
}
