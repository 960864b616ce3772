//! The budget of one run: its calls of models, and their tokens.
//!
//! A call reserves the tokens that it may take before it is made, and then records those that it
//! took. So parallel calls cannot exceed the budget: a call for which too little is left waits for
//! those in flight, and is refused if nothing that they give back could be enough.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Tokens of the smallest answer that is worth a call. A call that names no maximum for its answer
/// gets what is left, down to this.
const MIN_ANSWER_TOKENS: u64 = 64;

/// The budget of one run.
#[derive(Debug)]
pub(crate) struct Budget {
    max_rounds: u32,
    max_tokens: u64,
    state: Mutex<BudgetState>,
    /// Notified when tokens are given back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct BudgetState {
    rounds: u32,
    /// Tokens of calls that have ended.
    used: u64,
    /// Tokens of calls in flight.
    reserved: u64,
}

/// What a call wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Tokens of the prompt, estimated.
    pub(crate) prompt: u64,
    /// Maximum tokens of the answer.
    pub(crate) answer: u32,
    /// Whether a smaller maximum will do.
    pub(crate) may_shrink: bool,
}

/// Why a call is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    /// The run has made all its calls.
    #[error("this run may ask a model {max} times")]
    Rounds {
        /// The maximum of the run.
        max: u32,
    },
    /// Too few tokens are left.
    #[error(
        "this run may use {max} tokens, {left} of which are left, and this call may need {needed} for its prompt and \
         its answer; ask for less with a shorter prompt or a smaller `maxTokens`"
    )]
    Tokens {
        /// The maximum of the run.
        max: u64,
        /// How many are left.
        left: u64,
        /// How many the call may need.
        needed: u64,
    },
    /// Answers that the script does not read have the tokens that are missing.
    #[error(
        "this run may use {max} tokens, {reserved} of which are reserved for answers that the script has begun to read; \
         read them to their end, or leave their loops, before asking for more"
    )]
    Unread {
        /// The maximum of the run.
        max: u64,
        /// How many are reserved.
        reserved: u64,
    },
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) rounds: u32,
    pub(crate) tokens: u64,
}

impl Budget {
    pub(crate) fn new(max_rounds: u32, max_tokens: u64) -> Arc<Self> {
        Arc::new(Self { max_rounds, max_tokens, state: Mutex::default(), freed: Notify::new() })
    }

    /// Reserves a call, after those in flight if only they can make room for it.
    ///
    /// The caller bounds the wait: calls in flight end by themselves.
    ///
    /// # Errors
    ///
    /// If nothing that calls in flight give back could be enough.
    pub(crate) async fn reserve(self: &Arc<Self>, wanted: Wanted) -> Result<Reservation, Exceeded> {
        loop {
            // Made before the attempt, so that no notification is missed.
            let freed = self.freed.notified();
            if let Some(reservation) = self.try_reserve(wanted)? {
                return Ok(reservation);
            }
            freed.await;
        }
    }

    /// Reserves a call; `None` while only calls in flight stand in its way.
    fn try_reserve(self: &Arc<Self>, wanted: Wanted) -> Result<Option<Reservation>, Exceeded> {
        // A fifth more, because the estimate is not the provider's.
        let prompt = wanted.prompt.saturating_add(wanted.prompt / 5);
        let needed = prompt.saturating_add(wanted.answer.into());
        let mut state = self.state.lock();
        if state.rounds >= self.max_rounds {
            return Err(Exceeded::Rounds { max: self.max_rounds });
        }
        let unused = self.max_tokens.saturating_sub(state.used);
        let free = unused.saturating_sub(state.reserved);
        let answer = if needed <= free {
            wanted.answer
        } else if state.reserved > 0 {
            // What others have reserved and do not need will be free.
            let least = if wanted.may_shrink { prompt.saturating_add(MIN_ANSWER_TOKENS) } else { needed };
            if least <= unused {
                return Ok(None);
            }
            return Err(Exceeded::Tokens { max: self.max_tokens, left: unused, needed });
        } else {
            let left = free.saturating_sub(prompt);
            if !wanted.may_shrink || left < MIN_ANSWER_TOKENS {
                return Err(Exceeded::Tokens { max: self.max_tokens, left: free, needed });
            }
            u32::try_from(left).unwrap_or(u32::MAX)
        };
        let tokens = prompt + u64::from(answer);
        state.rounds += 1;
        state.reserved += tokens;
        let round = state.rounds;
        drop(state);
        Ok(Some(Reservation { budget: Arc::clone(self), round, answer, tokens, is_recorded: false }))
    }

    /// Why a call is refused that waits for answers which are not read.
    pub(crate) fn unread(&self) -> Exceeded {
        Exceeded::Unread { max: self.max_tokens, reserved: self.state.lock().reserved }
    }

    /// Tokens that the run may use in all.
    pub(crate) fn max_tokens(&self) -> u64 {
        self.max_tokens
    }

    pub(crate) fn quota(&self) -> Quota {
        let state = self.state.lock();
        Quota {
            rounds: self.max_rounds.saturating_sub(state.rounds),
            tokens: self.max_tokens.saturating_sub(state.used.saturating_add(state.reserved)),
        }
    }

    fn record(&self, reserved: u64, used: u64) {
        {
            let mut state = self.state.lock();
            state.reserved -= reserved;
            state.used = state.used.saturating_add(used);
        }
        self.freed.notify_waiters();
    }
}

/// The reservation of one call. If it is dropped without a record, all of it counts as used,
/// because the provider may have done the work of an abandoned call.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    /// The number of the call, from 1.
    pub(crate) round: u32,
    /// Maximum tokens of the answer.
    pub(crate) answer: u32,
    tokens: u64,
    is_recorded: bool,
}

impl Reservation {
    /// Tokens that were reserved.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Replaces the reservation by what the call took.
    pub(crate) fn record_usage(mut self, used: u64) {
        self.is_recorded = true;
        self.budget.record(self.tokens, used);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.is_recorded {
            self.budget.record(self.tokens, self.tokens);
        }
    }
}

#[cfg(test)]
mod tests;
