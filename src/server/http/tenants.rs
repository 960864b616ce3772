//! The tenants of a server over HTTP, and the tokens of their clients.

use std::sync::Arc;

use super::reading::TokenReading;
use super::token::HttpToken;
use crate::error::{Error, OptionName};
use crate::text::{MAX_TENANT_NAME, is_tenant_name};

/// Maximum number of tokens of all tenants. Each request is compared with all of them, and each tenant keeps its own
/// answers.
const MAX_TOKENS: usize = 64;

/// A tenant of [`HttpOptions::tenants`](super::HttpOptions::tenants): a name, and a token that its clients send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTenant {
    name: Arc<str>,
    token: HttpToken,
}

impl HttpTenant {
    /// Makes a tenant. Its name has 1 to 32 lower-case letters, digits and hyphens, because it becomes part of other
    /// names.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if the name is not valid.
    pub fn new(name: &str, token: HttpToken) -> Result<Self, Error> {
        if is_tenant_name(name) {
            return Ok(Self { name: name.into(), token });
        }
        // The text is not shown: it may be a token in place of a name.
        Err(invalid(format!(
            "expected the name of a tenant: 1 to {MAX_TENANT_NAME} lower-case letters, digits and hyphens"
        )))
    }

    /// Parses a list of tenants: each line has a name, space and a token. Empty lines and lines that begin with `#` are
    /// ignored. A name may have several lines, so that its token can be replaced while both tokens work.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if a line is invalid, or there is no tenant. The message has the line's number and
    /// none of its text.
    pub fn list(text: &str) -> Result<Vec<Self>, Error> {
        let mut tenants = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1_u32..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let in_line = |error: Error| match error {
                Error::InvalidOptions { problem, .. } => invalid(format!("line {number}: {problem}")),
                other => other,
            };
            let (name, token) = line
                .split_once(|character: char| character.is_ascii_whitespace())
                .ok_or_else(|| invalid(format!("line {number}: expected a name, space and a token")))?;
            let token = HttpToken::new(token.trim()).map_err(in_line)?;
            tenants.push(Self::new(name, token).map_err(in_line)?);
        }
        if tenants.is_empty() {
            let problem = "there is no token: expected a name, space and a token in each line";
            return Err(invalid(problem.to_owned()));
        }
        Ok(tenants)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn token(&self) -> &HttpToken {
        &self.token
    }

    /// The names of all tenants, each once, in the order of the list.
    pub fn names(tenants: &[Self]) -> Vec<&str> {
        let mut names = Vec::new();
        for tenant in tenants {
            if !names.contains(&tenant.name()) {
                names.push(tenant.name());
            }
        }
        names
    }
}

/// Reads the tenants again, for [`HttpOptions::tenant_reader`](super::HttpOptions::tenant_reader). It may block.
pub type TenantReader = Arc<dyn Fn() -> TokenReading<Vec<HttpTenant>> + Send + Sync>;

/// Checks that each token identifies its sender: no two tenants have the same token, and no tenant has the operator's.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if a token is used twice, or there are more than 64.
pub(super) fn check_all(tenants: &[HttpTenant], operator: Option<&HttpToken>) -> Result<(), Error> {
    if tenants.len() > MAX_TOKENS {
        return Err(invalid(format!("expected at most {MAX_TOKENS} tokens: {}", tenants.len())));
    }
    for (tenant, earlier) in tenants.iter().zip(0..) {
        if operator.is_some_and(|operator| operator.equals(&tenant.token)) {
            return Err(invalid(format!("the tenant `{}` has the operator's token", tenant.name)));
        }
        let same = tenants.iter().take(earlier).find(|other| other.token.equals(&tenant.token));
        if let Some(same) = same {
            return Err(invalid(format!("`{}` and `{}` have the same token", same.name, tenant.name)));
        }
    }
    Ok(())
}

fn invalid(problem: String) -> Error {
    Error::InvalidOptions { option: OptionName::Tenants, problem }
}

#[cfg(test)]
mod tests;
