//! Tests of the reader.

use super::*;

/// What a module at `a::b` names: paths of its crate, and the first names of others.
#[track_caller]
fn check(text: &str, own: &[&str], others: &[&str]) {
    let names = names(text, &["a".to_owned(), "b".to_owned()]);
    let found: Vec<String> = names.own.iter().map(|path| path.join("::")).collect();
    let others_found: Vec<&str> = names.others.iter().map(String::as_str).collect();
    assert_eq!(
        (found, others_found),
        (own.iter().map(|&path| path.to_owned()).collect(), others.to_vec()),
        "{text}"
    );
}

#[test]
fn every_form_of_a_path_is_read() {
    check("use crate::c::D;", &["c::D"], &[]);
    check("use crate::{c, d::{self, E as F, g::*}};", &["c", "d", "d::E", "d::g"], &[]);
    check("use super::{c::{D}, E}; use self::f::G;", &["a::c::D", "a::E", "a::b::f::G"], &[]);
    check("use super::super::c; use super::*;", &["c", "a"], &[]);
    check("pub(in crate::c) use super::D; pub(super) fn f() {}", &["a::D"], &[]);
    check("fn f() -> crate::c::D<super::E> { 0..crate::F::G }", &["c::D", "a::E", "F::G"], &[]);
    check("use crate :: c ::\n D;", &["c::D"], &[]);
    check("use ::tokio::spawn; ::serde::f(); std::mem::take(x)", &[], &["serde", "std", "tokio"]);
    check("#[tokio::main] async fn f() {} $crate::c!()", &["c"], &["tokio"]);
    check("x.crate_::y(); a.b.c(); Self::d(); my_crate::e()", &[], &["Self", "my_crate"]);
    check("Vec::<crate::c::D>::new()", &["c::D"], &[]);
}

#[test]
fn names_stand_for_what_was_imported_or_declared() {
    check("mod c; fn f() { c::d() }", &["a::b::c::d"], &[]);
    check("fn f() { c::d() } use crate::c;", &["c::d", "c"], &[]);
    check("use super::http; http::Client::new();", &["a::http", "a::http::Client::new"], &[]);
    check("http::Client::new();", &[], &["http"]);
    check("mod c { use super::D; use crate::E; } super::F::G;", &["a::b::D", "E", "a::F::G"], &[]);
}

#[test]
fn neither_tests_nor_texts_nor_comments_are_read() {
    check("#[cfg(test)] mod tests { use crate::c; } use crate::d;", &["d"], &[]);
    check("#[cfg(test)] pub(crate) fn f<A, B>() { crate::c() } crate::d();", &["d"], &[]);
    check("#[cfg(any(test, fuzzing))] #[path = \"x\"] mod c; use crate::d;", &["d"], &[]);
    check("#[cfg(test)] use crate::{c}; #[cfg(not(test))] use crate::d;", &["d"], &[]);
    check("struct S { #[cfg(test)] c: crate::C, d: crate::D }", &["D"], &[]);
    check("// crate::c::d\n/* crate::c /* */ crate::d */ crate::e::f", &["e::f"], &[]);
    check(r##"("crate::c", 'c', '\'', b'"', r#"" crate::d"#, b"\"", <'a>::c, crate::e)"##, &["e"], &[]);
}

#[test]
fn cycles_are_found() {
    let graph = |edges: &[&[usize]]| -> Vec<BTreeSet<usize>> {
        edges.iter().map(|targets| targets.iter().copied().collect()).collect()
    };
    assert!(cycles(&graph(&[&[1, 2], &[2], &[]])).is_empty());
    assert_eq!(cycles(&graph(&[&[1], &[2], &[0, 3], &[4], &[3]])), [vec![3, 4], vec![0, 1, 2]]);
}
