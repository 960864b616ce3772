//! Which tenants have a state while their tokens change.

use super::*;
use crate::server::ServerOptions;

fn states(list: &str) -> TenantStates {
    let shared = Shared::new(Executor::builder().build().unwrap(), ServerOptions::default());
    let parts = TenantParts {
        shared: Arc::new(shared),
        runs: CancellationToken::new(),
        calls: Arc::default(),
        client_rate: None,
        run_rate: None,
    };
    TenantStates::new(parts, &tenants(list))
}

fn tenants(list: &str) -> Vec<HttpTenant> {
    if list.is_empty() { Vec::new() } else { HttpTenant::list(list).unwrap() }
}

/// A session or a connection that still has the key of a tenant that is gone is not that of one that comes.
#[tokio::test]
async fn v_512_a_tenant_that_comes_back_has_another_state() {
    let states = states("a first\nb second\na third");
    let (a, b) = (states.find(Some("a")).unwrap(), states.find(Some("b")).unwrap());
    assert_ne!(a.key, b.key);
    states.add(&tenants("a first\nc fourth"));
    states.retain(&tenants("a first\nc fourth"));
    assert!(Arc::ptr_eq(&states.find(Some("a")).unwrap(), &a), "one of its tokens is still in force");
    assert!(states.find(Some("b")).is_none() && states.find(None).is_none());
    assert!(b.session.runs.is_cancelled() && !a.session.runs.is_cancelled());
    states.add(&tenants("b second"));
    let again = states.find(Some("b")).unwrap();
    assert!(again.key != b.key && again.key != states.find(Some("c")).unwrap().key);
    assert!(!again.session.runs.is_cancelled());
}

#[tokio::test]
async fn a_server_without_tenants_has_one_state() {
    let states = states("");
    let only = states.find(None).unwrap();
    assert_eq!((only.key, only.name.as_deref()), (TenantKey::Only, None));
    assert_eq!(only.session.tenant, None);
}
