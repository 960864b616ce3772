//! Bounds the work of checking the arguments of a script's calls before the script runs.

use std::cell::Cell;

/// The steps that are left. A step is one evaluation of one schema for one value, some 20 ns.
pub(super) struct StepBudget(Cell<u64>);

impl StepBudget {
    /// Steps that describing the mistakes in one call's arguments costs.
    pub(super) const DESCRIPTION: u64 = 100_000;

    /// The budget for all arguments of one script: some 0.6 s. Checking the arguments of one call can take 20 ms, and a
    /// script can have hundreds of calls.
    pub(super) fn of_judgement() -> Self {
        Self(Cell::new(30_000_000))
    }

    /// Spends this many steps. Returns `false` if fewer are left.
    pub(super) fn spend(&self, steps: u64) -> bool {
        match self.0.get().checked_sub(steps) {
            Some(left) => {
                self.0.set(left);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StepBudget;

    #[test]
    fn as_much_as_is_left_can_be_spent() {
        let budget = StepBudget::of_judgement();
        assert!(budget.spend(29_900_000));
        assert!(!budget.spend(200_000));
        assert!(budget.spend(100_000));
        assert!(!budget.spend(1));
    }
}
