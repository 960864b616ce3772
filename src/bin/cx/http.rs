//! `cx serve --http`: the listener and the tokens.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use cx::RateLimit;
use cx::server::{HttpOptions, HttpTenant, HttpToken, TokenReader};
use listenfd::ListenFd;
use parking_lot::Mutex;
use tokio::net::TcpListener;

use crate::args::HttpArguments;
use crate::diagnostic::{self, invalid};
use crate::secret::variable;
use crate::tokens_file::{Tenants, TokensFile, numbers_of};

/// The variable with the token if no file is named.
const TOKEN_VARIABLE: &str = "CX_HTTP_TOKEN";

/// The variable with the tokens of tenants if no file is named.
const TOKENS_VARIABLE: &str = "CX_HTTP_TOKENS";

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
    let own = token(arguments.token_file.as_deref())?;
    options.token.clone_from(&own.token);
    options.allow_origins = arguments.allow_origin;
    options.client_rate = match arguments.client_rate {
        Some(runs) => NonZeroU32::new(runs).map(RateLimit::per_minute),
        None => configured_rate.or(options.client_rate),
    };
    options.run_rate = NonZeroU32::new(arguments.run_rate).map(RateLimit::per_minute);
    options.lent_workers = arguments.compute;
    options.drain_time = arguments.drain;
    options.validate(address.ip())?;
    let rules = Rules::new(&options, address.ip());
    options.token_reader = own.reader(&rules);
    if let Some(file) = tenants.file {
        let may_be_several = tenants.may_be_several;
        options.tenant_reader = Some(file.reader(move |list: &Vec<HttpTenant>| {
            if HttpTenant::names(list).len() > 1 && !may_be_several {
                bail!("several tenants need worker processes: start cx again, or give it `--isolation`");
            }
            rules.accept(|options| options.tenants.clone_from(list))
        }));
    }
    Ok(options)
}

/// The current options, which determine whether later tokens are accepted.
#[derive(Clone)]
pub(crate) struct Rules {
    options: Arc<Mutex<HttpOptions>>,
    address: IpAddr,
}

impl Rules {
    /// The options of a server at `address`.
    pub(crate) fn new(options: &HttpOptions, address: IpAddr) -> Self {
        Self { options: Arc::new(Mutex::new(options.clone())), address }
    }

    /// Changes the options, if a server could be started with the changed ones.
    ///
    /// # Errors
    ///
    /// If it could not be started. The options are then unchanged.
    fn accept(&self, change: impl FnOnce(&mut HttpOptions)) -> anyhow::Result<()> {
        let mut options = self.options.lock();
        let mut changed = options.clone();
        change(&mut changed);
        changed.validate(self.address)?;
        *options = changed;
        Ok(())
    }
}

/// The token of a server at its start, and its source for later changes.
#[derive(Default)]
pub(crate) struct OwnToken {
    pub(crate) token: Option<HttpToken>,
    /// `None` if it cannot change: it is in the environment or came from a pipe, or there is none.
    file: Option<TokensFile<HttpToken>>,
}

impl OwnToken {
    /// Reads the token again, if it can change.
    pub(crate) fn reader(self, rules: &Rules) -> Option<TokenReader> {
        let rules = rules.clone();
        let file = self.file?;
        Some(
            file.reader(move |token: &HttpToken| rules.accept(|options| options.token = Some(token.clone()))),
        )
    }
}

/// Opens the address and prints it.
///
/// # Errors
///
/// If the system refuses it.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("failed to listen at {address}"))?;
    announce(&listener)?;
    Ok(listener)
}

/// Prints the address of a listener.
///
/// # Errors
///
/// If the system does not report it.
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
pub(crate) fn token(file: Option<&Path>) -> anyhow::Result<OwnToken> {
    if let Some(path) = file {
        let file = TokensFile::<HttpToken>::open(path)?;
        let token = Some(HttpToken::clone(file.tokens()));
        return Ok(OwnToken { token, file: can_change(path).then_some(file) });
    }
    let token = variable(TOKEN_VARIABLE)?.map(|text| HttpToken::new(&text));
    let token = token.transpose().with_context(|| format!("the token in {TOKEN_VARIABLE}"))?;
    Ok(OwnToken { token, ..OwnToken::default() })
}

/// Whether the file at the path can be read again. A pipe can be read only once.
fn can_change(path: &Path) -> bool {
    path.is_file()
}

/// The tenants and the tokens of their clients, from the file of the argument, else from the environment, else from the
/// file that the configuration names.
///
/// # Errors
///
/// If there are tenants that cannot be read or used.
pub(crate) fn tenants(argument: Option<&Path>, configured: Option<&Path>) -> anyhow::Result<Tenants> {
    if argument.is_none()
        && let Some(text) = variable(TOKENS_VARIABLE)?
    {
        let list = HttpTenant::list(&text).with_context(|| format!("the tokens in {TOKENS_VARIABLE}"))?;
        return Ok(Tenants { list, ..Tenants::default() });
    }
    let Some(path) = argument.or(configured) else { return Ok(Tenants::default()) };
    let file = TokensFile::<Vec<HttpTenant>>::open(path)?;
    let list = Vec::clone(file.tokens());
    Ok(Tenants { list, file: can_change(path).then_some(file), ..Tenants::default() })
}

/// Prints the tenants, and where their scripts are executed.
pub(crate) fn announce_tenants(tenants: &[HttpTenant], isolation: &str) {
    let location = match isolation {
        "in-process" => {
            "in the process of the server, which confines tenants less than `--isolation process`"
        }
        "process" => "in worker processes, none of which serves two tenants",
        _ => "elsewhere, as `isolation` says",
    };
    diagnostic::print_note(&format!("{}: scripts run {location}", numbers_of(tenants)));
}
