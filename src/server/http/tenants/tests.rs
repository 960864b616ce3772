//! Lists of tenants, and whose token a request has.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};

use super::*;
use crate::server::http::authentication::{AccessRefusal, Authentication, Caller};

fn list(text: &str) -> Result<Vec<(String, bool)>, String> {
    let secret = HttpToken::new("secret").unwrap();
    let read = HttpTenant::list(text).map_err(|error| error.to_string())?;
    Ok(read.iter().map(|tenant| (tenant.name.to_string(), tenant.token.equals(&secret))).collect())
}

#[test]
fn a_list_has_a_name_and_a_token_in_each_line() {
    let expected = vec![("a-1".to_owned(), true), ("b".to_owned(), false), ("a-1".to_owned(), false)];
    assert_eq!(list("# two\r\n\r\n  a-1 \t secret\r\nb other\n\na-1 third"), Ok(expected));
    for (text, problem) in [
        ("", "there is no token"),
        ("# none\n", "there is no token"),
        ("a secret\nsecret", "line 2: expected a name, space and a token"),
        ("A secret", "line 1: expected the name of a tenant"),
        ("a/b secret", "line 1: expected the name of a tenant"),
        ("a se cret", "line 1: must be of visible ASCII characters"),
        ("a s\u{e9}cret", "line 1: must be of visible ASCII characters"),
    ] {
        let said = list(text).unwrap_err();
        assert!(said.contains(problem) && !said.contains("cret"), "{text}: {said}");
    }
    assert!(HttpTenant::new(&"x".repeat(32), HttpToken::new("t").unwrap()).is_ok());
    assert!(HttpTenant::new(&"x".repeat(33), HttpToken::new("t").unwrap()).is_err());
}

/// Whom a token is of, on a server with an operator's and those of two tenants.
fn whose(token: Option<&str>) -> Result<String, bool> {
    let operator = HttpToken::new("operator").unwrap();
    let tenants = HttpTenant::list("a first\nb second\na third").unwrap();
    let local = [127, 0, 0, 1].into();
    let authentication = Authentication::new(local, &[], Some(operator), tenants).unwrap();
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    }
    let may_see_all = authentication.check_operator(&headers).is_ok();
    match authentication.identify(&headers) {
        Ok(Caller::Tenant(token)) if !may_see_all => Ok(token.tenant_name().unwrap().to_owned()),
        Ok(Caller::Operator(_)) if may_see_all => Ok("operator".to_owned()),
        Ok(_) => panic!("{token:?}: another caller"),
        Err(AccessRefusal::Unauthorized) => Err(may_see_all),
        Err(AccessRefusal::Forbidden(problem)) => panic!("{problem}"),
    }
}

#[test]
fn v_506_a_token_says_whose_request_it_is() {
    for (token, expected) in [("first", "a"), ("second", "b"), ("third", "a"), ("operator", "operator")] {
        assert_eq!(whose(Some(token)), Ok(expected.to_owned()), "{token}");
    }
    for wrong in [None, Some(""), Some("firs"), Some("first0"), Some("FIRST"), Some("a first")] {
        assert_eq!(whose(wrong), Err(false), "{wrong:?}");
    }
}

#[test]
fn v_511_each_token_says_one_thing() {
    let operator = HttpToken::new("first").unwrap();
    let tenants = HttpTenant::list("a first\nb second").unwrap();
    let local = [127, 0, 0, 1].into();
    let problem = |operator: Option<HttpToken>, tenants: Vec<HttpTenant>| {
        Authentication::new(local, &[], operator, tenants).err().map(|error| error.to_string())
    };
    assert_eq!(problem(None, tenants.clone()), None);
    assert!(problem(Some(operator), tenants).unwrap().contains("`a` has the operator's token"));
    let same = HttpTenant::list("a first\nb second\nc first").unwrap();
    assert!(problem(None, same).unwrap().contains("`a` and `c` have the same token"));
    let many: String = (0..65).map(|number| format!("a {number}\n")).collect();
    assert!(problem(None, HttpTenant::list(&many).unwrap()).unwrap().contains("at most 64"));
}

/// The owner of each of these tokens, if it is accepted.
fn owners(authentication: &Authentication, tokens: &[&str]) -> Vec<Option<String>> {
    let owner = |token: &&str| {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
        match authentication.identify(&headers) {
            Ok(Caller::Tenant(token)) => Some(token.tenant_name().unwrap().to_owned()),
            _ => None,
        }
    };
    tokens.iter().map(owner).collect()
}

#[test]
fn v_512_a_list_that_replaces_another_revokes_what_it_does_not_have() {
    let operator = HttpToken::new("operator").unwrap();
    let first = HttpTenant::list("a first\nb second\nc third").unwrap();
    let local = [127, 0, 0, 1].into();
    let authentication = Authentication::new(local, &[], Some(operator), first.clone()).unwrap();
    let unchanged = authentication.replace_tenants(first, |_| {}).unwrap();
    assert_eq!((unchanged.added, unchanged.revoked.len(), unchanged.in_force), (0, 0, 3));
    // One stays, one is another tenant's, one is gone, one is new.
    let next = HttpTenant::list("d fourth\nx second\na first").unwrap();
    authentication.check_tenants(&next).unwrap();
    let has_states = std::cell::Cell::new(false);
    let make_states = |tenants: &[HttpTenant]| {
        has_states.set(tenants == next);
        assert_eq!(
            owners(&authentication, &["fourth"]),
            [None::<String>],
            "no token is accepted before its tenant has a state"
        );
    };
    let changes = authentication.replace_tenants(next.clone(), make_states).unwrap();
    assert!(has_states.get());
    let mut revoked: Vec<_> = changes.revoked.iter().filter_map(|token| token.tenant_name()).collect();
    revoked.sort_unstable();
    assert_eq!((changes.added, revoked, changes.in_force), (2, vec!["b", "c"], 3));
    let expected = [Some("a"), Some("x"), None, Some("d")].map(|name| name.map(str::to_owned));
    assert_eq!(owners(&authentication, &["first", "second", "third", "fourth"]), expected);
    // The rules of the start hold for each later list.
    for (text, problem) in [
        ("a first\nb first", "`a` and `b` have the same token"),
        ("a operator", "`a` has the operator's token"),
    ] {
        let refused = authentication.check_tenants(&HttpTenant::list(text).unwrap()).unwrap_err();
        assert!(refused.to_string().contains(problem), "{refused}");
    }
    let without = Authentication::new(local, &[], None, Vec::new()).unwrap();
    for refused in [
        authentication.check_tenants(&[]).unwrap_err(),
        without.check_tenants(&HttpTenant::list("a first").unwrap()).unwrap_err(),
    ] {
        assert!(refused.to_string().contains("has tenants from its start to its end, or never"), "{refused}");
    }
    let tokens = HttpTenant::list(&format!("a {}", "x".repeat(32))).unwrap();
    let others = Authentication::new([0, 0, 0, 0].into(), &[], None, tokens).unwrap();
    let short = others.check_tenants(&HttpTenant::list("a first").unwrap()).unwrap_err();
    assert!(short.to_string().contains("at least 32 characters"), "{short}");
}

/// The operator's token may have changed since the list was checked.
#[test]
fn v_512_a_tenant_of_a_list_that_is_refused_has_no_state() {
    let token = |text: &str| HttpToken::new(text).unwrap();
    let tenants = HttpTenant::list("a first").unwrap();
    let authentication =
        Authentication::new([127, 0, 0, 1].into(), &[], Some(token("operator")), tenants).unwrap();
    let next = HttpTenant::list("a first\nb second").unwrap();
    authentication.check_tenants(&next).unwrap();
    authentication.replace_token(token("second")).unwrap();
    let refused = authentication.replace_tenants(next, |_| panic!("a state was made")).map(drop).unwrap_err();
    assert!(refused.to_string().contains("`b` has the operator's token"), "{refused}");
    assert_eq!(owners(&authentication, &["first", "second"]), [Some("a".to_owned()), None]);
}

/// The token of all clients of a server without tenants, or of the operator, is replaced by the same rules.
#[test]
fn v_542_a_token_that_replaces_another_revokes_it() {
    let token = |text: &str| HttpToken::new(text).unwrap();
    let local = [127, 0, 0, 1].into();
    let with = |text: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {text}")).unwrap());
        headers
    };
    for tenants in ["", "a first"] {
        let tenants = if tenants.is_empty() { Vec::new() } else { HttpTenant::list(tenants).unwrap() };
        let authentication = Authentication::new(local, &[], Some(token("old")), tenants).unwrap();
        let unchanged = authentication.replace_token(token("old")).unwrap();
        assert_eq!((unchanged.added, unchanged.revoked.len(), unchanged.in_force), (0, 0, 1));
        let old = authentication.server_token(&with("old")).unwrap();
        let changes = authentication.replace_token(token("new")).unwrap();
        assert_eq!((changes.added, changes.revoked.len(), changes.in_force), (1, 1, 1));
        assert!(std::sync::Arc::ptr_eq(&changes.revoked[0], &old));
        assert!(authentication.identify(&with("old")).is_err());
        assert!(authentication.server_token(&with("new")).is_some());
        assert!(authentication.server_token(&with("first")).is_none());
    }
    let tenants = HttpTenant::list("a first").unwrap();
    let operated = Authentication::new(local, &[], Some(token("old")), tenants).unwrap();
    let refused = operated.replace_token(token("first")).map(drop).unwrap_err();
    assert!(refused.to_string().contains("`a` has the operator's token"), "{refused}");
    assert!(operated.server_token(&with("old")).is_some(), "it stays in force");
    // A tenant may have what was the operator's.
    operated.replace_token(token("new")).unwrap();
    operated.check_tenants(&HttpTenant::list("a old").unwrap()).unwrap();
    let open = Authentication::new(local, &[], None, Vec::new()).unwrap();
    let none = open.replace_token(token("new")).map(drop).unwrap_err();
    assert!(none.to_string().contains("has a token from its start to its end, or never"), "{none}");
    let long = token(&"x".repeat(32));
    let reachable = Authentication::new([0, 0, 0, 0].into(), &[], Some(long), Vec::new()).unwrap();
    let short = reachable.replace_token(token("new")).map(drop).unwrap_err();
    assert!(short.to_string().contains("at least 32 characters"), "{short}");
}
