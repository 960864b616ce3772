//! Texts that are too long for one entry. They are stored in several entries, which are never changed.

use serde::{Deserialize, Serialize};

use super::{SharedError, SharedStore};
use crate::text::ids::random_id;

/// Bytes of a part. NATS servers accept messages of 1 MB, and return them in base64.
const PART: usize = 256 << 10;

/// Maximum number of parts of one text: enough for a run record, the longest text.
const MAX_PARTS: u32 = 1_024;

/// A text that is stored in one entry, or in parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) enum Stored {
    Here(String),
    Parts { id: String, count: u32 },
}

impl Stored {
    /// The id of the parts; `None` if there are none.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Here(_) => None,
            Self::Parts { id, .. } => Some(id),
        }
    }
}

/// The prefix of the keys of all parts of one scope.
const PREFIX: &str = "part";

fn prefix(scope: &str, id: &str) -> String {
    format!("{PREFIX}.{scope}.{id}")
}

/// The key of the first part. Each text has one.
pub(crate) fn first_key(scope: &str, id: &str) -> String {
    format!("{}.0", prefix(scope, id))
}

/// The scope and the id of the parts to which a key belongs.
pub(crate) fn parse_key(key: &str) -> Option<(&str, &str)> {
    let mut words = key.split('.');
    let found = (words.next()? == PREFIX).then(|| Some((words.next()?, words.next()?)))?;
    found.filter(|_| words.next().is_some() && words.next().is_none())
}

/// Writes a text in parts. Parts that were written before an error stay until a sweep removes them.
///
/// # Errors
///
/// The error of the store.
pub(crate) async fn write(store: &dyn SharedStore, scope: &str, text: &str) -> Result<Stored, SharedError> {
    let no_id = |error| SharedError::Refused(format!("the system provides no random numbers: {error}"));
    let id = random_id().map_err(no_id)?;
    let mut count = 0;
    for part in text.as_bytes().chunks(PART) {
        if count >= MAX_PARTS {
            return Err(SharedError::Full);
        }
        // The id is random, so no other process writes to this key.
        store.put(format!("{}.{count}", prefix(scope, &id)), part.to_vec(), Some(0)).await?;
        count += 1;
    }
    Ok(Stored::Parts { id, count })
}

/// Reads a text. `None` if parts of it are missing, because another process has replaced it.
///
/// # Errors
///
/// The error of the store.
pub(crate) async fn read(
    store: &dyn SharedStore,
    scope: &str,
    stored: &Stored,
) -> Result<Option<String>, SharedError> {
    let (id, count) = match stored {
        Stored::Here(text) => return Ok(Some(text.clone())),
        Stored::Parts { id, count } => (id, *count),
    };
    if count > MAX_PARTS {
        return Err(SharedError::Damaged);
    }
    let mut bytes = Vec::new();
    for number in 0..count {
        let part = store.get(format!("{}.{number}", prefix(scope, id))).await?;
        let Some(part) = part.value else { return Ok(None) };
        bytes.extend(part);
    }
    String::from_utf8(bytes).map(Some).map_err(|_invalid| SharedError::Damaged)
}

/// Removes the parts of a text that is no longer referenced. If that fails they stay until a sweep removes them.
pub(crate) async fn remove(store: &dyn SharedStore, scope: &str, stored: &Stored) {
    if let Some(id) = stored.id()
        && let Err(error) = store.remove_below(prefix(scope, id)).await
    {
        tracing::debug!(%error, "what is not needed any more was not removed");
    }
}
