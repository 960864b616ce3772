//! The readings of one clock by a script, stored compactly.

/// A clock that scripts can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestClock {
    /// Nanoseconds since 1970.
    Wall,
    /// Nanoseconds since an unspecified moment before the run.
    Monotonic,
}

/// Readings of one clock in order. Equal consecutive readings are one step, so that the number of steps depends on the
/// clock's resolution and not on how often a script reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readings {
    /// The value, and how often it was read.
    steps: Vec<(u64, u64)>,
}

impl Readings {
    /// Adds a reading. Returns whether that made a step.
    pub(crate) fn add(&mut self, value: u64) -> bool {
        match self.steps.last_mut() {
            Some((last, count)) if *last == value => {
                *count += 1;
                false
            }
            _ => {
                self.steps.push((value, 1));
                true
            }
        }
    }

    /// The reading at this position.
    pub(crate) fn at(&self, cursor: &mut Cursor) -> Option<u64> {
        let &(value, count) = self.steps.get(cursor.step)?;
        cursor.read += 1;
        if cursor.read >= count {
            *cursor = Cursor { step: cursor.step + 1, read: 0 };
        }
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The readings as text: steps separated by spaces, each the difference from the previous one, followed by `*` and
    /// the count if that is more than one. `before` is the last reading of this clock before these.
    pub(super) fn to_text(&self, before: &mut u64) -> String {
        let mut text = String::new();
        for &(value, count) in &self.steps {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&value.wrapping_sub(*before).cast_signed().to_string());
            if count > 1 {
                text.push('*');
                text.push_str(&count.to_string());
            }
            *before = value;
        }
        text
    }

    /// Parses the text that [`to_text`](Self::to_text) writes. `None` if the text is invalid or has more than `most`
    /// steps.
    pub(super) fn from_text(text: &str, before: &mut u64, most: usize) -> Option<Self> {
        let mut steps = Vec::new();
        for step in text.split(' ').filter(|step| !step.is_empty()) {
            if steps.len() >= most {
                return None;
            }
            let (difference, count) = step.split_once('*').unwrap_or((step, "1"));
            *before = before.wrapping_add(difference.parse::<i64>().ok()?.cast_unsigned());
            steps.push((*before, count.parse().ok().filter(|count| *count > 0)?));
        }
        Some(Self { steps })
    }
}

/// A position in [`Readings`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    step: usize,
    read: u64,
}
