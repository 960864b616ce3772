use tracing::span;
use wasmtime::ResourceLimiter as _;

use super::*;
use crate::engine::python::memory_limit::MAX_TABLE_ELEMENTS;
use crate::run::tape::Tape;

const PAGE: usize = 64 * 1024;

#[test]
fn memories_are_counted_together() {
    let mut memory = MemoryLimiter::new(10 * PAGE);
    assert!(memory.memory_growing(0, 6 * PAGE, None).unwrap());
    assert!(memory.memory_growing(0, 2 * PAGE, None).unwrap());
    assert!(memory.memory_growing(6 * PAGE, 8 * PAGE, None).unwrap());
    assert_eq!(memory.used(), 10 * PAGE);
    assert!(!memory.was_refused());
    assert!(!memory.memory_growing(2 * PAGE, 3 * PAGE, None).unwrap());
    assert_eq!(memory.used(), 10 * PAGE);
    assert!(memory.was_refused());
}

#[test]
fn memory_that_the_system_refuses_is_not_counted() {
    let mut memory = MemoryLimiter::new(10 * PAGE);
    assert!(memory.memory_growing(0, 2 * PAGE, None).unwrap());
    assert!(memory.memory_growing(2 * PAGE, 9 * PAGE, None).unwrap());
    memory.memory_grow_failed(wasmtime::format_err!("no memory")).unwrap();
    assert_eq!(memory.used(), 2 * PAGE);
    assert!(memory.was_refused());
}

/// Counts the log events of a thread.
struct EventCounter(Arc<AtomicU64>);

impl tracing::Subscriber for EventCounter {
    fn enabled(&self, _metadata: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, _event: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

#[test]
fn v_761_memory_that_the_system_refuses_again_and_again_is_one_warning() {
    let events = Arc::new(AtomicU64::new(0));
    tracing::subscriber::with_default(EventCounter(Arc::clone(&events)), || {
        for _guest in 0..2 {
            let mut memory = MemoryLimiter::new(10 * PAGE);
            for _ in 0..1_000 {
                assert!(memory.memory_growing(0, 2 * PAGE, None).unwrap());
                memory.memory_grow_failed(wasmtime::format_err!("no memory")).unwrap();
            }
            assert!(memory.was_refused());
        }
    });
    assert_eq!(events.load(Ordering::Relaxed), 2);
}

#[test]
fn growth_beyond_the_memorys_own_maximum_is_not_counted() {
    let mut memory = MemoryLimiter::new(10 * PAGE);
    assert!(!memory.memory_growing(0, 2 * PAGE, Some(PAGE)).unwrap());
    assert_eq!(memory.used(), 0);
}

#[test]
fn tables_have_a_bound() {
    let mut memory = MemoryLimiter::new(PAGE);
    assert!(memory.table_growing(0, MAX_TABLE_ELEMENTS, None).unwrap());
    assert!(!memory.table_growing(0, MAX_TABLE_ELEMENTS + 1, None).unwrap());
}

/// One request is as long with a tape as without one.
#[test]
fn v_478_random_bytes_of_a_tape_are_bounded_too() {
    use wasmtime_wasi::p2::bindings::random::random::Host as _;

    let sink: Sink = Arc::new(|_stream, _bytes| {});
    let bytes = |has_tape: bool, count: u64| {
        let mut state = GuestState::new((), 1 << 20, &sink);
        if has_tape {
            state.clock.set_tape(Tape::recording([7; 32]));
        }
        random_source(&mut state).get_random_bytes(count).map_err(|error| format!("{error:#}"))
    };
    for has_tape in [false, true] {
        assert_eq!(bytes(has_tape, MAX_RANDOM_SIZE).unwrap().len() as u64, MAX_RANDOM_SIZE);
        for count in [MAX_RANDOM_SIZE + 1, u64::from(u32::MAX), u64::MAX] {
            assert!(bytes(has_tape, count).is_err(), "{has_tape} {count}");
        }
    }
    assert_eq!(bytes(true, 100).unwrap(), bytes(true, 100).unwrap(), "they are those of the seed");
    assert_ne!(bytes(false, 100).unwrap(), bytes(true, 100).unwrap());
}
