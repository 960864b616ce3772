use super::*;

/// Threat 701.
#[test]
fn v_701_each_client_has_slots_of_its_own_which_are_freed() {
    let slots = ClientSlots::new(64);
    let mut taken: Vec<_> = (0..64).map(|_| slots.acquire("a").expect("a slot")).collect();
    assert!(slots.acquire("a").is_none());
    let other = slots.acquire("b").expect("another client has its own");
    assert_eq!(other.client(), "b");
    taken.pop();
    taken.push(slots.acquire("a").expect("a slot is free again"));
    assert!(slots.acquire("a").is_none());
    drop(taken);
    assert_eq!(slots.used.lock().len(), 1, "a client without any takes no memory");
}
