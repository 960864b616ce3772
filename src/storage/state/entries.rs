//! The tables: reads and writes of single calls, and the bounds of a scope. Each change is one
//! transaction.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::error::StateError;
use super::scope::{StateScope, StateUsage};
use crate::storage::files::sha256;

/// Maximum number of keys in one scope.
pub(crate) const MAX_KEYS: i64 = 1_000;

/// Maximum bytes of one scope: its keys, and its values as JSON.
pub(crate) const MAX_BYTES: i64 = 16 << 20;

/// A value as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub(crate) String);

impl Entry {
    /// A digest of the value. Equal values have equal tags, so intermediate changes do not matter.
    pub(crate) fn tag(&self) -> String {
        sha256(self.0.as_bytes())
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Yes,
    /// The current entry, or its absence, does not match what was expected.
    Differs(Option<Entry>),
}

/// A scope that has entries.
struct Row {
    id: i64,
    used: i64,
    keys: i64,
    bytes: i64,
}

fn find(connection: &Connection, scope: &StateScope) -> Result<Option<Row>, StateError> {
    let (kind, name) = scope.columns();
    let row = connection.query_row(
        "SELECT id, used, keys, bytes FROM scopes WHERE kind = ?1 AND name = ?2",
        params![kind, name],
        |row| Ok(Row { id: row.get(0)?, used: row.get(1)?, keys: row.get(2)?, bytes: row.get(3)? }),
    );
    Ok(row.optional()?)
}

/// Finds a scope for reading, and marks it as used today.
fn find_used(connection: &Connection, scope: &StateScope, today: i64) -> Result<Option<Row>, StateError> {
    let found = find(connection, scope)?;
    if let Some(row) = &found
        && row.used < today
        // At most once a day, so that reads normally need no write lock. If another process holds
        // it, the read does not fail.
        && let Err(error) = connection.execute("UPDATE scopes SET used = ?2 WHERE id = ?1", [row.id, today])
    {
        tracing::debug!(%error, "the day of use is not written down");
    }
    Ok(found)
}

fn value(connection: &Connection, row: &Row, key: &str) -> Result<Option<Entry>, StateError> {
    let value = connection.query_row(
        "SELECT value FROM entries WHERE scope = ?1 AND key = ?2",
        params![row.id, key],
        |row| row.get(0).map(Entry),
    );
    Ok(value.optional()?)
}

pub(crate) fn get(
    connection: &Connection,
    scope: &StateScope,
    key: &str,
    today: i64,
) -> Result<Option<Entry>, StateError> {
    let row = find_used(connection, scope, today)?;
    row.map_or(Ok(None), |row| value(connection, &row, key))
}

/// The keys that start with `prefix`, sorted by characters.
pub(crate) fn keys(
    connection: &Connection,
    scope: &StateScope,
    prefix: &str,
    today: i64,
) -> Result<Vec<String>, StateError> {
    let Some(row) = find_used(connection, scope, today)? else { return Ok(Vec::new()) };
    let mut statement = connection.prepare("SELECT key FROM entries WHERE scope = ?1 ORDER BY key")?;
    let keys = statement.query_map([row.id], |row| row.get::<_, String>(0))?;
    let mut found = keys.collect::<Result<Vec<_>, _>>()?;
    found.retain(|key| key.starts_with(prefix));
    Ok(found)
}

/// Stores `value` if the current entry has the tag `expected`. An empty tag means no entry, `None`
/// any or none.
pub(crate) fn set(
    connection: &mut Connection,
    scope: &StateScope,
    key: &str,
    value: &str,
    expected: Option<&str>,
    today: i64,
) -> Result<Written, StateError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let row = find(&transaction, scope)?;
    let old = match &row {
        Some(row) => self::value(&transaction, row, key)?,
        None => None,
    };
    if let Some(expected) = expected
        && old.as_ref().map(Entry::tag).unwrap_or_default() != expected
    {
        return Ok(Written::Differs(old));
    }
    let (keys, bytes) = row.as_ref().map_or((0, 0), |row| (row.keys, row.bytes));
    let keys = keys + i64::from(old.is_none());
    let bytes = bytes + length(key, value) - old.map_or(0, |old| length(key, &old.0));
    if keys > MAX_KEYS {
        return Err(StateError::Full(format!(
            "there are {MAX_KEYS} keys already; delete some with `state.delete`, or keep several values under one key"
        )));
    }
    if bytes > MAX_BYTES {
        return Err(StateError::Full(format!(
            "all keys and values would be {bytes} bytes, at most {MAX_BYTES} are kept; delete some with `state.delete`"
        )));
    }
    let id = match row {
        Some(row) => {
            transaction.execute(
                "UPDATE scopes SET used = ?2, keys = ?3, bytes = ?4 WHERE id = ?1",
                [row.id, today, keys, bytes],
            )?;
            row.id
        }
        None => insert_scope(&transaction, scope, today, keys, bytes)?,
    };
    transaction.execute(
        "INSERT INTO entries (scope, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value",
        params![id, key, value],
    )?;
    transaction.commit()?;
    Ok(Written::Yes)
}

fn insert_scope(
    transaction: &Transaction<'_>,
    scope: &StateScope,
    today: i64,
    keys: i64,
    bytes: i64,
) -> Result<i64, StateError> {
    let (kind, name) = scope.columns();
    transaction.execute(
        "INSERT INTO scopes (kind, name, used, keys, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![kind, name, today, keys, bytes],
    )?;
    Ok(transaction.last_insert_rowid())
}

/// Bytes that an entry counts.
fn length(key: &str, value: &str) -> i64 {
    i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX)
}

/// Deletes a key. Returns whether it existed.
pub(crate) fn delete(
    connection: &mut Connection,
    scope: &StateScope,
    key: &str,
    today: i64,
) -> Result<bool, StateError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(row) = find(&transaction, scope)? else { return Ok(false) };
    let Some(old) = value(&transaction, &row, key)? else { return Ok(false) };
    if row.keys <= 1 {
        // Deletes the scope and its last entry: a scope has at least one entry.
        transaction.execute("DELETE FROM scopes WHERE id = ?1", [row.id])?;
    } else {
        transaction.execute("DELETE FROM entries WHERE scope = ?1 AND key = ?2", params![row.id, key])?;
        let bytes = row.bytes - length(key, &old.0);
        transaction.execute(
            "UPDATE scopes SET used = ?2, keys = keys - 1, bytes = ?3 WHERE id = ?1",
            [row.id, today, bytes],
        )?;
    }
    transaction.commit()?;
    Ok(true)
}

/// Deletes the scopes that no script has used since that day.
pub(crate) fn delete_unused(connection: &mut Connection, since: i64) -> Result<(), StateError> {
    let is_any: bool =
        connection
            .query_row("SELECT EXISTS (SELECT 1 FROM scopes WHERE used < ?1)", [since], |row| row.get(0))?;
    if is_any {
        let deleted = connection.execute("DELETE FROM scopes WHERE used < ?1", [since])?;
        tracing::info!(scopes = deleted, "state that was unused for 90 days is deleted");
    }
    Ok(())
}

/// Deletes one scope, or all. Returns the number of keys deleted.
pub(crate) fn clear(connection: &mut Connection, scope: Option<&StateScope>) -> Result<u64, StateError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let keys: i64 = match scope {
        Some(scope) => {
            let Some(row) = find(&transaction, scope)? else { return Ok(0) };
            transaction.execute("DELETE FROM scopes WHERE id = ?1", [row.id])?;
            row.keys
        }
        None => {
            let keys =
                transaction.query_row("SELECT coalesce(sum(keys), 0) FROM scopes", [], |row| row.get(0))?;
            transaction.execute("DELETE FROM scopes", [])?;
            keys
        }
    };
    transaction.commit()?;
    // Removes the deleted data from the write-ahead log. A concurrent reader in another process may
    // keep a part of it for a while.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(()))?;
    Ok(u64::try_from(keys).unwrap_or(0))
}

/// The usage of all scopes, most recently used first.
pub(crate) fn usage(connection: &mut Connection, today: i64) -> Result<Vec<StateUsage>, StateError> {
    let mut statement = connection
        .prepare("SELECT kind, name, keys, bytes, used FROM scopes ORDER BY used DESC, kind, name")?;
    let usage = statement.query_map([], |row| {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(StateUsage {
            scope: StateScope::from_columns(row.get(0)?, row.get(1)?),
            keys: count(row.get(2)?),
            bytes: count(row.get(3)?),
            unused_days: count(today - row.get::<_, i64>(4)?),
        })
    })?;
    Ok(usage.collect::<Result<Vec<_>, _>>()?)
}

/// Copies a scope into a separate database.
pub(crate) fn copy(
    from: &mut Connection,
    to: &mut Connection,
    scope: &StateScope,
    today: i64,
) -> Result<(), StateError> {
    // In one transaction, so that the sums match the entries.
    let from = from.transaction()?;
    let Some(row) = find(&from, scope)? else { return Ok(()) };
    let to = to.transaction()?;
    let id = insert_scope(&to, scope, today, row.keys, row.bytes)?;
    let mut entries = from.prepare("SELECT key, value FROM entries WHERE scope = ?1")?;
    let mut rows = entries.query([row.id])?;
    while let Some(entry) = rows.next()? {
        to.execute(
            "INSERT INTO entries (scope, key, value) VALUES (?1, ?2, ?3)",
            params![id, entry.get::<_, String>(0)?, entry.get::<_, String>(1)?],
        )?;
    }
    Ok(to.commit()?)
}
