//! Which connection is evicted, and which connection gets its permit.

use futures::StreamExt as _;
use tokio::sync::Semaphore;

use super::*;
use crate::server::http::tenants::HttpTenant;
use crate::server::http::token::HttpToken;

const LOCAL: PeerKey = PeerKey::Local;

fn open(connections: &Arc<Connections>, permits: &Arc<Semaphore>) -> OpenConnection {
    connections.open(LOCAL, Arc::clone(permits).try_acquire_owned().unwrap())
}

/// If another connection could take the permit, the successor would wait in vain.
#[tokio::test]
async fn v_333_the_permit_of_an_evicted_connection_is_its_successors() {
    let permits = Arc::new(Semaphore::new(2));
    let connections = Connections::new(2, false);
    let (first, second) = (open(&connections, &permits), open(&connections, &permits));
    let permit = connections.make_room(LOCAL).unwrap();
    assert!(first.connection.evicted.is_cancelled() && !second.connection.evicted.is_cancelled());
    assert_eq!((connections.count(), permits.available_permits()), (2, 0));
    drop(first);
    // The successor has not received it yet.
    assert_eq!((connections.count(), permits.available_permits()), (1, 0));
    let third = connections.open(LOCAL, permit.await.unwrap());
    // If the successor is gone, the permit goes back, whether it was sent before or after that.
    drop(connections.make_room(LOCAL).unwrap());
    drop(second);
    assert_eq!((connections.count(), permits.available_permits()), (1, 1));
    let permit = connections.make_room(LOCAL).unwrap();
    drop(third);
    drop(permit);
    assert_eq!((connections.count(), permits.available_permits()), (0, 2));
    assert!(connections.make_room(LOCAL).is_none());
}

#[test]
fn v_333_what_is_in_use_is_not_evicted() {
    let permits = Arc::new(Semaphore::new(1));
    let connections = Connections::new(1, false);
    let open = open(&connections, &permits);
    let connection = &open.connection;
    let eviction = || connection.held().eviction;
    assert_eq!(eviction(), Eviction::Allowed(0));
    connection.begin_request();
    assert_eq!(eviction(), Eviction::OverShare(3));
    connection.admit(None, None);
    connection.begin_answer();
    assert_eq!(eviction(), Eviction::Never);
    let answer = Arc::clone(connection).watch(Response::new(Body::from("answer")));
    assert_eq!(answer.body().size_hint().exact(), Some(6));
    assert!(connections.make_room(LOCAL).is_none());
    drop(answer);
    assert_eq!(eviction(), Eviction::Allowed(1));
    connection.begin_listening();
    assert_eq!(eviction(), Eviction::OverShare(4));
    // A connection whose request stays incomplete.
    connection.begin_request();
    let since = Instant::now().checked_sub(MIN_REQUEST_TIME).unwrap();
    connection.state.lock().since = since;
    assert_eq!(eviction(), Eviction::Allowed(2));
}

#[test]
fn v_579_a_connection_whose_client_hardly_reads_makes_room() {
    let permits = Arc::new(Semaphore::new(1));
    let connections = Connections::new(1, false);
    let open = open(&connections, &permits);
    let connection = &open.connection;
    connection.begin_request();
    connection.admit(None, None);
    connection.begin_answer();
    let pace = &connection.activity.pace;
    let eviction = || connection.held().eviction;
    let long_ago = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
    let now = Instant::now();
    // It has read 50 kB in 100 s, and nothing is known of the time before.
    pace.note_written(1 << 30, now);
    pace.note_blocked(long_ago);
    pace.note_written(50_000, now);
    assert_eq!(eviction(), Eviction::Allowed(3));
    // It reads on, and then hardly does.
    pace.note_written(1_000_000_000, now);
    assert_eq!(eviction(), Eviction::Never);
    let later = now + Duration::from_secs(100);
    pace.note_written(100, later);
    assert!(pace.is_slow(later));
    pace.note_flushed();
    pace.note_blocked(Instant::now());
    assert_eq!(eviction(), Eviction::Never);
    pace.note_flushed();
    pace.note_blocked(long_ago);
    assert_eq!(eviction(), Eviction::Allowed(3));
    // What has all been written is waited for by nobody.
    pace.note_flushed();
    assert_eq!(eviction(), Eviction::Never);
    assert!(connections.make_room(LOCAL).is_none());
    pace.note_blocked(long_ago);
    assert!(connections.make_room(LOCAL).is_some() && connection.evicted.is_cancelled());
}

/// Behind a proxy: all of them come from one address.
#[tokio::test]
async fn v_505_a_connection_is_a_tenants_from_its_first_request_on() {
    let permits = Arc::new(Semaphore::new(3));
    let connections = Connections::new(3, true);
    let [first, second, third] = [0; 3].map(|_| open(&connections, &permits));
    for listening in [&first, &second] {
        listening.connection.begin_request();
        listening.connection.admit(Some(TenantKey::Number(0)), None);
        listening.connection.begin_listening();
    }
    let is_evicted = |open: &OpenConnection| open.connection.evicted.is_cancelled();
    // The one that has said nothing goes first, and then one of a tenant that holds more than its share.
    let _permit = connections.make_room(LOCAL).unwrap();
    assert_eq!([&first, &second, &third].map(is_evicted), [false, false, true]);
    let _permit = connections.make_room(LOCAL).unwrap();
    assert_eq!([&first, &second, &third].map(is_evicted), [true, false, true]);
    // What is left is the tenant's share.
    assert!(connections.make_room(LOCAL).is_none());
}

/// An idle connection may be a proxy's, whose next request is another tenant's.
#[test]
fn v_512_a_connection_ends_with_the_token_of_its_request_in_progress() {
    let permits = Arc::new(Semaphore::new(3));
    let connections = Connections::new(3, true);
    let [revoked, kept] = ["a", "b"].map(|name| {
        let token = HttpToken::new(name).unwrap();
        AcceptedToken::of_tenant(HttpTenant::new(name, token).unwrap())
    });
    let [busy, other, idle] = [&revoked, &kept, &revoked].map(|token| {
        let open = open(&connections, &permits);
        open.connection.begin_request();
        open.connection.admit(None, Some(Arc::clone(token)));
        open
    });
    // Its answer has been written.
    drop(Arc::clone(&idle.connection).watch(Response::new(Body::empty())));
    connections.end_of(&revoked);
    let ended = [&busy, &other, &idle].map(|open| open.connection.evicted.is_cancelled());
    assert_eq!(ended, [true, false, false]);
}

/// Threat 579. Answers can have megabytes, and wait on all connections.
#[tokio::test]
async fn v_579_what_clients_do_not_read_is_bounded_together() {
    let permits = Arc::new(Semaphore::new(4));
    let connections = Connections::new(4, false);
    let open_by = |peer| connections.open(peer, Arc::clone(&permits).try_acquire_owned().unwrap());
    let other = PeerKey::Address([192, 0, 2, 1].into());
    let [quick, slow, new, honest] = [LOCAL, LOCAL, LOCAL, other].map(open_by);
    let now = Instant::now();
    let since = now.checked_sub(Duration::from_secs(2)).unwrap();
    for (open, unread, read) in [(&quick, 300, 50), (&slow, 300, 1), (&honest, 350, 0)] {
        let activity = &open.connection.activity;
        activity.note_given(unread);
        activity.pace.note_blocked(since);
        activity.pace.note_written(read, now);
    }
    let ended = || [&quick, &slow, &new, &honest].map(|open| open.connection.evicted.is_cancelled());
    connections.bound_unread(1_000);
    assert_eq!(ended(), [false; 4]);
    new.connection.activity.note_given(100);
    connections.bound_unread(1_000);
    assert_eq!(ended(), [false, true, false, false], "the slowest one of the peer with most");
    // Not the end of an answer either, which is what waits.
    slow.connection.state.lock().has_answered = true;
    assert!(matches!(slow.connection.evicted().await, Unwritten::Nothing));
    // One answer is written, however long it is.
    connections.bound_unread(0);
    assert_eq!(ended().iter().filter(|ended| **ended).count(), 3);
}

/// Threat 579. Who has many peers, or reads nothing on many connections, does not end the connections of others.
#[test]
fn v_579_clients_that_read_do_not_lose_their_answers_to_those_that_do_not() {
    let permits = Arc::new(Semaphore::new(6));
    let connections = Connections::new(6, true);
    let open_by = |last: u8, tenant: usize, unread: usize| {
        let peer = PeerKey::Address([192, 0, 2, last].into());
        let open = connections.open(peer, Arc::clone(&permits).try_acquire_owned().unwrap());
        open.connection.admit(Some(TenantKey::Number(tenant)), None);
        open.connection.activity.note_given(unread);
        open
    };
    let [long, one, other] = [open_by(1, 1, 400), open_by(2, 2, 300), open_by(3, 2, 350)];
    let ended = |all: &[&OpenConnection]| {
        all.iter().map(|open| open.connection.evicted.is_cancelled()).collect::<Vec<_>>()
    };
    connections.bound_unread(1_000);
    assert_eq!(
        ended(&[&long, &one, &other]),
        [false, false, true],
        "a tenant has one share, whatever its peers"
    );
    let slow = open_by(4, 3, 350);
    let now = Instant::now();
    let since = now.checked_sub(Duration::from_secs(60)).unwrap();
    slow.connection.activity.pace.note_blocked(since);
    slow.connection.activity.pace.note_written(100, now);
    connections.bound_unread(1_000);
    assert_eq!(
        ended(&[&long, &one, &slow]),
        [false, false, true],
        "the slow client, although another has more"
    );
}

#[tokio::test]
async fn v_579_parts_of_an_answer_count_until_they_are_read() {
    let permits = Arc::new(Semaphore::new(1));
    let connections = Connections::new(1, false);
    let open = open(&connections, &permits);
    let answer = Arc::clone(&open.connection).watch(Response::new(Body::from("answer")));
    let mut parts = answer.into_body().into_data_stream();
    assert_eq!(parts.next().await.unwrap().unwrap(), "answer");
    assert_eq!(open.connection.activity.unread(), 6);
}

/// Threat 579. Whoever is given a large part looks what there is together.
#[tokio::test]
async fn v_579_a_large_part_of_an_answer_ends_other_connections() {
    let permits = Arc::new(Semaphore::new(2));
    let connections = Connections::new(2, false);
    let opened = [0, 1].map(|_| open(&connections, &permits));
    for open in &opened {
        open.connection.note_given(MAX_UNREAD_BYTES / 2 + LARGE_PART);
    }
    let ended = opened.iter().filter(|open| open.connection.evicted.is_cancelled());
    assert_eq!(ended.count(), 1);
}

/// Threat 824. Notifications that a client does not read keep the answer behind them from hyper.
#[tokio::test]
async fn v_824_an_answer_counts_as_soon_as_it_is_made() {
    let permits = Arc::new(Semaphore::new(2));
    let connections = Connections::new(2, false);
    let opened = [0, 1].map(|_| open(&connections, &permits));
    let [first, second] = [&opened[0].connection, &opened[1].connection];
    let ended = || [first, second].map(|connection| connection.evicted.is_cancelled());
    let bytes = MAX_UNREAD_BYTES / 2 + LARGE_PART;
    // Their streams have ended, so that nobody gets these.
    first.note_made(bytes);
    second.note_made(bytes);
    assert_eq!((ended(), first.activity.unread()), ([false; 2], 0));
    first.begin_answer();
    first.note_made(bytes);
    // What hyper gets of it counts once.
    first.note_given(10);
    assert_eq!((ended(), first.activity.unread()), ([false; 2], bytes));
    second.begin_answer();
    second.note_made(bytes);
    assert_eq!(ended().iter().filter(|ended| **ended).count(), 1);
    // The rest of an answer whose stream has ended is gone.
    drop(Arc::clone(first).watch(Response::new(Body::empty())));
    assert_eq!(first.activity.unread(), 10);
    // A client whose request only looks like a subscription.
    first.begin_listening();
    first.note_made(20);
    assert_eq!(first.activity.unread(), 30);
}
