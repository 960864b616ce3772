//! A cache of compiled argument checks.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;
use parking_lot::Mutex;

use super::list::IndexedList;
use crate::tools::arguments::ArgumentCheck;

/// Maximum number of compiled schemas; the least recently used one is dropped first.
const MAX_CHECKS: NonZeroUsize = NonZeroUsize::new(1_000).expect("more than none");

/// Compiled argument schemas by list and position. They do not keep lists alive. An entry whose
/// list was dropped is not used again.
pub(crate) struct ArgumentChecks {
    compiled: Mutex<LruCache<(usize, usize), CheckOf>>,
}

struct CheckOf {
    tools: Weak<IndexedList>,
    check: Option<Arc<ArgumentCheck>>,
}

impl Default for ArgumentChecks {
    fn default() -> Self {
        Self { compiled: Mutex::new(LruCache::new(MAX_CHECKS)) }
    }
}

impl fmt::Debug for ArgumentChecks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ArgumentChecks").field("len", &self.compiled.lock().len()).finish()
    }
}

impl ArgumentChecks {
    /// The check of the tool at `position`, compiled at the first request; `None` if the schema cannot be used for a
    /// check.
    pub(crate) fn get(
        &self,
        tools: &Arc<IndexedList>,
        position: usize,
        server: &str,
    ) -> Option<Arc<ArgumentCheck>> {
        let key = (Arc::as_ptr(tools).addr(), position);
        if let Some(kept) = self.compiled.lock().get(&key)
            // A new list may have the address of a dropped one.
            && kept.tools.upgrade().is_some_and(|of| Arc::ptr_eq(&of, tools))
        {
            return kept.check.clone();
        }
        // Compiled outside the lock: a large schema takes milliseconds.
        let definition = &tools.list.tools[position];
        let check = match ArgumentCheck::compile(&definition.input_schema) {
            Ok(check) => Some(Arc::new(check)),
            Err(problem) => {
                tracing::warn!(
                    server,
                    tool = definition.name,
                    problem,
                    "arguments are not checked: the schema"
                );
                None
            }
        };
        let kept = CheckOf { tools: Arc::downgrade(tools), check: check.clone() };
        self.compiled.lock().put(key, kept);
        check
    }
}
