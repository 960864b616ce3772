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
        Ok(Caller::Tenant(name)) if !may_see_all => Ok(name.to_owned()),
        Ok(Caller::Operator) if may_see_all => Ok("operator".to_owned()),
        Ok(other) => panic!("{other:?}"),
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
