//! Lists in pages: how far a server's cursors are followed.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

/// No server is known to have more; an endless list stops here.
const MAX_PAGES: usize = 100;

/// Real cursors are page numbers, keys or signed tokens. This is as much as most HTTP servers take in one header.
const MAX_CURSOR_BYTES: usize = 8 << 10;

/// The pages of one list that have been asked for.
pub(super) struct Pages {
    /// Of the cursors only hashes are kept, with a key of their own: no server can find two cursors of one hash.
    hasher: RandomState,
    followed: HashSet<u64>,
}

/// Why a cursor is not followed, and the list ends where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ListCut {
    #[error("its next cursor has {bytes} bytes, and at most {MAX_CURSOR_BYTES} are followed")]
    LongCursor { bytes: usize },
    #[error("its next cursor is one that it has sent before")]
    RepeatedCursor,
    #[error("it has more than {MAX_PAGES} pages")]
    ManyPages,
    #[error("it has more than {most} entries")]
    ManyEntries { most: usize },
    #[error("it has more than {most} bytes")]
    Large { most: usize },
}

impl Pages {
    /// Before the first page.
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), followed: HashSet::new() }
    }

    /// The page that a list is at, from 1.
    pub(super) fn number(&self) -> usize {
        self.followed.len() + 1
    }

    /// Goes on to the page behind `cursor`, if it is to be asked for.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub(super) fn follow(&mut self, cursor: String) -> Result<String, ListCut> {
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
