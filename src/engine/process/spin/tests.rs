use super::*;

#[test]
fn waits_that_fail_become_rare_and_one_that_succeeds_makes_them_usual() {
    let mut spin = Spin::new(2);
    let mut looked_at = Vec::new();
    for wait in 0..40 {
        let mut has_looked = false;
        let found = spin.find(|| -> Option<()> {
            has_looked = true;
            None
        });
        assert_eq!(found, None);
        if has_looked {
            looked_at.push(wait);
        }
    }
    assert_eq!(looked_at, [0, 2, 5, 10, 19, 36]);
    let mut found = None;
    while found.is_none() {
        found = spin.find(|| Some(1));
    }
    // The penalty is over: each wait looks, and the first failure costs one wait.
    assert_eq!(spin.find(|| Some(2)), Some(2));
    assert_eq!(spin.find(|| None::<i32>), None);
    assert_eq!(spin.find(|| Some(3)), None);
    assert_eq!(spin.find(|| Some(4)), Some(4));
}

#[test]
fn on_one_processor_neither_side_spins() {
    assert_eq!(Spin::new(1).find(|| Some(1)), None);
    assert_eq!(Spin::new(1).find_expected(|| Some(1)), None);
}

#[test]
fn what_certainly_comes_is_waited_for_whatever_came_before() {
    let mut spin = Spin::new(2);
    assert_eq!(spin.find(|| None::<i32>), None);
    assert_eq!(spin.find(|| Some(1)), None);
    assert_eq!(spin.find_expected(|| Some(2)), Some(2));
    assert_eq!(spin.find_expected(|| None::<i32>), None);
}
