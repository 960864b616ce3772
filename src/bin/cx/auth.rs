//! `cx auth`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use cx::McpServer;
use cx::auth::{self, AuthStatus};
use tokio::sync::oneshot;
use url::Url;

use crate::args::{AuthArguments, AuthCommand, AuthServer};
use crate::exit::ExitStatus;
use crate::{diagnostic, output, setup};

/// Signs in to or out of a server, or reports whether the user is signed in.
///
/// # Errors
///
/// Invalid arguments, and why signing in failed.
pub(crate) fn run(arguments: AuthArguments) -> anyhow::Result<ExitStatus> {
    cx::check_machine(1, 16, 0)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments.command {
            AuthCommand::Login { server, scope, no_browser } => login(&server, &scope, no_browser).await,
            AuthCommand::Logout { server } => {
                auth::logout(&find(&server)?, &state_directory()?).await?;
                output::print_text(&format!("signed out of {}", server.name))?;
                Ok(ExitStatus::Success)
            }
            AuthCommand::Status { server } => status(&server).await,
        }
    })
}

async fn login(arguments: &AuthServer, scope: &[String], no_browser: bool) -> anyhow::Result<ExitStatus> {
    let server = find(arguments)?;
    let (failed, printing) = oneshot::channel();
    let directory = state_directory()?;
    let login = auth::login_for(&server, &directory, scope, |address| {
        // Printed even if a browser opens, because it may open where the user does not see it.
        let text = format!("open this address to sign in to {}:\n{address}", arguments.name);
        if let Err(error) = output::print_text(&text) {
            let _ = failed.send(error);
            return;
        }
        if !no_browser && let Err(error) = open::that_detached(address.as_str()) {
            diagnostic::print_warning(&format!("no browser could be opened: {error}"));
        }
    });
    tokio::select! {
        signed_in = login => signed_in?,
        // Without the printed address the user cannot sign in.
        Ok(error) = printing => return Err(error.into()),
    }
    output::print_text(&format!("signed in to {}", arguments.name))?;
    Ok(ExitStatus::Success)
}

async fn status(arguments: &AuthServer) -> anyhow::Result<ExitStatus> {
    let name = &arguments.name;
    let (text, status) = match auth::status(&find(arguments)?, &state_directory()?).await? {
        AuthStatus::SignedIn { renews: true, .. } => (format!("{name}: signed in"), ExitStatus::Success),
        AuthStatus::SignedIn { remaining: Some(remaining), .. } if remaining.is_zero() => {
            (format!("{name}: the sign-in has expired"), ExitStatus::Failed)
        }
        AuthStatus::SignedIn { remaining: Some(remaining), .. } => {
            (format!("{name}: signed in for {}", humantime::format_duration(remaining)), ExitStatus::Success)
        }
        AuthStatus::SignedIn { .. } => (format!("{name}: signed in"), ExitStatus::Success),
        AuthStatus::Unusable => {
            (format!("{name}: the stored sign-in cannot be used; sign in again"), ExitStatus::Failed)
        }
        _ => (format!("{name}: signed out"), ExitStatus::Failed),
    };
    output::print_text(&text)?;
    Ok(status)
}

/// The server that the arguments name.
fn find(arguments: &AuthServer) -> anyhow::Result<McpServer> {
    let Some(address) = &arguments.url else {
        let config = setup::load(arguments.mcp_config.clone())?;
        let found = config.servers.into_iter().find(|server| server.name == arguments.name);
        let name = &arguments.name;
        return found.with_context(|| {
            format!("no server `{name}` is configured; see `cx config show`, or give its address with --url")
        });
    };
    let url = Url::parse(address).with_context(|| {
        format!("--url `{address}` is not an address; expected one such as https://example.com/mcp")
    })?;
    if !matches!(url.scheme(), "https" | "http") {
        bail!("--url `{address}` is not behind HTTP; expected `https`");
    }
    Ok(McpServer::http(&arguments.name, url))
}

/// Where the user's tokens are stored if there is no keyring.
fn state_directory() -> anyhow::Result<PathBuf> {
    Ok(setup::directories()?.state)
}
