use std::iter::from_fn;

use super::*;

/// Bytes of the longest printed line in an event.
const LINE: usize = 4_096;

/// Events that wait until there is no room for more.
fn fill(queue: &WaitingBytes) -> Vec<HeldBytes> {
    from_fn(|| queue.hold(LINE)).take(1_000).collect()
}

/// Threat 843. Clients on all connections read nothing.
#[test]
fn v_843_what_all_clients_together_do_not_read_is_bounded() {
    static TOGETHER: AtomicUsize = AtomicUsize::new(0);
    let queues: Vec<WaitingBytes> = (0..512).map(|_| WaitingBytes::within(&TOGETHER)).collect();
    let waiting: Vec<Vec<HeldBytes>> = queues.iter().map(fill).collect();
    let bytes = TOGETHER.load(Ordering::Relaxed);
    assert!(bytes <= MAX_OF_ALL + MAX_OF_QUEUE + 512 * SHARE, "{bytes}");
    // A client that comes late has a share, and the first one had a line for each slot of its queue.
    assert!(waiting[0].len() >= 256, "{}", waiting[0].len());
    assert!(waiting[511].len() >= 10, "{}", waiting[511].len());
    drop(waiting);
    assert_eq!(TOGETHER.load(Ordering::Relaxed), 0);
    // What a client has read makes room.
    assert_eq!(fill(&queues[511]).len(), fill(&queues[0]).len());
}
