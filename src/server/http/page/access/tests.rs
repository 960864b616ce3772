use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::{Access, MAX_OPEN, MAX_SESSIONS};
use crate::server::http::accepted::AcceptedToken;
use crate::server::http::token::HttpToken;

fn with(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    headers
}

#[test]
fn a_one_time_token_starts_one_session_and_is_no_session() {
    let access = Access::default();
    let token = access.one_time_token().unwrap();
    assert!(!access.is_allowed(&with(&token)) && !access.is_operator(&with(&token)));
    assert!(!access.use_one_time_token(&with("another")) && !access.use_one_time_token(&HeaderMap::new()));
    assert!(access.use_one_time_token(&with(&token)));
    assert!(!access.use_one_time_token(&with(&token)), "it works twice");
    let session = access.start_session(None).unwrap();
    assert!(access.is_allowed(&with(&session)));
    assert!(!access.is_operator(&with(&session)) && !access.use_one_time_token(&with(&session)));
}

#[test]
fn the_operators_token_is_allowed_and_another_is_not() {
    let (token, text) = HttpToken::generate().unwrap();
    let access = Access::new(Some(token));
    assert!(access.is_operator(&with(&text)) && access.is_allowed(&with(&text)));
    assert!(!access.is_operator(&with("x")) && !access.is_allowed(&HeaderMap::new()));
    // Without one nothing is the operator's, an empty token neither.
    let none = Access::default();
    assert!(!none.is_operator(&with("")) && !none.is_allowed(&with("")));
}

#[test]
fn the_name_of_a_run_works_once_and_everything_is_bounded() {
    let access = Access::default();
    let ticket = access.ticket("abc").unwrap();
    assert_eq!(access.use_ticket("x"), None);
    assert_eq!(access.use_ticket(&ticket).as_deref(), Some("abc"));
    assert_eq!(access.use_ticket(&ticket), None);
    let first = access.start_session(None).unwrap();
    for _ in 0..MAX_SESSIONS {
        access.start_session(None).unwrap();
    }
    assert!(!access.is_allowed(&with(&first)), "there are more sessions than the bound");
    for _ in 0..MAX_OPEN * 2 {
        access.ticket("run").unwrap();
        access.one_time_token().unwrap();
    }
    let known = access.known.lock();
    assert_eq!((known.tickets.len(), known.one_time.len()), (MAX_OPEN, MAX_OPEN));
}

/// A browser keeps the token of its session, not that with which it was started.
#[test]
fn v_541_a_session_of_the_page_ends_with_the_token_that_started_it() {
    let access = Access::default();
    let [revoked, kept] = [(); 2].map(|()| AcceptedToken::of_server(HttpToken::generate().unwrap().0));
    let sessions = [Some(Arc::clone(&revoked)), Some(kept), None];
    let sessions = sessions.map(|token| access.start_session(token).unwrap());
    revoked.revoked.cancel();
    assert_eq!(sessions.map(|session| access.is_allowed(&with(&session))), [false, true, true]);
}
