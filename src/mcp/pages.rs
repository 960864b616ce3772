//! Pagination of lists: how far a server's cursors are followed.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

/// Maximum number of pages. No known server has more; an endless list is cut here.
const MAX_PAGES: usize = 100;

/// Maximum bytes of a cursor. Real cursors are page numbers, keys or signed tokens. This is as much
/// as most HTTP servers accept in one header.
const MAX_CURSOR_BYTES: usize = 8 << 10;

/// The pages of one list that have been requested.
pub(crate) struct Pages {
    /// Only hashes of the cursors are kept. The hash has a random key, so no server can construct
    /// two cursors with the same hash.
    hasher: RandomState,
    followed: HashSet<u64>,
}

/// Why a cursor is not followed, so that the list is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListCut {
    #[error("its next cursor has {bytes} bytes, and at most {MAX_CURSOR_BYTES} are followed")]
    LongCursor { bytes: usize },
    #[error("its next cursor is one that it has sent before")]
    RepeatedCursor,
    #[error("it has more than {MAX_PAGES} pages")]
    ManyPages,
    #[error("it has more than {max} entries")]
    ManyEntries { max: usize },
    #[error("it has more than {max} bytes")]
    Large { max: usize },
}

impl Pages {
    /// Starts before the first page.
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), followed: HashSet::new() }
    }

    /// The number of the current page, from 1.
    pub(crate) fn number(&self) -> usize {
        self.followed.len() + 1
    }

    /// Advances to the page after `cursor`, if it may be requested.
    ///
    /// # Errors
    ///
    /// Why it may not be requested.
    pub(crate) fn follow(&mut self, cursor: String) -> Result<String, ListCut> {
        if cursor.len() > MAX_CURSOR_BYTES {
            return Err(ListCut::LongCursor { bytes: cursor.len() });
        }
        let hash = self.hasher.hash_one(&cursor);
        if self.followed.contains(&hash) {
            return Err(ListCut::RepeatedCursor);
        }
        if self.number() >= MAX_PAGES {
            return Err(ListCut::ManyPages);
        }
        self.followed.insert(hash);
        Ok(cursor)
    }
}

#[cfg(test)]
mod tests;
