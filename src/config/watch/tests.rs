use std::fs;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;
use crate::config::Discovery;

/// Files that are named, in a directory of their own.
struct Named {
    directory: TempDir,
    files: ConfigFiles,
}

impl Named {
    fn new(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = names.iter().map(|name| directory.path().join(name)).collect();
        let workspace = directory.path().to_owned();
        let options = LoadOptions { workspace, files: paths, discover: Discovery::None };
        // As if the clock were exact.
        let files = ConfigFiles { clock_resolution: Duration::ZERO, ..ConfigFiles::new(options) };
        Self { directory, files }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file whose time of modification is always the same.
    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        // Longer than the clock of a file system stands still.
        std::thread::sleep(Duration::from_millis(20));
    }

    /// Loads until nothing is uncertain any more.
    fn settle(&mut self) {
        self.files.load().unwrap();
        self.files.load().unwrap();
        assert!(!self.files.have_changed());
    }
}

const EMPTY: &str = r#"{ "mcpServers": {} }"#;

#[test]
fn every_way_to_change_a_file_is_noticed() {
    let mut named = Named::new(&["a.json"]);
    assert!(named.files.have_changed(), "nothing was loaded yet");
    named.write("a.json", EMPTY);
    named.settle();
    let other = r#"{ "mcpServers":{ } }"#;
    // In place, with the same size and the same time of modification.
    named.write("a.json", other);
    assert!(named.files.have_changed());
    named.settle();
    // Replaced.
    named.write("new", EMPTY);
    fs::rename(named.path("new"), named.path("a.json")).unwrap();
    assert!(named.files.have_changed());
    named.settle();
    // Removed, which is an error, and written again.
    fs::rename(named.path("a.json"), named.path("away")).unwrap();
    assert!(named.files.have_changed());
    named.files.load().unwrap_err();
    assert!(!named.files.have_changed(), "a failure is not repeated all the time");
    fs::rename(named.path("away"), named.path("a.json")).unwrap();
    assert!(named.files.have_changed());
    named.settle();
}

/// As Kubernetes updates a mounted config map: the file is a link through a directory that is a link.
#[test]
fn a_link_in_the_middle_is_noticed() {
    let mut named = Named::new(&["config/a.json"]);
    for version in ["v1", "v2"] {
        fs::create_dir(named.path(version)).unwrap();
        named.write(&format!("{version}/a.json"), EMPTY);
    }
    fs::create_dir(named.path("config")).unwrap();
    std::os::unix::fs::symlink("../v1", named.path("config/..data")).unwrap();
    std::os::unix::fs::symlink("..data/a.json", named.path("config/a.json")).unwrap();
    named.settle();
    std::os::unix::fs::symlink("../v2", named.path("config/..new")).unwrap();
    fs::rename(named.path("config/..new"), named.path("config/..data")).unwrap();
    assert!(named.files.have_changed());
    named.settle();
}

/// The clock of a file system may not tell two changes apart that follow each other closely.
#[test]
fn a_file_that_was_just_changed_is_loaded_again() {
    let mut named = Named::new(&["a.json"]);
    named.files.clock_resolution = Duration::from_secs(3_600);
    named.write("a.json", EMPTY);
    for _ in 0..3 {
        named.files.load().unwrap();
        assert!(named.files.have_changed());
    }
    named.files.clock_resolution = Duration::ZERO;
    named.settle();
}

/// Trust is part of what a configuration is read from, and the files that do not exist yet are.
#[test]
fn files_that_may_come_are_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().to_owned();
    let options = LoadOptions { workspace, files: Vec::new(), discover: Discovery::All };
    let mut files = ConfigFiles::new(options);
    files.load().unwrap();
    let seen: Vec<&PathBuf> = files.seen.keys().collect();
    let has = |name: &str| seen.iter().any(|path| path.ends_with(name));
    assert!(has(".cx.json") && has(".mcp.json") && has("cx/config.json") && has("cx/trust.json"), "{seen:?}");
}
