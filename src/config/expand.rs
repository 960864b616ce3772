//! Expansion of references to variables and directories in values.
//!
//! This is not `shellexpand`, which also replaces `$NAME`; here that is literal, because passwords may contain it.
//! `shellexpand` also lacks the forms of MCP clients (`${env:NAME}`, `${workspaceFolder}`, `%NAME%`).

use std::path::Path;

use super::environment::Environment;
use super::error::{Finding, FindingKind, Key, Location};

/// A string from a file that may contain references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) raw: String,
    pub(super) key: Key,
    pub(super) location: Option<Location>,
}

/// What references can refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) environment: &'a Environment,
    /// The directory for `${workspaceFolder}`.
    pub(super) workspace: &'a Path,
}

/// The kind of a value, which decides what in it is a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A program, an argument or a directory: a leading `~` is the home directory.
    Path,
    /// The value of a variable or a header: `env:NAME` is always a reference.
    Secret,
    /// A URL, in which `%` is an escape.
    Address,
}

impl Text {
    /// Expands `env:NAME` as the whole value, `${NAME}`, `${NAME:-default}`, `${env:NAME}`,
    /// `{env:NAME}`, `${workspaceFolder}`, `${userHome}`, `%NAME%` and a leading `~`. A lone `$` is
    /// literal. The value of a variable is not expanded again.
    pub(super) fn expand(&self, role: Role, scope: Scope<'_>) -> Result<String, Finding> {
        if let Some(name) = self.raw.strip_prefix("env:")
            && (role == Role::Secret || is_name(name))
        {
            return self.variable(name, None, scope);
        }
        let mut expanded = String::new();
        let mut rest = self.raw.as_str();
        if role == Role::Path
            && let Some(after) = rest.strip_prefix('~')
            && (after.is_empty() || after.starts_with('/'))
        {
            expanded.push_str(&self.variable("HOME", None, scope)?);
            rest = after;
        }
        while let Some(at) = rest.find(['$', '{', '%']) {
            let (before, reference) = rest.split_at(at);
            expanded.push_str(before);
            rest = self.reference(reference, role, scope, &mut expanded)?;
        }
        expanded.push_str(rest);
        without_nul(&self.key, self.location, &expanded)?;
        Ok(expanded)
    }

    /// Appends the value of the reference at the start of `text`, or the first character if there
    /// is no reference. Returns the remaining text.
    fn reference<'a>(
        &self,
        text: &'a str,
        role: Role,
        scope: Scope<'_>,
        expanded: &mut String,
    ) -> Result<&'a str, Finding> {
        if let Some(reference) = text.strip_prefix("${") {
            let Some((reference, after)) = reference.split_once('}') else {
                return Err(Finding::unexpected(&self.key, self.location, "a `}` after `${`", "none"));
            };
            expanded.push_str(&self.braced(reference, scope)?);
            return Ok(after);
        }
        if let Some((name, after)) = text.strip_prefix("{env:").and_then(|rest| rest.split_once('}'))
            && is_name(name)
        {
            expanded.push_str(&self.variable(name, None, scope)?);
            return Ok(after);
        }
        if role != Role::Address
            && let Some((name, after)) = text.strip_prefix('%').and_then(|rest| rest.split_once('%'))
            && is_name(name)
            // Percent signs have other uses. Windows also leaves unknown names unchanged.
            && let Some(value) = scope.environment.get(name)
        {
            expanded.push_str(value);
            return Ok(after);
        }
        let mut characters = text.chars();
        expanded.extend(characters.next());
        Ok(characters.as_str())
    }

    fn braced(&self, reference: &str, scope: Scope<'_>) -> Result<String, Finding> {
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        if let Some(name) = name.strip_prefix("env:") {
            return self.variable(name, default, scope);
        }
        let foreign = |hint: &str| {
            // Only the kind is shown: the rest may be anything, including a secret.
            let kind = reference.split(':').next().unwrap_or_default();
            let reference = format!("${{{kind}}}");
            let kind = FindingKind::ForeignReference { key: self.key.clone(), reference };
            Finding { kind, location: self.location, hint: Some(hint.to_owned()) }
        };
        match name {
            "workspaceFolder" => Ok(scope.workspace.display().to_string()),
            "userHome" => self.variable("HOME", default, scope),
            "pathSeparator" | "/" => Ok("/".to_owned()),
            _ if name.starts_with("input:")
                || name.starts_with("command:")
                || name.starts_with("config:") =>
            {
                Err(foreign("write the server into cx's own file, with `${NAME}` from the environment"))
            }
            _ => self.variable(name, default, scope),
        }
    }

    /// A variable's value. As in shells, an empty value counts as missing if there is a default.
    fn variable(&self, name: &str, default: Option<&str>, scope: Scope<'_>) -> Result<String, Finding> {
        if !is_name(name) {
            let expected = "a variable's name of letters, digits and `_`";
            return Err(Finding::unexpected(&self.key, self.location, expected, "another"));
        }
        match (scope.environment.get(name), default) {
            (Some(value), Some(_)) if !value.is_empty() => Ok(value.to_owned()),
            (_, Some(default)) => Ok(default.to_owned()),
            (Some(value), None) => Ok(value.to_owned()),
            (None, None) => {
                let kind = FindingKind::MissingVariable { key: self.key.clone(), name: name.to_owned() };
                let hint = Some(format!("set it, or give a default: `${{{name}:-default}}`"));
                Err(Finding { kind, location: self.location, hint })
            }
        }
    }
}

/// Refuses a NUL character, because it cannot be passed to a program.
pub(super) fn without_nul(key: &Key, location: Option<Location>, text: &str) -> Result<(), Finding> {
    if text.contains('\0') {
        let found = "a NUL character, which no program can be given";
        return Err(Finding::unexpected(key, location, "text", found));
    }
    Ok(())
}

/// Whether a text can be the name of a variable.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
