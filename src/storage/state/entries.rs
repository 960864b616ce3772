//! Reads and writes the tables for single calls, and enforces the bounds of a scope. Each change is one transaction.
//! `today` is the number of counted days in the file.

use std::collections::HashMap;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use serde::de::IgnoredAny;

use super::error::StateError;
use super::scope::{StateScope, StateUsage};
use crate::storage::files::sha256;

/// Maximum number of keys in one scope.
const MAX_KEYS: i64 = 1_000;

/// Maximum bytes of one scope: its keys, and its values as JSON.
const MAX_BYTES: i64 = 16 << 20;

/// A value as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub(crate) String);

impl Entry {
    /// A digest of the value. Equal values have equal tags, so intermediate changes do not matter.
    pub(crate) fn tag(&self) -> String {
        sha256(self.0.as_bytes())
    }
}

/// An entry as a script gets it: JSON text.
pub(crate) fn entry_text(entry: Option<&Entry>, is_tagged: bool) -> String {
    match entry {
        None => "[]".to_owned(),
        Some(Entry(value)) if !is_tagged => format!("[{value}]"),
        Some(entry) => format!(r#"[{},"{}"]"#, entry.0, entry.tag()),
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

/// Finds a scope for reading, and marks it as used.
fn find_used(connection: &Connection, scope: &StateScope, today: i64) -> Result<Option<Row>, StateError> {
    let found = find(connection, scope)?;
    if let Some(row) = &found
        && row.used < today
        // At most once a day, so that reads normally need no write lock. If another process holds
        // it, the read does not fail.
        && let Err(error) = connection.execute("UPDATE scopes SET used = ?2 WHERE id = ?1", [row.id, today])
    {
        tracing::debug!(%error, "the use of a scope is not noted");
    }
    Ok(found)
}

/// A value as stored in the file.
struct Stored {
    /// Bytes that it counts against the bounds.
    bytes: usize,
    /// `None` if it is damaged.
    entry: Option<Entry>,
}

impl Stored {
    fn new(column: ValueRef<'_>) -> Self {
        let bytes = match column {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
        };
        let text = std::str::from_utf8(bytes).ok();
        let valid = text.filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
        Self { bytes: bytes.len(), entry: valid.map(|text| Entry(text.to_owned())) }
    }

    fn entry(self, key: &str) -> Result<Entry, StateError> {
        self.entry.ok_or_else(|| StateError::DamagedValue(key.to_owned()))
    }
}

fn value(connection: &Connection, row: &Row, key: &str) -> Result<Option<Stored>, StateError> {
    let value = connection.query_row(
        "SELECT value FROM entries WHERE scope = ?1 AND key = ?2",
        params![row.id, key],
        |row| row.get_ref(0).map(Stored::new),
    );
    Ok(value.optional()?)
}

pub(crate) fn get(
    connection: &Connection,
    scope: &StateScope,
    key: &str,
    today: i64,
) -> Result<Option<Entry>, StateError> {
    let Some(row) = find_used(connection, scope, today)? else { return Ok(None) };
    value(connection, &row, key)?.map(|stored| stored.entry(key)).transpose()
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
    let keys = statement.query_map([row.id], |row| Ok(key_text(row.get_ref(0)?)))?;
    let found = keys.collect::<Result<Vec<_>, _>>()?;
    // Users can list a damaged key, but a script could do nothing with it.
    let mut found: Vec<String> = found.into_iter().filter_map(Result::ok).collect();
    found.retain(|key| key.starts_with(prefix));
    Ok(found)
}

/// The key, or the readable part of a damaged one.
fn key_text(column: ValueRef<'_>) -> Result<String, String> {
    let bytes = column.as_bytes_or_null().ok().flatten().unwrap_or_default();
    let lossy = |_| String::from_utf8_lossy(bytes).into_owned();
    std::str::from_utf8(bytes).map(str::to_owned).map_err(lossy)
}

/// Stores `value` if the current entry has the tag `expected`. An empty tag means that there must be no entry; `None`
/// means any or none.
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
    let old_bytes = old.as_ref().map(|old| length(key, old.bytes));
    if let Some(expected) = expected {
        let old = old.map(|old| old.entry(key)).transpose()?;
        if old.as_ref().map(Entry::tag).unwrap_or_default() != expected {
            return Ok(Written::Differs(old));
        }
    }
    let after = |(keys, bytes): (i64, i64)| {
        let keys = keys.saturating_add(i64::from(old_bytes.is_none()));
        (keys, bytes.saturating_add(length(key, value.len())).saturating_sub(old_bytes.unwrap_or(0)))
    };
    let (mut keys, mut bytes) = after(row.as_ref().map_or((0, 0), |row| (row.keys, row.bytes)));
    if let Some(row) = &row
        && !((1..=MAX_KEYS).contains(&keys) && (0..=MAX_BYTES).contains(&bytes))
    {
        // In a damaged file a sum may be any number.
        (keys, bytes) = after(sums(&transaction, row.id)?);
    }
    check_keys(keys)?;
    check_bytes(bytes)?;
    let id = match row {
        Some(row) => {
            transaction.execute(
                "UPDATE scopes SET used = ?2, keys = ?3, bytes = ?4 WHERE id = ?1",
                [row.id, today, keys, bytes],
            )?;
            row.id
        }
        None => {
            let (kind, name) = scope.columns();
            insert_scope(&transaction, kind, name, [today, keys, bytes])?
        }
    };
    transaction.execute(
        "INSERT INTO entries (scope, key, value) VALUES (?1, ?2, ?3)
         ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value",
        params![id, key, value],
    )?;
    transaction.commit()?;
    Ok(Written::Yes)
}

/// Checks that a scope may have this many keys.
pub(crate) fn check_keys(keys: i64) -> Result<(), StateError> {
    if keys > MAX_KEYS {
        return Err(StateError::Full(format!(
            "there are {MAX_KEYS} keys already; delete some with `state.delete`, or keep several values under one key"
        )));
    }
    Ok(())
}

/// Checks that a scope may have this many bytes.
pub(crate) fn check_bytes(bytes: i64) -> Result<(), StateError> {
    if bytes > MAX_BYTES {
        return Err(StateError::Full(format!(
            "all keys and values would be {bytes} bytes, at most {MAX_BYTES} are kept; delete some with `state.delete`"
        )));
    }
    Ok(())
}

/// Inserts a scope with `used`, `keys` and `bytes`.
fn insert_scope(
    transaction: &Transaction<'_>,
    kind: i64,
    name: &[u8],
    [used, keys, bytes]: [i64; 3],
) -> Result<i64, StateError> {
    transaction.execute(
        "INSERT INTO scopes (kind, name, used, keys, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![kind, name, used, keys, bytes],
    )?;
    Ok(transaction.last_insert_rowid())
}

/// Bytes that an entry counts against the bounds.
fn length(key: &str, value_bytes: usize) -> i64 {
    i64::try_from(key.len() + value_bytes).unwrap_or(i64::MAX)
}

/// The number of keys and bytes of a scope, computed from its entries.
fn sums(connection: &Connection, id: i64) -> Result<(i64, i64), StateError> {
    let sums = connection.query_row(
        "SELECT count(*), coalesce(sum(octet_length(key) + octet_length(value)), 0)
         FROM entries WHERE scope = ?1",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    );
    Ok(sums?)
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
    transaction.execute("DELETE FROM entries WHERE scope = ?1 AND key = ?2", params![row.id, key])?;
    let is_last: bool = transaction.query_row(
        "SELECT NOT EXISTS (SELECT 1 FROM entries WHERE scope = ?1)",
        [row.id],
        |row| row.get(0),
    )?;
    if is_last {
        // A scope has at least one entry.
        transaction.execute("DELETE FROM scopes WHERE id = ?1", [row.id])?;
    } else {
        transaction.execute(
            "UPDATE scopes SET used = ?2, keys = ?3, bytes = ?4 WHERE id = ?1",
            [row.id, today, row.keys.saturating_sub(1), row.bytes.saturating_sub(length(key, old.bytes))],
        )?;
    }
    transaction.commit()?;
    Ok(true)
}

/// Deletes the scopes that no script has used since this many days were counted.
pub(crate) fn delete_unused(connection: &Connection, since: i64) -> Result<(), StateError> {
    let deleted = connection.execute("DELETE FROM scopes WHERE used < ?1", [since])?;
    if deleted > 0 {
        tracing::info!(scopes = deleted, "state that no script has used for 90 days of use is deleted");
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
            let keys = count_all(&transaction)?;
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

/// The number of keys in all scopes.
pub(crate) fn count_keys(connection: &Connection) -> Result<u64, StateError> {
    count_all(connection).map(|keys| u64::try_from(keys).unwrap_or(0))
}

fn count_all(connection: &Connection) -> Result<i64, StateError> {
    Ok(connection.query_row("SELECT count(*) FROM entries", [], |row| row.get(0))?)
}

/// The usage of all scopes, most recently used first. Reads all of the file.
pub(crate) fn usage(connection: &mut Connection, today: i64) -> Result<Vec<StateUsage>, StateError> {
    let mut damaged = damaged_keys(connection)?;
    let mut statement = connection
        .prepare("SELECT kind, name, keys, bytes, used, id FROM scopes ORDER BY used DESC, kind, name")?;
    let usage = statement.query_map([], |row| {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(StateUsage {
            scope: StateScope::from_columns(row.get(0)?, row.get(1)?),
            keys: count(row.get(2)?),
            bytes: count(row.get(3)?),
            unused_days: count(today.saturating_sub(row.get(4)?)),
            damaged_keys: damaged.remove(&row.get::<_, i64>(5)?).unwrap_or_default(),
        })
    })?;
    Ok(usage.collect::<Result<Vec<_>, _>>()?)
}

/// The keys of damaged values, and damaged keys, by the id of the scope.
fn damaged_keys(connection: &Connection) -> Result<HashMap<i64, Vec<String>>, StateError> {
    let mut damaged: HashMap<i64, Vec<String>> = HashMap::new();
    let mut statement = connection.prepare("SELECT scope, key, value FROM entries ORDER BY scope, key")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key = key_text(row.get_ref(1)?);
        if key.is_err() || Stored::new(row.get_ref(2)?).entry.is_none() {
            let (Ok(key) | Err(key)) = key;
            damaged.entry(row.get(0)?).or_default().push(key);
        }
    }
    Ok(damaged)
}

/// Copies a scope into a separate database.
pub(crate) fn copy(from: &mut Connection, to: &mut Connection, scope: &StateScope) -> Result<(), StateError> {
    // In one transaction, so that the sums match the entries.
    let from = from.transaction()?;
    let Some(row) = find(&from, scope)? else { return Ok(()) };
    let to = to.transaction()?;
    let (kind, name) = scope.columns();
    copy_scope(&from, &to, &row, kind, name)?;
    Ok(to.commit()?)
}

/// Copies all scopes but one into a separate database, with the counted days. Returns the number of keys of the scope
/// that was left out.
pub(crate) fn copy_others(
    from: &mut Connection,
    to: &mut Connection,
    scope: Option<&StateScope>,
) -> Result<u64, StateError> {
    let (from, to) = (from.transaction()?, to.transaction()?);
    to.execute("DELETE FROM meta", [])?;
    for (select, insert) in [
        ("SELECT version, day FROM meta", "INSERT INTO meta (version, day) VALUES (?1, ?2)"),
        ("SELECT number, day FROM days ORDER BY number", "INSERT INTO days (number, day) VALUES (?1, ?2)"),
    ] {
        let mut statement = from.prepare(select)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            to.execute(insert, [row.get::<_, i64>(0)?, row.get(1)?])?;
        }
    }
    let left_out = scope.map(StateScope::columns);
    let mut cleared = 0;
    let mut statement = from.prepare("SELECT id, used, keys, bytes, kind, name FROM scopes")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name): (i64, Vec<u8>) = (row.get(4)?, row.get(5)?);
        let row = Row { id: row.get(0)?, used: row.get(1)?, keys: row.get(2)?, bytes: row.get(3)? };
        if left_out == Some((kind, &name)) {
            cleared = u64::try_from(row.keys).unwrap_or(0);
        } else {
            copy_scope(&from, &to, &row, kind, &name)?;
        }
    }
    to.commit()?;
    Ok(cleared)
}

/// Copies a scope with its entries unchanged, even if they are damaged.
fn copy_scope(
    from: &Connection,
    to: &Transaction<'_>,
    row: &Row,
    kind: i64,
    name: &[u8],
) -> Result<(), StateError> {
    let id = insert_scope(to, kind, name, [row.used, row.keys, row.bytes])?;
    let mut entries = from.prepare("SELECT key, value FROM entries WHERE scope = ?1")?;
    let mut rows = entries.query([row.id])?;
    let mut insert = to.prepare("INSERT INTO entries (scope, key, value) VALUES (?1, ?2, ?3)")?;
    while let Some(entry) = rows.next()? {
        let column = |index| Ok::<_, StateError>(ToSqlOutput::Borrowed(entry.get_ref(index)?));
        insert.execute(params![id, column(0)?, column(1)?])?;
    }
    Ok(())
}
