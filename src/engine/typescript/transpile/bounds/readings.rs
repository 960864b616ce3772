//! Follows both readings of a `/` that divides or begins a regular expression.

use super::frame::Previous;
use super::limits::SourceRefusal;
use super::scanner::{Scanner, Stop};

/// Bytes of reading that cost as much as copying and comparing a frame.
const FRAME_BYTES: usize = 8;

/// The readings that are left to follow, and how many more there may be.
#[derive(Debug)]
pub(super) struct Readings<'a> {
    /// How many more may go on beyond the line where they begin.
    pub(super) left: u32,
    /// How many more may begin inside the current one.
    pub(super) nested: u32,
    /// How many more bytes may be read a second time.
    pub(super) bytes: usize,
    pub(super) pending: Vec<Scanner<'a>>,
}

impl<'a> Scanner<'a> {
    /// Reads a `/` that does not start a comment. Returns whether the rest of the line was read
    /// too.
    pub(super) fn slash(&mut self, readings: &mut Readings<'a>) -> Result<bool, SourceRefusal> {
        match self.previous {
            Previous::Operand if !self.newline => self.operator(b'/')?,
            Previous::Operator | Previous::Prefix | Previous::HeadEnd => {
                self.regular_expression();
            }
            _ => {
                self.fork(readings, Self::regular_expression)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Follows two readings: `other` is applied to a copy of the scanner, and the operator to this
    /// one. They are merged at the end of the line if they agree there. If `other` returns false,
    /// the parser does not get beyond it.
    pub(super) fn fork(
        &mut self,
        readings: &mut Readings<'a>,
        other: fn(&mut Self) -> bool,
    ) -> Result<(), SourceRefusal> {
        let start = self.at;
        let unclear = SourceRefusal::Unclear { at: start };
        readings.nested = readings.nested.checked_sub(1).ok_or(unclear)?;
        let mut copy = self.clone();
        let goes_on = other(&mut copy);
        if goes_on {
            copy.run(readings, Stop::AfterLine)?;
        }
        // Readings that begin inside this one are counted separately.
        let cost = copy.at - start + FRAME_BYTES * (self.outer.len() + 1);
        readings.bytes = readings.bytes.checked_sub(cost).ok_or(unclear)?;
        let byte = self.rest()[0];
        self.operator(byte)?;
        self.run(readings, Stop::AfterLine)?;
        readings.nested += 1;
        if goes_on && !self.merge(&copy) {
            readings.left = readings.left.checked_sub(1).ok_or(unclear)?;
            readings.pending.push(copy);
        }
        Ok(())
    }

    /// Merges `other` into this scanner if both are at the same offset in the same brackets, and
    /// returns whether it did. Only one of the two readings is right, and it may be the heavier
    /// one, so the larger weight and work are kept.
    fn merge(&mut self, other: &Self) -> bool {
        let agrees = self.at == other.at
            && self.previous == other.previous
            && self.boundary == other.boundary
            && self.newline == other.newline
            && self.outer == other.outer
            && self.frame.merge(&other.frame);
        if agrees {
            self.work = self.work.max(other.work);
            self.counted = self.counted.min(other.counted);
            self.heaviest = self.heaviest.max(other.heaviest);
            self.enum_head |= other.enum_head;
            self.after_word |= other.after_word;
            self.before_object &= other.before_object;
            self.before_parameter |= other.before_parameter;
            self.after_parameters |= other.after_parameters;
            self.after_accessor |= other.after_accessor;
            self.after_infer |= other.after_infer;
        }
        agrees
    }
}
