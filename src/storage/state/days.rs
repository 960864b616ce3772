//! The days on which scripts used their state. Their number determines the age of state.
//!
//! No single reading of the clock decides, because clocks can be wrong: a machine starts in 1970, or a test sets the
//! year 2090. A day counts when the next day of use follows within [`MAX_GAP`] days, and it counts once. State expires
//! after a number of days that were counted since its last use. So a run with a wrong clock counts nothing, and neither
//! does a period without runs.

use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::entries;
use super::error::StateError;

/// State that no script has used for more than this many counted days is deleted.
const MAX_UNUSED_DAYS: i64 = 90;

/// Maximum distance in days between a day that counts and the next day of use.
const MAX_GAP: i64 = 31;

/// How long a process waits, by the monotonic clock, before it reads the date again. So days do not pass faster if the
/// wall clock runs too fast.
const MIN_DAY: Duration = Duration::from_secs(12 * 60 * 60);

/// Number of counted days that are stored, so that none counts twice. More than [`MAX_UNUSED_DAYS`].
const KEPT_DAYS: i64 = 400;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The two clocks of the system.
pub(crate) struct Clock {
    pub(crate) wall: Box<dyn Fn() -> SystemTime + Send + Sync>,
    pub(crate) monotonic: Box<dyn Fn() -> Instant + Send + Sync>,
}

/// The current day, as far as a process has determined it.
pub(crate) struct Today {
    /// Days since 1970.
    day: i64,
    /// The number of counted days in the file.
    count: i64,
    looked_at: Instant,
}

impl Clock {
    pub(crate) fn of_the_system() -> Self {
        Self { wall: Box::new(SystemTime::now), monotonic: Box::new(Instant::now) }
    }

    /// Days since 1970-01-01, negative before it.
    pub(crate) fn day(&self) -> i64 {
        let days = |time: Duration| i64::try_from(time.as_secs() / DAY_SECONDS).unwrap_or(i64::MAX);
        match (self.wall)().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => days(after),
            Err(before) => -days(before.duration()) - 1,
        }
    }
}

/// Reads the date, unless this process has done so recently. When a day is counted, unused state is deleted. Returns
/// the number of counted days in the file.
pub(crate) fn count(
    connection: &mut Connection,
    clock: &Clock,
    today: &mut Option<Today>,
) -> Result<i64, StateError> {
    let (day, now) = (clock.day(), (clock.monotonic)());
    if let Some(today) = today
        && (today.day == day || now.saturating_duration_since(today.looked_at) < MIN_DAY)
    {
        return Ok(today.count);
    }
    let count = match note(connection, day) {
        Ok(count) => count,
        // Another process is writing, or the disk is full. State can still be read.
        Err(StateError::Busy | StateError::Full(_)) => return counted(connection),
        Err(error) => return Err(error),
    };
    *today = Some(Today { day, count, looked_at: now });
    Ok(count)
}

/// Records that the state is used on this day.
fn note(connection: &mut Connection, day: i64) -> Result<i64, StateError> {
    let last: i64 = connection.query_row("SELECT day FROM meta", [], |row| row.get(0))?;
    if last == day {
        return counted(connection);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let last: i64 = transaction.query_row("SELECT day FROM meta", [], |row| row.get(0))?;
    let follows = day.checked_sub(last).is_some_and(|gap| (1..=MAX_GAP).contains(&gap));
    let known =
        transaction.query_row("SELECT 1 FROM days WHERE day = ?1", [last], |_row| Ok(())).optional()?;
    if follows && known.is_none() {
        transaction.execute("INSERT INTO days (day) VALUES (?1)", [last])?;
        let count = counted(&transaction)?;
        transaction.execute("DELETE FROM days WHERE number <= ?1", [count.saturating_sub(KEPT_DAYS)])?;
        entries::delete_unused(&transaction, count.saturating_sub(MAX_UNUSED_DAYS))?;
    }
    transaction.execute("UPDATE meta SET day = ?1", [day])?;
    let count = counted(&transaction)?;
    transaction.commit()?;
    Ok(count)
}

fn counted(connection: &Connection) -> Result<i64, StateError> {
    Ok(connection.query_row("SELECT coalesce(max(number), 0) FROM days", [], |row| row.get(0))?)
}
