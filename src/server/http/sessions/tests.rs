//! Bounds of sessions.

mod resumption;

use std::future::Future;
use std::net::IpAddr;

use super::*;
use crate::executor::Executor;
use crate::server::ServerOptions;
use crate::server::http::rest_runs::RestRuns;
use crate::server::http::shares::PeerKey;
use crate::server::http::streams::cancellation;
use crate::server::http::tenant_state::TenantState;
use crate::server::http::tenants::HttpTenant;
use crate::server::http::token::HttpToken;

fn sessions(max: usize) -> Sessions {
    let shared = Shared::new(Executor::builder().build().unwrap(), ServerOptions::default());
    let bounds = SessionBounds { max, idle: Duration::from_secs(600) };
    Sessions::new(Arc::new(shared), bounds, CancellationToken::new(), Arc::default())
}

/// A tenant's state, which has its own session for clients without one.
fn tenant(sessions: &Sessions, name: Option<&str>, key: TenantKey) -> Arc<TenantState> {
    let name: Option<Arc<str>> = name.map(Arc::from);
    let session = McpSession::new(Arc::clone(&sessions.shared), CancellationToken::new(), Arc::default());
    let session = Arc::new(session.of_many_clients().of_tenant(name.as_ref()));
    let (rest, rates) = (RestRuns::new(Arc::default()), Arc::default());
    Arc::new(TenantState { name, key, session, rest, rates, bodies: None })
}

/// Does what a client of this peer asks for, on a server without tenants.
async fn by<T>(sessions: &Sessions, peer: PeerKey, asking: impl Future<Output = T>) -> T {
    let tenant = tenant(sessions, None, TenantKey::Only);
    REQUESTER.scope(Requester { tenant, token: None, peer }, asking).await
}

/// A new session, of a client of this machine unless something else is said.
async fn create(sessions: &Sessions) -> Result<(SessionId, SessionTransport), SessionError> {
    if REQUESTER.try_with(|_| ()).is_ok() {
        return sessions.create_session().await;
    }
    by(sessions, PeerKey::Local, sessions.create_session()).await
}

/// Makes a session look as if it had been idle for this long.
fn age(sessions: &Sessions, id: &SessionId, by: Duration) {
    let session = sessions.session(id).unwrap();
    let mut streams = session.streams.lock();
    streams.used = streams.used.checked_sub(by).unwrap();
}

/// A session whose client has sent more than its first request.
async fn used(sessions: &Sessions) -> SessionId {
    let (id, _transport) = create(sessions).await.unwrap();
    // What the second message of a client sets.
    sessions.session(&id).unwrap().streams.lock().is_used = true;
    id
}

/// A peer that holds all sessions, in any state, cannot keep other peers out; and only that peer
/// loses sessions.
#[tokio::test]
async fn v_335_each_peer_has_a_share_of_the_sessions() {
    let sessions = sessions(8);
    let [flood, other, third] =
        [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]].map(|a| PeerKey::from(IpAddr::from(a)));
    let honest = by(&sessions, other, used(&sessions)).await;
    let fresh = by(&sessions, other, sessions.create_session()).await.unwrap().0;
    let mut listening = Vec::new();
    for _ in 0..6 {
        let id = by(&sessions, flood, used(&sessions)).await;
        listening.push((sessions.create_standalone_stream(&id).await.unwrap(), id));
    }
    // The flooding peer gets no more than it can have. New sessions of others are not evicted for
    // it.
    let refused = by(&sessions, flood, sessions.create_session()).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany)), "{refused:?}");
    assert!(sessions.knows(&fresh) && sessions.knows(&honest));
    sessions.session(&fresh).unwrap().streams.lock().is_used = true;
    // Another peer gets its share, from the surplus of the flooding peer.
    let late = by(&sessions, third, used(&sessions)).await;
    assert_eq!(sessions.count(), 8);
    assert!(sessions.knows(&fresh) && sessions.knows(&honest) && sessions.knows(&late));
    assert!(!sessions.knows(&listening[0].1), "the oldest");
    // A session with a call in flight is never evicted.
    let calls: Vec<_> =
        listening[1..].iter().map(|(_, id)| sessions.session(id).unwrap().mcp.calls.begin()).collect();
    let refused = by(&sessions, third, sessions.create_session()).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany)), "{refused:?}");
    drop(calls);
    by(&sessions, third, sessions.create_session()).await.unwrap();
    assert!(!sessions.knows(&listening[1].1));
}

#[tokio::test]
async fn the_one_that_was_idle_for_longest_makes_room() {
    let sessions = sessions(3);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(used(&sessions).await);
    }
    let refused = REFUSED.scope(Cell::new(false), async {
        let refused = create(&sessions).await.err();
        (refused, REFUSED.with(Cell::get))
    });
    let refused = refused.await;
    assert!(matches!(refused, (Some(SessionError::TooMany), true)), "{refused:?}");
    age(&sessions, &ids[0], Duration::from_secs(59));
    let refused = create(&sessions).await.err();
    assert!(matches!(refused, Some(SessionError::TooMany)), "a minute is the least: {refused:?}");
    age(&sessions, &ids[1], Duration::from_secs(62));
    age(&sessions, &ids[2], Duration::from_secs(90));
    // A session with a standalone stream is in use.
    let listening = sessions.create_standalone_stream(&ids[2]).await.unwrap();
    // So is a session with a task.
    let task = sessions.session(&ids[0]).unwrap().mcp.calls.begin();
    age(&sessions, &ids[0], Duration::from_secs(90));
    create(&sessions).await.unwrap();
    drop(task);
    assert!(sessions.knows(&ids[0]) && !sessions.knows(&ids[1]) && sessions.knows(&ids[2]));
    drop(listening);
    assert_eq!(sessions.count(), 3);
}

#[tokio::test]
async fn ids_cannot_be_guessed_and_ended_sessions_are_not_known() {
    let sessions = sessions(2);
    let (id, _transport) = create(&sessions).await.unwrap();
    let (other, _other_transport) = create(&sessions).await.unwrap();
    assert!(id != other && id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    sessions.close_session(&id).await.unwrap();
    assert!(!sessions.knows(&id) && sessions.knows(&other));
    let ended = sessions.accept_message(&id, cancellation(1)).await.err();
    assert!(matches!(ended, Some(SessionError::Ended)), "{ended:?}");
    age(&sessions, &other, Duration::from_secs(601));
    sessions.expire();
    assert_eq!(sessions.count(), 0);
}

/// Also not with a request that passed the authentication just before.
#[tokio::test]
async fn v_512_a_revoked_token_has_no_session_and_begins_none() {
    let sessions = sessions(8);
    let tenant = tenant(&sessions, Some("a"), TenantKey::Number(0));
    let [revoked, kept] = ["first", "second"].map(|token| {
        let token = HttpToken::new(token).unwrap();
        AcceptedToken::of_tenant(HttpTenant::new("a", token).unwrap())
    });
    let begin = async |token: &Arc<AcceptedToken>| {
        let (tenant, token) = (Arc::clone(&tenant), Some(Arc::clone(token)));
        let requester = Requester { tenant, token, peer: PeerKey::Local };
        REQUESTER.scope(requester, sessions.create_session()).await
    };
    let (of_revoked, _transport) = begin(&revoked).await.unwrap();
    let (of_kept, _transport) = begin(&kept).await.unwrap();
    let has_ended_runs = |id: &SessionId| sessions.session(id).unwrap().mcp.runs.is_cancelled();
    revoked.revoked.cancel();
    sessions.cancel_runs_of(&revoked);
    assert!(has_ended_runs(&of_revoked) && !has_ended_runs(&of_kept));
    sessions.end_of(&revoked);
    assert!(!sessions.knows(&of_revoked) && sessions.knows(&of_kept));
    assert!(matches!(begin(&revoked).await, Err(SessionError::Ended)));
    assert!(begin(&kept).await.is_ok());
}
