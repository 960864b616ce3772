//! Which values of a result are visited: those that matter for its shape, and a bounded number.

/// Maximum levels of a shape. Deeper values are unknown.
pub(crate) const MAX_DEPTH: usize = 8;

/// Maximum fields of an object. An object with more is a map, whose keys are data.
pub(crate) const MAX_FIELDS: usize = 64;

/// Maximum number of values visited in one result: some tenths of a millisecond.
pub(crate) const MAX_VALUES: usize = 8_000;

/// How many elements of an array are visited at each of its ends. The last ones are visited because
/// sorted lists differ most at their ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Ends {
    /// The ends of an array or map that is inside this many other arrays and maps.
    pub(crate) fn inside(arrays: usize) -> Self {
        match arrays {
            0 => Self { first: 100, last: 10 },
            1 => Self { first: 20, last: 4 },
            _ => Self { first: 5, last: 1 },
        }
    }

    /// The visited ones of `items`, which are `count`.
    pub(crate) fn select<I: Iterator + Clone>(self, items: I, count: usize) -> impl Iterator<Item = I::Item> {
        let tail = count.saturating_sub(self.last).max(self.first);
        items.clone().take(self.first).chain(items.skip(tail))
    }
}
