//! `accessor` fields that need no runtime: a private field and two methods.

use swc_ecma_ast::{AutoAccessor, Class, ClassMember, Key, MethodKind, PropName};

use super::super::make;
use super::names::PrivateNames;
use super::nodes;

/// Returns whether an `accessor` field needs no runtime.
pub(super) fn is_simple(accessor: &AutoAccessor) -> bool {
    accessor.decorators.is_empty()
        && !accessor.is_static
        && !matches!(accessor.key, Key::Public(PropName::Computed(_)))
}

/// Lowers the `accessor` fields of a class without decorators.
pub(super) fn lower_accessors(names: &mut PrivateNames, class: &mut Class) {
    let mut body = Vec::with_capacity(class.body.len());
    for member in class.body.drain(..) {
        match member {
            ClassMember::AutoAccessor(accessor) => simple_accessor(names, accessor, &mut body),
            member => body.push(member),
        }
    }
    class.body = body;
}

/// `#storage = value; get key() { return this.#storage; } set key(value) { this.#storage = value; }`
pub(super) fn simple_accessor(names: &mut PrivateNames, accessor: AutoAccessor, body: &mut Vec<ClassMember>) {
    if accessor.is_abstract {
        return;
    }
    let storage = names.fresh();
    let span = accessor.span;
    let value = accessor.value.map(|value| nodes::named(value, nodes::key_text(&accessor.key)));
    body.push(nodes::private_field(span, &storage, value, false));
    let (read, write) = nodes::storage_functions(make::this(), &storage);
    match accessor.key {
        Key::Private(name) => {
            body.push(nodes::private_method(&name, MethodKind::Getter, read, false));
            body.push(nodes::private_method(&name, MethodKind::Setter, write, false));
        }
        Key::Public(key) => {
            body.push(nodes::method(span, key.clone(), MethodKind::Getter, read, false));
            body.push(nodes::method(span, key, MethodKind::Setter, write, false));
        }
    }
}
