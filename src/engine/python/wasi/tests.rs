use super::*;

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
