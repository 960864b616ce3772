//! Errors in a configuration, with their locations.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::text::{self, one_line};

/// Maximum number of mistakes that are shown; the others are counted. Users do not read more.
const MAX_SHOWN: usize = 20;

/// A configuration that cannot be used: the file, the location, the key, what was expected and what
/// was found.
///
/// All mistakes in a file are reported at once. Values are never shown, because they may be
/// secrets.
#[derive(Debug)]
pub struct ConfigError {
    file: PathBuf,
    findings: Vec<Finding>,
}

impl ConfigError {
    pub(super) fn new(file: impl Into<PathBuf>, findings: Vec<Finding>) -> Self {
        Self { file: file.into(), findings }
    }

    /// The file, or its substitute such as `the environment`.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What to do about the first mistake, if known.
    pub fn hint(&self) -> Option<&str> {
        self.findings.first()?.hint.as_deref()
    }
}

impl From<ConfigError> for crate::error::Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl crate::error::Error {
    /// The configuration error, if that is what this error is.
    pub fn config_error(&self) -> Option<&ConfigError> {
        match self {
            Self::Config(error) => error.downcast_ref(),
            _ => None,
        }
    }
}

/// The system's error is part of the message, so there is no source.
impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    /// One line per mistake. Hints of all but the first are in brackets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = one_line(&self.file.display().to_string());
        for (position, finding) in self.findings.iter().take(MAX_SHOWN).enumerate() {
            if position > 0 {
                formatter.write_str("\n  ")?;
            }
            match finding.location {
                Some(location) => write!(formatter, "{file}:{location}: {}", finding.kind)?,
                None => write!(formatter, "{file}: {}", finding.kind)?,
            }
            if let (true, Some(hint)) = (position > 0, &finding.hint) {
                write!(formatter, " ({hint})")?;
            }
        }
        if self.findings.len() > MAX_SHOWN {
            write!(formatter, "\n  and {} more", self.findings.len() - MAX_SHOWN)?;
        }
        Ok(())
    }
}

/// One mistake.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) kind: FindingKind,
    pub(super) location: Option<Location>,
    pub(super) hint: Option<String>,
}

impl From<FindingKind> for Finding {
    fn from(kind: FindingKind) -> Self {
        Self { kind, location: None, hint: None }
    }
}

impl Finding {
    pub(super) fn unexpected(
        key: &Key,
        location: Option<Location>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let kind =
            FindingKind::Unexpected { key: key.clone(), expected: expected.into(), found: found.into() };
        Self { kind, location, hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FindingKind {
    #[error("failed to read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("expected a regular file, found {0}")]
    NotAFile(&'static str),
    #[error("is larger than {0} MB")]
    TooLarge(u64),
    #[error("can be changed by others: {0}")]
    NotPrivate(&'static str),
    #[error("is not UTF-8: byte {0} cannot be read")]
    NotUtf8(usize),
    #[error("is not valid {format}: {message}")]
    Syntax { format: &'static str, message: String },
    #[error("`{key}`: the key is there twice")]
    Twice { key: Key },
    #[error("`{key}`: expected {expected}, found {found}")]
    Unexpected { key: Key, expected: String, found: String },
    #[error("`{key}`: unknown key")]
    UnknownKey { key: Key },
    #[error("`{key}`: the environment variable `{name}` is not set")]
    MissingVariable { key: Key, name: String },
    #[error("`{key}`: `{reference}` is known to the client that the file belongs to, not here")]
    ForeignReference { key: Key, reference: String },
    #[error("cannot be used as a script: {0}")]
    NoScript(String),
    #[error("`{0}` is {1}: cx was started by a server that cx started")]
    TooDeep(&'static str, u32),
}

impl FindingKind {
    pub(super) fn is_unknown_key(&self) -> bool {
        matches!(self, Self::UnknownKey { .. })
    }
}

/// A location in a text; line and column are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// The path of keys to a value: `mcpServers.fs.args[1]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Key(String);

/// A path of that many bytes or more ends with `…` instead of further keys. Longer than those of configurations: every
/// value below has a copy of it, so that a deep file would need a thousand times its size.
const MAX_KEY: usize = 512;

/// What a path ends with that is too long.
const CUT: &str = ".…";

impl Key {
    pub(super) fn child(&self, name: &str) -> Self {
        if self.0.len() >= MAX_KEY {
            return self.cut();
        }
        let separator = if self.0.is_empty() { "" } else { "." };
        // A name may be any JSON string; it is shortened and made printable.
        let name = one_line(name);
        Self(format!("{}{separator}{}", self.0, text::start(&name, 80)))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn item(&self, position: usize) -> Self {
        if self.0.len() >= MAX_KEY { self.cut() } else { Self(format!("{}[{position}]", self.0)) }
    }

    /// This path, of which something below is not named.
    fn cut(&self) -> Self {
        if self.0.ends_with(CUT) { self.clone() } else { Self(format!("{}{CUT}", self.0)) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "(the whole file)" } else { &self.0 })
    }
}
