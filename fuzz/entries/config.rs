//! Target of configuration files: the first byte chooses whose file the rest is.

use std::path::Path;

use super::clients::Client;
use super::document::{Node, parse_json};
use super::environment::Environment;
use super::error::ConfigError;
use super::expand::Scope;
use super::resolve::resolve;
use super::{describe, file, own, references};

pub(crate) fn config(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let Ok(text) = file::text(data) else { return };
    if text.contains(HIDDEN) {
        // A fuzzer finds out what it is compared with. What is written in the file may be shown.
        return;
    }
    let choice = usize::from(*first) % (Client::ALL.len() + 1);
    let client = Client::ALL.get(choice);
    match client.map_or_else(|| parse_json(text), |client| client.parse(text)) {
        Ok(root) => entries(client, root),
        Err(findings) => {
            let shown = ConfigError::new("fuzzed", findings).to_string();
            assert!(!shown.contains(HIDDEN), "{shown}");
        }
    }
}

/// The value of a variable. No message may show one.
const HIDDEN: &str = "hidden-value-of-a-variable";

fn entries(client: Option<&Client>, mut root: Node) {
    let workspace = Path::new("/workspace");
    let environment = Environment::from_variables([("HOME", "/home/x"), ("A", HIDDEN), ("EMPTY", "")]);
    let mut findings = Vec::new();
    let entries = match client {
        Some(client) => {
            let (entries, found) = client.servers(&root, Path::new("/workspace/fuzzed.json"), workspace);
            findings = found;
            entries
        }
        None => {
            findings.extend(
                references::resolve(&mut root, own::FILE_KEYS, &environment).err().unwrap_or_default(),
            );
            let mut file = own::own_file(root, own::FileKind::CodeExecutor, &mut findings);
            findings.extend(file.foreign.iter_mut().flat_map(|(_, foreign)| foreign.mistakes.drain(..)));
            file.servers
        }
    };
    let scope = Scope { environment: &environment, workspace };
    for entry in &entries {
        let _ = describe::summary(entry);
        match resolve(entry, scope) {
            Ok(server) => assert!(!server.name.is_empty(), "a server has a name"),
            Err(mut found) => findings.append(&mut found),
        }
    }
    if !findings.is_empty() {
        let shown = ConfigError::new("fuzzed", findings).to_string();
        assert!(!shown.contains(HIDDEN), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown:?} reaches a terminal");
    }
}

#[cfg(test)]
#[test]
fn v_304_configuration() {
    crate::fuzzing::smoke("config", 5_000, config);
}
