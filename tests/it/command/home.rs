//! A home directory for the command, which gets no other variables of the environment.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A home directory.
pub(super) struct Home(pub(super) tempfile::TempDir);

impl Home {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes the user's configuration.
    pub(super) fn configure(&self, config: &Value) {
        self.write(".config/cx/config.json", &config.to_string());
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        command.args(arguments).current_dir(self.0.path()).env_clear().stdin(Stdio::null());
        command.env("HOME", self.0.path()).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }
}
