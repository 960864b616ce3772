//! Which run of an audit trail is meant by an id, by the beginning of one, or by none.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::bail;
use cx::text::one_line;

use crate::args::MAX_LISTED_RUNS;
use crate::audit::each_line;
use crate::text::shown_path;
use crate::trail_runs::MAX_ID;

/// Letters of the id of a run.
const ID_LETTERS: usize = 16;

/// Maximum number of ids that an error names. Those of more runs than that are no help to write one of them.
const MAX_NAMED: usize = 8;

/// The id of the run that is meant: the given one, the one that begins so, or the latest. What begins no id in the
/// trail is returned as it is, because a server may have kept a trace of that run.
///
/// # Errors
///
/// A trail that cannot be read, or has no runs, or several that begin so.
pub(crate) fn resolve(directory: &Path, given: Option<&str>) -> anyhow::Result<String> {
    if let Some(id) = given.filter(|id| id.len() >= ID_LETTERS) {
        return Ok(id.to_owned());
    }
    // A line can be in the trail twice.
    let mut found: BTreeSet<String> = BTreeSet::new();
    each_line(directory, |line| {
        let id = line.text_of("run").filter(|id| id.len() <= MAX_ID);
        let Some(id) = id.filter(|_| line.text_of("event") == Some("run.started")) else { return Ok(()) };
        match given {
            None => found = BTreeSet::from([id.to_owned()]),
            Some(beginning) if id.starts_with(beginning) && found.len() < MAX_LISTED_RUNS => {
                found.insert(id.to_owned());
            }
            Some(_) => {}
        }
        Ok(())
    })?;
    match (given, found.len()) {
        (_, 1) => Ok(found.pop_first().unwrap_or_default()),
        (Some(id), 0) => Ok(id.to_owned()),
        (None, _) => bail!("{}", no_runs(directory)),
        (Some(beginning), several) => {
            let named: Vec<String> = found.iter().take(MAX_NAMED).map(|id| one_line(id)).collect();
            let more = match several - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (beginning, named) = (one_line(beginning), named.join(", "));
            bail!("{several} runs begin with `{beginning}`; write more of the id: {named}{more}")
        }
    }
}

/// Says that a trail has no runs.
pub(crate) fn no_runs(directory: &Path) -> String {
    let shown = shown_path(directory);
    format!("no runs in the audit trail in {shown}; `\"audit\": {{}}` in the configuration switches it on")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_beginning_of_one_id_is_enough_and_that_of_several_names_them() {
        let directory = tempfile::tempdir().unwrap();
        let line = |id: &str| format!("{}\n", json!({ "event": "run.started", "run": id }));
        let mut text = [line("ab1"), line("b2"), line("ab1")].concat();
        text.extend((0..10).map(|number| line(&format!("c{number}"))));
        std::fs::write(directory.path().join("2026-01-01.jsonl"), text).unwrap();
        let resolved = |given| resolve(directory.path(), given).map_err(|error| error.to_string());
        assert_eq!(resolved(Some("a")), Ok("ab1".to_owned()), "a line that occurs twice is of one run");
        assert_eq!(resolved(None), Ok("c9".to_owned()));
        assert_eq!(resolved(Some("d")), Ok("d".to_owned()));
        assert_eq!(
            resolved(Some("c")).unwrap_err(),
            "10 runs begin with `c`; write more of the id: c0, c1, c2, c3, c4, c5, c6, c7 and 2 more"
        );
    }
}
