//! `cx serve --http`: the listener and the tokens.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use cx::RateLimit;
use cx::server::{HttpOptions, HttpTenant, HttpToken};
use listenfd::ListenFd;
use tokio::net::TcpListener;

use crate::args::HttpArguments;
use crate::diagnostic::{self, invalid};
use crate::secret::{read_secret, variable};
use crate::tokens_file::{Tenants, TokensFile, numbers_of};

/// The variable with the token if no file is named.
const TOKEN_VARIABLE: &str = "CX_HTTP_TOKEN";

/// The variable with the tokens of tenants if no file is named.
const TOKENS_VARIABLE: &str = "CX_HTTP_TOKENS";

/// Maximum bytes of a file with a token, which is shorter.
const MAX_TOKEN: usize = 4 << 10;

/// The options of a server at `address`, from the arguments, the configuration and the environment.
/// Must be called in a tokio runtime.
///
/// # Errors
///
/// If a token is configured but cannot be read, or if there is none and other machines can reach
/// the address.
pub(crate) fn options(
    address: SocketAddr,
    arguments: HttpArguments,
    tenants: Tenants,
    configured_rate: Option<RateLimit>,
) -> anyhow::Result<HttpOptions> {
    let mut options = HttpOptions::default();
    options.tenants = tenants.list;
    options.token = token(arguments.token_file.as_deref())?;
    options.allow_origins = arguments.allow_origin;
    options.client_rate = match arguments.client_rate {
        Some(runs) => NonZeroU32::new(runs).map(RateLimit::per_minute),
        None => configured_rate.or(options.client_rate),
    };
    options.run_rate = NonZeroU32::new(arguments.run_rate).map(RateLimit::per_minute);
    options.lent_workers = arguments.compute;
    options.validate(address.ip())?;
    if let Some(file) = tenants.file {
        let (rules, may_be_several) = (options.clone(), tenants.may_be_several);
        options.tenant_reader = Some(file.reader(move |list| {
            if HttpTenant::names(list).len() > 1 && !may_be_several {
                bail!("several tenants need worker processes: start cx again, or give it `--isolation`");
            }
            let mut options = rules.clone();
            options.tenants = list.to_vec();
            Ok(options.validate(address.ip())?)
        }));
    }
    Ok(options)
}

/// Opens the address and prints it.
///
/// # Errors
///
/// If the system refuses it.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("failed to listen at {address}: is another program there?"))?;
    announce(&listener)?;
    Ok(listener)
}

/// Prints where a listener listens.
///
/// # Errors
///
/// If the system does not say it.
pub(crate) fn announce(listener: &TcpListener) -> anyhow::Result<()> {
    let address = listener.local_addr().context("failed to find out where the server listens")?;
    diagnostic::print_note(&format!("listening on http://{address}/mcp"));
    Ok(())
}

/// Takes the socket that systemd has opened (`LISTEN_FDS`). Must be called while the process has one thread,
/// because it removes the variables, which are for this process alone.
///
/// # Errors
///
/// If there is not exactly one, or it is no TCP socket that listens.
pub(crate) fn passed_listener() -> anyhow::Result<std::net::TcpListener> {
    let mut passed = ListenFd::from_env();
    let count = passed.len();
    if count != 1 {
        return Err(invalid(anyhow!(
            "--http systemd: expected one socket in LISTEN_FDS, found {count}: start cx with a socket unit \
             that has one `ListenStream=`, or give an address"
        )));
    }
    let listener = passed.take_tcp_listener(0).context("--http systemd: the socket that was passed")?;
    let listener = listener.context("--http systemd: the socket was taken before")?;
    // A connection, as of a unit with `Accept=yes`, looks the same otherwise.
    if !rustix::net::sockopt::socket_acceptconn(&listener).unwrap_or(false) {
        return Err(invalid(anyhow!(
            "--http systemd: the socket that was passed does not listen: the socket unit needs `Accept=no`"
        )));
    }
    Ok(listener)
}

/// Makes a passed socket one of the runtime's. Must be called in a tokio runtime.
///
/// # Errors
///
/// If the system refuses it.
pub(crate) fn adopt(listener: Option<std::net::TcpListener>) -> anyhow::Result<TcpListener> {
    let listener = listener.context("--http systemd: no socket was passed")?;
    listener.set_nonblocking(true).context("failed to use the socket that was passed")?;
    TcpListener::from_std(listener).context("failed to use the socket that was passed")
}

/// The token that clients must send. It is never an argument, because other users can see those in
/// the list of processes.
///
/// # Errors
///
/// If there is one that cannot be read or used.
pub(crate) fn token(file: Option<&Path>) -> anyhow::Result<Option<HttpToken>> {
    if let Some(path) = file {
        let shown = path.display();
        let text = read_secret(path, MAX_TOKEN);
        let text = text.with_context(|| format!("failed to read the token file `{shown}`"))?;
        let token = HttpToken::new(text.trim()).with_context(|| format!("the token in `{shown}`"))?;
        return Ok(Some(token));
    }
    let token = variable(TOKEN_VARIABLE)?.map(|text| HttpToken::new(&text));
    token.transpose().with_context(|| format!("the token in {TOKEN_VARIABLE}"))
}

/// The tenants and the tokens of their clients: those of the argument's file, else of the environment, else of the
/// file that the configuration names.
///
/// # Errors
///
/// If there are some that cannot be read or used.
pub(crate) fn tenants(argument: Option<&Path>, configured: Option<&Path>) -> anyhow::Result<Tenants> {
    if argument.is_none()
        && let Some(text) = variable(TOKENS_VARIABLE)?
    {
        let list = HttpTenant::list(&text).with_context(|| format!("the tokens in {TOKENS_VARIABLE}"))?;
        return Ok(Tenants { list, ..Tenants::default() });
    }
    let Some(path) = argument.or(configured) else { return Ok(Tenants::default()) };
    let file = TokensFile::open(path)?;
    let list = file.tenants().to_vec();
    // What a pipe has can be read once.
    Ok(Tenants { list, file: path.is_file().then_some(file), ..Tenants::default() })
}

/// Says which tenants there are, and where their scripts are executed.
pub(crate) fn announce_tenants(tenants: &[HttpTenant], isolation: &str) {
    let place = match isolation {
        "in-process" => {
            "in the process of the server, which confines tenants less than `--isolation process`"
        }
        "process" => "in worker processes, none of which serves two tenants",
        _ => "elsewhere, as `isolation` says",
    };
    diagnostic::print_note(&format!("{}: scripts run {place}", numbers_of(tenants)));
}
