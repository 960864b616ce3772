//! The time zone that a script sees as the local one.

use std::fmt;

use crate::error::{Error, OptionName};
use crate::text::preview;

/// All names, one a line, sorted by their bytes: those of the IANA database that both V8 and Python know. A test
/// compares the list with them.
static NAMES: &str = include_str!("time_zones.txt");

/// Maximum length in bytes of a wrong name for which a similar one is looked for. The longest name
/// has 32.
const MAX_COMPARED: usize = 40;

/// Maximum characters of a wrong name that a message shows.
const MAX_SHOWN: usize = 60;

/// A name of the IANA time zone database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeZone(&'static str);

impl TimeZone {
    /// The default time zone of a run.
    pub(crate) const UTC: Self = Self("UTC");

    /// The time zone of this name, which is written as in the database.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] with similar names.
    pub(crate) fn find(name: &str) -> Result<Self, Error> {
        NAMES.lines().find(|known| *known == name).map(Self).ok_or_else(|| Error::InvalidOptions {
            option: OptionName::TimeZone,
            problem: format!(
                "expected a name of the IANA database, such as `Europe/Berlin`: `{}`{}",
                preview(name, MAX_SHOWN),
                suggestion(name)
            ),
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        self.0
    }

    /// The most similar name. People often write the city alone.
    pub(crate) fn nearest(wrong: &str) -> Option<&'static str> {
        if wrong.len() > MAX_COMPARED {
            return None;
        }
        let wrong = fold(wrong);
        let similarity = |name: &str| {
            let name = fold(name);
            let city = name.rsplit('/').next().unwrap_or_default();
            let whole = strsim::normalized_damerau_levenshtein(&wrong, &name);
            // A whole name is preferred if both are equal.
            whole.max(strsim::normalized_damerau_levenshtein(&wrong, city) - 0.01)
        };
        NAMES
            .lines()
            .map(|name| (similarity(name), name))
            .filter(|(similarity, _)| *similarity >= 0.6)
            // The first one of equals.
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, name)| name)
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

fn suggestion(wrong: &str) -> String {
    if wrong.starts_with(['+', '-']) {
        return "; a fixed offset such as `+01:00` has the name `Etc/GMT-1`, with the sign reversed"
            .to_owned();
    }
    TimeZone::nearest(wrong).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace([' ', '-'], "_")
}

#[cfg(test)]
mod tests;
