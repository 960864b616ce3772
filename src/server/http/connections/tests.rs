//! Which connection is evicted, and which connection gets its permit.

use tokio::sync::Semaphore;

use super::*;

const LOCAL: PeerKey = PeerKey::Local;

fn open(connections: &Arc<Connections>, permits: &Arc<Semaphore>) -> OpenConnection {
    connections.open(LOCAL, Arc::clone(permits).try_acquire_owned().unwrap())
}

/// If another connection could take the permit, the successor would wait in vain.
#[tokio::test]
async fn v_333_the_permit_of_an_evicted_connection_is_its_successors() {
    let permits = Arc::new(Semaphore::new(2));
    let connections = Connections::new(2);
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
    let connections = Connections::new(1);
    let open = open(&connections, &permits);
    let connection = &open.connection;
    let eviction = || connection.held().eviction;
    assert_eq!(eviction(), Eviction::Allowed(0));
    connection.begin_request();
    assert_eq!(eviction(), Eviction::OverShare(3));
    connection.admit();
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
