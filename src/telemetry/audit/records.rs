//! The canonical texts of a batch's records, which are written before the records have their position in the chain.

use serde_json::Value;

use super::canonical;

/// The members that the chain adds to a record, sorted.
const CHAINED: [&str; 3] = ["hash", "prev", "seq"];

/// Maximum bytes of the texts for which memory is kept from one batch to the next.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Maximum number of records for which memory is kept.
const MAX_KEPT_RECORDS: usize = 4_096;

/// The texts of records, one after the other.
///
/// Each record becomes text as soon as its fields are there. The fields of a whole batch would be thousands of small
/// allocations at the same time, whose release was the largest part of the writer's time in a profile.
#[derive(Default)]
pub(super) struct Records {
    text: Vec<u8>,
    /// The offsets in the text at which the members of the chain begin in each record, and at which the record ends.
    offsets: Vec<([usize; CHAINED.len()], usize)>,
}

/// The text of a record, divided where `hash`, `prev` and `seq` are added. The last part begins with a member.
#[derive(Clone, Copy)]
pub(super) struct Record<'a>(pub(super) [&'a [u8]; CHAINED.len() + 1]);

impl Records {
    /// Adds a record with these fields. It has a `writer`, which sorts after the members of the chain.
    pub(super) fn push(&mut self, fields: &[(&'static str, Value)]) {
        let members = canonical::write_record(&mut self.text, fields, CHAINED);
        self.offsets.push((members, self.text.len()));
    }

    /// Removes all records.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(MAX_KEPT_BYTES);
        self.offsets.clear();
        self.offsets.shrink_to(MAX_KEPT_RECORDS);
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = Record<'_>> {
        let mut begin = 0;
        self.offsets.iter().map(move |&([hash, prev, seq], end)| {
            let text = &self.text;
            let parts = [&text[begin..hash], &text[hash..prev], &text[prev..seq], &text[seq..end]];
            begin = end;
            Record(parts)
        })
    }
}
