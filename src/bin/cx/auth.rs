//! `cx auth`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use cx::auth::{self, AuthStatus};
use cx::{Config, McpServer, McpTransport};
use tokio::sync::oneshot;
use url::Url;

use crate::args::{AuthArguments, AuthCommand, AuthServer};
use crate::exit::ExitStatus;
use crate::text::whole_seconds;
use crate::{browser, diagnostic, output, setup};

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
            AuthCommand::Status { name: Some(name), url, mcp_config } => {
                let (text, is_usable) = status(&find(&AuthServer { name, url, mcp_config })?).await?;
                output::print_text(&text)?;
                Ok(exit_status(is_usable))
            }
            AuthCommand::Status { name: None, mcp_config, .. } => status_of_all(mcp_config).await,
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
        if !no_browser && let Err(error) = browser::open(address.as_str()) {
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

/// What is known of the sign-in to a server, and whether it can be used.
async fn status(server: &McpServer) -> anyhow::Result<(String, bool)> {
    let name = &server.name;
    Ok(match auth::status(server, &state_directory()?).await? {
        AuthStatus::SignedIn { renews: true, .. } => (format!("{name}: signed in"), true),
        AuthStatus::SignedIn { remaining: Some(remaining), .. } if remaining.is_zero() => {
            (format!("{name}: the sign-in has expired"), false)
        }
        AuthStatus::SignedIn { remaining: Some(remaining), .. } => {
            (format!("{name}: signed in for {}", whole_seconds(remaining)), true)
        }
        AuthStatus::SignedIn { .. } => (format!("{name}: signed in"), true),
        AuthStatus::Unusable => (format!("{name}: the stored sign-in cannot be used; sign in again"), false),
        _ => (format!("{name}: signed out"), false),
    })
}

/// Prints what is known of all servers that are reached over HTTP. A server with an `Authorization` header in the
/// configuration needs no sign-in.
async fn status_of_all(mcp_config: Vec<PathBuf>) -> anyhow::Result<ExitStatus> {
    let mut lines = Vec::new();
    let mut are_usable = true;
    for server in load(mcp_config)?.servers {
        let McpTransport::Http(http) = &server.transport else { continue };
        if http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
            lines.push(format!("{}: has an `Authorization` header in the configuration", server.name));
            continue;
        }
        let (text, is_usable) = status(&server).await?;
        are_usable &= is_usable;
        lines.push(text);
    }
    if lines.is_empty() {
        diagnostic::print_note("no server of the configuration is reached over HTTP");
    } else {
        output::print_text(&lines.join("\n"))?;
    }
    Ok(exit_status(are_usable))
}

fn exit_status(is_usable: bool) -> ExitStatus {
    if is_usable { ExitStatus::Success } else { ExitStatus::Failed }
}

/// The configuration. Its warnings are printed: they say why a server is not used.
fn load(mcp_config: Vec<PathBuf>) -> anyhow::Result<Config> {
    let config = setup::load(mcp_config)?;
    diagnostic::print_warnings(&config.warnings);
    Ok(config)
}

/// The server that the arguments name.
fn find(arguments: &AuthServer) -> anyhow::Result<McpServer> {
    let Some(address) = &arguments.url else {
        let config = load(arguments.mcp_config.clone())?;
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
